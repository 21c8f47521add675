//! Questions of upstreams to clients: elicitation, sampling and roots. A client with a session
//! is asked on the stream of its call, and one without a session by rounds.

use std::{path::Path, time::Duration};

use larder::{
    Tool, ToolError,
    config::AuthMode,
    upstream::{Remote, Settings, Target},
};
use serde_json::{Value, json};

use super::{command_line, gateway, http::token, in_front_of, lines, listed, odd, package, text};
use crate::{
    asking::{AskNothing, name},
    support::{Ctx, Events, Legacy, Modern, Server, eventually},
};

/// The next message that is a question or the response.
pub(super) async fn next(events: &mut Events) -> Value {
    loop {
        let event = events.next().await.expect("a message");
        let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if message.get("id").is_some() {
            return message;
        }
    }
}

/// Calls a tool and answers its questions, each with the result for its method. Returns
/// the methods that were asked, and the text of the result.
async fn answered(client: &Legacy, tool: &str, arguments: Value) -> (Vec<String>, String) {
    let mut events = client.stream_call("call", tool, arguments).await;
    let mut asked = Vec::new();
    loop {
        let message = next(&mut events).await;
        let Some(method) = message["method"].as_str() else {
            return (asked, message["result"].to_string());
        };
        asked.push(method.to_owned());
        client.answer(&message, "result", response(method)).await;
    }
}

/// What the client says to a question.
pub(super) fn response(method: &str) -> Value {
    match method {
        "roots/list" => {
            json!({ "roots": [{ "uri": "file:///srv/project", "name": "the project" }] })
        }
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
        _ => json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "sampled words" },
        }),
    }
}

/// The next round of a call: its parameters with responses to the questions of the last one.
pub(super) fn next_round(tool: &str, arguments: &Value, required: &Value) -> Value {
    let questions = required["inputRequests"].as_object().unwrap();
    let responses = questions
        .iter()
        .map(|(key, question)| (key.clone(), response(question["method"].as_str().unwrap())));
    json!({
        "name": tool, "arguments": arguments, "requestState": required["requestState"],
        "inputResponses": responses.collect::<serde_json::Map<_, _>>(),
    })
}

/// As [`answered`], by rounds.
async fn answered_by_rounds(
    client: &Modern,
    tool: &str,
    arguments: Value,
) -> (Vec<String>, String) {
    let mut params = json!({ "name": tool, "arguments": arguments });
    let mut asked = Vec::new();
    loop {
        let result = client.send("tools/call", params).await.result();
        if result["resultType"] != "input_required" {
            return (asked, result.to_string());
        }
        let questions = result["inputRequests"].as_object().unwrap().values();
        asked.extend(questions.map(|question| question["method"].as_str().unwrap().to_owned()));
        params = next_round(tool, &arguments, &result);
    }
}

/// A client without sessions that can be asked everything. Which form a response takes
/// depends on how long the upstream starts.
pub(super) fn modern(server: &Server) -> Modern {
    let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    Modern::at(&server.url).with(capabilities)
}

/// The messages of a method that a server has received.
fn received(record: &Path, method: &str) -> Vec<Value> {
    let messages = lines(record).into_iter().filter_map(|line| serde_json::from_str(&line).ok());
    messages.filter(|message: &Value| message["method"] == method).collect()
}

/// The misbehaving server with tools that ask, and the file of what it receives.
fn asking(folder: &tempfile::TempDir) -> (Settings, std::path::PathBuf) {
    let record = folder.path().join("received");
    (odd("odd", &["--tools=asking", &format!("--record={}", record.display())]), record)
}

#[tokio::test]
async fn questions_reach_the_client_and_their_answers_the_upstream() {
    let server = in_front_of(vec![package("everything", &[])]).await;
    let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    let client = Legacy::able(&server, capabilities).await;
    // It offers more to a client that can be asked.
    let tools = listed(&client).await;
    assert!(tools.contains_key("trigger-elicitation-request"), "{:?}", tools.keys());
    assert!(!listed(&Legacy::of(&server).await).await.contains_key("trigger-elicitation-request"));

    // It asks for the roots at its start; the first call carries that question.
    let (asked, result) = answered(&client, "get-roots-list", json!({})).await;
    assert!(asked.contains(&"roots/list".to_owned()), "{asked:?}");
    assert!(result.contains("file:///srv/project"), "{result}");
    let prompt = json!({ "prompt": "Say something", "maxTokens": 10 });
    let (asked, result) = answered(&client, "trigger-sampling-request", prompt).await;
    assert_eq!(asked, ["sampling/createMessage"]);
    assert!(result.contains("sampled words"), "{result}");
    let (asked, result) = answered(&client, "trigger-elicitation-request", json!({})).await;
    assert_eq!(asked, ["elicitation/create"]);
    assert!(result.contains("Ada"), "{result}");
}

