//! How calls end, on each transport: every end has its last message, where someone can
//! receive one, and its outcome in the metrics.

use std::{future::pending, sync::Arc, time::Duration};

use larder::{
    Builder, Registry, Resource, Tool, ToolError, app::App, clock::ManualClock, config::Config,
    dispatch::End, protocol::Fault, random::Random,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex},
    sync::oneshot,
};

use crate::{
    asking,
    auth::{World, world_set_up},
    support::{
        Ctx, Events, Legacy, Modern, Server, ToolControl, ToolState, eventually, patient_config,
        patiently, poll,
    },
};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The transports, and tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Modern,
    Legacy,
    Stdio,
    Task,
}

/// Ends in a certain way.
#[derive(Deserialize, JsonSchema)]
struct EndsSo {
    /// How.
    how: String,
    /// Whether it becomes a task first.
    #[serde(default)]
    task: bool,
}

async fn ends(ctx: Ctx, args: EndsSo) -> Result<String, ToolError> {
    if args.task {
        ctx.require_task().await;
    }
    tracing::warn!("the handler goes on");
    match &*args.how {
        "Done" => Ok("done".into()),
        "InputRequired" => asking::name(&ctx, "name").await,
        "ToolError" => Err(ToolError::new("it failed")),
        "Refused" => ctx.fail(Fault::invalid_params("it is refused")).await,
        "Failed" => ctx.fail(Fault::Unavailable("it is broken".into())).await,
        _ => {
            let _player = ctx.state().enter("waits");
            pending().await
        }
    }
}

fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    builder.tool(Tool::new(ends).name("ends"))
}

/// The metrics of this thread, on which the server of a test runs.
fn measure() -> (PrometheusHandle, impl Drop) {
    let recorder: &'static _ = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
    (recorder.handle(), metrics::set_default_local_recorder(recorder))
}

/// Waits until exactly one tool call is recorded, and checks its outcome.
async fn assert_recorded(metrics: &PrometheusHandle, end: End, what: &str) {
    let line = poll(what, async || {
        let rendered = metrics.render();
        let mut calls = rendered.lines().filter(|line| {
            line.starts_with("mcp_server_operation_duration_seconds_count")
                && line.contains("\"tools/call\"")
        });
        let line = calls.next().map(ToOwned::to_owned);
        assert_eq!(calls.next(), None, "{what}: {rendered}");
        line
    })
    .await;
    assert!(line.ends_with(" 1"), "{what}: {line}");
    let error_type = format!("error_type=\"{}\"", end.error_type());
    assert!(line.contains(&error_type), "{what}: {line}");
    let has_tool = line.contains("gen_ai_tool_name=\"ends\"");
    let is_result = matches!(end, End::Done | End::InputRequired | End::ToolError);
    assert_eq!(has_tool, is_result, "{what}: {line}");
}

/// Checks the last message of a call.
#[track_caller]
fn assert_last(message: &Value, end: End, what: &str) {
    let (result, error) = (&message["result"], &message["error"]);
    let text = error["message"].as_str().unwrap_or_default();
    match end {
        End::Done => assert_eq!(result["content"][0]["text"], "done", "{what}: {message}"),
        End::InputRequired => assert!(result["inputRequests"]["name"].is_object(), "{what}"),
        End::ToolError => assert_eq!(result["isError"], true, "{what}: {message}"),
        End::Refused => assert_eq!(error["code"], -32602, "{what}: {message}"),
        End::Failed => assert_eq!(error["code"], -32603, "{what}: {message}"),
        End::Stopped => assert!(text.contains("stop") && text.contains("again"), "{what}: {text}"),
        End::Expired => {
            assert!(text.contains("expired") && text.contains("again"), "{what}: {text}");
        }
        End::TimedOut => {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            let is_named = text.contains("1 seconds (limits.call_timeout)");
            assert!(result["isError"] == true && is_named, "{what}: {message}");
        }
        End::Cancelled | End::ClientGone => panic!("{what}: nobody receives {message}"),
    }
}

#[tokio::test]
async fn every_end_of_a_call_is_told_and_counted_on_every_transport() {
    for way in [Way::Modern, Way::Legacy, Way::Stdio, Way::Task] {
        for end in End::ALL {
            if !exists(way, end) {
                continue;
            }
            let what = format!("{way:?} {end:?}");
            let (metrics, _recorder) = measure();
            match way {
                Way::Modern => over_modern_http(end, &what).await,
                Way::Legacy => over_legacy_http(end, &what).await,
                Way::Stdio => over_stdio(end, &what).await,
                Way::Task => as_task(end, &what).await,
            }
            assert_recorded(&metrics, end, &what).await;
        }
    }
}

