//! What operators see of logins: the audit log, metrics and the online check.

use serde_json::json;

use super::{Browser, Client, SECRET, body};
use crate::{
    auth::{
        issuer::{Issuer, Reply},
        provider::Provider,
        signer::Signer,
    },
    support::{
        TextFile, free_port, http, patiently, poll,
        process::{Process, larder, run},
    },
};

fn settings(issuer: &str, port: u16) -> TextFile {
    TextFile::new(&format!(
        r#"
[server]
public_url = "http://127.0.0.1:{port}/mcp"
[auth]
mode = "login"
required_scopes = ["mcp:read"]
[auth.login]
issuer = "{issuer}"
client_id = "larder"
client_secret_env = "LOGIN_SECRET"
allow = {{ domains = ["example.com"] }}
[auth.login.grants]
"mcp:read" = ["*"]
"#
    ))
}

/// The lines of the audit log, once there are so many.
async fn audited(process: &Process, number: usize) -> Vec<String> {
    let logged = async || {
        let log = process.stderr();
        let lines = log.lines().filter(|line| line.contains(" audit: "));
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        (lines.len() >= number).then_some(lines)
    };
    poll("the audit log", logged).await
}

#[tokio::test]
async fn each_step_is_one_audit_line_and_is_counted_and_no_secret_is_logged() {
    const METRICS: &str = "larder metrics on ";

    let provider = Provider::shared().await;
    let port = free_port();
    let file = settings(&provider.issuer, port);
    let mut command = larder(&["serve", "--config", file.path()]);
    command.env("RUST_LOG", "trace").env("LOGIN_SECRET", SECRET);
    command.env("LARDER_METRICS__LISTEN", "127.0.0.1:0");
    let mut process = Process::start_at(command, &format!("127.0.0.1:{port}")).await;
    let metrics = process.logs(METRICS).await;
    let client = Client::of(&process.url);

    let refused = client.try_register(&json!({ "redirect_uris": ["javascript:1"] })).await;
    assert_eq!(refused.status(), 400);
    let id = client.register().await;
    let code = client.code(&mut Browser::of("alice"), &id).await;
    let first = body(client.redeem(&id, &code).await).await;
    let second = body(client.refresh(&id, &first).await).await;
    let token = second["access_token"].as_str().unwrap();
    assert_eq!(client.post("revoke", &[("token", token)]).await.status(), 200);
    let url = client.authorize_url(&client.request(&id));
    Browser::of("bob").log_in(url.clone(), "deny").await;
    assert_eq!(Browser::of("mallory").page(url).await.0, 403);
    assert_eq!(client.refresh(&id, &second).await.status(), 400);
    // The consent is remembered.
    let code_again = client.code(&mut Browser::of("alice"), &id).await;
    assert_eq!(client.redeem(&id, &code_again).await.status(), 200);
    assert_eq!(client.redeem(&id, &code_again).await.status(), 400);

    let expected = [
        ["unknown", "what=registration", "refused"],
        ["unknown", "The <Client>", "registered"],
        ["alice", "what=login", "allowed"],
        ["alice", "what=consent", "allowed"],
        ["alice", "what=token", "allowed"],
        ["alice", "what=refresh", "allowed"],
        ["alice", "what=revocation", "allowed"],
        ["bob", "what=login", "allowed"],
        ["bob", "what=consent", "the user denies"],
        ["mallory", "what=login", "refused"],
        ["unknown", "what=token", "refused"],
        ["alice", "what=login", "allowed"],
        ["alice", "what=token", "allowed"],
        ["alice", "what=token", "redeemed twice"],
    ];
    let lines = audited(&process, expected.len()).await;
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, parts) in lines.iter().zip(expected) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?}: {lines:#?}");
        assert!(line.contains("peer=127.0.0.1"), "{line}");
        // The server does not know who made these requests.
        let is_known = !(parts[0] == "unknown" && parts[2] == "refused");
        assert_eq!(is_known, line.contains("client=\"The <Client> ("), "{line}");
    }
    let log = process.stderr();
    let tokens = [&first, &second].map(|tokens| {
        [&tokens["access_token"], &tokens["refresh_token"]].map(|t| t.as_str().unwrap().to_owned())
    });
    for secret in tokens.iter().flatten().chain([&code, &code_again, &SECRET.to_owned()]) {
        // The first part of an access token is the same for all; that of a refresh token is the
        // ID of the grant.
        let part = secret.rsplit('.').next().unwrap();
        assert!(!log.contains(part), "{part}");
    }

    let url = metrics.strip_prefix(METRICS).unwrap();
    let scraped = patiently("the metrics", http().get(url).send()).await.unwrap();
    let scraped = scraped.text().await.unwrap();
    for (event, number) in [
        ("registered", 1),
        ("login", 3),
        ("consent", 1),
        ("token", 2),
        ("refresh", 1),
        ("revocation", 1),
        ("refused", 5),
    ] {
        let line = format!("larder_logins_total{{event=\"{event}\"}} {number}");
        assert!(scraped.lines().any(|found| found == line), "{line}: {scraped}");
    }
}

