//! Questions in the modern era: the response to a call has them, and the client sends the
//! call again with the answers.

use std::time::Duration;

use larder::{FileResource, Template, Variables};
use serde_json::{Value, json};

use crate::{
    asking::offers,
    support::{Answer, Ctx, Modern, Server, TextFile, ToolState},
};

/// All capabilities.
fn all() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// The answer of a user who gives a name.
fn named(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

/// The result of a call that needs input.
#[derive(Debug)]
struct Required {
    questions: Value,
    state: String,
}

#[track_caller]
fn required(answer: &Answer) -> Required {
    let mut result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    // It must not be cached.
    assert!(result.get("ttlMs").is_none() && result.get("content").is_none(), "{result}");
    let state = result["requestState"].as_str().unwrap().to_owned();
    Required { questions: result["inputRequests"].take(), state }
}

/// The keys of the questions.
fn keys(required: &Required) -> Vec<&str> {
    required.questions.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Calls a tool that needs input.
async fn ask(client: &Modern, tool: &str) -> Required {
    required(&client.call(tool, json!({})).await)
}

/// Sends the call again, with answers.
async fn retry(client: &Modern, tool: &str, state: Option<&str>, answers: Value) -> Answer {
    let mut params = json!({ "name": tool, "arguments": {}, "inputResponses": answers });
    if let Some(state) = state {
        params["requestState"] = json!(state);
    }
    client.send("tools/call", params).await
}

#[tokio::test]
async fn a_form_is_in_the_result_and_answered_by_the_next_request() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    for (answer, said) in [
        (named("Ana"), "Hello, Ana!"),
        (json!({ "action": "decline" }), "They would not say."),
        (json!({ "action": "cancel" }), "They closed it."),
    ] {
        let asked = ask(&client, "ask_name").await;
        assert_eq!(keys(&asked), ["name"]);
        let question = &asked.questions["name"];
        assert_eq!(question["method"], "elicitation/create");
        assert!(question.get("id").is_none() && question.get("jsonrpc").is_none());
        assert_eq!(question["params"]["message"], "What is your name?");
        assert_eq!(question["params"]["requestedSchema"]["required"], json!(["name"]));
        let answers = json!({ "name": answer });
        let done = retry(&client, "ask_name", Some(&asked.state), answers).await;
        assert_eq!(done.result()["resultType"], "complete");
        assert_eq!(done.text(), said);
    }
}

#[tokio::test]
async fn visits_sampling_and_roots_can_be_requested() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());

    let asked = ask(&client, "ask_visit").await;
    let params = &asked.questions["visit"]["params"];
    assert_eq!((&params["mode"], &params["message"]), (&json!("url"), &json!("Connect.")));
    assert_eq!(params["url"], "https://example.com/connect");
    let answers = json!({ "visit": { "action": "accept" } });
    let done = retry(&client, "ask_visit", Some(&asked.state), answers).await;
    assert_eq!(done.text(), "visited: true");

    let asked = ask(&client, "ask_model").await;
    assert_eq!(asked.questions["model"]["method"], "sampling/createMessage");
    assert_eq!(asked.questions["model"]["params"]["maxTokens"], 50);
    let said = json!({ "role": "assistant", "model": "m", "content": {
        "type": "text", "text": "4",
    } });
    let done = retry(&client, "ask_model", Some(&asked.state), json!({ "model": said })).await;
    assert_eq!(done.text(), "m said 4");

    let asked = ask(&client, "ask_roots").await;
    assert_eq!(asked.questions["roots"]["method"], "roots/list");
    let found = json!({ "roots": { "roots": [{ "uri": "file:///a" }] } });
    assert_eq!(retry(&client, "ask_roots", Some(&asked.state), found).await.text(), "file:///a");
}

