//! The client for people at a terminal, as they and their scripts use it.

use std::{fs, process::Output};

use serde_json::Value;
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    process::{larder, serving, serving_in},
    support::{numbered_lines, patiently},
};

/// Runs it against that server, with that on standard input.
async fn client(url: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = larder(arguments);
    command.env("LARDER_URL", url).stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Whoever wants none may have gone before it is written.
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
async fn what_is_put_comes_back_byte_for_byte() {
    let (_child, url) = serving(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    // More than comes at once, with characters across all borders; and bytes.
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
        assert!(back.stderr.is_empty(), "no bar where nobody looks");
        let listed = said(&client(&url, &["ls", uri, "--json"], b"").await);
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!((&listed["name"], &listed["size"]), (&name.into(), &content.len().into()));
    }
}

#[tokio::test]
async fn it_pipes() {
    let (_child, url) = serving(&[]).await;
    let lines = numbered_lines(3000);
    let put = ["put", "-", "--uri", "x:lines", "--name", "Lines", "--type", "text/plain"];
    assert_eq!(said(&client(&url, &put, lines.as_bytes()).await), "x:lines\n");
    // More lines than one answer holds.
    let expected: String = lines.split_inclusive('\n').skip(99).take(1901).collect();
    let some = said(&client(&url, &["cat", "x:lines", "--lines", "100-2000"], b"").await);
    assert!(some == expected, "{} bytes, not {}", some.len(), expected.len());
    let one = said(&client(&url, &["cat", "x:lines", "--lines", "3000"], b"").await);
    assert!(one.starts_with("00002999 "), "{one}");
    let found = said(&client(&url, &["grep", "^00001[0-9]{3} ", "x:lines"], b"").await);
    assert_eq!(found.lines().count(), 1000, "all pages of it");
    let row = said(&client(&url, &["ls", "x:"], b"").await);
    assert!(row.starts_with(&format!("x:lines\t{}\ttext/plain\t20", lines.len())), "{row}");
    let arguments = r#"{"uri":"x:lines","offset":0,"limit":1}"#;
    let told = said(&client(&url, &["call", "read_resource", "-"], arguments.as_bytes()).await);
    assert!(told.contains("\n\n00000000 "), "{told}");
    said(&client(&url, &["rm", "x:lines"], b"").await);
    assert_eq!(said(&client(&url, &["ls"], b"").await), "");
}

#[tokio::test]
async fn exit_codes_tell_scripts_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    let token = format!(
        "[auth]\nmode = \"static\"\n[[auth.tokens]]\nname = \"me\"\nsha256 = \"{}\"\n",
        sha256("let-me-in")
    );
    fs::write(&config, token).unwrap();
    let (_open, open) = serving(&[]).await;
    let (_closed, closed) = serving(&["--config", config.to_str().unwrap()]).await;
    said(&client(&open, &["put", "-", "--uri", "x:1"], b"text").await);
    for (code, url, arguments) in [
        (1, &open, &["cat", "x:none"][..]),
        (1, &open, &["grep", "nothing", "x:1"]),
        (1, &open, &["call", "no_such_tool"]),
        (2, &open, &["call", "read_resource", "{"]),
        (2, &open, &["cat", "x:1", "--lines", "0"]),
        (2, &open, &["put", "/no/such/file"]),
        (2, &open, &["no-such-command"]),
        (3, &"http://127.0.0.1:1/mcp".to_owned(), &["ls"]),
        (3, &open.replace("/mcp", "/healthz"), &["ls"]),
        (4, &closed, &["ls"]),
        (4, &closed, &["ls", "--token", "wrong"]),
    ] {
        let output = client(url, arguments, b"").await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
    }
    said(&client(&closed, &["ls", "--token", "let-me-in"], b"").await);
    let mut command = larder(&["ls"]);
    command.env("LARDER_URL", &closed).env("LARDER_TOKEN", "let-me-in");
    let output = patiently("the client", command.output()).await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

fn sha256(text: &str) -> String {
    use sha2::Digest;

    let digest = sha2::Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn text_that_turns_out_to_be_none_is_told_to_come_as_bytes() {
    let (_child, url) = serving(&[]).await;
    let mut late = vec![b'a'; 500_000];
    late.extend([0xff, 0xfe]);
    let output = client(&url, &["put", "-"], &late).await;
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--binary"), "{output:?}");
    assert_eq!(said(&client(&url, &["ls"], b"").await), "", "nothing is stored");
    let uri = said(&client(&url, &["put", "-", "--binary"], &late).await);
    assert!(client(&url, &["cat", uri.trim_end()], b"").await.stdout == late);
}

/// What a terminal shows of that command line of a shell's, where `$LARDER` is
/// the program; `script` gives it one.
async fn on_a_terminal(url: &str, line: &str) -> String {
    let mut command = Command::new("script");
    command.args(["-qec", &format!("stty cols 100; {line}"), "/dev/null"]);
    command.env("LARDER", env!("CARGO_BIN_EXE_larder")).env("LARDER_URL", url).env("TERM", "xterm");
    command.stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = patiently("the terminal", command.output()).await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_terminal_shows_how_far_a_long_transfer_is() {
    let (_child, url) = serving(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let (file, back) = (folder.path().join("long.log"), folder.path().join("back.log"));
    let text = numbered_lines(250_000);
    fs::write(&file, &text).unwrap();
    let put = format!("$LARDER put {} --uri x:long", file.display());
    let shown = on_a_terminal(&url, &put).await;
    let (bar, rest) = shown.rsplit_once("\u{1b}[2K").expect("a bar, which is wiped in the end");
    assert!(bar.contains('█') && bar.contains("MiB/"), "{bar}");
    assert_eq!(rest.trim_end(), "x:long");
    let cat = format!("$LARDER cat x:long > {}", back.display());
    let shown = on_a_terminal(&url, &cat).await;
    assert!(shown.contains('█') && shown.ends_with("\u{1b}[2K"), "{shown:?}");
    assert!(fs::read_to_string(&back).unwrap() == text);
    // From a pipe nobody knows how much there is.
    let piped = on_a_terminal(&url, &format!("cat {} | $LARDER put - | cat", file.display())).await;
    assert!(piped.contains("MiB") && !piped.contains('█'), "{piped}");
    // Where the content itself goes to the terminal, nothing comes between.
    let shown = on_a_terminal(&url, "$LARDER cat x:long").await;
    assert!(shown.replace("\r\n", "\n") == text);
}

#[tokio::test]
async fn an_empty_variable_says_nothing() {
    let (_child, url) = serving_in(&[], &[("LARDER_CONFIG", "")]).await;
    let mut put = larder(&["put", "-", "--server", &url]);
    put.env("LARDER_TOKEN", "");
    let put = patiently("the client", put.output()).await.unwrap();
    assert_eq!(put.status.code(), Some(0), "{put:?}");
    let mut ls = larder(&["ls"]);
    ls.env("LARDER_URL", "");
    let ls = patiently("the client", ls.output()).await.unwrap();
    let said = String::from_utf8(ls.stderr).unwrap();
    // There may be one where it looks by itself.
    assert!(ls.status.code() == Some(0) || said.contains("http://127.0.0.1:8000/mcp"), "{said}");
}
