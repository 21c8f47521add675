//! What people read at a terminal when they have mistyped something: each text says what was wrong
//! and what to do.

use std::process::Stdio;

use crate::support::{
    TextFile,
    process::{Finished, larder, run, serving, serving_in},
    sha256,
};

/// Runs a command against a server.
async fn typed(url: &str, arguments: &[&str]) -> Finished {
    let mut command = larder(arguments);
    command.env("LARDER_URL", url).env_remove("LARDER_TOKEN").stdin(Stdio::null());
    run(command).await
}

/// Runs each command, and compares its exit code and all of standard error.
async fn assert_told(url: &str, rows: &[(&[&str], i32, &str)]) {
    let mut wrong = Vec::new();
    for (arguments, code, told) in rows {
        let finished = typed(url, arguments).await;
        let expected = format!("larder: {told}\n");
        let is_right = finished.code == Some(*code)
            && finished.stderr == expected
            && finished.stdout.is_empty();
        if !is_right {
            wrong.push(format!("{arguments:?}\n  expected {code}: {expected}  got {finished:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_wrong_name_is_told_with_the_way_to_the_right_one() {
    let (_server, url) = serving(&[]).await;
    let text = TextFile::new("foo\nbar\n");
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("bytes.bin");
    std::fs::write(&binary, b"\x80\x81\x00foo\xff").unwrap();
    let binary = binary.to_str().unwrap();
    for (file, uri) in [(text.path(), "x:a"), (text.path(), "x:b"), (binary, "b:bin")] {
        let stored = typed(&url, &["put", file, "--uri", uri]).await;
        assert_eq!(stored.stdout, format!("{uri}\n"), "{stored:?}");
    }

    assert_told(
        &url,
        &[
            (&["cat", "x:none"], 1, "There is no resource x:none. List them: larder ls"),
            (&["describe", "x:none"], 1, "There is no resource x:none. List them: larder ls"),
            (&["grep", "a", "x:none"], 1, "There is no resource x:none. List them: larder ls"),
            (&["query", "x:none", "SELECT 1"], 1, "There is no resource x:none. List them: larder ls"),
            (&["jq", "x:none", "."], 1, "There is no resource x:none. List them: larder ls"),
            (&["cp", "x:none", "x:c"], 1, "There is no resource x:none. List them: larder ls"),
            (&["mv", "x:none", "x:c"], 1, "There is no resource x:none. List them: larder ls"),
            (&["share", "x:none"], 1, "There is no resource x:none. List them: larder ls"),
            (&["url", "x:none"], 1, "There is no resource x:none. List them: larder ls"),
            (&["rm", "x:none"], 1, "There is no resource x:none. List them: larder ls"),
            (&["rm", "x:1", "x:2"], 1, "There are no resources x:1, x:2. List them: larder ls"),
            (&["rm", "--prefix", "q:"], 1, "No resource begins with q:."),
            (&["mv", "x:a", "x:b"], 1, "x:b exists already. Delete it first: larder rm x:b"),
            (&["cat", "x:a", "--lines", "5"], 1, "x:a has no line 5: it has 2 lines."),
            (
                &["grep", "(", "x:a"],
                1,
                r"( is not a regular expression: unclosed group. For the text itself: -F, or '\('",
            ),
            (
                &["grep", "a[", "x:a"],
                1,
                r"a[ is not a regular expression: unclosed character class. For the text itself: -F, or 'a\['",
            ),
            (&["grep", "foo", "b:bin"], 1, "b:bin is binary (application/octet-stream). Save it: larder cat b:bin > FILE"),
            (&["grep", "nothing", "x:a"], 1, r#"No line of x:a (2 lines) matches "nothing". Complete."#),
            (&["call", "nosuch"], 1, "There is no tool nosuch. List them: larder tools"),
            (
                &["call", "serch_resource"],
                1,
                "There is no tool serch_resource. Did you mean search_resource or search_resources? List them: larder tools",
            ),
            (
                &["call", "read_resource", r#"{"ur":"x:a"}"#],
                1,
                r#"Invalid arguments: additional properties are not allowed: "ur"; "uri" is a required property. See them: larder tools read_resource"#,
            ),
            (
                &["call", "read_resource", "{uri:x:a}"],
                2,
                r#"The arguments are not JSON: key must be a string at line 1 column 2. Example: '{"name":"value"}', in single quotes."#,
            ),
            (
                &["call", "read_resource", "[1]"],
                2,
                r#"The arguments must be an object. Example: '{"name":"value"}'"#,
            ),
            (
                &["put", text.path(), "--ttl", "1000d"],
                1,
                "--ttl may be at most 30d on this server. The setting is store.max_ttl.",
            ),
            (
                &["put", text.path(), "--uri", "bad uri"],
                1,
                r#""bad uri" is not a URI (RFC 3986): it has no scheme. Example: results://search/42; percent-encode other characters."#,
            ),
            (&["put", "/no/such/file"], 2, "/no/such/file: no such file."),
            (&["put", "/"], 2, "/: it is a directory: give its files."),
            (
                &["put", text.path(), binary, "--uri", "x:1"],
                2,
                "--uri is for one file, and there are 2: leave it out, or store one after the other.",
            ),
            (&["query", "x:a", "SELECT nope FROM t"], 1, "No column nope in t. Columns: line_no, line."),
            (&["query", "x:a", "SELEC"], 1, r#"SQLite: near "SELEC": syntax error."#),
            (&["jq", "x:a", ".["], 1, "jq: expected closing bracket at its end."),
        ],
    )
    .await;

    let stored = typed(&url, &["put", text.path(), "/no/such/file", binary]).await;
    assert_eq!(stored.code, Some(2), "{stored:?}");
    assert_eq!(stored.stdout.lines().count(), 2, "the others are stored");
    assert_eq!(stored.stderr, "larder: /no/such/file: no such file.\n");
}

#[tokio::test]
async fn a_wrong_flag_is_told_with_the_right_form() {
    for (arguments, told) in [
        (
            &["put", "x", "--ttl", "soon"][..],
            "invalid value 'soon' for '--ttl <DURATION>': write it as 90s, 1h or 7d",
        ),
        (
            &["put", "x", "--ttl", "-5"],
            "invalid value '-5' for '--ttl <DURATION>': write it as 90s, 1h or 7d",
        ),
        (
            &["put", "x", "--ttl", "0"],
            "invalid value '0' for '--ttl <DURATION>': write it as 90s, 1h or 7d",
        ),
        (
            &["share", "x:a", "--ttl", "1 parsec"],
            "invalid value '1 parsec' for '--ttl <DURATION>': write it as 90s, 1h or 7d",
        ),
        (
            &["put", "x", "--type", "csv"],
            "invalid value 'csv' for '--type <TYPE>': write a media type such as text/csv",
        ),
        (
            &["cat", "x:a", "--lines", "9-3"],
            "invalid value '9-3' for '--lines <FROM-TO>': write it as 10-20, 10- or 10; lines count from 1",
        ),
        (
            &["serve", "--listen", "here"],
            "invalid value 'here' for '--listen <ADDR>': write an address with a port, such as 127.0.0.1:8001, or a port alone",
        ),
        (
            &["serve", "--listen", "99999"],
            "invalid value '99999' for '--listen <ADDR>': write an address with a port, such as 127.0.0.1:8001, or a port alone",
        ),
        (
            &["serve", "--upstream", "crm.example/mcp"],
            "invalid value 'crm.example/mcp' for '--upstream <URL>': it must be a URL such as https://crm.example/mcp",
        ),
        (
            &["gerp", "a", "b"],
            "unrecognized subcommand 'gerp'\n\n  tip: a similar subcommand exists: 'grep'",
        ),
        (
            &["ls", "--sever", "x"],
            "unexpected argument '--sever' found\n\n  tip: a similar argument exists: '--server'",
        ),
    ] {
        let finished = typed("", arguments).await;
        assert_eq!(finished.code, Some(2), "{finished:?}");
        let first = format!("error: {told}\n\n");
        assert!(finished.stderr.starts_with(&first), "{told}\n{finished:?}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_told_with_what_can() {
    let (server, url) = serving(&[]).await;
    let address = server.address();

    let closed = TextFile::new(&format!(
        "[auth]\nmode = \"static\"\n[[auth.tokens]]\nname = \"me\"\nsha256 = \"{}\"\n",
        sha256("let-me-in")
    ));
    let (_closed, closed) = serving(&["--config", closed.path()]).await;

    let health = format!("http://{address}/healthz");
    let tls = format!("https://{address}/mcp");
    assert_told(
        "http://127.0.0.1:1/mcp",
        &[
            (&["ls"], 3, "No server at http://127.0.0.1:1/mcp. Start one: larder serve. Another one: --server URL or LARDER_URL."),
            (&["ls", "--server", "1"], 3, "No server at http://127.0.0.1:1/mcp. Start one: larder serve. Another one: --server URL or LARDER_URL."),
            (&["ls", "--server", "ftp://a.example"], 2, "ftp://a.example: the URL of a server begins with http:// or https://."),
            (&["ls", "--server", "a b"], 2, r#""a b" is not the URL of a server. Example: http://127.0.0.1:8000/mcp"#),
            (&["ls", "--server", "http://no-such-host.invalid/mcp"], 3, "There is no host no-such-host.invalid. Another server: --server URL or LARDER_URL."),
            (&["ls", "--server", &tls], 3, &format!("{tls} does not speak TLS: use {url}")),
            (&["ls", "--server", &health], 3, &format!("{health} is not the endpoint of an MCP server (405 Method Not Allowed). Larder's has the path /mcp.")),
            (&["ls", "--server", &closed], 4, &format!("{closed} asks who you are. Log in: larder login {closed}. Or give a token: --token TOKEN or LARDER_TOKEN.")),
            (&["ls", "--server", &closed, "--token", "wrong"], 4, &format!("{closed} does not accept the token: the token is unknown.")),
            (&["ls", "--ca", "/no/such/file"], 2, "/no/such/file: no such file."),
        ],
    )
    .await;

    for near in [address.to_owned(), format!("http://{address}/"), format!("{address}/mcp")] {
        let listed = typed("", &["ls", "--server", &near]).await;
        assert_eq!(listed.code, Some(0), "{near}: {listed:?}");
    }
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_told_with_one_that_can() {
    let (server, _) = serving(&[]).await;
    let address = server.address();
    let (_, port) = address.split_once(':').unwrap();

    assert_told(
        "",
        &[
            (
                &["serve", "--listen", port],
                2,
                &format!("server.listen: {address} is in use. Is Larder running already? --listen 127.0.0.1:0 picks a free port."),
            ),
            (
                &["serve", "--listen", "192.0.2.1:8000", "--insecure-no-auth"],
                2,
                "server.listen: 192.0.2.1 is not an address of this machine. All of them: --listen 0.0.0.0:8000",
            ),
            (
                &["serve", "--", "nosuchprogram"],
                2,
                "nosuchprogram cannot be started: no directory of PATH has it.",
            ),
            (
                &["serve", "--", "/no/such/program"],
                2,
                "/no/such/program cannot be started: it is no program.",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_setting_that_does_not_exist_is_told_with_the_nearest() {
    for (variable, told) in [
        (
            "LARDER_TOOLS_LISTING",
            "unknown field `tools_listing`. Did you mean LARDER_TOOLS__LISTING?",
        ),
        (
            "LARDER_SERVER__LISTTEN",
            "server: unknown field `listten`. Did you mean LARDER_SERVER__LISTEN?",
        ),
    ] {
        let mut command = larder(&["config", "check"]);
        command.env(variable, "search");
        let finished = run(command).await;
        assert_eq!(finished.code, Some(2));
        let expected = format!("larder: The configuration is invalid: {variable}: {told}\n");
        assert_eq!(finished.stderr, expected);
    }

    for (text, told) in [
        (
            "[server]\nlissten = \"127.0.0.1:1\"\n",
            ":2: server: unknown field `lissten`. Did you mean listen?",
        ),
        ("[sever]\n", ":1: unknown field `sever`. Did you mean server?"),
        (
            "[memory]\nbytes_per_oner = 1\n",
            ":2: memory: unknown field `bytes_per_oner`. Did you mean bytes_per_owner?",
        ),
    ] {
        let file = TextFile::new(text);
        let finished = typed("", &["config", "check", "--config", file.path()]).await;
        let expected = format!("larder: The configuration is invalid: {}{told}\n", file.path());
        assert_eq!((finished.code, finished.stderr), (Some(2), expected));
    }
}

#[tokio::test]
async fn what_is_over_the_quota_names_the_setting() {
    let limits = [
        ("LARDER_MEMORY__BYTES_PER_OWNER", "2000000"),
        ("LARDER_MEMORY__RESOURCES_PER_OWNER", "2"),
    ];
    let (_server, url) = serving_in(&[], &limits).await;
    let large = TextFile::new(&"line\n".repeat(500_000));
    let half = TextFile::new(&"line\n".repeat(250_000));
    let small = TextFile::new("line\n");

    let setting = "The setting is bytes_per_owner in the section [memory], [redis] or [objects] of its configuration.";
    assert_told(
        &url,
        &[(
            &["put", large.path()],
            1,
            &format!("Too large: this server stores at most 2,000,000 bytes for you. {setting}"),
        )],
    )
    .await;

    assert_eq!(typed(&url, &["put", half.path(), "--uri", "x:1"]).await.code, Some(0));
    let refused = typed(&url, &["put", half.path()]).await;
    let first = "larder: No room: this server stores at most 2,000,000 bytes for you, and 1,25";
    assert!(refused.stderr.starts_with(first), "{refused:?}");
    assert!(
        refused.stderr.ends_with(&format!(" are used. Make room: larder rm URI. {setting}\n")),
        "{refused:?}"
    );

    assert_eq!(typed(&url, &["put", small.path(), "--uri", "x:2"]).await.code, Some(0));
    assert_told(
        &url,
        &[(
            &["put", small.path()],
            1,
            "No room: you have 2 resources, as many as this server allows. Make room: larder rm URI. The setting is resources_per_owner.",
        )],
    )
    .await;
}