#[tokio::test]
async fn a_file_outside_of_the_roots_is_refused() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    for (uri, opened) in [("file:///work/a.txt", true), ("file:///work/../etc/passwd", false)] {
        let params = json!({ "name": "ask_file", "arguments": { "uri": uri } });
        let asked = required(&client.send("tools/call", params.clone()).await);
        let mut again = params;
        again["requestState"] = json!(asked.state);
        again["inputResponses"] = json!({ "roots": { "roots": [{ "uri": "file:///work" }] } });
        let answer = client.send("tools/call", again).await;
        if opened {
            assert_eq!(answer.text(), format!("opened {uri}"));
        } else {
            assert!(answer.failure().contains("outside"), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn several_questions_are_asked_at_once_and_only_unanswered_ones_again() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let asked = ask(&client, "ask_three").await;
    assert_eq!(keys(&asked), ["model", "name", "roots"]);
    let some = json!({ "name": named("Ana"), "roots": { "roots": [] } });
    let asked = required(&retry(&client, "ask_three", Some(&asked.state), some).await);
    assert_eq!(keys(&asked), ["model"]);
    let rest = json!({ "model": { "role": "assistant", "content": [], "model": "m" } });
    let done = retry(&client, "ask_three", Some(&asked.state), rest).await;
    assert_eq!(done.text(), "Ana, m, 0 roots");
}

#[tokio::test]
async fn each_round_runs_the_handler_from_its_start_and_asks_nothing_twice() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let runs = || server.control.count("runs", ToolState::Started);
    let asked = ask(&client, "ask_twice").await;
    assert_eq!((keys(&asked), runs()), (vec!["first"], 1));
    let first = json!({ "first": named("Ana") });
    let asked = required(&retry(&client, "ask_twice", Some(&asked.state), first).await);
    assert_eq!((keys(&asked), runs()), (vec!["second"], 2));
    let second = json!({ "second": named("Bea") });
    let done = retry(&client, "ask_twice", Some(&asked.state), second).await;
    assert_eq!((done.text().as_str(), runs()), ("Ana and Bea", 3));
    assert_eq!(server.control.count("runs", ToolState::Step(1)), 2);
}

#[tokio::test]
async fn invalid_answers_are_asked_for_again() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let mut asked = ask(&client, "ask_name").await;
    for answer in [
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept", "content": { "name": 7 } }),
        json!({ "action": "perhaps" }),
        json!({ "code": -1, "message": "an error is no result" }),
        json!("Ana"),
        json!(null),
    ] {
        let answers = json!({ "name": answer });
        asked = required(&retry(&client, "ask_name", Some(&asked.state), answers).await);
        assert_eq!(keys(&asked), ["name"], "{answer}");
    }
    let done = retry(&client, "ask_name", Some(&asked.state), json!({ "name": named("A") })).await;
    assert_eq!(done.text(), "Hello, A!");
}

#[tokio::test]
async fn unexpected_answers_are_ignored() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let asked = ask(&client, "ask_name").await;
    let answers = json!({ "name": named("Ana"), "other": named("Eve"), "": 7 });
    let done = retry(&client, "ask_name", Some(&asked.state), answers).await;
    assert_eq!(done.text(), "Hello, Ana!");
    let others = json!({ "other": named("Eve") });
    let asked = required(&retry(&client, "ask_name", Some(&asked.state), others).await);
    assert_eq!(keys(&asked), ["name"]);
}

#[tokio::test]
async fn without_the_state_its_answers_are_asked_for_again() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let asked = ask(&client, "ask_twice").await;
    let first = json!({ "first": named("Ana") });
    required(&retry(&client, "ask_twice", Some(&asked.state), first).await);
    // The answer to the first question was in the state.
    let second = json!({ "second": named("Bea") });
    let asked = required(&retry(&client, "ask_twice", None, second).await);
    assert_eq!(keys(&asked), ["first"]);
    // A request with all answers needs no state.
    let both = json!({ "first": named("Ana"), "second": named("Bea") });
    assert_eq!(retry(&client, "ask_twice", None, both).await.text(), "Ana and Bea");
}

#[tokio::test]
async fn malformed_responses_are_refused() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    for params in [
        json!({ "name": "ask_name", "inputResponses": 7 }),
        json!({ "name": "ask_name", "inputResponses": ["a"] }),
        json!({ "name": "ask_name", "requestState": 7 }),
    ] {
        let answer = client.send("tools/call", params.clone()).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{params}");
    }
}

