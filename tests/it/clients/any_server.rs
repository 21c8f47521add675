//! The commands that use any MCP server, of both eras, over HTTP and over standard input and
//! output.

use std::{path::Path, process::Stdio};

use larder::{Context, Elicited, Tool, ToolError};
use serde_json::{Value, json};

use crate::support::{
    Server, ToolState, http, patiently,
    process::{Finished, larder, run, serving},
    terminal::{answered_on_a_terminal, on_a_terminal, shown_on_a_terminal},
};

const LARDER: &str = env!("CARGO_BIN_EXE_larder");

async fn typed(arguments: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let mut command = larder(arguments);
    // No login of the person who runs the tests.
    command.env("XDG_CONFIG_HOME", folder.path()).env_remove("LARDER_TOKEN");
    run(command).await
}

#[track_caller]
fn printed(finished: &Finished) -> &str {
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    &finished.stdout
}

async fn of_version(version: &'static str) -> Server {
    Server::configured(|setup| setup.config.server.max_version = version.into()).await
}

#[tokio::test]
async fn tools_resources_and_prompts_of_both_eras_are_used_over_http() {
    for version in ["2025-11-25", "2026-07-28"] {
        let server = of_version(version).await;
        let url = server.url.as_str();

        let tools = typed(&["tools", "--server", url]).await;
        assert!(printed(&tools).contains("echo\tReturns its argument.\n"), "{tools:?}");
        let shown = typed(&["tools", "echo", "--server", url]).await;
        assert_eq!(
            printed(&shown),
            "echo\nReturns its argument.\n  text (string, required) The text to return.\n"
        );
        let defined = typed(&["tools", "echo", "--json", "--server", url]).await;
        let defined: Value = serde_json::from_str(printed(&defined)).unwrap();
        assert_eq!(defined["inputSchema"]["required"], json!(["text"]));

        let called = typed(&["call", "echo", "text=ä=b", "--server", url]).await;
        assert_eq!(printed(&called), "ä=b\n");
        let added = typed(&["call", "add", r#"{"a":2,"b":3}"#, "--server", url, "--json"]).await;
        let added: Value = serde_json::from_str(printed(&added)).unwrap();
        assert_eq!(added["content"][0]["text"], "2 + 3 = 5", "{added}");

        let read = typed(&["read", "docs://welcome", "--server", url]).await;
        assert_eq!(printed(&read), "Welcome.");
        let mut bytes = larder(&["read", "docs://binary", "--server", url]);
        let bytes = patiently("bytes", bytes.output()).await.unwrap();
        assert_eq!(bytes.stdout, b"\x00\xff\x10");
        let listed = typed(&["read", "--server", url]).await;
        assert!(printed(&listed).contains("logs://{service}/{date}\t"), "{listed:?}");
        let filled = typed(&["read", "logs://web/today", "--server", url]).await;
        assert_eq!(printed(&filled), "web on today");

        assert_eq!(printed(&typed(&["prompts", "--server", url]).await), "");

        for (arguments, code, told) in [
            (
                &["call", "ecoh"][..],
                1,
                "There is no tool ecoh. Did you mean echo? List them: larder tools",
            ),
            (
                &["tools", "ecoh"],
                1,
                "There is no tool ecoh. Did you mean echo? List them: larder tools",
            ),
            (&["call", "fails"], 1, "Nothing to see. Look elsewhere."),
            (
                &["read", "docs://welcom"],
                1,
                "There is no resource docs://welcom. Did you mean docs://welcome?",
            ),
            (&["prompts", "hello"], 1, "There is no prompt hello. List them: larder prompts"),
        ] {
            let arguments: Vec<_> = arguments.iter().copied().chain(["--server", url]).collect();
            let failed = typed(&arguments).await;
            let expected = (Some(code), format!("larder: {told}\n"));
            assert_eq!((failed.code, failed.stderr.clone()), expected, "{failed:?}");
        }
    }
}

#[tokio::test]
async fn a_program_is_used_over_its_standard_input_and_output() {
    let serve = ["--", LARDER, "serve", "--stdio"];
    let with = |arguments: &[&'static str]| [arguments, &serve].concat();

    let tools = typed(&with(&["tools"])).await;
    assert!(printed(&tools).contains("query_resource\t"), "{tools:?}");
    let stored = typed(&with(&["call", "create_resource", "uri=x:1", "text=hello"])).await;
    assert!(printed(&stored).starts_with("x:1\nStored x:1: "), "{stored:?}");

    for (program, told) in [
        (
            &["no-such-program"][..],
            "no-such-program cannot be started: no directory of PATH has it.",
        ),
        (&["false"], "false does not start as an MCP server: exit code 1."),
        (
            &["sh", "-c", "echo the reason >&2; exit 3"],
            "sh does not start as an MCP server: exit code 3.\nIts last lines: the reason",
        ),
    ] {
        let arguments = [&["tools", "--"], program].concat();
        let failed = typed(&arguments).await;
        assert_eq!(failed.stderr, format!("larder: {told}\n"), "{failed:?}");
        assert!(matches!(failed.code, Some(2 | 3)), "{failed:?}");
    }
}

/// The command line of a server of npm, that `make test` installs.
fn everything() -> [String; 2] {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/upstreams/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    );
    assert!(Path::new(script).exists(), "run `npm ci` in tests/upstreams, as `make test` does");
    ["node".to_owned(), script.to_owned()]
}

#[tokio::test]
async fn a_server_of_others_shows_its_progress_and_asks_on_the_terminal() {
    let [node, script] = everything();
    let command = ["--", &node, &script];

    let sum = typed(&[&["call", "get-sum", "a=2", "b=3"][..], &command].concat()).await;
    assert_eq!(sum.stdout, "The sum of 2 and 3 is 5.\n", "{sum:?}");
    let prompts = typed(&[&["prompts"][..], &command].concat()).await;
    assert!(prompts.stdout.contains("simple-prompt\t"), "{prompts:?}");

    let long = format!(
        "$LARDER call trigger-long-running-operation duration=1 steps=3 -- {node} {script}"
    );
    let shown = on_a_terminal("", &long).await;
    assert!(shown.contains("1/3") && shown.contains("2/3"), "a progress bar: {shown:?}");
    assert!(
        shown.ends_with("Long running operation completed. Duration: 1 seconds, Steps: 3.\r\n"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn log_messages_are_shown_from_their_level_on() {
    for version in ["2025-11-25", "2026-07-28"] {
        let server = Server::configured(|setup| {
            setup.config.server.max_version = version.into();
            setup.offer(|builder| {
                /// Logs.
                #[derive(serde::Deserialize, schemars::JsonSchema)]
                struct Logs {}
                builder.tool(Tool::new(|ctx: Context<_>, _: Logs| async move {
                    ctx.log(larder::protocol::LogLevel::Debug, "a detail").await;
                    ctx.log(larder::protocol::LogLevel::Warning, "take \u{1b}[2Jcare").await;
                    "done"
                }))
            });
        })
        .await;

        let call = ["call", "logs", "--server", &server.url];
        let shown = typed(&call).await;
        assert_eq!(shown.stdout, "done\n", "{shown:?}");
        assert_eq!(shown.stderr, "warning: take \\u{1b}[2Jcare\n", "{version}");
        let all = typed(&[&call[..], &["--log-level", "debug"]].concat()).await;
        assert!(all.stderr.starts_with("debug: a detail\n"), "{all:?}");
        let none = typed(&[&call[..], &["--log-level", "none"]].concat()).await;
        assert_eq!(none.stderr, "", "{none:?}");
    }
}

/// Who asks.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Person {
    /// The name.
    name: String,
    /// The age in years.
    #[schemars(range(max = 150))]
    age: u32,
}

/// Asks who the person is.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct WhoAreYou {}

#[tokio::test]
async fn questions_are_answered_at_the_terminal() {
    for version in ["2025-11-25", "2026-07-28"] {
        let server = Server::configured(|setup| {
            setup.config.server.max_version = version.into();
            setup.offer(|builder| {
                builder.tool(Tool::new(|ctx: Context<_>, _: WhoAreYou| async move {
                    Ok::<_, ToolError>(match ctx.elicit::<Person>("who", "Who are you?").await? {
                        Elicited::Accepted(Person { name, age }) => format!("{name} is {age}."),
                        Elicited::Declined => "Nobody.".to_owned(),
                        Elicited::Cancelled => "Gone.".to_owned(),
                    })
                }))
            });
        })
        .await;

        let line = "$LARDER call who_are_you";
        let answers = [("name", "Ann\n"), ("years", "old\n"), ("years", "33\n"), ("[Y/n] ", "y\n")];
        let shown = answered_on_a_terminal(&server.url, line, &answers).await;
        assert!(
            shown.contains("Who are you?") && shown.contains("Answer a whole number."),
            "{shown:?}"
        );
        assert!(shown.ends_with("Ann is 33.\r\n"), "{version}: {shown:?}");

        let declines = [("name", "Ann\n"), ("years", "33\n"), ("[Y/n] ", "n\n")];
        let declined = answered_on_a_terminal(&server.url, line, &declines).await;
        assert!(declined.ends_with("Nobody.\r\n"), "{version}: {declined:?}");
        let ended = answered_on_a_terminal(&server.url, line, &[("name", "")]).await;
        assert!(ended.ends_with("Gone.\r\n"), "{version}: {ended:?}");

        // Lines that were typed before the question answer nothing.
        let ahead = "echo type; read start; $LARDER call who_are_you";
        let typed_ahead =
            [("type", "go\ny\ny\n"), ("name", "Ann\n"), ("years", "33\n"), ("[Y/n] ", "n\n")];
        let shown = answered_on_a_terminal(&server.url, ahead, &typed_ahead).await;
        assert!(shown.ends_with("Nobody.\r\n"), "{version}: {shown:?}");

        // Nobody is at the terminal.
        let refused = typed(&["call", "who_are_you", "--server", &server.url]).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
    }
}

#[tokio::test]
async fn an_interrupted_call_is_cancelled_at_the_server() {
    for version in ["2025-11-25", "2026-07-28"] {
        let server = of_version(version).await;
        let mut command = larder(&["call", "stepwise", "key=long", "--server", &server.url]);
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        server.control.reached("long", ToolState::Started).await;

        crate::support::process::send_signal(&child, "-INT").await;
        server.control.reached("long", ToolState::Dropped).await;
        let output = patiently("the command", child.wait_with_output()).await.unwrap();
        assert_eq!(output.status.code(), Some(130), "{version}: {output:?}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_told_as_for_stored_content() {
    let server = Server::start().await;
    let address = server.address;
    let health = format!("http://{address}/healthz");
    let tls = format!("https://{address}/mcp");

    for (url, told) in [
        (
            "http://127.0.0.1:1/mcp",
            "No server at http://127.0.0.1:1/mcp. Start one: larder serve. Another one: --server URL or LARDER_URL.".to_owned(),
        ),
        (&tls, format!("{tls} does not speak TLS: use http://{address}/mcp")),
        (
            &health,
            format!("{health} is not the endpoint of an MCP server (405 Method Not Allowed). Larder's has the path /mcp."),
        ),
    ] {
        let failed = typed(&["tools", "--server", url]).await;
        assert_eq!(failed.stderr, format!("larder: {told}\n"), "{failed:?}");
        assert_eq!(failed.code, Some(3), "{failed:?}");
    }
    assert!(http().get(&health).send().await.unwrap().status().is_success());
}

/// Text that makes a terminal write the clipboard, and clears the screen.
const HOSTILE: &str = "\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{1b}[2J";

/// Answers with hostile text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Hostile {
    fails: bool,
}

#[tokio::test]
async fn no_control_character_of_a_server_reaches_a_terminal() {
    let server = Server::configured(|setup| {
        setup.offer(|builder| {
            builder.tool(Tool::new(|_: Context<_>, Hostile { fails }: Hostile| async move {
                if fails { Err(ToolError::new(HOSTILE)) } else { Ok(HOSTILE.to_owned()) }
            }))
        });
    })
    .await;
    let url = server.url.as_str();

    for arguments in ["fails=false", "fails=true", "fails=\u{1b}[2J", "--json fails=false"] {
        let line = format!("$LARDER call hostile {arguments}");
        let shown = shown_on_a_terminal(url, &line, &[("NO_COLOR", "1")]).await;
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{line}: {shown:?}");
    }

    // A program in a pipe gets the result as it is.
    let raw = typed(&["call", "hostile", "fails=false", "--server", url]).await;
    assert_eq!(printed(&raw), format!("{HOSTILE}\n"));
    let put = "printf 'a\\033[2Jb\\n' | $LARDER put --uri x:h >/dev/null 2>&1; $LARDER cat x:h";
    let (_stored, stored) = serving(&[]).await;
    assert_eq!(on_a_terminal(&stored, put).await, "a\\u{1b}[2Jb\r\n");
}

#[tokio::test]
async fn a_server_of_this_machine_is_used_without_a_proxy() {
    let server = Server::start().await;
    let mut command = larder(&["call", "echo", "text=a", "--server", &server.url]);
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(variable, "http://127.0.0.1:1");
    }
    for variable in ["NO_PROXY", "no_proxy"] {
        command.env_remove(variable);
    }
    assert_eq!(printed(&run(command).await), "a\n");
}

#[tokio::test]
async fn secrets_are_in_variables_and_stay_with_their_server() {
    let server = Server::start().await;
    let with = ["call", "echo", "text=a", "--server", &server.url, "--header", "X-Key=THE_KEY"];
    let unset = typed(&with).await;
    assert_eq!(unset.stderr, "larder: --header X-Key: the variable THE_KEY is not set\n");
    assert_eq!(unset.code, Some(2));
    let mut command = larder(&with);
    command.env("THE_KEY", "hush");
    assert_eq!(printed(&run(command).await), "a\n");

    let both = typed(&["tools", "--header", "A=B", "--", "true"]).await;
    assert_eq!(both.code, Some(2), "{both:?}");
    let authority = typed(&["tools", "--ca", "x.pem", "--", "true"]).await;
    assert!(authority.stderr.contains("--ca is for a server over HTTP"), "{authority:?}");

    // A program gets no token, and needs no URL.
    let mut command = larder(&["tools", "--", "sh", "-c", "echo token=$LARDER_TOKEN >&2; exit 3"]);
    command.env("LARDER_TOKEN", "hush").env("LARDER_URL", "ftp://nothing");
    let ended = run(command).await;
    assert!(ended.stderr.ends_with("Its last lines: token=\n"), "{ended:?}");
}

#[tokio::test]
async fn a_server_without_login_needs_no_home() {
    let server = Server::start().await;
    let nowhere = tempfile::tempdir().unwrap();
    let file = nowhere.path().join("file");
    std::fs::write(&file, "").unwrap();

    for home in [Some(file.as_path()), None] {
        let mut command = larder(&["call", "echo", "text=a", "--server", &server.url]);
        command.env_remove("XDG_CONFIG_HOME").env_remove("HOME").env_remove("LARDER_TOKEN");
        command.envs(home.map(|home| ("HOME", home)));
        assert_eq!(printed(&run(command).await), "a\n", "{home:?}");
    }

    // Nothing is written for a server that needs no login.
    let home = tempfile::tempdir().unwrap();
    let mut command = larder(&["tools", "--server", &server.url]);
    command.env("XDG_CONFIG_HOME", home.path());
    assert_eq!(run(command).await.code, Some(0));
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

/// The URL of a server that accepts connections and answers nothing, and a message for each of them.
async fn silent() -> (String, tokio::sync::mpsc::UnboundedReceiver<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (accepted, begun) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut connections = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            connections.push(connection);
            let _ = accepted.send(());
        }
    });
    (url, begun)
}

#[tokio::test]
async fn a_server_that_is_silent_is_given_up() {
    let (url, _begun) = silent().await;
    let late = typed(&["tools", "--server", &url, "--timeout", "100ms"]).await;
    assert_eq!(late.code, Some(3), "{late:?}");
    assert_eq!(late.stderr, format!("larder: {url}: no answer within 0.1 s.\n"));
}

#[tokio::test]
async fn a_command_is_interrupted_also_while_it_finds_out_what_is_wrong() {
    let (url, mut begun) = silent().await;
    let mut command = larder(&["tools", "--server", &url, "--timeout", "5s"]);
    let child = command.stdin(Stdio::null()).spawn().unwrap();
    for _ in ["the start", "the plain request"] {
        patiently("a connection", begun.recv()).await.unwrap();
    }
    crate::support::process::send_signal(&child, "-INT").await;
    let output = patiently("the command", child.wait_with_output()).await.unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
}