#[tokio::test]
async fn a_client_without_a_session_is_asked_by_rounds_during_one_call() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("received");
    let mut settings = package("everything", &[]);
    let script = command_line(&settings)[1].clone();
    let shell = ["sh", "-c", r#"tee "$0" | node "$1""#, record.to_str().unwrap(), &script];
    settings.target = Target::from(shell.map(str::to_owned).to_vec());
    let server = in_front_of(vec![settings]).await;
    let client = modern(&server);

    // It asks for the roots at its start; the first call carries that question.
    let (asked, result) = answered_by_rounds(&client, "get-roots-list", json!({})).await;
    assert_eq!(asked, ["roots/list"]);
    assert!(result.contains("file:///srv/project"), "{result}");
    let prompt = json!({ "prompt": "Say something", "maxTokens": 10 });
    let (asked, result) = answered_by_rounds(&client, "trigger-sampling-request", prompt).await;
    assert_eq!(asked, ["sampling/createMessage"]);
    assert!(result.contains("sampled words"), "{result}");
    let (asked, result) =
        answered_by_rounds(&client, "trigger-elicitation-request", json!({})).await;
    assert_eq!(asked, ["elicitation/create"]);
    assert!(result.contains("Ada"), "{result}");

    // Each was called once, in one process.
    let called: Vec<_> = received(&record, "tools/call");
    assert_eq!(called.len(), 3, "{called:?}");
    assert_eq!(received(&record, "initialize").len(), 1);
    assert!(received(&record, "notifications/cancelled").is_empty());
    // A client that declares nothing is asked nothing, and sees other tools.
    let result = Modern::at(&server.url).call("trigger-elicitation-request", json!({})).await;
    assert_eq!(result.json()["error"]["code"], -32602, "{result:?}");
}

#[tokio::test]
async fn four_pairs_of_eras_ask_and_answer() {
    for version in ["2025-11-25", "2026-07-28"] {
        let upstream = Server::configured(|setup| {
            setup.config.server.max_version = version.into();
            setup.offer(|builder| {
                let greet = Tool::new(|ctx: Ctx, _: AskNothing| async move {
                    let first = name(&ctx, "first").await?;
                    Ok::<_, ToolError>(format!("{first} {}", name(&ctx, "second").await?))
                });
                builder.tool(greet.name("greet"))
            });
        })
        .await;
        let remote = Remote { url: upstream.url.clone(), ..Remote::default() };
        let server = in_front_of(vec![Settings::new("far", remote)]).await;
        let legacy = Legacy::able(&server, json!({ "elicitation": {} })).await;
        let one = answered(&legacy, "greet", json!({})).await;
        let other = answered_by_rounds(&modern(&server), "greet", json!({})).await;
        for (asked, result) in [one, other] {
            assert_eq!(asked, ["elicitation/create", "elicitation/create"], "{version}");
            assert!(result.contains("Hello, Ada! Hello, Ada!"), "{version}: {result}");
        }
        // A client that cannot be asked learns what it lacks.
        let lacking = Modern::at(&server.url).call("greet", json!({})).await;
        let lacking = String::from_utf8_lossy(&lacking.body).into_owned();
        assert!(lacking.contains("elicitation"), "{version}: {lacking}");
    }
}

#[tokio::test]
async fn a_parked_call_asks_again_what_was_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, record) = asking(&folder);
    let server = in_front_of(vec![settings]).await;
    let client = modern(&server);
    let arguments = json!({ "times": 2 });
    let call = json!({ "name": "ask_often", "arguments": arguments });
    let first = client.send("tools/call", call.clone()).await.result();
    let mut unanswered = next_round("ask_often", &arguments, &first);
    unanswered["inputResponses"] = json!({ "another": {} });
    let again = client.send("tools/call", unanswered).await.result();
    assert_eq!(again["inputRequests"], first["inputRequests"]);

    let round = next_round("ask_often", &arguments, &again);
    let second = client.send("tools/call", round.clone()).await.result();
    assert_ne!(second["inputRequests"], first["inputRequests"]);
    // An answer counts once: the call is neither answered twice nor begun again.
    let repeated = client.send("tools/call", round).await.result();
    assert!(text(&repeated).contains("no longer waits for this answer"), "{repeated}");
    let round = next_round("ask_often", &arguments, &second);
    let done = client.send("tools/call", round).await.result();
    assert_eq!(text(&done), "Ada, Ada in call 1");
    assert_eq!(received(&record, "tools/call").len(), 1);
}

#[tokio::test]
async fn a_call_that_nobody_answers_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let (mut settings, record) = asking(&folder);
    settings.answer_timeout = Duration::from_millis(300);
    let server = in_front_of(vec![settings]).await;
    let client = modern(&server);
    let required = client.call("ask", json!({})).await.result();
    eventually("the cancellation", async || {
        !received(&record, "notifications/cancelled").is_empty()
    })
    .await;
    let cancelled = &received(&record, "notifications/cancelled")[0]["params"]["requestId"];
    assert_eq!(*cancelled, received(&record, "tools/call")[0]["id"]);
    let late = client.send("tools/call", next_round("ask", &json!({}), &required)).await.result();
    assert_eq!(late["isError"], true);
    assert_eq!(
        text(&late),
        "odd no longer waits for this answer: it has got one already, or was told to stop after 0.3 s (upstreams.answer_timeout). To start over, send the request without requestState."
    );
    assert_eq!(received(&record, "tools/call").len(), 1);
}

