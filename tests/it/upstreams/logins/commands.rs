//! `larder upstreams login` and `larder upstreams logout`.

use std::fmt::Write;

use reqwest::Url;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::Command,
};

use super::{Browser, link, upstream, whoami};
use crate::{
    auth::provider::Provider,
    support::{
        Modern, TextFile, free_port, patiently,
        process::{Finished, Process, larder, run},
        sha256,
    },
};

/// `larder serve` in front of an upstream with logins, for the principals alice and bob.
async fn serving(upstream: &str) -> (Process, TextFile) {
    let mut config = "[auth]\nmode = \"static\"\n".to_owned();
    for name in ["alice", "bob"] {
        let hash = sha256(name);
        writeln!(config, "[[auth.tokens]]\nname = {name:?}\nsha256 = {hash:?}").unwrap();
    }
    writeln!(
        config,
        "[[upstreams]]\nname = \"crm\"\nurl = {upstream:?}\nauth = {{ kind = \"oauth\" }}"
    )
    .unwrap();
    let file = TextFile::new(&config);
    let command = larder(&["serve", "--config", file.path()]);
    // Browsers return to this address, so it must be known before the start.
    let listen = format!("127.0.0.1:{}", free_port());
    (Process::start_at(command, &listen).await, file)
}

/// A command of a caller.
fn command(verb: &str, name: &str, url: &str, token: &str) -> Command {
    let mut command = larder(&["upstreams", verb, name]);
    command.env("LARDER_URL", url).env("LARDER_TOKEN", token);
    command
}

#[track_caller]
fn printed(finished: &Finished) -> &str {
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    &finished.stdout
}

#[tokio::test]
async fn a_login_from_a_terminal_ends_when_the_browser_is_done_and_a_logout_revokes_it() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider.issuer).await;
    let (server, _file) = serving(&upstream.url).await;
    let [alice, bob] = ["alice", "bob"].map(|name| Modern::at(&server.url).with_token(name));
    link(&alice, "whoami").await;

    let mut login = command("login", "crm", &server.url, "alice").spawn().unwrap();
    let mut stdout = BufReader::new(login.stdout.take().unwrap());
    let mut line = String::new();
    patiently("the link", stdout.read_line(&mut line)).await.unwrap();
    let url = line.trim_end().strip_prefix("Open this link in a browser: ").expect(&line);
    Browser::new().log_in(&Url::parse(url).unwrap(), "anna").await;
    let ended = patiently("the command", login.wait()).await.unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert!(ended.success(), "{ended:?}");
    assert_eq!(rest, "Logged in to crm.\n");
    assert!(whoami(&alice).await.contains("\"anna\""));
    let again = run(command("login", "crm", &server.url, "alice")).await;
    assert_eq!(printed(&again), "You are logged in to crm.\n");
    // It is the login of this caller alone.
    link(&bob, "whoami").await;

    let revoked = provider.fetches("/token/revocation").await;
    let done = run(command("logout", "crm", &server.url, "alice")).await;
    assert_eq!(printed(&done), "Logged out of crm.\n");
    assert!(provider.fetches("/token/revocation").await > revoked);
    link(&alice, "whoami").await;
    // Once more is no error.
    let done = run(command("logout", "crm", &server.url, "alice")).await;
    assert_eq!(printed(&done), "Logged out of crm.\n");
}

#[tokio::test]
async fn the_commands_say_what_is_wrong() {
    let upstream = format!("http://127.0.0.1:{}/mcp", free_port());
    let (server, _file) = serving(&upstream).await;
    for (verb, name, token, code, said) in [
        ("login", "crn", "alice", 1, "The server has no upstream crn with a login."),
        ("logout", "crn", "alice", 1, "The server has no upstream crn with a login."),
        ("login", "../crm", "alice", 1, "no upstream ../crm"),
        ("login", "crm", "mallory", 4, "token"),
    ] {
        let refused = run(command(verb, name, &server.url, token)).await;
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.stderr.contains(said) && refused.stdout.is_empty(), "{refused:?}");
    }
    let nowhere = run(command("login", "crm", "http://127.0.0.1:1/mcp", "alice")).await;
    assert_eq!(nowhere.code, Some(3), "{nowhere:?}");
}
