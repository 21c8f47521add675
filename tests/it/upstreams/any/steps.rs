//! Calls that take several steps, at each of which an upstream sends anything: tasks (2025-11-25), and
//! rounds of questions (2026-07-28).

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, response::Response, routing};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, time::Instant};

use super::{
    super::{
        SOON, gateway,
        http::remote,
        questions::{next, next_round, response as response_to},
    },
    Way,
    anything::{any_answer, any_bytes, any_json, is_response, runner},
    framed, result, status, usual, with_id,
};
use crate::support::{Answer, Events, Legacy, Modern, Server, patiently};

/// The ways in which each step has a response of its own.
const WAYS: [Way; 2] = [Way::Json, Way::Events];

/// An upstream that answers the next requests of a call as a test says.
#[derive(Clone)]
struct Script(Arc<Mutex<Scripted>>);

struct Scripted {
    way: Way,
    is_modern: bool,
    /// The next answers to requests of these methods.
    answers: VecDeque<(&'static str, Vec<u8>)>,
    /// When the upstream has sent its last answer.
    last_byte: Instant,
}

impl Script {
    /// A server in front of the upstream.
    async fn begin(way: Way, is_modern: bool) -> (Self, Server) {
        let answers = VecDeque::new();
        let scripted = Scripted { way, is_modern, answers, last_byte: Instant::now() };
        let script = Self(Arc::new(Mutex::new(scripted)));

        let answering = script.clone();
        let answer = move |body: Bytes| {
            let answered = answering.0.lock().unwrap().answer(&body);
            async move { Ok::<_, Infallible>(answered) }
        };
        let router = Router::new().route("/mcp", routing::post(answer));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });

        let registry = gateway(vec![remote("any", &url)]);
        let server = Server::configured(|setup| {
            // Clients with sessions are asked on the stream of their call.
            setup.http = Box::new(|http| http.promote_after = Duration::ZERO);
            setup.offers = Box::new(|_, _| registry);
        });
        (script, server.await)
    }

    /// Sets the answers of the next call. Further requests are answered so that the call ends.
    fn set(&self, answers: impl IntoIterator<Item = (&'static str, Vec<u8>)>) {
        self.0.lock().unwrap().answers = answers.into_iter().collect();
    }

    fn has_answered_long_ago(&self) -> bool {
        self.0.lock().unwrap().last_byte.elapsed() > SOON
    }
}

impl Scripted {
    fn answer(&mut self, body: &[u8]) -> Response {
        let request: Value = serde_json::from_slice(body).unwrap();
        let (Some(id), Some(method)) = (request.get("id"), request["method"].as_str()) else {
            return status(202, Vec::new());
        };

        let next = self.answers.iter().position(|(of, _)| *of == method);
        let bytes = match next.and_then(|next| self.answers.remove(next)) {
            Some((_, bytes)) => with_id(&bytes, &id.to_string()),
            None => match self.last_step(method) {
                Some(result) => {
                    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string().into_bytes()
                }
                None => usual(method, id).to_string().into_bytes(),
            },
        };
        self.last_byte = Instant::now();
        framed(self.way, bytes)
    }

    /// The result that leads to the end of a call.
    fn last_step(&self, method: &str) -> Option<Value> {
        let support = if self.is_modern { "forbidden" } else { "required" };
        let tool = json!({
            "name": "say", "inputSchema": { "type": "object" }, "execution": { "taskSupport": support },
        });
        Some(match method {
            "server/discover" if self.is_modern => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
            }),
            "tools/list" => json!({ "tools": [tool] }),
            "tasks/get" => json!({ "taskId": "t", "status": "completed" }),
            "tools/call" | "tasks/result" => json!({ "content": [] }),
            _ => return None,
        })
    }
}

/// The state of a task, or nearly one.
fn any_task() -> impl Strategy<Value = Value> {
    let id = prop_oneof![
        4 => Just(json!("t")),
        1 => any_json(),
        1 => (0..3_000usize).prop_map(|bytes| json!("t".repeat(bytes))),
    ];
    let words = ["working", "working", "working", "input_required", "completed", "failed", "?"];
    let state = prop::sample::select(words.to_vec());
    // A longer interval is waited for.
    let poll = prop_oneof![4 => (0..60u64).prop_map(Value::from), 1 => any_json()];
    (id, state, poll, any_json()).prop_map(|(id, state, poll, message)| {
        let poll = if poll.as_u64().is_some_and(|poll| poll > 60) { json!(60) } else { poll };
        json!({ "taskId": id, "status": state, "pollInterval": poll, "statusMessage": message })
    })
}

