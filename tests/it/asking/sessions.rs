//! Questions in sessions: on the stream of the call, answered by POST.

use std::sync::Arc;

use larder::{Builder, Prompt, Tool};
use serde_json::{Value, json};

use crate::{
    asking::{AskNothing, name, offers},
    support::{
        Answer, Ctx, Events, Legacy, Server, ToolControl, ToolState, accepting, patiently, post,
        request,
    },
};

/// All capabilities.
fn all() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": { "listChanged": true },
    })
}

/// A call whose stream has the questions.
async fn call(client: &Legacy, tool: &str) -> Events {
    client.stream_call("call", tool, json!({})).await
}

/// The next question; a priming event is skipped.
async fn question(events: &mut Events) -> Value {
    loop {
        let event = events.next().await.expect("a question");
        if !event.data.is_empty() {
            let question: Value = serde_json::from_str(&event.data).unwrap();
            assert!(question["id"].is_string() && question["method"].is_string(), "{question}");
            return question;
        }
    }
}

/// The result of the call.
async fn outcome(events: Events) -> Value {
    let mut messages = events.messages().await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["id"], "call");
    messages[0]["result"].take()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_form_is_asked_on_the_calls_stream_and_answered_by_post() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    for (answer, said) in [
        (json!({ "action": "accept", "content": { "name": "Ana" } }), "Hello, Ana!"),
        (json!({ "action": "decline" }), "They would not say."),
        (json!({ "action": "cancel" }), "They closed it."),
        (json!({ "action": "decline", "content": null }), "They would not say."),
    ] {
        let mut events = call(&client, "ask_name").await;
        let question = question(&mut events).await;
        assert_eq!(question["jsonrpc"], "2.0");
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], "What is your name?");
        let schema = &question["params"]["requestedSchema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["name"]["type"], "string");
        assert_eq!(schema["required"], json!(["name"]));
        client.answer(&question, "result", answer).await;
        let result = outcome(events).await;
        assert_eq!(text(&result), said);
        assert_ne!(result["isError"], true);
    }
}

#[tokio::test]
async fn visits_sampling_and_roots_can_be_requested() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;

    let mut events = call(&client, "ask_visit").await;
    let visit = question(&mut events).await;
    assert_eq!(visit["params"]["mode"], "url");
    assert_eq!(visit["params"]["url"], "https://example.com/connect");
    assert!(visit["params"]["elicitationId"].as_str().is_some_and(|id| !id.is_empty()));
    client.answer(&visit, "result", json!({ "action": "accept" })).await;
    assert_eq!(text(&outcome(events).await), "visited: true");

    let mut events = call(&client, "ask_model").await;
    let sample = question(&mut events).await;
    assert_eq!(sample["method"], "sampling/createMessage");
    assert_eq!(sample["params"]["maxTokens"], 50);
    assert_eq!(sample["params"]["systemPrompt"], "Be brief.");
    let message = json!({ "role": "user", "content": { "type": "text", "text": "2 + 2?" } });
    assert_eq!(sample["params"]["messages"], json!([message]));
    let said = json!({
        "role": "assistant", "content": { "type": "text", "text": "4" }, "model": "m",
    });
    client.answer(&sample, "result", said).await;
    assert_eq!(text(&outcome(events).await), "m said 4");

    let mut events = call(&client, "ask_roots").await;
    let roots = question(&mut events).await;
    assert_eq!(roots["method"], "roots/list");
    let found = json!({ "roots": [{ "uri": "file:///a", "name": "A" }, { "uri": "file:///b" }] });
    client.answer(&roots, "result", found).await;
    assert_eq!(text(&outcome(events).await), "file:///a file:///b");
}

#[tokio::test]
async fn a_file_outside_of_the_roots_is_refused() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    for (uri, opened) in [
        ("file:///work/a.txt", true),
        ("file:///work/../etc/passwd", false),
        ("file:///workshop/a.txt", false),
    ] {
        let mut events = client.stream_call("call", "ask_file", json!({ "uri": uri })).await;
        let roots = question(&mut events).await;
        let found = json!({ "roots": [{ "uri": "file:///work" }] });
        client.answer(&roots, "result", found).await;
        let result = outcome(events).await;
        assert_eq!(result["isError"] != json!(true), opened, "{uri}: {result}");
        assert!(text(&result).contains(if opened { "opened" } else { "outside" }), "{result}");
    }
}

