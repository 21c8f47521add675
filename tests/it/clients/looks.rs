//! How the commands look: for people on a terminal, and for programs in a pipe.

use std::{fs, process::Stdio};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::support::{
    TextFile,
    process::{Finished, larder, run, serving, serving_in},
    terminal::{answered_on_a_terminal, on_a_terminal, shown_on_a_terminal},
};

async fn piped(url: &str, arguments: &[&str]) -> Finished {
    let mut command = larder(arguments);
    command.env("LARDER_URL", url).stdin(Stdio::null());
    run(command).await
}

async fn lines_of_json(url: &str, arguments: &[&str]) -> Vec<Value> {
    let finished = piped(url, arguments).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_list_is_a_table_on_a_terminal_and_plain_in_a_pipe() {
    let (_server, url) = serving(&[]).await;
    let text = TextFile::new(&"line\n".repeat(1000));
    let shown = on_a_terminal(&url, "$LARDER ls").await;
    assert_eq!(shown, "Nothing is stored. Store a file: larder put FILE\r\n");

    for (uri, ttl) in [("x:a", "100m"), ("x:longer", "36h")] {
        let stored = piped(&url, &["put", text.path(), "--uri", uri, "--ttl", ttl]).await;
        assert_eq!(stored.stdout, format!("{uri}\n"), "{stored:?}");
    }

    let plain = shown_on_a_terminal(&url, "$LARDER ls", &[("NO_COLOR", "1")]).await;
    let plain = String::from_utf8(plain.stdout).unwrap();
    let rows: Vec<_> = plain.lines().collect();
    assert_eq!(rows[0], "    SIZE  TYPE        EXPIRES  URI", "{plain}");
    assert!(rows[1].starts_with("4.88 KiB  text/plain  in "), "{plain}");
    assert!(rows[1].ends_with("x:a") && rows[2].ends_with("in 35h   x:longer"), "{plain}");

    let coloured = on_a_terminal(&url, "$LARDER ls").await;
    assert!(coloured.contains("\u{1b}[36mx:a\u{1b}[0m"), "{coloured:?}");
    assert_eq!(console_text(&coloured), plain);

    let in_a_pipe = piped(&url, &["ls"]).await.stdout;
    let rows: Vec<_> = in_a_pipe.lines().collect();
    assert!(rows[0].starts_with("x:a\t5000\ttext/plain\t20"), "{in_a_pipe}");
    assert_eq!(rows.len(), 2, "no heading: {in_a_pipe}");

    let none = on_a_terminal(&url, "$LARDER ls q:").await;
    assert_eq!(none, "No resource begins with q:.\r\n");
}

/// A text without the sequences that colour it.
fn console_text(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some((before, sequence)) = rest.split_once("\u{1b}[") {
        text += before;
        rest = sequence.split_once('m').unwrap().1;
    }
    text + rest
}

#[tokio::test]
async fn matches_are_coloured_on_a_terminal_only() {
    let (_server, url) = serving(&[]).await;
    let text = TextFile::new("one foo\ntwo\nthree foo\n");
    assert_eq!(piped(&url, &["put", text.path(), "--uri", "x:a"]).await.code, Some(0));

    let plain = piped(&url, &["grep", "fo+", "x:a"]).await;
    assert_eq!(plain.stdout, "1: one foo\n3: three foo\n");

    let coloured = on_a_terminal(&url, "$LARDER grep fo+ x:a").await;
    let marked = "\u{1b}[32m1\u{1b}[0m: one \u{1b}[31m\u{1b}[1mfoo\u{1b}[0m\r\n";
    assert!(coloured.starts_with(marked), "{coloured:?}");
    assert_eq!(console_text(&coloured).replace('\r', ""), plain.stdout);

    let found = lines_of_json(&url, &["grep", "fo+", "x:a", "--json"]).await;
    assert_eq!(found[1], json!({ "line": 3, "text": "three foo" }));
}

#[tokio::test]
async fn bytes_do_not_reach_a_terminal() {
    let (_server, url) = serving(&[]).await;
    let binary = TextFile::new("\0\u{1}\u{2}foo");
    assert_eq!(piped(&url, &["put", binary.path(), "--uri", "b:bin"]).await.code, Some(0));

    let shown = shown_on_a_terminal(&url, "$LARDER cat b:bin", &[]).await;
    assert_eq!(shown.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(shown.stdout).unwrap(),
        "larder: b:bin is binary, which a terminal cannot show. Save it: larder cat b:bin > FILE\r\n"
    );
    assert_eq!(piped(&url, &["cat", "b:bin"]).await.stdout, "\0\u{1}\u{2}foo");
}

#[tokio::test]
async fn every_command_prints_json() {
    let (_server, url) = serving(&[]).await;
    let text = TextFile::new("a,b\n1,x\n2,y\n");
    let put = ["put", text.path(), "--uri", "x:a", "--type", "text/csv", "--json"];
    let stored = lines_of_json(&url, &put).await;
    assert_eq!(stored, [json!({ "uri": "x:a", "file": text.path(), "size": 12 })]);

    let described = lines_of_json(&url, &["describe", "x:a", "--json"]).await;
    assert_eq!((&described[0]["uri"], &described[0]["size"]), (&json!("x:a"), &json!(12)));
    assert_eq!(described[0]["type"], "text/csv");

    let rows = lines_of_json(&url, &["query", "x:a", "SELECT * FROM t", "--json"]).await;
    assert_eq!(rows, [json!({ "a": 1, "b": "x" }), json!({ "a": 2, "b": "y" })]);
    let values = lines_of_json(&url, &["jq", "x:a", ".a", "--json"]).await;
    assert_eq!(values, [json!(1), json!(2)]);

    let copied = lines_of_json(&url, &["cp", "x:a", "x:b", "--json"]).await;
    assert_eq!(copied, [json!({ "uri": "x:b", "from": "x:a" })]);
    let moved = lines_of_json(&url, &["mv", "x:b", "x:c", "--json"]).await;
    assert_eq!(moved, [json!({ "uri": "x:c", "from": "x:b" })]);

    let link = lines_of_json(&url, &["share", "x:a", "--ttl", "1h", "--json"]).await;
    assert!(link[0]["uri"].as_str().unwrap().starts_with("larder://shared/"), "{link:?}");
    let download = lines_of_json(&url, &["url", "x:a", "--expires", "5m", "--json"]).await;
    let body = crate::support::http().get(download[0]["url"].as_str().unwrap()).send().await;
    assert_eq!(body.unwrap().text().await.unwrap(), "a,b\n1,x\n2,y\n");

    let counted = lines_of_json(&url, &["grep", "-c", "[xy]", "x:a", "--json"]).await;
    assert_eq!(counted, [json!({ "matches": 2, "lines": 2 })]);
    let deleted = lines_of_json(&url, &["rm", "x:c", "--json"]).await;
    assert_eq!(deleted, [json!({ "uri": "x:c", "deleted": true })]);
    let deleted = lines_of_json(&url, &["rm", "--prefix", "x:", "--json"]).await;
    assert_eq!(deleted, [json!({ "prefix": "x:", "deleted": 1 })]);
}

#[tokio::test]
async fn standard_input_is_stored_without_a_file_argument() {
    let (_server, url) = serving(&[]).await;
    let piped_in =
        on_a_terminal(&url, "echo hello | $LARDER put --uri x:1 2>/dev/null; $LARDER cat x:1")
            .await;
    assert_eq!(piped_in, "x:1\r\nhello\r\n");

    let shown = shown_on_a_terminal(&url, "$LARDER put", &[]).await;
    assert_eq!(shown.status.code(), Some(2), "{shown:?}");
    let told = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(told, "larder: Give a file, or pipe something in: COMMAND | larder put\r\n");
}

#[tokio::test]
async fn a_resource_opens_in_the_browser() {
    let (_server, url) = serving(&[]).await;
    let text = TextFile::new("hello");
    assert_eq!(piped(&url, &["put", text.path(), "--uri", "x:1"]).await.code, Some(0));

    let opened = TextFile::new("");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("browser");
    fs::write(&script, format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", opened.path())).unwrap();
    let run_script = format!("chmod +x {0}; BROWSER={0} $LARDER open x:1", script.display());
    let shown = on_a_terminal(&url, &run_script).await;
    let link = fs::read_to_string(opened.path()).unwrap();
    assert_eq!(shown, format!("Opened {link}\r\n"));
    let body = crate::support::http().get(&link).send().await.unwrap().text().await.unwrap();
    assert_eq!(body, "hello");

    let headless = piped(&url, &["open", "x:1"]).await;
    assert!(headless.stdout.contains("http://127.0.0.1:"), "{headless:?}");
}

#[tokio::test]
async fn a_list_that_the_server_stores_is_read_all_the_same() {
    let always = [("LARDER_TOOLS__SPILL__LIST_RESOURCES", "always")];
    let (_server, url) = serving_in(&[], &always).await;
    let text = TextFile::new("hello");
    assert_eq!(piped(&url, &["put", text.path(), "--uri", "x:1"]).await.code, Some(0));

    for _ in 0..2 {
        let listed = piped(&url, &["ls"]).await;
        assert_eq!(listed.code, Some(0), "{listed:?}");
        assert_eq!(listed.stdout.lines().count(), 1, "no copy of a list stays: {listed:?}");
        assert!(listed.stdout.starts_with("x:1\t5\t"), "{listed:?}");
    }
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_by_name() {
    let folder = tempfile::tempdir().unwrap();
    // As openssl req -x509 makes one: it says that it is an authority.
    let make = |name: &str| {
        let mut parameters = CertificateParams::new(["127.0.0.1".into()]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let path = |kind: &str| folder.path().join(format!("{name}.{kind}"));
        fs::write(path("crt"), certificate.pem()).unwrap();
        fs::write(path("key"), key.serialize_pem()).unwrap();
        path("crt").display().to_string()
    };

    let own = make("own");
    let foreign = make("foreign");
    let config = TextFile::new(&format!(
        "[server.tls]\ncert = \"{0}/own.crt\"\nkey = \"{0}/own.key\"\n",
        folder.path().display()
    ));
    let (server, url) = serving(&["--config", config.path()]).await;

    let trusted = piped(&url, &["ls", "--ca", &own]).await;
    assert_eq!(trusted.code, Some(0), "{trusted:?}");

    let other = piped(&url, &["ls", "--ca", &foreign]).await;
    assert_eq!(other.code, Some(3), "{other:?}");
    assert!(other.stderr.starts_with("larder: The certificate of 127.0.0.1 is "), "{other:?}");

    let localhost = url.replace("127.0.0.1", "localhost");
    let misnamed = piped(&localhost, &["ls", "--ca", &own]).await;
    assert_eq!(misnamed.stderr, "larder: The certificate of localhost is for another name.\n");

    let no_pem = TextFile::new("no certificate");
    let unreadable = piped(&url, &["ls", "--ca", no_pem.path()]).await;
    assert_eq!(unreadable.code, Some(2), "{unreadable:?}");

    let plain = format!("http://{}/mcp", server.url.split_once("://").unwrap().1);
    let plain = plain.replace("/mcp/mcp", "/mcp");
    let spoken = piped(&plain, &["ls"]).await;
    let told = format!("{plain} does not speak HTTP. If it speaks TLS: {url}");
    assert_eq!(spoken.stderr, format!("larder: {told}\n"), "{spoken:?}");
}

#[tokio::test]
async fn the_first_screen_says_what_is_served_and_how_to_connect() {
    // The person presses Ctrl-C when the last line is there; the shell goes on.
    let serve = "trap : INT; $LARDER serve --listen 0 -- cat";
    let shown = answered_on_a_terminal("", serve, &[("stop      Ctrl-C", "\u{3}")]).await;
    let port: String = shown
        .split("127.0.0.1:")
        .nth(1)
        .unwrap()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let url = format!("http://127.0.0.1:{port}");
    let expected = format!(
        "larder listening on {url}/mcp\n  version   {}\n  results   in memory, until this process ends. To keep them: --store file:///DIRECTORY\n  connect   claude mcp add --transport http larder {url}/mcp\n",
        env!("CARGO_PKG_VERSION")
    );
    let shown = shown.replace('\r', "");
    assert!(shown.contains(&expected), "{shown}");
    assert!(
        shown.contains("  upstream  cat: ") && shown.contains("  stop      Ctrl-C\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn shells_complete_the_commands() {
    let script = piped("", &["completions", "bash"]).await;
    assert_eq!(script.code, Some(0), "{script:?}");
    let file = TextFile::new(&script.stdout);

    // The function that Bash calls when a person types `larder gre` and the tabulator.
    let complete = format!(
        ". {}; COMP_WORDS=(larder gre); COMP_CWORD=1; _larder larder gre larder; echo ${{COMPREPLY[*]}}",
        file.path()
    );
    let completed = std::process::Command::new("bash").args(["-c", &complete]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stdout), "grep\n", "{completed:?}");

    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(piped("", &["completions", shell]).await.stdout.contains("grep"), "{shell}");
    }
}

#[tokio::test]
async fn each_command_has_a_man_page() {
    let page = piped("", &["man"]).await;
    assert!(page.stdout.contains(".TH larder 1"), "{page:?}");

    let folder = tempfile::tempdir().unwrap();
    let written = piped("", &["man", folder.path().to_str().unwrap()]).await;
    assert_eq!(written.code, Some(0), "{written:?}");
    let put = fs::read_to_string(folder.path().join("larder-put.1")).unwrap();
    assert!(put.contains("Store files") && put.contains("90s"), "{put}");
    assert!(!folder.path().join("larder-query-worker.1").exists(), "a hidden command has none");
}

#[tokio::test]
async fn stats_tell_what_each_tool_kept_out() {
    let port = crate::support::free_port();
    let metrics = format!("127.0.0.1:{port}");
    let small =
        [("LARDER_METRICS__LISTEN", metrics.as_str()), ("LARDER_TOOLS__OUTPUT_BYTES", "2000")];
    let (_server, url) = serving_in(&[], &small).await;
    let text = TextFile::new(&"line\n".repeat(50_000));
    assert_eq!(piped(&url, &["put", text.path(), "--uri", "x:a"]).await.code, Some(0));
    let into = r#"{"from":"x:a","sql":"SELECT * FROM t","into":{"uri":"x:rows"}}"#;
    assert_eq!(piped(&url, &["call", "query_resource", into]).await.code, Some(0));

    let told = lines_of_json("", &["stats", "--metrics", &metrics, "--json"]).await;
    let bytes = told.iter().find(|row| row["tool"] == "query_resource").unwrap();
    assert!(bytes["kept_out_bytes"].as_u64().unwrap() > 200_000, "{told:?}");
    let table = piped("", &["stats", "--metrics", &metrics]).await.stdout;
    assert!(table.contains("  query_resource\n") && table.ends_with("  total\n"), "{table}");

    let none = piped("", &["stats", "--metrics", "127.0.0.1:1"]).await;
    assert_eq!(
        none.stderr,
        "larder: No server with metrics at http://127.0.0.1:1/metrics. metrics.listen is its address; another one: --metrics ADDR.\n"
    );
}

#[tokio::test]
async fn a_closed_output_ends_no_part_of_a_command() {
    let (_server, url) = serving(&[]).await;
    let files: Vec<_> = (0..4).map(|number| TextFile::new(&format!("{number}"))).collect();
    let paths: Vec<_> = files.iter().map(TextFile::path).collect();

    // The reader is gone before the first URI is written.
    let line =
        format!("$LARDER put {} /no/such/file | true; echo ${{PIPESTATUS[0]}}", paths.join(" "));
    let bash = format!("bash -c '{line}'");
    let shown = on_a_terminal(&url, &bash).await;
    assert!(shown.contains("/no/such/file: no such file."), "{shown:?}");
    assert!(shown.ends_with("2\r\n"), "{shown:?}");
    assert_eq!(piped(&url, &["ls"]).await.stdout.lines().count(), 4);

    let listed = piped(&url, &["ls"]).await.stdout;
    let uris: Vec<_> = listed.lines().map(|line| line.split('\t').next().unwrap()).collect();
    let line = format!("bash -c '$LARDER rm {} | true'", uris.join(" "));
    on_a_terminal(&url, &line).await;
    assert_eq!(piped(&url, &["ls"]).await.stdout, "");
}

#[tokio::test]
async fn colours_that_are_forced_stay_out_of_pipes() {
    let (_server, url) = serving(&[]).await;
    let text = TextFile::new("one foo\n");
    assert_eq!(piped(&url, &["put", text.path(), "--uri", "x:a"]).await.code, Some(0));

    for arguments in [&["describe", "x:a"][..], &["tools"], &["tools", "read_resource"]] {
        let mut command = larder(arguments);
        command.env("LARDER_URL", &url).env("CLICOLOR_FORCE", "1");
        let shown = run(command).await;
        assert!(shown.code == Some(0) && !shown.stdout.contains('\u{1b}'), "{shown:?}");
    }
}

#[tokio::test]
async fn a_stored_result_of_which_only_the_text_is_known_is_no_empty_one() {
    let always = [
        ("LARDER_TOOLS__SPILL__SEARCH_RESOURCE", "always"),
        ("LARDER_TOOLS__SPILL__QUERY_RESOURCE", "always"),
    ];
    let (_server, url) = serving_in(&[], &always).await;
    let text = TextFile::new("one foo\n");
    assert_eq!(piped(&url, &["put", text.path(), "--uri", "x:a"]).await.code, Some(0));

    for (tool, arguments) in [
        ("search_resource", &["grep", "foo", "x:a", "--json"][..]),
        ("query_resource", &["query", "x:a", "SELECT * FROM t", "--json"]),
    ] {
        let failed = piped(&url, arguments).await;
        assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""), "{failed:?}");
        let told = format!("The server has stored the result of {tool}");
        assert!(failed.stderr.contains(&told), "{failed:?}");
    }
}