/// The questions of a round, or nearly such.
fn any_questions() -> impl Strategy<Value = Value> {
    let methods = ["elicitation/create", "sampling/createMessage", "roots/list", "other"];
    let params = prop_oneof![
        2 => Just(json!({ "message": "Name?", "requestedSchema": { "type": "object" } })),
        1 => any_json(),
    ];
    let question = (prop::sample::select(methods.to_vec()), params)
        .prop_map(|(method, params)| json!({ "method": method, "params": params }));
    let question = prop_oneof![4 => question, 1 => any_json()];
    let questions = prop::collection::hash_map("[a-z]{1,3}", question, 0..3);
    let questions = questions.prop_map(|questions| json!(questions));

    let requests = prop_oneof![6 => questions, 1 => any_json()];
    let state = prop_oneof![2 => Just(json!("s")), 1 => Just(Value::Null), 1 => any_json()];
    (requests, state).prop_map(|(requests, state)| {
        json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })
    })
}

/// An answer with this result, or anything else.
fn any_step(result_of: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Vec<u8>> {
    let clear = result_of.prop_map(|value| result(&value.to_string()).into_bytes());
    prop_oneof![6 => clear, 1 => any_answer(), 1 => any_bytes()]
}

#[test]
fn any_states_of_a_task_let_its_call_end() {
    let begun = any_step(any_task().prop_map(|task| json!({ "task": task })));
    let states = prop::collection::vec(any_step(any_task()), 0..3);
    let case = (begun, states, any_step(any_json()));

    for way in WAYS {
        let runtime = Runtime::new().unwrap();
        let (script, server) = runtime.block_on(Script::begin(way, false));
        let client = runtime.block_on(Legacy::of(&server));
        let ended = runner(40).run(&case, |(begun, states, last)| {
            let states = states.into_iter().map(|state| ("tasks/get", state));
            let steps = [("tools/call", begun)].into_iter().chain(states);
            script.set(steps.chain([("tasks/result", last)]));

            let answer = patiently("an answer", client.call("say", json!({})));
            let answer = runtime.block_on(answer).in_any_form().json();
            prop_assert!(is_response(&answer), "{answer}");
            prop_assert!(!script.has_answered_long_ago(), "{answer}");
            Ok(())
        });
        ended.unwrap_or_else(|failure| panic!("{way:?}: {failure}"));
    }
}

/// The kinds of questions that a client answers.
fn capabilities() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

/// Calls the tool, and goes on with it as long as it asks.
async fn call_by_rounds(client: &Modern) -> Value {
    let mut params = json!({ "name": "say", "arguments": {} });
    loop {
        let answer = patiently("a round", client.send("tools/call", params)).await.json();
        if answer["result"]["resultType"] != "input_required" {
            return answer;
        }
        params = next_round("say", &json!({}), &answer["result"]);
    }
}

/// Calls the tool, and answers its questions on the stream.
async fn call_on_a_stream(client: &Legacy) -> Value {
    let params = json!({ "name": "say", "arguments": {}, "_meta": { "progressToken": "token" } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let response = patiently("a response", client.post(&request).send()).await.unwrap();
    // What is answered at once has no stream.
    if response.headers()["content-type"] == "application/json" {
        return Answer::read(response).await.json();
    }

    let mut events = Events::of(response);
    loop {
        let message = next(&mut events).await;
        let Some(method) = message["method"].as_str() else { return message };
        client.answer(&message, "result", response_to(method)).await;
    }
}

#[test]
fn any_rounds_of_questions_let_their_call_end() {
    let case = prop::collection::vec(any_step(any_questions()), 0..4);

    for way in WAYS {
        let runtime = Runtime::new().unwrap();
        let (script, server) = runtime.block_on(Script::begin(way, true));
        let modern = Modern::at(&server.url).with(capabilities());
        let legacy = runtime.block_on(Legacy::able(&server, capabilities()));
        let ended = runner(40).run(&case, |steps| {
            for by_rounds in [true, false] {
                script.set(steps.iter().map(|step| ("tools/call", step.clone())));
                let answer = runtime.block_on(async {
                    if by_rounds {
                        call_by_rounds(&modern).await
                    } else {
                        call_on_a_stream(&legacy).await
                    }
                });
                prop_assert!(is_response(&answer), "{answer}");
                prop_assert!(!script.has_answered_long_ago(), "{answer}");
            }
            Ok(())
        });
        ended.unwrap_or_else(|failure| panic!("{way:?}: {failure}"));
    }
}
