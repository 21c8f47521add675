//! The binary: what it says, what it refuses, how it ends.

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use crate::support::{Answer, Events, http, patiently};

pub(crate) fn larder(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments).kill_on_drop(true).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server that listens, and where.
pub(crate) async fn serving(arguments: &[&str]) -> (Child, String) {
    serving_in(arguments, &[]).await
}

/// The same in that environment.
pub(crate) async fn serving_in(
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("serve").args(arguments).envs(environment.iter().copied());
    listening(command).await
}

/// The same of any program that takes `--listen`.
pub(crate) async fn serving_with(program: &str, arguments: &[&str]) -> (Child, String) {
    serving_with_in(program, arguments, &[]).await
}

/// The same in that environment.
pub(crate) async fn serving_with_in(
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Child, String) {
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied());
    listening(command).await
}

async fn listening(mut command: Command) -> (Child, String) {
    command.args(["--listen", "127.0.0.1:0"]);
    command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = patiently("the first line", stderr.next_line()).await.unwrap().unwrap();
    let url = line.strip_prefix("larder listening on ").unwrap_or_else(|| panic!("{line}"));
    let (scheme, _) = url.split_once("://127.0.0.1:").unwrap_or_else(|| panic!("{url}"));
    assert!(matches!(scheme, "http" | "https") && url.ends_with("/mcp"), "{url}");
    tokio::spawn(async move { while let Ok(Some(_)) = stderr.next_line().await {} });
    (child, url.to_owned())
}

pub(crate) async fn signal(child: &Child, signal: &str) {
    let id = child.id().unwrap().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().await.unwrap();
    assert!(sent.success());
}

fn post(url: &str, body: &Value) -> reqwest::RequestBuilder {
    let request = http().post(url).header("content-type", "application/json");
    request.body(body.to_string())
}

/// Exit code, and what was said on standard error.
pub(crate) async fn refused(
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut command = larder(arguments);
    command.envs(environment.iter().copied());
    let output = patiently("the process to end", command.output()).await.unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn it_serves_and_ends_well_when_told_to() {
    let (mut child, url) = serving(&[]).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let tools = Answer::of(post(&url, &list)).await.result()["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|t| t["name"].clone()).collect();
    for name in ["create_resource", "read_resource", "search_resource", "list_resources"] {
        assert!(names.contains(&json!(name)), "{names:?}");
    }
    signal(&child, "-TERM").await;
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn open_streams_do_not_hold_it_up() {
    let (mut child, url) = serving(&[]).await;
    let initialize = crate::support::Legacy::initialize("2025-11-25");
    let answer = Answer::of(post(&url, &initialize)).await;
    let session = answer.header("mcp-session-id").unwrap();
    let own = http().get(&url).header("mcp-session-id", session).send().await.unwrap();
    let own = Events::of(own);
    let listen = json!({ "notifications": { "resourcesListChanged": true } });
    let listen = crate::support::Modern::body(&json!(1), "subscriptions/listen", listen);
    let request = post(&url, &listen).header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "subscriptions/listen");
    let listen = Events::of(request.send().await.unwrap());
    signal(&child, "-INT").await;
    assert_eq!(listen.messages().await[1]["result"]["resultType"], "complete");
    assert!(own.messages().await.is_empty());
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(0));
}

/// A connection on which a request has begun and does not end.
async fn half_a_request(url: &str) -> (TcpStream, String) {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
        content-length: {}\r\n\r\n",
        ping.len()
    );
    stream.write_all(format!("{head}{ping}{head}{{").as_bytes()).await.unwrap();
    // The answer to the first shows that the server is at the second.
    let mut buffer = [0; 1024];
    assert!(patiently("an answer", stream.read(&mut buffer)).await.unwrap() > 0);
    (stream, address)
}

#[tokio::test]
async fn a_request_that_does_not_end_holds_it_up_for_the_grace_period_only() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[server]\ngrace = 0\n").unwrap();
    let (mut child, url) = serving(&["--config", file.path().to_str().unwrap()]).await;
    let _open = half_a_request(&url).await;
    signal(&child, "-TERM").await;
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn the_second_signal_ends_it_at_once() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[server]\ngrace = 1000\n").unwrap();
    let (mut child, url) = serving(&["--config", file.path().to_str().unwrap()]).await;
    let (_open, address) = half_a_request(&url).await;
    signal(&child, "-TERM").await;
    // It has heard the first when it takes nobody in any more.
    while TcpStream::connect(&address).await.is_ok() {}
    signal(&child, "-TERM").await;
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(1));
}

#[tokio::test]
async fn it_listens_on_another_address_only_when_told_twice() {
    let (code, said) = refused(&["serve", "--listen", "0.0.0.0:0"], &[]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("server.listen") && said.contains("--insecure-no-auth"), "{said}");
}

#[tokio::test]
async fn what_it_cannot_use_it_names() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[server]\nlisten = \"127.0.0.1:0\"\nlissten = 1\n").unwrap();
    let path = file.path().to_str().unwrap();
    for (arguments, environment, named) in [
        (&["serve", "--store", "bogus:"][..], &[][..], "store.url"),
        (&["serve", "--max-version", "3"], &[], "server.max_version"),
        (&["serve", "--config", path], &[], "lissten"),
        (&["serve", "--config", "/no/such/file"], &[], "/no/such/file"),
        (&["serve"], &[("LARDER_SERVER__LISTTEN", "x")], "listten"),
        (&["serve"], &[("LARDER_STORE__DEFAULT_TTL", "0")], "store.default_ttl"),
        (&["serve", "--listen", "here"], &[], "--listen"),
        (&["serve", "--nonsense"], &[], "--nonsense"),
    ] {
        let (code, said) = refused(arguments, environment).await;
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(named), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let (_child, url) = serving(&[]).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let (code, said) = refused(&["serve", "--listen", address], &[]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("server.listen") && said.contains(address), "{said}");
}

#[tokio::test]
async fn file_environment_and_flags_stand_over_each_other() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[tools]\nwrite = false\n[server]\nmax_version = \"2025-06-18\"\n").unwrap();
    let path = file.path().to_str().unwrap();
    let (_child, url) = serving(&["--config", path]).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let tools = Answer::of(post(&url, &list)).await.result()["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 5);
    let initialize = crate::support::Legacy::initialize("2025-11-25");
    let agreed = Answer::of(post(&url, &initialize)).await.result();
    assert_eq!(agreed["protocolVersion"], "2025-06-18");
    let (_child, url) = serving(&["--config", path, "--max-version", "2025-03-26"]).await;
    let agreed = Answer::of(post(&url, &initialize)).await.result();
    assert_eq!(agreed["protocolVersion"], "2025-03-26");
}