#[tokio::test]
async fn calls_that_wait_for_answers_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (mut settings, record) = asking(&folder);
    settings.max_parked_per_caller = 1;
    let server = in_front_of(vec![settings]).await;
    let client = modern(&server);
    let required = client.call("ask", json!({})).await.result();
    let refused = client.call("ask", json!({})).await.result();
    assert!(text(&refused).contains("(upstreams.max_parked_per_caller)"), "{refused}");
    eventually("the cancellation", async || {
        !received(&record, "notifications/cancelled").is_empty()
    })
    .await;
    let done = client.send("tools/call", next_round("ask", &json!({}), &required)).await.result();
    assert!(text(&done).contains("Ada"), "{done}");
    assert_eq!(client.call("ask", json!({})).await.result()["resultType"], "input_required");
}

#[tokio::test]
async fn an_upstream_that_asks_and_exits_fails_its_call() {
    let server = in_front_of(vec![odd("odd", &["--tools=asking"])]).await;
    let client = modern(&server);
    let required = client.call("ask_and_exit", json!({})).await.result();
    assert_eq!(required["resultType"], "input_required", "{required}");
    let round = next_round("ask_and_exit", &json!({}), &required);
    let ended = client.send("tools/call", round).await.result();
    let expected = "odd ended (exit code 5) during ask_and_exit; whether it was done is unknown.";
    assert_eq!(text(&ended), expected);
}

#[tokio::test]
async fn a_question_that_comes_after_the_cancellation_is_asked_of_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, record) = asking(&folder);
    let server = in_front_of(vec![settings]).await;
    let client = Legacy::able(&server, json!({ "elicitation": {} })).await;
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move {
            let call = json!({ "name": "ask_too_late", "arguments": {} });
            let body =
                json!({ "jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": call });
            let _ = client.post(&body).send().await;
        })
    };
    eventually("the call", async || !received(&record, "tools/call").is_empty()).await;
    client.notify("notifications/cancelled", json!({ "requestId": "mine" })).await;
    let refused = || {
        let messages: Vec<Value> =
            lines(&record).iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        messages.into_iter().find(|message| message["id"] == "q1")
    };
    eventually("the refusal", async || refused().is_some()).await;
    assert_eq!(refused().unwrap()["error"]["message"], "Nobody can be asked now.");
    // The next call asks only its own question.
    let (asked, result) = answered(&client, "ask_often", json!({ "times": 1 })).await;
    assert_eq!(asked.len(), 1);
    assert!(result.contains("Ada in call 2"), "{result}");
    waiting.abort();
}

#[tokio::test]
async fn a_parked_call_belongs_to_the_caller_that_began_it() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, record) = asking(&folder);
    let registry = gateway(vec![settings]);
    let server = Server::configured(|setup| {
        setup.config.auth.mode = AuthMode::Static;
        setup.config.auth.tokens = ["ada", "eve"].map(token).to_vec();
        setup.offers = Box::new(|_, _| registry);
    })
    .await;
    let (ada, eve) = (modern(&server).with_token("ada"), modern(&server).with_token("eve"));
    let required = ada.call("ask", json!({})).await.result();
    let round = next_round("ask", &json!({}), &required);
    let stolen = eve.send("tools/call", round.clone()).await.error();
    assert_eq!(stolen["code"], -32602, "{stolen}");
    // Nor does another call of hers go on with it.
    let other = ada.send("tools/call", next_round("pid", &json!({}), &required)).await.error();
    assert_eq!(other["code"], -32602, "{other}");
    assert!(text(&ada.send("tools/call", round).await.result()).contains("Ada"));
    assert_eq!(received(&record, "tools/call").len(), 1);
}

#[tokio::test]
async fn the_filesystem_server_gets_the_roots_of_a_client_without_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let server = in_front_of(vec![package("filesystem", &[])]).await;
    let client = modern(&server);
    let list = json!({ "name": "list_allowed_directories", "arguments": {} });
    let required = client.send("tools/call", list.clone()).await.result();
    let mut round = next_round("list_allowed_directories", &json!({}), &required);
    let key = required["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let roots = json!({ "roots": [{ "uri": format!("file://{}", root.display()) }] });
    round["inputResponses"] = json!({ key: roots });
    client.send("tools/call", round).await.result();
    // The server takes its time to look at the folders.
    eventually("the root", async || {
        let allowed = client.send("tools/call", list.clone()).await.result();
        text(&allowed).contains(root.to_str().unwrap())
    })
    .await;
}
