//! Calls that become tasks.

use std::{sync::Arc, time::Duration};

use larder::{Builder, Elicited, Tool, ToolError, protocol::Fault};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, Ctx, Legacy, Modern, Server, ToolControl, ToolState, poll};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Becomes a task if the client supports tasks.
#[derive(Deserialize, JsonSchema)]
struct Work {
    /// The key under which the test controls it.
    key: String,
    /// How it ends, such as `error`.
    #[serde(default)]
    end: String,
    /// Whether it requires a task.
    #[serde(default)]
    must: bool,
}

/// A name.
#[derive(Deserialize, JsonSchema)]
struct Named {
    /// The name.
    name: String,
}

/// The name that the user gives.
async fn name(ctx: &Ctx, key: &str) -> Result<String, ToolError> {
    Ok(match ctx.elicit::<Named>(key, "Who are you?").await? {
        Elicited::Accepted(named) => named.name,
        Elicited::Declined | Elicited::Cancelled => "nobody".into(),
    })
}

async fn work(ctx: Ctx, args: Work) -> Result<String, ToolError> {
    let control = Arc::clone(ctx.state());
    let player = control.enter(&args.key);
    if args.must {
        ctx.require_task().await;
    } else {
        ctx.into_task().await;
    }
    ctx.progress(1).of(2).message("half done").await;
    control.record(&args.key, ToolState::Step(1));
    control.step(&args.key).await;
    let said = match args.end.as_str() {
        "panic" => panic!("a secret in a panic"),
        "error" => Err(ToolError::new("It cannot be done.")),
        "fault" => ctx.fail(Fault::Internal("It broke down.".into())).await,
        "ask" => {
            let first = name(&ctx, "first").await?;
            let (a, b) = tokio::join!(name(&ctx, "a"), name(&ctx, "b"));
            Ok(format!("{first}, {}, {}", a?, b?))
        }
        _ => Ok("done".into()),
    };
    player.finish();
    said
}

/// Asks a question, and then becomes a task.
#[derive(Deserialize, JsonSchema)]
struct AskThenWork {}

fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    let asks = Tool::new(|ctx: Ctx, _: AskThenWork| async move {
        let name = name(&ctx, "before").await?;
        ctx.state().record("asked", ToolState::Started);
        ctx.into_task().await;
        Ok::<_, ToolError>(format!("Hello, {name}!"))
    });
    builder.tool(Tool::new(work)).tool(asks)
}

/// A client that supports tasks and forms.
fn able(server: &Server) -> Modern {
    let capabilities = json!({ "extensions": { EXTENSION: {} }, "elicitation": {} });
    Modern::able(server, capabilities)
}

/// Starts a task; its id.
async fn begin(client: &Modern, key: &str, end: &str) -> String {
    let result = client.call("work", json!({ "key": key, "end": end })).await.result();
    assert_eq!(result["resultType"], "task", "{result}");
    assert_eq!(result["status"], "working");
    result["taskId"].as_str().unwrap().to_owned()
}

async fn get(client: &Modern, id: &str) -> Answer {
    client.send("tasks/get", json!({ "taskId": id })).await
}

/// The task, once it has a status.
async fn until(client: &Modern, id: &str, status: &str) -> Value {
    let reached = async || {
        let task = get(client, id).await.result();
        assert_eq!((&task["resultType"], &task["taskId"]), (&json!("complete"), &json!(id)));
        (task["status"] == status).then_some(task)
    };
    poll(status, reached).await
}

async fn update(client: &Modern, id: &str, answers: Value) -> Answer {
    client.send("tasks/update", json!({ "taskId": id, "inputResponses": answers })).await
}

#[tokio::test]
async fn a_task_completes_with_the_result_of_the_call() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    let created = client.call("work", json!({ "key": "k" })).await.result();
    assert_eq!(created["resultType"], "task");
    assert!(created.get("content").is_none() && created.get("result").is_none(), "{created}");
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&json!(3_600_000), &json!(1000)));
    assert_eq!(created["createdAt"], created["lastUpdatedAt"]);
    let id = created["taskId"].as_str().unwrap();
    assert_eq!(id.len(), 32);

    server.control.reached("k", ToolState::Step(1)).await;
    server.clock.advance(Duration::from_secs(1));
    let working = get(&client, id).await.result();
    assert_eq!(working["status"], "working");
    assert_eq!(working["statusMessage"], "half done");
    assert!(working.get("result").is_none());

    server.control.release("k", 1);
    let done = until(&client, id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "done");
    assert_ne!(done["result"]["isError"], true);
    assert_eq!(done["createdAt"], created["createdAt"]);
    assert_ne!(done["lastUpdatedAt"], created["lastUpdatedAt"]);
    // It does not change any more.
    assert_eq!(get(&client, id).await.result(), done);
}

