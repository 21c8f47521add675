//! `larder config check`, and the settings that it refuses.

use serde_json::json;

use super::issuer::{Issuer, Reply};
use crate::support::{
    TextFile,
    process::{larder, run},
};

/// The exit code and the output of a check.
async fn check(toml: &str, more: &[&str]) -> (i32, String) {
    let file = TextFile::new(toml);
    let mut command = larder(&["config", "check", "--config", file.path()]);
    command.args(more).env("SECRET_FOR_TESTS", "hush-hush");
    let checked = run(command).await;
    (checked.code.unwrap(), checked.stdout + &checked.stderr)
}

/// A configuration with one issuer, and more under `[auth]`.
pub(super) fn oauth(issuer: &str, more: &str) -> String {
    format!(
        "[server]\npublic_url = \"http://127.0.0.1:8000/mcp\"\n[auth]\nmode = \"oauth\"\n{more}\n[[auth.issuers]]\nissuer = \"{issuer}\"\n"
    )
}

#[tokio::test]
async fn a_valid_configuration_is_accepted() {
    assert_eq!(check("", &[]).await.0, 0);
    let (code, said) = check(&oauth("http://127.0.0.1:9000", ""), &[]).await;
    assert_eq!(code, 0, "{said}");
    let full = oauth(
        "https://auth.example.com/tenant",
        "required_scopes = [\"mcp:read\"]\n[auth.scopes]\ncreate_resource = [\"mcp:write\"]\n\"delete_*\" = [\"mcp:Admin\"]\n[auth.hierarchy]\n\"mcp:Admin\" = [\"mcp:write\"]",
    ) + "any_typ = true\naudiences = [\"api://x\"]\n[auth.issuers.introspection]\nclient_id = \"larder\"\nclient_secret_env = \"SECRET_FOR_TESTS\"\n";
    let (code, said) = check(&full, &[]).await;
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("hush-hush"));
}

#[tokio::test]
async fn an_online_check_fetches_the_keys_of_the_issuers() {
    let issuer = Issuer::start().await;
    let toml = oauth(&issuer.url, "");
    assert_eq!(check(&toml, &[]).await.0, 0);
    assert_eq!(issuer.hits("/jwks"), 0);
    let (code, said) = check(&toml, &["--online"]).await;
    assert_eq!((code, said.contains("3 usable keys")), (0, true), "{said}");
    for (path, answer, named) in [
        ("/jwks", Reply::Json(json!({ "keys": [] })), "no usable key"),
        ("/jwks", Reply::Status(503, json!({})), "503"),
        ("/.well-known/oauth-authorization-server", Reply::Status(404, json!({})), "404"),
    ] {
        issuer.set_reply(path, answer);
        let (code, said) = check(&toml, &["--online"]).await;
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(named) && said.contains(&issuer.url), "{said}");
    }
}

#[tokio::test]
async fn an_invalid_setting_is_named_with_exit_code_2() {
    let issuer = "https://auth.example.com";
    let hash = "0".repeat(64);
    let tokens = |tokens: &str| format!("[auth]\nmode = \"static\"\n{tokens}");
    for (toml, named) in [
        (oauth(issuer, "mod = 1"), "mod"),
        ("[auth]\nmode = \"magic\"".into(), "auth.mode"),
        ("[auth]\nmode = \"oauth\"".into(), "auth.issuers"),
        ("[auth]\nmode = \"static\"".into(), "auth.tokens"),
        (
            format!("[auth]\nmode = \"oauth\"\n[[auth.issuers]]\nissuer = \"{issuer}\""),
            "server.public_url",
        ),
        (format!("[auth]\n[[auth.issuers]]\nissuer = \"{issuer}\""), "auth.mode"),
        ("[auth]\nrequired_scopes = [\"a\"]".into(), "auth.mode"),
        (oauth("http://auth.example.com", ""), "https"),
        (oauth("auth.example.com", ""), "auth.issuers[0].issuer"),
        (oauth(issuer, "required_scopes = [\"offline_access\"]"), "auth.required_scopes"),
        (oauth(issuer, "required_scopes = [\"a b\"]"), "auth.required_scopes"),
        (oauth(issuer, "[auth.scopes]\nno_such_tool = [\"a\"]"), "no_such_tool"),
        (oauth(issuer, "[auth.scopes]\n\"*\" = [\"a\"]"), "auth.scopes"),
        (oauth(issuer, "[auth.scopes]\nread_resource = []"), "auth.scopes"),
        (oauth(issuer, "") + "client_secret = \"x\"", "client_secret"),
        (oauth(issuer, "") + "jwks_url = \"http://a.example/jwks\"", "jwks_url"),
        (
            oauth(issuer, "") + "[auth.issuers.introspection]\nclient_id = \"x\"",
            "client_secret_file",
        ),
        (
            oauth(issuer, "")
                + "[auth.issuers.introspection]\nclient_id = \"x\"\nclient_secret_file = \"/nowhere\"",
            "client_secret_file",
        ),
        (
            oauth(issuer, "")
                + "[auth.issuers.introspection]\nclient_id = \"x\"\nclient_secret_env = \"NOT_SET_ANYWHERE\"",
            "NOT_SET_ANYWHERE",
        ),
        (oauth(issuer, "") + &format!("[[auth.issuers]]\nissuer = \"{issuer}\""), "auth.issuers"),
        (
            tokens("[[auth.tokens]]\nname = \"a\"\nsha256 = \"the-token-itself\""),
            "auth.tokens[0].sha256",
        ),
        (tokens(&format!("[[auth.tokens]]\nsha256 = \"{hash}\"")), "auth.tokens[0].name"),
        (
            tokens(&format!(
                "[[auth.tokens]]\nname = \"a\"\nsha256 = \"{hash}\"\n[[auth.tokens]]\nname = \"b\"\nsha256 = \"{hash}\""
            )),
            "auth.tokens",
        ),
        ("[server]\npublic_url = \"https://a.example/mcp/\"".into(), "server.public_url"),
        ("[server]\npublic_url = \"mcp\"".into(), "server.public_url"),
        (
            oauth(issuer, "").replace("http://127.0.0.1:8000/mcp", "http://a.example/mcp"),
            "server.public_url",
        ),
        ("[limits]\nwindow = 0".into(), "limits.window"),
        // Even if the store is not reachable.
        (
            oauth(issuer, "[auth.scopes]\nno_such_tool = [\"a\"]")
                + "[store]\nurl = \"redis://127.0.0.1:1\"",
            "no_such_tool",
        ),
    ] {
        let (code, said) = check(&toml, &[]).await;
        assert_eq!(code, 2, "{toml}\n{said}");
        assert!(said.contains(named), "{named} in {said}\n{toml}");
        assert!(!said.contains("the-token-itself"), "{said}");
    }
}

#[tokio::test]
async fn an_address_beyond_loopback_requires_authentication_or_a_flag() {
    let listen = "[server]\nlisten = \"0.0.0.0:0\"\n";
    assert_eq!(check(listen, &[]).await.0, 2);
    let asked = oauth("https://auth.example.com", "").replace("[server]\n", listen);
    assert_eq!(check(&asked, &[]).await.0, 0);
    assert_eq!(check(&format!("{listen}insecure_no_auth = true"), &[]).await.0, 0);
}