/// Whether a call can end so.
fn exists(way: Way, end: End) -> bool {
    match way {
        // The client cancels by closing the connection.
        Way::Modern => end != End::Cancelled,
        // Questions go over the stream, and a call continues without its connection.
        Way::Legacy => !matches!(end, End::InputRequired | End::Expired | End::ClientGone),
        // There are no tokens.
        Way::Stdio => end != End::Expired,
        // It needs neither the token of its request nor the connection, may run until it
        // expires, and its questions are part of its state.
        Way::Task => {
            !matches!(end, End::InputRequired | End::Expired | End::TimedOut | End::ClientGone)
        }
    }
}

async fn world() -> World {
    world_for(End::Done).await
}

/// Calls may take a second where that is to end them, and as usual otherwise.
fn configure(config: &mut Config, end: End) {
    config.server.grace = 0;
    if end == End::TimedOut {
        config.limits.call_timeout = 1;
    }
}

async fn world_for(end: End) -> World {
    world_set_up(|setup| {
        configure(&mut setup.config, end);
        setup.offer(offers);
        setup.http = Box::new(|http| http.promote_after = Duration::ZERO);
    })
    .await
}

/// Whether the handler ends the call. Otherwise it waits for its end.
fn ends_itself(end: End) -> bool {
    let itself = [End::Done, End::InputRequired, End::ToolError, End::Refused, End::Failed];
    itself.contains(&end)
}

fn arguments(end: End) -> Value {
    json!({ "how": format!("{end:?}") })
}

/// The only message of a stream.
async fn only(events: Events, what: &str) -> Value {
    let mut messages = events.messages().await;
    assert_eq!(messages.len(), 1, "{what}: {messages:?}");
    messages.remove(0)
}

async fn over_modern_http(end: End, what: &str) {
    let world = world_for(end).await;
    let client = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let client = client.with(json!({ "elicitation": {} }));
    if ends_itself(end) {
        return assert_last(&client.call("ends", arguments(end)).await.json(), end, what);
    }
    let events = client.stream_call(1, "ends", arguments(end)).await;
    world.server.control.reached("waits", ToolState::Started).await;
    match end {
        End::TimedOut => {}
        End::ClientGone => return drop(events),
        End::Expired => world.server.clock.advance(Duration::from_secs(3600)),
        _ => drop(world.server.stop()),
    }
    assert_last(&only(events, what).await, end, what);
}

async fn over_legacy_http(end: End, what: &str) {
    let world = world_for(end).await;
    let client = Legacy::bearing(&world.server, &world.token_for("alice", "")).await;
    if ends_itself(end) {
        return assert_last(&client.call("ends", arguments(end)).await.json(), end, what);
    }
    let events = client.stream_call(1, "ends", arguments(end)).await;
    world.server.control.reached("waits", ToolState::Started).await;
    if end == End::Cancelled {
        client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
        assert!(events.messages().await.is_empty(), "{what}: a cancelled call has no answer");
        return;
    }
    if end == End::TimedOut {
        return assert_last(&only(events, what).await, end, what);
    }
    let stopping = world.server.stop();
    assert_last(&only(events, what).await, end, what);
    stopping.finished().await;
}

/// A client of a server in this process, over pipes.
struct Pipe {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    control: Arc<ToolControl>,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Pipe {
    fn open() -> Self {
        Self::open_for(End::Done)
    }

    fn open_for(end: End) -> Self {
        let control = ToolControl::new();
        let builder = Registry::builder("fixture").state(Arc::clone(&control));
        let registry = offers(builder).build().unwrap();
        let mut config = patient_config();
        configure(&mut config, end);
        let app = App::with(registry, config, Arc::new(ManualClock::new()), Random::system());
        let (input, server_input) = duplex(64 * 1024);
        let (server_output, output) = duplex(64 * 1024);
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            if stopped.await.is_err() {
                pending::<()>().await;
            }
        };
        let served = app.unwrap().serve_io(server_input, server_output, stopped);
        let output = BufReader::new(output).lines();
        Self { input, output, control, stop, served: tokio::spawn(served) }
    }

    async fn write(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: i64, end: End) {
        let capabilities =
            json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
        let params = json!({ "name": "ends", "arguments": arguments(end), "_meta": capabilities });
        self.write(&Modern::body(&json!(id), "tools/call", params)).await;
    }

    /// The next message, or `None` at the end.
    async fn message(&mut self) -> Option<Value> {
        let line = patiently("a line", self.output.next_line()).await.unwrap();
        line.map(|line| serde_json::from_str(&line).unwrap())
    }
}

async fn over_stdio(end: End, what: &str) {
    let mut pipe = Pipe::open_for(end);
    pipe.call(1, end).await;
    if ends_itself(end) || end == End::TimedOut {
        return assert_last(&pipe.message().await.unwrap(), end, what);
    }
    pipe.control.reached("waits", ToolState::Started).await;
    let Pipe { mut input, mut output, stop, served, .. } = pipe;
    match end {
        End::Cancelled => {
            let cancelled = json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
            });
            input.write_all(format!("{cancelled}\n").as_bytes()).await.unwrap();
            // The next answer is that of the next request.
            let ping = Modern::body(&json!(2), "tools/list", json!({}));
            input.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
            let line = patiently("a line", output.next_line()).await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["id"], 2, "{what}: {message}");
        }
        End::ClientGone => {
            // The server notices when it writes.
            drop(output);
            let ping = Modern::body(&json!(2), "tools/list", json!({}));
            input.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
            assert!(patiently("the end", served).await.unwrap().is_err(), "{what}");
        }
        _ => {
            stop.send(()).unwrap();
            let line = patiently("a line", output.next_line()).await.unwrap().unwrap();
            assert_last(&serde_json::from_str(&line).unwrap(), end, what);
            patiently("the end", served).await.unwrap().unwrap();
        }
    }
}