#[tokio::test]
async fn errors_and_panics_of_a_call_end_its_task() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    for end in ["error", "panic", "fault"] {
        let id = begin(&client, end, end).await;
        server.control.release(end, 1);
        let status = if end == "fault" { "failed" } else { "completed" };
        let task = until(&client, &id, status).await;
        match end {
            "error" => {
                assert_eq!(task["result"]["isError"], true);
                assert_eq!(task["result"]["content"][0]["text"], "It cannot be done.");
            }
            "panic" => {
                assert_eq!(task["result"]["isError"], true);
                assert!(!task.to_string().contains("secret"), "{task}");
            }
            _ => {
                let error = json!({ "code": -32603, "message": "It broke down." });
                assert_eq!(task["error"], error);
                assert!(task.get("result").is_none());
            }
        }
    }
}

#[tokio::test]
async fn a_cancelled_task_is_stopped_and_stays_cancelled() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    let id = begin(&client, "k", "").await;
    for _ in 0..2 {
        let cancelled = client.send("tasks/cancel", json!({ "taskId": id })).await.result();
        assert_eq!(cancelled["resultType"], "complete");
        assert!(cancelled.get("status").is_none(), "{cancelled}");
        server.control.reached("k", ToolState::Dropped).await;
        let task = get(&client, &id).await.result();
        assert_eq!(task["status"], "cancelled");
        assert!(task.get("result").is_none() && task.get("error").is_none());
    }
    // A task that has ended cannot be cancelled.
    let id = begin(&client, "other", "").await;
    server.control.release("other", 1);
    until(&client, &id, "completed").await;
    client.send("tasks/cancel", json!({ "taskId": id })).await.result();
    assert_eq!(get(&client, &id).await.result()["status"], "completed");
}

#[tokio::test]
async fn a_task_outlives_its_request_until_its_ttl() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    let id = begin(&client, "k", "").await;
    server.clock.advance(Duration::from_secs(60 * 60 - 1));
    assert_eq!(get(&client, &id).await.result()["status"], "working");
    server.clock.advance(Duration::from_secs(1));
    server.control.reached("k", ToolState::Dropped).await;
    assert_eq!(get(&client, &id).await.refusal(), (200, -32602, Some(json!(1))));
}

#[tokio::test]
async fn the_questions_of_a_task_are_in_its_state() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    let id = begin(&client, "k", "ask").await;
    server.control.release("k", 1);
    let task = until(&client, &id, "input_required").await;
    let question = &task["inputRequests"]["first"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Who are you?");
    // An unexpected answer is ignored.
    let named = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    update(&client, &id, json!({ "other": named("Eve") })).await.result();
    assert_eq!(get(&client, &id).await.result()["status"], "input_required");
    // After an invalid answer the question is asked again, under another key.
    update(&client, &id, json!({ "first": { "action": "accept" } })).await.result();
    let keys = async || {
        let task = until(&client, &id, "input_required").await;
        task["inputRequests"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys().await, ["first_2"]);
    let updated = update(&client, &id, json!({ "first_2": named("Ana") })).await.result();
    assert_eq!(updated["resultType"], "complete");
    let has_both = async || {
        let task = until(&client, &id, "input_required").await;
        (task["inputRequests"].as_object().unwrap().len() == 2).then_some(task)
    };
    let both = poll("both questions", has_both).await;
    assert!(both["inputRequests"]["a"].is_object() && both["inputRequests"]["b"].is_object());
    update(&client, &id, json!({ "b": named("Bea") })).await.result();
    assert_eq!(keys().await, ["a"]);
    update(&client, &id, json!({ "a": { "action": "decline" } })).await.result();
    let done = until(&client, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ana, nobody, Bea");
    assert!(done.get("inputRequests").is_none());
    assert_eq!(server.control.count("k", ToolState::Started), 1);
}

#[tokio::test]
async fn repeated_invalid_answers_end_the_task() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    let id = begin(&client, "k", "ask").await;
    server.control.release("k", 1);
    for key in ["first", "first_2", "first_3"] {
        until(&client, &id, "input_required").await;
        update(&client, &id, json!({ key: "nonsense" })).await.result();
    }
    let done = until(&client, &id, "completed").await;
    assert_eq!(done["result"]["isError"], true, "{done}");
}

#[tokio::test]
async fn questions_before_the_task_are_asked_by_rounds() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    let asked = client.call("ask_then_work", json!({})).await.result();
    assert_eq!(asked["resultType"], "input_required");
    assert!(!server.control.has("asked", ToolState::Started));
    let answer = json!({ "action": "accept", "content": { "name": "Ana" } });
    let again = json!({
        "name": "ask_then_work", "arguments": {}, "requestState": asked["requestState"],
        "inputResponses": { "before": answer },
    });
    let created = client.send("tools/call", again).await.result();
    assert_eq!(created["resultType"], "task");
    let done = until(&client, created["taskId"].as_str().unwrap(), "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Hello, Ana!");
    assert_eq!(server.control.count("asked", ToolState::Started), 1);
}

