//! `larder login` and `larder logout`: a person at a terminal logs in at a server.

use std::{os::unix::fs::PermissionsExt, path::Path};

use reqwest::Url;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::Command,
};

use super::{Browser, location, upstream};
use crate::{
    auth::provider::Provider,
    support::{
        files_below, patiently,
        process::{larder, run},
    },
};

/// A command of the person whose files are in this folder.
fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = larder(arguments);
    command.env("XDG_CONFIG_HOME", home).env_remove("LARDER_TOKEN").env_remove("LARDER_URL");
    command
}

/// Follows a link at the provider as this user, to the page on this machine.
async fn log_in(link: &str, user: &str) {
    let mut browser = Browser::new();
    let mut url = Url::parse(link).unwrap();
    url.query_pairs_mut().append_pair("login_hint", user);

    for _ in 0..10 {
        let response = browser.get(url.clone()).await;
        if !response.status().is_redirection() {
            let page = response.text().await.unwrap();
            assert_eq!(page, "You are logged in. You can close this page.");
            return;
        }
        url = location(&response, &url);
    }
    panic!("too many redirects: {url}")
}

#[tokio::test]
async fn a_person_logs_in_once_and_uses_the_server_until_logging_out() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider.issuer).await;
    let home = tempfile::tempdir().unwrap();
    let url = upstream.url.as_str();

    let refused = run(command(home.path(), &["call", "whoami", "--server", url])).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let told = format!(
        "larder: {url} asks who you are. Log in: larder login {url}. Or give a token: --token TOKEN or LARDER_TOKEN.\n"
    );
    assert_eq!(refused.stderr, told);

    let mut child = command(home.path(), &["login", url, "--no-browser"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    patiently("the link", stdout.read_line(&mut line)).await.unwrap();
    let link = line.trim_end().strip_prefix("Open this link in a browser: ").unwrap();

    // A page that guesses the address ends no login.
    let redirect = Url::parse(link).unwrap();
    let redirect = redirect.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1;
    let guessed = crate::support::http().get(format!("{redirect}?code=x&state=y")).send().await;
    assert!(guessed.unwrap().text().await.unwrap().starts_with("This login was not begun"));

    log_in(link, "anna").await;
    let mut rest = String::new();
    patiently("the end", stdout.read_to_string(&mut rest)).await.unwrap();
    assert_eq!(rest, format!("Logged in to {url}.\n"));
    assert_eq!(patiently("the login", child.wait()).await.unwrap().code(), Some(0));

    let files = files_below(home.path());
    assert!(!files.is_empty());
    for file in files {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }

    let called = run(command(home.path(), &["call", "whoami", "--server", url])).await;
    assert!(called.stdout.contains("\"anna\""), "{called:?}");
    let again = run(command(home.path(), &["login", url, "--no-browser"])).await;
    assert_eq!(again.stdout, format!("{url} needs no login now.\n"), "{again:?}");

    let out = run(command(home.path(), &["logout", url])).await;
    assert_eq!(out.stdout, format!("Logged out of {url}.\n"), "{out:?}");
    let refused = run(command(home.path(), &["tools", "--server", url])).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
}
