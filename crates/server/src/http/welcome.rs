//! The page for a person whose browser comes to the endpoint, or to the root: what this server is,
//! how a client connects to it, and where the console is.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use super::{
    Endpoint,
    head::Head,
    pages::{escape, page},
    surface::Surface,
};

/// The page, if a person asks for it.
pub(super) fn of(surface: Surface, endpoint: &Endpoint, head: &Head) -> Option<Response> {
    let is_here = match surface {
        Surface::Mcp => true,
        Surface::Unknown => head.path() == "/",
        _ => false,
    };
    if !(is_here && head.is_of_person()) {
        return None;
    }

    let info = endpoint.dispatcher.registry().info();
    let name = info.title.as_deref().unwrap_or(&info.name);
    let mut response = page(StatusCode::OK, &escape(name), &body(endpoint, head));
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
    Some(response)
}

fn body(endpoint: &Endpoint, head: &Head) -> String {
    let url = escape(&url(endpoint, head));
    let info = endpoint.dispatcher.registry().info();
    let mut body = format!(
        "<p>This is a server of the <a href=\"https://modelcontextprotocol.io\">Model Context \
         Protocol</a>. Clients such as Claude or an editor connect to it; this page is for people.</p>\
         <dl><dt>URL for clients</dt><dd><code>{url}</code></dd>\
         <dt>Claude Code</dt><dd><code>claude mcp add --transport http {} {url}</code></dd>",
        escape(&name_in_shell(&info.name)),
    );

    if endpoint.authenticator.is_required() {
        let how = if endpoint.login.is_some() || endpoint.protected.is_some() {
            "The client opens a page at which you log in."
        } else {
            "The client needs a token from the operator of this server."
        };
        body += &format!("<dt>Access</dt><dd>{how}</dd>");
    }
    body += "</dl>";

    if let Some(console) = &endpoint.console {
        let path = escape(console.path());
        body += &format!(
            "<p class=\"actions\"><a class=\"button\" href=\"{path}/\">Open the console</a></p>\
             <p class=\"note\">It shows what you have stored here.</p>"
        );
    }
    body
}

/// The URL of the endpoint: the public one, or the one at which the browser has come.
fn url(endpoint: &Endpoint, head: &Head) -> String {
    let options = endpoint.options();
    if let Some(url) = &options.public_url {
        return url.clone();
    }

    let scheme = if options.is_tls { "https" } else { "http" };
    let host = head.text(&header::HOST).unwrap_or("localhost");
    format!("{scheme}://{host}{}", options.path)
}

/// The name of the server as a word of a command.
fn name_in_shell(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let word: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(64).collect();
    let word = word.trim_matches('-');
    if word.is_empty() { "larder".to_owned() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_command_is_one_plain_word() {
        for (name, word) in [
            ("larder", "larder"),
            ("My server; rm -rf /", "My-server--rm--rf"),
            ("<b>", "b"),
            ("…", "larder"),
            ("--", "larder"),
        ] {
            assert_eq!(name_in_shell(name), word);
        }
    }
}