#[tokio::test]
async fn a_modified_state_is_refused() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let Required { state, .. } = ask(&client, "ask_name").await;
    let (payload, seal) = state.split_once('.').unwrap();
    let flipped = |text: &str| {
        let (head, last) = text.split_at(text.len() / 2);
        let other = if last.starts_with('A') { 'B' } else { 'A' };
        format!("{head}{other}{}", &last[1..])
    };
    for tampered in [
        String::new(),
        "nonsense".into(),
        "a.b".into(),
        payload.to_owned(),
        format!("{payload}."),
        format!("{}.{seal}", flipped(payload)),
        format!("{payload}.{}", flipped(seal)),
        format!("{state}x"),
    ] {
        let answers = json!({ "name": named("Ana") });
        let answer = retry(&client, "ask_name", Some(&tampered), answers).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{tampered}");
        let message = answer.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("requestState"), "{message}");
    }
}

#[tokio::test]
async fn a_state_is_valid_for_an_hour() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let Required { state, .. } = ask(&client, "ask_name").await;
    let answers = json!({ "name": named("Ana") });
    server.clock.advance(Duration::from_secs(60 * 60 - 1));
    let done = retry(&client, "ask_name", Some(&state), answers.clone()).await;
    assert_eq!(done.text(), "Hello, Ana!");
    server.clock.advance(Duration::from_secs(1));
    let answer = retry(&client, "ask_name", Some(&state), answers).await;
    assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    assert!(answer.error()["message"].as_str().unwrap().contains("too old"));
}

#[tokio::test]
async fn a_state_is_bound_to_its_request() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let about = |topic: &str| json!({ "name": "ask_about", "arguments": { "topic": topic } });
    let first = required(&client.send("tools/call", about("rust")).await);
    let with = |mut params: Value| {
        params["requestState"] = json!(first.state);
        params["inputResponses"] = json!({ "name": named("Ana") });
        params
    };
    for (method, params) in [
        ("tools/call", about("ferrous metals")),
        ("tools/call", json!({ "name": "ask_about", "arguments": { "topic": "rust", "x": 1 } })),
        ("tools/call", json!({ "name": "ask_name", "arguments": {} })),
        ("resources/read", json!({ "uri": "docs://asks" })),
    ] {
        let answer = client.send(method, with(params.clone())).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{params}");
    }
    // The same request with another spelling of its JSON.
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"new","method":"tools/call","params":{{
            "inputResponses":{},"arguments":{{ "topic" : "r\u0075st" }},"requestState":{},
            "_meta":{},"name":"ask_about"}}}}"#,
        json!({ "name": named("Ana") }),
        json!(first.state),
        Modern::meta(),
    );
    let request = client.bare(body).header("mcp-protocol-version", "2026-07-28");
    let request = request.header("mcp-method", "tools/call").header("mcp-name", "ask_about");
    // Its metadata declares no capabilities, so it is not asked.
    let answer = Answer::of(request).await;
    assert_eq!(answer.refusal(), (400, -32021, Some(json!("new"))));
    assert_eq!(client.send("tools/call", with(about("rust"))).await.text(), "Ana on rust");
}

#[tokio::test]
async fn resources_can_ask_as_well() {
    let server = Server::offering(offers).await;
    let client = Modern::able(&server, all());
    let asked = required(&client.send("resources/read", json!({ "uri": "docs://asks" })).await);
    let again = json!({
        "uri": "docs://asks", "requestState": asked.state,
        "inputResponses": { "name": named("Ana") },
    });
    let result = client.send("resources/read", again).await.result();
    assert_eq!(result["contents"][0]["text"], "Hello, Ana!");
}