#[tokio::test]
async fn several_questions_can_be_open_at_once() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    let mut events = call(&client, "ask_three").await;
    let mut questions = Vec::new();
    for _ in 0..3 {
        questions.push(question(&mut events).await);
    }
    let ids: std::collections::HashSet<_> = questions.iter().map(|q| q["id"].as_str()).collect();
    assert_eq!(ids.len(), 3);
    // They can be answered in any order.
    for question in questions.iter().rev() {
        let answer = match question["method"].as_str().unwrap() {
            "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ana" } }),
            "roots/list" => json!({ "roots": [] }),
            _ => json!({ "role": "assistant", "content": [], "model": "m" }),
        };
        client.answer(question, "result", answer).await;
    }
    assert_eq!(text(&outcome(events).await), "Ana, m, 0 roots");
}

#[tokio::test]
async fn invalid_answers_fail_the_call() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    for answer in [
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept", "content": { "name": 7 } }),
        json!({ "action": "accept", "content": ["Ana"] }),
        json!({ "action": "perhaps", "content": { "name": "Ana" } }),
        json!({ "content": { "name": "Ana" } }),
        json!("Ana"),
        json!(null),
    ] {
        let mut events = call(&client, "ask_name").await;
        let question = question(&mut events).await;
        client.answer(&question, "result", answer.clone()).await;
        let result = outcome(events).await;
        assert_eq!(result["isError"], true, "{answer}: {result}");
        assert!(text(&result).starts_with("The client's answer cannot be used"), "{result}");
    }
    for (tool, answer) in [
        ("ask_model", json!({ "role": "assistant" })),
        ("ask_roots", json!({ "roots": 7 })),
        ("ask_roots", json!({})),
    ] {
        let mut events = call(&client, tool).await;
        let question = question(&mut events).await;
        client.answer(&question, "result", answer.clone()).await;
        assert_eq!(outcome(events).await["isError"], true, "{tool}: {answer}");
    }
}

#[tokio::test]
async fn an_error_response_fails_the_call() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    let mut events = call(&client, "ask_name").await;
    let question = question(&mut events).await;
    let error = json!({ "code": -1, "message": "The user has gone home." });
    client.answer(&question, "error", error).await;
    let result = outcome(events).await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("The user has gone home."), "{result}");
}

#[tokio::test]
async fn a_client_is_not_asked_what_it_did_not_declare() {
    let server = Server::offering(offers).await;
    for (capabilities, refused, asked) in [
        (json!({}), &["ask_name", "ask_visit", "ask_model", "ask_roots"][..], &[][..]),
        // An empty declaration means forms.
        (json!({ "elicitation": {} }), &["ask_visit", "ask_model"], &["ask_name"]),
        (json!({ "elicitation": { "url": {} } }), &["ask_name"], &["ask_visit"]),
        (json!({ "sampling": {} }), &["ask_name", "ask_roots"], &["ask_model"]),
        (json!({ "roots": {} }), &["ask_model"], &["ask_roots"]),
    ] {
        let client = Legacy::able(&server, capabilities.clone()).await;
        for tool in refused {
            let failure = client.call(tool, json!({})).await.failure();
            assert!(failure.contains("does not declare"), "{capabilities} {tool}: {failure}");
        }
        for tool in asked {
            question(&mut call(&client, tool).await).await;
        }
    }
}

#[tokio::test]
async fn a_client_that_accepts_no_stream_cannot_be_asked() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    let body = request("tools/call", json!({ "name": "ask_name", "arguments": {} }));
    let answer = Answer::of(accepting("application/json", client.post(&body))).await;
    assert!(answer.failure().contains("not a stream"), "{answer:?}");
}

#[tokio::test]
async fn a_client_without_a_session_cannot_be_asked() {
    let server = Server::offering(offers).await;
    let body = request("tools/call", json!({ "name": "ask_name", "arguments": {} }));
    let accept = "application/json, text/event-stream";
    let answer = Answer::of(post(&server.url, &body).header("accept", accept)).await;
    assert!(answer.failure().contains("without a session"), "{answer:?}");
}