async fn as_task(end: End, what: &str) {
    let world = world().await;
    let client = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let client = client.with(json!({ "extensions": { TASKS: {} } }));
    let mut arguments = arguments(end);
    arguments["task"] = json!(true);
    let begun = client.call("ends", arguments).await.result();
    assert_eq!(begun["resultType"], "task", "{what}: {begun}");
    let id = json!({ "taskId": begun["taskId"] });
    if ends_itself(end) {
        let ended = poll(what, async || {
            let task = client.send("tasks/get", id.clone()).await.result();
            (task["status"] != "working").then_some(task)
        })
        .await;
        return assert_last(&ended, end, what);
    }
    world.server.control.reached("waits", ToolState::Started).await;
    if end == End::Cancelled {
        client.send("tasks/cancel", id).await.result();
    } else {
        world.server.stop().finished().await;
    }
}

#[tokio::test]
async fn a_request_that_takes_too_long_and_is_no_tool_call_ends_with_an_error() {
    let server = Server::configured(|setup| {
        configure(&mut setup.config, End::TimedOut);
        setup.offer(|builder| {
            builder.resource(Resource::new("x:slow", |_: Ctx| pending::<String>()))
        });
    })
    .await;
    let read = json!({ "uri": "x:slow" });
    for answer in [
        Modern::of(&server).send("resources/read", read.clone()).await,
        Legacy::of(&server).await.send("resources/read", read).await,
    ] {
        let error = answer.error();
        assert_eq!(error["code"], -32603, "{error}");
        assert!(error["message"].as_str().unwrap().contains("limits.call_timeout"), "{error}");
    }
}

#[tokio::test]
async fn the_end_of_the_input_leaves_each_call_an_answer() {
    let mut pipe = Pipe::open();
    for id in 1..=3 {
        pipe.call(id, End::Stopped).await;
    }
    eventually("the calls to run", async || pipe.control.count("waits", ToolState::Started) == 3)
        .await;
    pipe.input.shutdown().await.unwrap();
    let mut ids = Vec::new();
    while let Some(message) = pipe.message().await {
        assert_last(&message, End::Stopped, "the end of the input");
        ids.push(message["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    patiently("the end", pipe.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_id_of_a_running_request_is_refused_and_its_call_can_still_be_cancelled() {
    let mut pipe = Pipe::open();
    pipe.call(1, End::Cancelled).await;
    pipe.control.reached("waits", ToolState::Started).await;
    pipe.call(1, End::Done).await;
    let refused = pipe.message().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)));
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    pipe.write(&cancelled).await;
    pipe.control.reached("waits", ToolState::Dropped).await;
    // The id is free again.
    eventually("the id to be free", async || {
        pipe.call(1, End::Done).await;
        pipe.message().await.unwrap()["result"]["content"][0]["text"] == "done"
    })
    .await;
}

#[tokio::test]
async fn a_subscription_whose_token_expires_says_so() {
    let world = world().await;
    let client = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let listening = client.listen("sub", json!({ "resourcesListChanged": true })).await;
    world.server.clock.advance(Duration::from_secs(3600));
    let last = only(listening, "a subscription").await;
    assert_eq!(last["id"], "sub");
    assert_last(&last, End::Expired, "a subscription");
}

/// What is logged on this thread, on which the server of a test runs.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_lines_of_a_task_carry_the_id_of_its_request() {
    // With a single subscriber, code that another thread reaches first would never be logged.
    let _second = tracing::Dispatch::new(tracing_subscriber::fmt().finish());
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let _log = tracing::subscriber::set_default(lines.finish());
    let world = world().await;
    let client = Modern::bearing(&world.server, &world.token_for("alice", ""));
    let client = client.with(json!({ "extensions": { TASKS: {} } }));
    let arguments = json!({ "how": "Done", "task": true });
    let call = client.request(1, "tools/call", json!({ "name": "ends", "arguments": arguments }));
    let begun = crate::support::Answer::of(call.header("x-request-id", "the-first")).await.result();
    let id = json!({ "taskId": begun["taskId"] });
    eventually("the task to end", async || {
        client.send("tasks/get", id.clone()).await.result()["status"] == "completed"
    })
    .await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let line = text.lines().find(|line| line.contains("the handler goes on"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("request=\"the-first\"") && line.contains("call{"), "{line}");
}
