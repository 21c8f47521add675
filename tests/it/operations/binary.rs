//! The binary `larder serve`: what it offers, which settings it refuses, how it ends.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{
    Answer, Events, Legacy, Modern, TextFile, ask, http, patiently, post,
    process::{Process, larder as command, refused, run, serving, serving_in},
    sha256,
};

#[tokio::test]
async fn it_serves_and_ends_well_on_sigterm() {
    let (mut larder, url) = serving(&[]).await;
    assert!(larder.stderr().starts_with(&format!("larder listening on {url}\n")));
    let tools = ask(&url, "tools/list", json!({})).await.result()["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|t| t["name"].clone()).collect();
    for name in ["create_resource", "read_resource", "search_resource", "list_resources"] {
        assert!(names.contains(&json!(name)), "{names:?}");
    }
    larder.signal("-TERM").await;
    assert_eq!(larder.exit_code().await, Some(0));
}

#[tokio::test]
async fn open_streams_do_not_hold_it_up() {
    let (mut larder, url) = serving(&[]).await;
    let answer = Answer::of(post(&url, &Legacy::initialize("2025-11-25"))).await;
    let session = answer.header("mcp-session-id").unwrap();
    let own = http().get(&url).header("mcp-session-id", session).send().await.unwrap();
    let own = Events::of(own);
    let listen = json!({ "notifications": { "resourcesListChanged": true } });
    let listen = Modern::body(&json!(1), "subscriptions/listen", listen);
    let request = post(&url, &listen).header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "subscriptions/listen");
    let listen = Events::of(request.send().await.unwrap());
    larder.signal("-INT").await;
    assert_eq!(listen.messages().await[1]["result"]["resultType"], "complete");
    assert!(own.messages().await.is_empty());
    assert_eq!(larder.exit_code().await, Some(0));
}

/// A connection on which the server has answered one request, and the next one
/// has begun and does not end.
async fn half_a_request(larder: &Process) -> TcpStream {
    let address = larder.address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
        content-length: {}\r\n\r\n",
        ping.len()
    );
    stream.write_all(format!("{head}{ping}{head}{{").as_bytes()).await.unwrap();
    let mut buffer = [0; 1024];
    assert!(patiently("an answer", stream.read(&mut buffer)).await.unwrap() > 0);
    stream
}

#[tokio::test]
async fn a_request_that_does_not_end_holds_it_up_for_the_grace_period_only() {
    let file = TextFile::new("[server]\ngrace = 0\n");
    let (mut larder, _) = serving(&["--config", file.path()]).await;
    let _open = half_a_request(&larder).await;
    larder.signal("-TERM").await;
    assert_eq!(larder.exit_code().await, Some(0));
}

#[tokio::test]
async fn the_second_signal_ends_it_at_once() {
    let file = TextFile::new("[server]\ngrace = 1000\n");
    let (mut larder, _) = serving(&["--config", file.path()]).await;
    let _open = half_a_request(&larder).await;
    larder.signal("-TERM").await;
    // It has handled the first signal when it refuses connections.
    while TcpStream::connect(larder.address()).await.is_ok() {}
    larder.signal("-TERM").await;
    assert_eq!(larder.exit_code().await, Some(1));
}

#[tokio::test]
async fn it_listens_beyond_loopback_only_with_a_second_setting() {
    let (code, said) = refused(&["serve", "--listen", "0.0.0.0:0"], &[]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("server.listen") && said.contains("--insecure-no-auth"), "{said}");
}

#[tokio::test]
async fn a_setting_that_cannot_be_used_is_named() {
    let file = TextFile::new("[server]\nlisten = \"127.0.0.1:0\"\nlissten = 1\n");
    for (arguments, environment, named) in [
        (&["serve", "--store", "bogus:"][..], &[][..], "store.url"),
        (&["serve", "--max-version", "3"], &[], "server.max_version"),
        (&["serve", "--config", file.path()], &[], "lissten"),
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
    let (larder, _) = serving(&[]).await;
    let (code, said) = refused(&["serve", "--listen", larder.address()], &[]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("server.listen") && said.contains(larder.address()), "{said}");
}

#[tokio::test]
async fn flags_override_the_environment_and_the_environment_the_file() {
    let file = TextFile::new("[tools]\nwrite = false\n[server]\nmax_version = \"2025-06-18\"\n");
    let (_larder, url) = serving(&["--config", file.path()]).await;
    let tools = ask(&url, "tools/list", json!({})).await.result()["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 8);
    let environment = [("LARDER_SERVER__MAX_VERSION", "2025-03-26")];
    for (flags, environment, version) in [
        (&[][..], &[][..], "2025-06-18"),
        (&[], &environment, "2025-03-26"),
        (&["--max-version", "2024-11-05"], &environment, "2024-11-05"),
    ] {
        let arguments = [&["--config", file.path()], flags].concat();
        let (_larder, url) = serving_in(&arguments, environment).await;
        let initialize = Legacy::initialize("2025-11-25");
        let agreed = Answer::of(post(&url, &initialize)).await.result();
        assert_eq!(agreed["protocolVersion"], version);
    }
}

#[tokio::test]
async fn an_empty_variable_counts_as_unset() {
    let config = TextFile::new(&format!(
        "[auth]\nmode = \"static\"\n[[auth.tokens]]\nname = \"a\"\nsha256 = \"{}\"\n",
        sha256("a")
    ));
    let empty = [("RUST_LOG", ""), ("LARDER_LOG__LEVEL", ""), ("LARDER_SERVER__PATH", "")];
    let (mut larder, url) = serving_in(&["--config", config.path()], &empty).await;
    let refused = Answer::of(post(&url, &Legacy::initialize("2025-11-25"))).await;
    assert_eq!(refused.status, 401);
    // Refusals are logged by default.
    larder.logs("audit").await;

    // Without `--server` and a variable, the client asks the default address.
    let without = run(command(&["ls"])).await;
    let mut with_empty = command(&["ls"]);
    with_empty.envs([("LARDER_URL", ""), ("LARDER_TOKEN", "")]);
    let with_empty = run(with_empty).await;
    assert_eq!((with_empty.code, with_empty.stderr), (without.code, without.stderr));
}