#[tokio::test]
async fn a_client_is_not_asked_what_it_did_not_declare() {
    let server = Server::offering(offers).await;
    let form = json!({ "elicitation": { "form": {} } });
    let url = json!({ "elicitation": { "url": {} } });
    let (sampling, roots) = (json!({ "sampling": {} }), json!({ "roots": {} }));
    for (capabilities, tool, needed) in [
        (json!({}), "ask_name", &form),
        (json!({}), "ask_visit", &url),
        (json!({}), "ask_model", &sampling),
        (json!({}), "ask_roots", &roots),
        (url.clone(), "ask_name", &form),
        (form.clone(), "ask_visit", &url),
        (json!({ "elicitation": {} }), "ask_visit", &url),
        (form.clone(), "ask_model", &sampling),
    ] {
        let client = Modern::able(&server, capabilities.clone());
        let answer = client.call(tool, json!({})).await;
        assert_eq!(answer.refusal(), (400, -32021, Some(json!(1))), "{capabilities} {tool}");
        assert_eq!(answer.error()["data"], json!({ "requiredCapabilities": needed }));
    }
    for (capabilities, tool) in [
        (json!({ "elicitation": {} }), "ask_name"),
        (form, "ask_name"),
        (url, "ask_visit"),
        (sampling, "ask_model"),
        (roots, "ask_roots"),
    ] {
        ask(&Modern::able(&server, capabilities), tool).await;
    }
}

/// A server whose state key is in a file.
async fn keyed(file: &TextFile) -> Server {
    let file = file.path().into();
    Server::configured(move |setup| {
        setup.config.server.state_key_file = Some(file);
        setup.offer(offers);
    })
    .await
}

#[tokio::test]
async fn servers_with_the_same_key_accept_each_others_states() {
    let key = TextFile::new(&"k".repeat(32));
    // A file that ends with a line break holds the same key.
    let same = TextFile::new(&format!("{}\n", "k".repeat(32)));
    let other = TextFile::new(&"o".repeat(32));
    let (one, two, stranger) = (keyed(&key).await, keyed(&same).await, keyed(&other).await);
    let asked = ask(&Modern::able(&one, all()), "ask_twice").await;
    let first = json!({ "first": named("Ana") });
    let answer =
        retry(&Modern::able(&two, all()), "ask_twice", Some(&asked.state), first.clone()).await;
    let again = required(&answer);
    let second = json!({ "second": named("Bea") });
    let done = retry(&Modern::able(&one, all()), "ask_twice", Some(&again.state), second).await;
    assert_eq!(done.text(), "Ana and Bea");
    for server in [stranger, Server::offering(offers).await] {
        let client = Modern::able(&server, all());
        let answer = retry(&client, "ask_twice", Some(&asked.state), first.clone()).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    }
}

/// The answer to a read of a file, after the client has told its roots.
async fn read_in_roots(client: &Modern, uri: &str, root: &str) -> Answer {
    let params = json!({ "uri": uri });
    let asked = required(&client.send("resources/read", params.clone()).await);
    assert_eq!(asked.questions["roots"]["method"], "roots/list");
    let mut again = params;
    again["requestState"] = json!(asked.state);
    again["inputResponses"] = json!({ "roots": { "roots": [{ "uri": root }] } });
    client.send("resources/read", again).await
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_resource_keeps_to_the_roots_of_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("in.txt"), "inside").unwrap();
    std::fs::write(folder.path().join("out.txt"), "outside").unwrap();
    std::os::unix::fs::symlink(folder.path().join("out.txt"), root.join("link.txt")).unwrap();
    let server = Server::offering(|builder| {
        let read = |ctx: Ctx, variables: Variables| async move {
            let uri = format!("file:///{}", variables["path"].replace(' ', "%20"));
            FileResource::in_roots(&ctx, "roots", &uri).await
        };
        builder.template(Template::new("file:///{+path}", "file", read))
    });
    let server = server.await;
    let client = Modern::able(&server, all());
    let folder = format!("file://{}", folder.path().display());
    let root = format!("{folder}/a%20root");
    let read = read_in_roots(&client, &format!("{root}/in.txt"), &root).await.result();
    assert_eq!(read["contents"][0]["text"], "inside");
    for outside in [format!("{folder}/out.txt"), format!("{root}/link.txt"), format!("{root}/no")] {
        let refused = read_in_roots(&client, &outside, &root).await;
        assert!(!String::from_utf8_lossy(&refused.body).contains("outside\""), "{refused:?}");
        refused.error();
    }
}
