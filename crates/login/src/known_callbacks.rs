//! Redirect URIs that apps with a scheme of their own use for MCP, as their makers document them
//! or their source has them.

/// The redirect URIs of known apps; `*` stands for a name that the app chooses. An app takes other
/// URIs of its scheme as commands. `docs/login.md` names the sources.
const CALLBACKS: [&str; 13] = [
    "claude://claude.ai/mcp-auth-callback/sdk",
    "com.raycast:/oauth?package_name=*",
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "cursor://anysphere.cursor-mcp/oauth/*/callback",
    "cursor://anysphere.cursor-retrieval/oauth/callback",
    "cursor://anysphere.cursor-retrieval/oauth/*/callback",
    "cursor://saoudrizwan.claude-dev/mcp-auth/callback/*",
    "grokbot://mcp/oauth/callback",
    "raycast://oauth?package_name=*",
    "vscode://saoudrizwan.claude-dev/mcp-auth/callback/*",
    "vscode-insiders://saoudrizwan.claude-dev/mcp-auth/callback/*",
    "warp://mcp/oauth2callback",
    "warppreview://mcp/oauth2callback",
];

/// Whether a redirect URI is one of a known app. Strings are compared, so that no other spelling
/// of a URI, which the app may read differently, is taken for it.
pub(super) fn is_known(uri: &str) -> bool {
    CALLBACKS.iter().any(|callback| match callback.split_once('*') {
        None => uri == *callback,
        Some((before, after)) => uri
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(is_chosen_name),
    })
}

/// Whether a text can only be a name: neither a separator nor an escaped character is in it, and it
/// is no step to another path.
fn is_chosen_name(text: &str) -> bool {
    let is_of_names = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'(' | b')')
    };

    text.bytes().all(is_of_names) && text.bytes().any(|byte| byte != b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_of_an_app_is_known() {
        for callback in CALLBACKS {
            assert!(is_known(&callback.replace('*', "user-larder")), "{callback}");
        }
        assert!(is_known("raycast://oauth?package_name=mcp_server_larder_(dev)"));
    }

    #[test]
    fn another_uri_of_the_app_is_not_known() {
        for command in [
            "vscode://vscode.git/clone?url=https://evil.example/a.git",
            "vscode://saoudrizwan.claude-dev/task?prompt=x",
            "vscode://saoudrizwan.claude-dev/mcp-auth/callback/x?prompt=x",
            "vscode://saoudrizwan.claude-dev/mcp-auth/callback/",
            "cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=y",
            "cursor://anysphere.cursor-mcp/oauth/../../anysphere.cursor-deeplink/callback",
            "cursor://anysphere.cursor-mcp/oauth/../callback",
            "cursor://anysphere.cursor-mcp/oauth/%2e%2e/callback",
            "cursor://anysphere.cursor-mcp/oauth/a/b/callback",
            "cursor://anysphere.cursor-mcp/oauth//callback",
            "cursor://anysphere.cursor-mcp/oauth/callback?x=1",
            "CURSOR://anysphere.cursor-mcp/oauth/callback",
            "raycast://extensions/raycast/system/shutdown",
            "raycast://oauth?package_name=x&launchType=background",
            "raycast://oauth?package_name=x%26y",
            "claude://claude.ai/new?q=x",
            "warp://action/new_tab?path=/tmp",
            "goose://extension?cmd=npx",
        ] {
            assert!(!is_known(command), "{command}");
        }
    }
}