#[tokio::test]
async fn a_call_that_waits_for_an_answer_ends_with_its_session() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    let mut events = call(&client, "ask_between_steps").await;
    let question = question(&mut events).await;
    server.control.reached("asks", ToolState::Started).await;
    client.delete().await;
    server.control.reached("asks", ToolState::Dropped).await;
    assert!(events.messages().await.is_empty());
    let body = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {} });
    assert_eq!(Answer::of(client.post(&body)).await.status, 404);
}

#[tokio::test]
async fn unexpected_answers_are_accepted_and_ignored() {
    let server = Server::offering(offers).await;
    let (client, stranger) =
        (Legacy::able(&server, all()).await, Legacy::able(&server, all()).await);
    let mut events = call(&client, "ask_name").await;
    let question = question(&mut events).await;
    let eve = json!({ "action": "accept", "content": { "name": "Eve" } });
    // From another session, and with unknown ids.
    stranger.answer(&question, "result", eve.clone()).await;
    client.answer(&json!({ "id": "larder-none" }), "result", eve.clone()).await;
    client.answer(&json!({ "id": 1 }), "result", eve.clone()).await;
    let ana = json!({ "action": "accept", "content": { "name": "Ana" } });
    client.answer(&question, "result", ana).await;
    assert_eq!(text(&outcome(events).await), "Hello, Ana!");
    // A second answer to the same question.
    client.answer(&question, "result", eve).await;
}

#[tokio::test]
async fn a_question_survives_a_lost_connection() {
    let server = Server::streaming_with(offers).await;
    let client = Legacy::able(&server, all()).await;
    let mut events = call(&client, "ask_name").await;
    let priming = events.next().await.unwrap();
    assert_eq!(priming.data, "");
    drop(events);
    let mut events = client.resume(&priming.id).await;
    let question = question(&mut events).await;
    let ana = json!({ "action": "accept", "content": { "name": "Ana" } });
    client.answer(&question, "result", ana).await;
    assert_eq!(text(&outcome(events).await), "Hello, Ana!");
}

#[tokio::test]
async fn a_call_that_waits_for_an_answer_can_be_cancelled() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    let mut events = call(&client, "ask_between_steps").await;
    let question = question(&mut events).await;
    client.notify("notifications/cancelled", json!({ "requestId": "call" })).await;
    server.control.reached("asks", ToolState::Dropped).await;
    assert!(events.messages().await.is_empty());
    client.answer(&question, "result", json!({ "action": "cancel" })).await;
}

#[tokio::test]
async fn the_handler_runs_once() {
    let server = Server::offering(offers).await;
    let client = Legacy::able(&server, all()).await;
    let mut events = call(&client, "ask_twice").await;
    for name in ["Ana", "Bea"] {
        let question = question(&mut events).await;
        let answer = json!({ "action": "accept", "content": { "name": name } });
        client.answer(&question, "result", answer).await;
    }
    assert_eq!(text(&outcome(events).await), "Ana and Bea");
    assert_eq!(server.control.count("runs", ToolState::Started), 1);
}

#[tokio::test]
async fn prompts_can_ask_as_well() {
    fn offers_more(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
        builder
            .prompt(Prompt::new(|ctx: Ctx, _: AskNothing| async move { name(&ctx, "name").await }))
            .tool(Tool::new(|_: Ctx, _: AskNothing| async { "" }))
    }
    let server = Server::offering(offers_more).await;
    let client = Legacy::able(&server, all()).await;
    let body = json!({ "jsonrpc": "2.0", "id": "call", "method": "prompts/get",
        "params": { "name": "ask_nothing" } });
    let mut events = Events::of(patiently("a stream", client.post(&body).send()).await.unwrap());
    let question = question(&mut events).await;
    let ana = json!({ "action": "accept", "content": { "name": "Ana" } });
    client.answer(&question, "result", ana).await;
    let result = outcome(events).await;
    assert_eq!(result["messages"][0]["content"]["text"], "Hello, Ana!");
}
