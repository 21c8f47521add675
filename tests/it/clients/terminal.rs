//! The commands of `larder` that call a server, as people and scripts use them.

use std::{
    fs,
    process::{Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use larder::preview::words::number;
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::support::{
    TextFile, dropping_proxy, noise, numbered_lines, patiently,
    process::{larder, run, serving, serving_in},
    sha256,
    terminal::on_a_terminal,
};

/// Runs a command against a server, with `input` on standard input.
async fn client(url: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = larder(arguments);
    command.env("LARDER_URL", url).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that reads no input may end before it is written.
    let written = tokio::spawn(async move { drop(stdin.write_all(&input).await) });
    let output = patiently("the client", child.wait_with_output()).await.unwrap();
    written.abort();
    output
}

#[track_caller]
fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test]
async fn put_and_cat_keep_every_byte() {
    let (_server, url) = serving(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    // Text of several blocks, with characters across their borders; binary; and short text.
    let text = numbered_lines(60_000);
    let bytes: Vec<u8> = (0..700_000u32).map(|n| (n * 7 % 251) as u8 ^ 0x80).collect();
    for (name, content) in [("a.log", text.as_bytes()), ("b.bin", &bytes), ("c.txt", b"short\n")] {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        let put = ["put", file.to_str().unwrap(), "--ttl", "600"];
        let uri = said(&client(&url, &put, b"").await);
        let uri = uri.trim_end();
        assert!(!uri.contains(char::is_whitespace) && uri.contains("://"), "{uri:?}");
        let back = client(&url, &["cat", uri], b"").await;
        assert_eq!(back.status.code(), Some(0), "{}", String::from_utf8_lossy(&back.stderr));
        assert!(back.stdout == content, "{name}");
        assert!(back.stderr.is_empty(), "a progress bar without a terminal");
        let listed = said(&client(&url, &["ls", uri, "--json"], b"").await);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!((&listed["name"], &listed["size"]), (&name.into(), &content.len().into()));
    }
}

#[tokio::test]
async fn it_reads_standard_input_and_prints_plain_lines() {
    let (_server, url) = serving(&[]).await;
    let lines = numbered_lines(3000);
    let put = ["put", "-", "--uri", "x:lines", "--name", "Lines", "--type", "text/plain"];
    assert_eq!(said(&client(&url, &put, lines.as_bytes()).await), "x:lines\n");
    // More lines than fit into one answer.
    let expected: String = lines.split_inclusive('\n').skip(99).take(1901).collect();
    let some = said(&client(&url, &["cat", "x:lines", "--lines", "100-2000"], b"").await);
    assert!(some == expected, "{} bytes, not {}", some.len(), expected.len());
    let one = said(&client(&url, &["cat", "x:lines", "--lines", "3000"], b"").await);
    assert!(one.starts_with("00002999 "), "{one}");
    let found = said(&client(&url, &["grep", "^00001[0-9]{3} ", "x:lines"], b"").await);
    assert_eq!(found.lines().count(), 1000, "not all pages");
    let total = said(&client(&url, &["grep", "-ciFw", "00001000", "x:lines"], b"").await);
    assert_eq!(total, "1 match in x:lines (3,000 lines). Complete.\n");
    let others = said(&client(&url, &["grep", "-v", "^0000[0-9]{3}[1-9]", "x:lines"], b"").await);
    assert_eq!(others.lines().count(), 300, "not all pages");
    let row = said(&client(&url, &["ls", "x:"], b"").await);
    assert!(row.starts_with(&format!("x:lines\t{}\ttext/plain\t20", lines.len())), "{row}");
    let arguments = r#"{"uri":"x:lines","offset":0,"limit":1}"#;
    let told = said(&client(&url, &["call", "read_resource", "-"], arguments.as_bytes()).await);
    assert!(told.contains("\n\n00000000 "), "{told}");
    let copied = said(&client(&url, &["cp", "x:lines", "x:copy"], b"").await);
    assert!(copied.starts_with("x:copy\n"), "{copied}");
    let refused = client(&url, &["mv", "x:copy", "x:lines"], b"").await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("x:lines exists already"));
    said(&client(&url, &["mv", "x:copy", "x:moved"], b"").await);
    assert_eq!(said(&client(&url, &["cat", "x:moved"], b"").await), lines);
    assert_eq!(client(&url, &["cat", "x:copy"], b"").await.status.code(), Some(1));
    said(&client(&url, &["rm", "x:moved"], b"").await);
    said(&client(&url, &["rm", "x:lines"], b"").await);
    for uri in ["y:1", "y:2", "z:1"] {
        said(&client(&url, &["put", "-", "--uri", uri], b"text").await);
    }
    let deleted = said(&client(&url, &["rm", "--prefix", "y:"], b"").await);
    assert_eq!(deleted, "Deleted 2 resources whose URIs begin with y:.\n");

    let deleted = client(&url, &["rm", "y:1", "z:1"], b"").await;
    assert_eq!(deleted.status.code(), Some(1), "y:1 is gone already");
    assert_eq!(deleted.stdout, b"Deleted z:1.\n");
    assert_eq!(said(&client(&url, &["ls"], b"").await), "");
}

#[tokio::test]
async fn a_pipe_that_is_closed_ends_a_command_without_an_error() {
    for arguments in [["config", "schema"], ["config", "show"]] {
        let mut child = larder(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        drop(child.as_mut().unwrap().stdout.take());
        let output = patiently("the command", child.unwrap().wait_with_output()).await.unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

#[tokio::test]
async fn the_type_of_standard_input_is_guessed_from_its_name() {
    let (_server, url) = serving(&[]).await;
    let put = ["put", "-", "--uri", "x:1", "--name", "report.csv"];
    said(&client(&url, &put, b"a,b\n1,2\n").await);
    let row = said(&client(&url, &["ls", "x:"], b"").await);
    assert!(row.contains("\ttext/csv\t"), "{row}");

    let copied = said(&client(&url, &["cp", "x:1", "x:2"], b"").await);
    assert_eq!(copied.lines().count(), 1, "{copied}");
}

#[tokio::test]
async fn exit_codes_distinguish_failures() {
    let config = TextFile::new(&format!(
        "[auth]\nmode = \"static\"\n[[auth.tokens]]\nname = \"me\"\nsha256 = \"{}\"\n",
        sha256("let-me-in")
    ));
    let (_open, open) = serving(&[]).await;
    let (_closed, closed) = serving(&["--config", config.path()]).await;
    said(&client(&open, &["put", "-", "--uri", "x:1"], b"text").await);
    for (code, url, arguments) in [
        (1, &open, &["cat", "x:none"][..]),
        (1, &open, &["cat", "x:1", "--lines", "2-3"]),
        (1, &open, &["grep", "nothing", "x:1"]),
        (1, &open, &["rm", "x:none"]),
        (1, &open, &["rm", "--prefix", "none:"]),
        (1, &open, &["call", "no_such_tool"]),
        (2, &open, &["call", "read_resource", "{"]),
        (2, &open, &["cat", "x:1", "--lines", "0"]),
        (2, &open, &["put", "/no/such/file"]),
        (2, &open, &["no-such-command"]),
        (2, &open, &["serve", "--upstream", "crm.example/mcp"]),
        (2, &open, &["export", "-", "--store", "file:///no/such/directory"]),
        (2, &open, &["admin", "owners", "--store", "file:///no/such/directory"]),
        (3, &"http://127.0.0.1:1/mcp".to_owned(), &["ls"]),
        (3, &open.replace("/mcp", "/healthz"), &["ls"]),
        (4, &closed, &["ls"]),
        (4, &closed, &["ls", "--token", "wrong"]),
    ] {
        let output = client(url, arguments, b"").await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
    }
    let past = client(&open, &["cat", "x:1", "--lines", "2-3"], b"").await;
    assert_eq!(
        String::from_utf8_lossy(&past.stderr),
        "larder: x:1 has no line 2: it has 1 line.\n"
    );

    said(&client(&closed, &["ls", "--token", "let-me-in"], b"").await);
    let mut command = larder(&["ls"]);
    command.env("LARDER_URL", &closed).env("LARDER_TOKEN", "let-me-in");
    let listed = run(command).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
}

#[tokio::test]
async fn input_that_turns_out_to_be_binary_is_stored_as_bytes() {
    let (_server, url) = serving(&[]).await;
    let mut late = vec![b'a'; 500_000];
    late.extend([0xff, 0xfe]);
    for put in [&["put", "-"][..], &["put", "-", "--binary"]] {
        let uri = said(&client(&url, put, &late).await);
        let back = client(&url, &["cat", uri.trim_end()], b"").await;
        assert!(back.stdout == late);
    }
    let kept = said(&client(&url, &["put", "-", "--binary", "--uri", "x:1"], b"text").await);
    let listed = said(&client(&url, &["ls", kept.trim_end(), "--json"], b"").await);
    assert!(listed.contains("application/octet-stream"), "{listed}");
}

#[tokio::test]
async fn a_server_without_content_over_http_gets_files_by_its_tools() {
    let (_server, url) = serving_in(&[], &[("LARDER_CONTENT__ENABLED", "false")]).await;
    let text = numbered_lines(60_000);
    let put = client(&url, &["put", "-", "--uri", "x:1"], text.as_bytes()).await;
    assert_eq!(said(&put), "x:1\n");
    assert!(client(&url, &["cat", "x:1"], b"").await.stdout == text.as_bytes());
    // Of standard input the first bytes decide.
    let mut late = vec![b'a'; 500_000];
    late.extend([0xff, 0xfe]);
    let output = client(&url, &["put", "-"], &late).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--binary"), "{output:?}");
    let uri = said(&client(&url, &["put", "-", "--binary"], &late).await);
    assert!(client(&url, &["cat", uri.trim_end()], b"").await.stdout == late);
}

#[tokio::test]
async fn the_server_is_asked_once_how_it_receives_several_files() {
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let receiving = move |request: axum::extract::Request| {
        let counted = Arc::clone(&counted);
        async move {
            let is_question = request.method() == "OPTIONS";
            counted.fetch_add(u64::from(is_question), Ordering::Relaxed);
            let _ = axum::body::to_bytes(request.into_body(), 1_000).await;
            ([("upload-limit", "max-size=1000")], r#"{"uri":"x:stored"}"#)
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(receiving);
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });

    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = ["a", "b", "c"].map(|name| folder.path().join(name)).into();
    for file in &files {
        fs::write(file, "short").unwrap();
    }
    let put = files.iter().map(|file| file.to_str().unwrap());
    let put: Vec<_> = ["put"].into_iter().chain(put).collect();
    assert_eq!(said(&client(&url, &put, b"").await), "x:stored\n".repeat(3));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    serving.abort();
}

#[tokio::test]
async fn a_large_file_continues_after_cut_connections() {
    let folder = tempfile::tempdir().unwrap();
    let (file, files) = (folder.path().join("large.bin"), tempfile::tempdir().unwrap());
    let content: Vec<u8> = noise(5).take(7_000_000).flat_map(u64::to_le_bytes).collect();
    fs::write(&file, &content).unwrap();
    let store = format!("file://{}", files.path().display());
    let (server, _) = serving(&["--store", &store]).await;
    let proxy = dropping_proxy(server.address(), 3, 15_000_000).await;
    let url = format!("http://{proxy}/mcp");
    let put = ["put", file.to_str().unwrap(), "--uri", "x:large"];
    assert_eq!(said(&client(&url, &put, b"").await), "x:large\n");
    let proxy = dropping_proxy(server.address(), 3, 15_000_000).await;
    let back = client(&format!("http://{proxy}/mcp"), &["cat", "x:large"], b"").await;
    assert!(back.stdout == content, "{} bytes: {:?}", back.stdout.len(), back.stderr);
}

#[tokio::test]
async fn a_terminal_shows_the_progress_of_a_long_transfer() {
    let (_server, url) = serving(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let (file, back) = (folder.path().join("long.log"), folder.path().join("back.log"));
    // More than `cat` reads in one request, which shows no progress.
    let text = numbered_lines(60_000);
    fs::write(&file, &text).unwrap();
    let put = format!("$LARDER put {} --uri x:long", file.display());
    let shown = on_a_terminal(&url, &put).await;
    let (bar, rest) =
        shown.rsplit_once("\u{1b}[2K").expect("a progress bar that is cleared at the end");
    assert!(bar.contains('█') && bar.contains("MiB/"), "{bar}");
    assert_eq!(rest.trim_end(), "x:long");
    let cat = format!("$LARDER cat x:long > {}", back.display());
    let shown = on_a_terminal(&url, &cat).await;
    assert!(shown.contains('█') && shown.ends_with("\u{1b}[2K"), "{shown:?}");
    assert!(fs::read_to_string(&back).unwrap() == text);
    // The size of piped input is unknown, so there is a counter instead of a bar.
    let piped = on_a_terminal(
        &url,
        &format!("(cat {0}; sleep 1; cat {0}) | $LARDER put - | cat", file.display()),
    )
    .await;
    assert!(piped.contains("MiB") && !piped.contains('█'), "{piped}");
    // Content that is printed on the terminal is not mixed with a progress bar.
    let shown = on_a_terminal(&url, "$LARDER cat x:long").await;
    assert!(shown.replace("\r\n", "\n") == text);
}

#[tokio::test]
async fn the_demo_stores_searches_and_pages_a_text() {
    let lines = (0..20_000).map(|n| format!("{n:08} request served\n"));
    let text = lines.collect::<String>().replace("00010002 ", "00010002 extraordinary ");
    let file = TextFile::new(&text);
    let demo = run(larder(&["demo", file.path()])).await;
    assert_eq!(demo.code, Some(0), "{demo:?}");
    for expected in [
        "[link: A large text demo://large-text]",
        "1 match in demo://large-text",
        "extraordinary",
        "00019999 ",
        &format!(" of {}: ", number(text.len() as u64)),
    ] {
        assert!(demo.stdout.contains(expected), "{expected}: {demo:?}");
    }
    let none = run(larder(&["demo", "/no/such/file"])).await;
    assert_eq!(none.code, Some(2), "{none:?}");
}

#[tokio::test]
async fn an_empty_variable_counts_as_unset() {
    let (_larder, url) = serving_in(&[], &[("LARDER_CONFIG", "")]).await;
    let mut put = larder(&["put", "-", "--server", &url]);
    put.env("LARDER_TOKEN", "");
    let put = run(put).await;
    assert_eq!(put.code, Some(0), "{put:?}");
    let mut ls = larder(&["ls"]);
    ls.env("LARDER_URL", "");
    let ls = run(ls).await;
    // A server may listen at the default URL.
    assert!(ls.code == Some(0) || ls.stderr.contains("http://127.0.0.1:8000/mcp"), "{ls:?}");
}
