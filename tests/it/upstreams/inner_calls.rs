//! `_larder` beside tasks, progress and cancellation; the accounts of the inner calls of `each`.

use std::sync::Arc;

use larder::{Context, Registry, Tool};
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use super::{
    FOLDER,
    projections::{body, projecting},
    text,
};
use crate::support::{
    Legacy, Modern, Server, TextFile, ToolState, poll,
    process::{Process, larder},
    two_callers,
};

/// A number.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Numbered {
    /// The number.
    n: u64,
}

/// A server with the tool `number`, which ends when the test releases its number, and `work`, which
/// becomes a task first.
async fn server() -> Server {
    Server::configured(|setup| {
        setup.http = Box::new(|http| http.promote_after = std::time::Duration::ZERO);
        setup.offers = Box::new(|control, _| {
            let hints = || ToolAnnotations::new().read_only(true);
            let gates = Arc::clone(control);
            let number = move |_: Context, args: Numbered| {
                let gates = Arc::clone(&gates);
                async move {
                    let key = args.n.to_string();
                    let running = gates.enter(&key);
                    gates.step(&key).await;
                    running.finish();
                    json!({ "n": args.n, "text": "x".repeat(500) }).to_string()
                }
            };

            let gates = Arc::clone(control);
            let work = move |ctx: Context, args: Numbered| {
                let gates = Arc::clone(&gates);
                async move {
                    ctx.into_task().await;
                    gates.step(&args.n.to_string()).await;
                    let rows: Vec<_> = (0..args.n).map(|n| json!({ "n": n })).collect();
                    json!({ "rows": rows }).to_string()
                }
            };

            projecting(Registry::builder("mine"))
                .tool(Tool::new(number).name("number").annotations(hints()).projectable())
                .tool(Tool::new(work).name("work").annotations(hints()).projectable())
                .build()
                .unwrap()
        });
    })
    .await
}

fn each(numbers: std::ops::RangeInclusive<u64>) -> Value {
    let inputs: Vec<_> = numbers.map(|n| json!({ "n": n })).collect();
    json!({ "n": 0, "_larder": { "each": inputs, "jq": ".value.n" } })
}

#[tokio::test]
async fn the_result_of_a_task_is_the_part_that_was_asked_for() {
    let server = server().await;
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let client = Modern::able(&server, able);

    let asked = json!({ "n": 40, "_larder": { "jq": ".rows | length" } });
    let created = client.call("work", asked).await.in_any_form().result();
    assert_eq!(created["resultType"], "task", "{created}");
    server.control.release("40", 1);

    let id = &created["taskId"];
    let ended = poll("the task", async || {
        let task = client.send("tasks/get", json!({ "taskId": id })).await.in_any_form().result();
        (task["status"] != "working").then_some(task)
    });
    let ended = ended.await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(body(&ended["result"]), "40", "{ended}");
    assert!(text(&ended["result"]).contains("The whole result of work"), "{ended}");
}

#[tokio::test]
async fn each_inner_call_that_ends_is_progress() {
    let server = server().await;
    let legacy = Legacy::of(&server).await;
    let modern = Modern::of(&server);

    for number in 1..=3 {
        server.control.release(&number.to_string(), 2);
    }
    let mut in_session = legacy.stream_call(7, "number", each(1..=3)).await;
    assert_eq!(in_session.next().await.unwrap().data, "", "a priming event");
    let stateless = modern.stream_call(7, "number", each(1..=3)).await;
    for mut events in [in_session, stateless] {
        let mut told = Vec::new();
        loop {
            let message = events.message().await;
            if message["id"] == 7 {
                assert_eq!(body(&message["result"]), "1\n2\n3", "{message}");
                break;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            let progress = &message["params"];
            assert_eq!(progress["progressToken"], "token", "{message}");
            told.push((progress["progress"].as_f64(), progress["total"].as_f64()));
        }
        let steps = [1.0, 2.0, 3.0].map(|done| (Some(done), Some(3.0)));
        assert_eq!(told, steps);
    }
}

#[tokio::test]
async fn cancelling_the_call_ends_its_inner_calls_and_begins_no_other() {
    let server = server().await;

    // A modern call is cancelled by closing its connection.
    let modern = Modern::of(&server);
    let events = modern.stream_call(7, "number", each(1..=20)).await;
    server.control.reached("8", ToolState::Started).await;
    drop(events);
    for number in 1..=8 {
        server.control.reached(&number.to_string(), ToolState::Dropped).await;
    }
    assert!(!server.control.has("9", ToolState::Started));

    // A legacy call is cancelled by a notification.
    let legacy = Legacy::of(&server).await;
    let events = legacy.stream_call("mine", "number", each(101..=120)).await;
    server.control.reached("108", ToolState::Started).await;
    let id = json!({ "requestId": "mine" });
    legacy.notify("notifications/cancelled", id).await;
    for number in 101..=108 {
        server.control.reached(&number.to_string(), ToolState::Dropped).await;
    }
    assert!(!server.control.has("109", ToolState::Started));
    drop(events);
}

#[tokio::test]
async fn each_inner_call_is_a_decision_and_counts_in_the_limits() {
    let config = format!(
        r#"
        [limits]
        requests_per_window = 6
        {}
        [[upstreams]]
        name = "far"
        each = "all"
        command = {}
        "#,
        two_callers(["ana", "bob"], "echo", "speak"),
        json!(["node", format!("{FOLDER}/odd.mjs")]),
    );
    let file = TextFile::new(&config);
    let mut command = larder(&["serve", "--config", file.path()]);
    command.env("RUST_LOG", "audit=info");
    let process = Process::start(command).await;
    let [ana, bob] = ["ana-secret", "bob-secret"].map(|t| Modern::at(&process.url).with_token(t));

    let inputs: Vec<_> = (0..4).map(|n| json!({ "n": n })).collect();
    let asked = json!({ "_larder": { "each": inputs } });
    assert_eq!(bob.call("echo", asked.clone()).await.status, 403);
    let first = ana.call("echo", asked.clone()).await.result();
    assert!(text(&first).starts_with("4 calls of echo: 4 ok, none failed."), "{first}");
    // Five requests of six have been made.
    let second = ana.call("echo", asked).await.result();
    assert!(text(&second).starts_with("4 calls of echo: 0 ok, 4 failed"), "{second}");
    assert!(text(&second).contains("limits.requests_per_window"), "{second}");

    let decisions = poll("the audit log", async || {
        let log = process.stderr();
        let lines = log.lines().filter(|line| line.contains(" audit: "));
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        (lines.len() >= 11).then_some(lines)
    });
    let decisions = decisions.await;
    let count = |name: &str, outcome: &str| {
        let is_of = |line: &&String| {
            [name, "tools/call echo", outcome].iter().all(|part| line.contains(part))
        };
        decisions.iter().filter(is_of).count()
    };
    assert_eq!((count("bob", "speak"), count("bob", "allowed")), (1, 0), "{decisions:#?}");
    assert_eq!(count("ana", "allowed"), 6, "{decisions:#?}");
    assert_eq!(count("ana", "limits.requests_per_window"), 4, "{decisions:#?}");
}