#[tokio::test]
async fn a_logout_at_the_console_revokes_the_login() {
    let provider = Provider::shared().await;
    let port = free_port();
    let file = settings(&provider.issuer, port);
    let mut command = larder(&["serve", "--config", file.path()]);
    command.env("LOGIN_SECRET", SECRET).env("LARDER_CONSOLE__ENABLED", "true");
    command.env("RUST_LOG", "info");
    let process = Process::start_at(command, &format!("127.0.0.1:{port}")).await;

    let origin = format!("http://127.0.0.1:{port}");
    let at = |path: &str| format!("{origin}/console/{path}").parse().unwrap();
    let mut browser = Browser::of("alice");
    let begun = body(browser.answer(&at("oidc"), "", &origin).await).await;
    let url = begun["url"].as_str().unwrap().parse().unwrap();
    let Err((page, response)) = browser.follow(url, "no such URL").await else {
        panic!("the login ends at the console");
    };
    assert_eq!((response.status().as_u16(), page.path()), (200, "/console/callback"));
    assert_eq!(browser.answer(&at("logout"), "", &origin).await.status(), 204);

    let revoked = async || {
        let log = process.stderr();
        let mut lines = log.lines().filter(|line| line.contains(" audit: "));
        lines.find(|line| line.contains("what=revocation")).map(str::to_owned)
    };
    let line = poll("the revocation in the audit log", revoked).await;
    assert!(line.contains("alice") && line.contains("allowed"), "{line}");
}

/// The exit code and the output of an online check.
async fn check(issuer: &str) -> (i32, String) {
    let file = settings(issuer, 8000);
    let mut command = larder(&["config", "check", "--online", "--config", file.path()]);
    command.env("LOGIN_SECRET", SECRET);
    let checked = run(command).await;
    (checked.code.unwrap(), checked.stdout + &checked.stderr)
}

#[tokio::test]
async fn an_online_check_says_what_is_wrong_with_the_provider() {
    let provider = Issuer::empty().await;
    let url = &provider.url;
    let metadata = |issuer: &str| {
        json!({
            "issuer": issuer, "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"), "jwks_uri": format!("{url}/jwks"),
            "code_challenge_methods_supported": ["S256"],
        })
    };
    let set = |issuer: &str, status: u16, error: &str| {
        let path = "/.well-known/openid-configuration";
        provider.set_reply(path, Reply::Json(metadata(issuer)));
        provider.set_reply("/token", Reply::Status(status, json!({ "error": error })));
    };
    provider.set_keys(&[Signer::Rsa.jwk()]);
    set(url, 400, "invalid_grant");
    let (code, said) = check(url).await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("auth.login: 1 usable key"), "{said}");
    assert!(said.contains("the client is accepted"), "{said}");

    set(url, 401, "invalid_client");
    let (code, said) = check(url).await;
    assert!(code == 1 && said.contains("auth.login.client_secret_file"), "{code} {said}");
    set("https://other.example", 400, "invalid_grant");
    let (code, said) = check(url).await;
    assert!(code == 1 && said.contains("auth.login.issuer"), "{code} {said}");
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let (code, said) = check(&nobody).await;
    assert!(code == 1 && said.contains("auth.login: ") && said.contains(&nobody), "{code} {said}");
}