#[tokio::test]
async fn clients_without_tasks_get_the_result_itself() {
    let server = Server::offering(offers).await;
    let session = Legacy::of(&server).await;
    server.control.release("k", 2);
    let arguments = json!({ "key": "k" });
    assert_eq!(Modern::of(&server).call("work", arguments.clone()).await.text(), "done");
    assert_eq!(session.call("work", arguments).await.text(), "done");
}

#[tokio::test]
async fn requests_that_need_the_extension_say_so() {
    let server = Server::offering(offers).await;
    let data = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
    let id = begin(&able(&server), "mine", "").await;
    let undeclared = Modern::of(&server);
    let must = json!({ "name": "work", "arguments": { "key": "k", "must": true } });
    for (method, params) in [
        ("tools/call", must),
        ("tasks/get", json!({ "taskId": id })),
        ("tasks/update", json!({ "taskId": id, "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": id })),
    ] {
        let answer = undeclared.send(method, params).await;
        assert_eq!(answer.refusal(), (400, -32021, Some(json!(1))), "{method}");
        assert_eq!(answer.error()["data"], data);
    }
    assert_eq!(get(&able(&server), &id).await.result()["status"], "working");
}

#[tokio::test]
async fn an_unknown_task_is_a_protocol_error() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    let id = "0".repeat(32);
    for (method, params) in [
        ("tasks/get", json!({ "taskId": id })),
        ("tasks/update", json!({ "taskId": id, "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": id })),
        ("tasks/get", json!({ "taskId": "" })),
        ("tasks/get", json!({})),
        ("tasks/get", json!({ "taskId": 7 })),
        ("tasks/update", json!({ "taskId": id, "inputResponses": 7 })),
    ] {
        let answer = client.send(method, params.clone()).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{method} {params}");
    }
}

#[tokio::test]
async fn the_header_has_to_match_the_id_of_the_task() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    let id = begin(&client, "k", "").await;
    let body = Modern::body(&json!(1), "tasks/get", json!({ "taskId": id }));
    for name in [None, Some("other")] {
        let request = client.bare(&body).header("mcp-protocol-version", "2026-07-28");
        let mut request = request.header("mcp-method", "tasks/get");
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        assert_eq!(Answer::of(request).await.refusal(), (400, -32020, Some(json!(1))), "{name:?}");
    }
}

#[tokio::test]
async fn tasks_belong_to_the_modern_era() {
    let server = Server::offering(offers).await;
    let discovered = Modern::of(&server).send("server/discover", json!({})).await.result();
    assert_eq!(discovered["capabilities"]["extensions"][EXTENSION], json!({}));
    let capabilities = json!({ "extensions": { EXTENSION: {} } });
    let session = Legacy::able(&server, capabilities).await;
    assert!(session.initialized["capabilities"].get("extensions").is_none());
    let answer = session.send("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(answer.refusal(), (200, -32601, Some(json!(1))));
    for method in ["tasks/list", "tasks/result"] {
        let answer = able(&server).send(method, json!({})).await;
        assert_eq!(answer.refusal(), (404, -32601, Some(json!(1))), "{method}");
    }
}

#[tokio::test]
async fn tasks_can_end_within_the_grace_period_of_a_shutdown() {
    let server = Server::offering(offers).await;
    let client = able(&server);
    begin(&client, "k", "").await;
    drop(client);
    let control = Arc::clone(&server.control);
    let stopping = server.stop();
    control.release("k", 1);
    control.reached("k", ToolState::Finished).await;
    assert!(stopping.finished().await);
}

#[tokio::test]
async fn tasks_that_outlast_the_grace_period_are_dropped() {
    let server = Server::configured(|setup| {
        setup.config.server.grace = 0;
        setup.offer(offers);
    })
    .await;
    let client = able(&server);
    begin(&client, "k", "").await;
    drop(client);
    let control = Arc::clone(&server.control);
    assert!(!server.stop().finished().await);
    control.reached("k", ToolState::Dropped).await;
}
