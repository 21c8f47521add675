//! Servers from functions, over the client for tests, in both eras.

#![allow(clippy::unwrap_used)]

use std::{
    error::Error,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use larder::{Test, TestClient, TestError, config::Config, prelude::*, server::Server};

struct Logs {
    lines: Vec<String>,
    closed: Arc<AtomicBool>,
}

impl Logs {
    fn search(&self, query: &str) -> io::Result<Vec<&str>> {
        match query {
            "fail" => Err(io::Error::other("the disk /dev/sda is gone")),
            query => {
                let found = self.lines.iter().map(String::as_str).filter(|l| l.contains(query));
                Ok(found.collect())
            }
        }
    }
}

#[larder::data]
struct Sum {
    sum: f64,
}

/// Adds two numbers.
#[tool]
fn add(
    /** The first. */
    a: f64,
    /** The second. */
    b: f64,
) -> Sum {
    Sum { sum: a + b }
}

/// Searches the logs.
///
/// Stores what it finds.
#[tool(annotations(read_only, open_world = false), title = "Search", scope = "logs:read")]
async fn search_logs(
    #[arg(min_length = 1)] query: String,
    ctx: &Context<Logs>,
    #[arg(default = 10, range = 1..=100)] limit: usize,
) -> Result<Stored> {
    let found = ctx.state().search(&query).context("The logs cannot be searched now.")?;
    ctx.progress(1).of(2).message("searched").await;
    let found: Vec<_> = found.into_iter().take(limit).collect();
    let stored = ctx.store(found.join("\n")).name("Results").ttl(hours(1)).await?;
    Ok(stored.say(format!("Found {} lines.", found.len())))
}

/// Halves an even number.
#[tool(name = "halve")]
async fn half(n: i64) -> Result<i64> {
    if n % 2 == 0 { Ok(n / 2) } else { Err(ToolError::new("Give an even number.")) }
}

/// Greets.
#[tool(allow_unknown)]
fn greet(
    ctx: Context,
    name: Option<String>,
    #[arg(rename = "loud")] is_loud: Option<bool>,
) -> String {
    assert!(!ctx.request_id().is_empty());
    let greeting = format!("Hello, {}.", name.as_deref().unwrap_or("you"));
    if is_loud == Some(true) { greeting.to_uppercase() } else { greeting }
}

#[larder::args]
struct Person {
    /// Their name.
    name: String,
}

/// Asks who it is.
#[tool]
async fn who(ctx: &Context) -> Result<String> {
    Ok(match ctx.elicit::<Person>("who", "Who are you?").await? {
        Elicited::Accepted(person) => person.name,
        _ => "nobody".to_owned(),
    })
}

/// Weather of a city.
#[resource("weather://{city}/{days}", mime_type = "application/json", cache(minutes(5), public))]
async fn weather(city: String, days: u8) -> Result<Json<Value>> {
    let days = (days < 8).then_some(days).context("There are seven days.")?;
    Ok(Json(json!({ "city": city, "days": days })))
}

/// How many lines there are.
#[resource("logs://count")]
fn count(ctx: &Context<Logs>) -> String {
    ctx.state().lines.len().to_string()
}

/// Lists a text's main ideas.
#[prompt]
fn main_ideas(
    /** How many. */
    #[arg(range = 1..=9)]
    count: u32,
    text: String,
) -> [Message; 2] {
    [user(format!("List {count} main ideas of: {text}")), assistant("1.")]
}

fn logs(closed: Arc<AtomicBool>) -> Server<Logs> {
    let open = || async move {
        let lines = (0..100).map(|n| format!("line {n}")).collect();
        Ok::<_, TestError>(Logs { lines, closed })
    };
    let close = |logs: Arc<Logs>| async move { logs.closed.store(true, Ordering::Relaxed) };
    larder::server("logs")
        .tool(add)
        .lifespan(open, close)
        .tool(search_logs)
        .tool(half)
        .tool(greet)
        .tool(who)
        .resource(weather)
        .resource(count)
        .prompt(main_ideas)
        .reading()
}

fn both(server: impl Fn() -> Test) -> [Test; 2] {
    [server(), server().legacy()]
}

async fn client() -> TestClient {
    larder::test(logs(Arc::default())).await
}

#[larder::test]
async fn a_signature_is_the_definition() -> Result<(), TestError> {
    let client = client().await;
    let tools = client.tools().await?;
    let tool = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap();
    let add = tool("add");
    assert_eq!(add.description.as_deref(), Some("Adds two numbers."));
    assert_eq!(
        json!(*add.input_schema),
        json!({
            "type": "object",
            "properties": {
                "a": { "type": "number", "description": "The first." },
                "b": { "type": "number", "description": "The second." },
            },
            "required": ["a", "b"],
            "additionalProperties": false,
        })
    );
    // The server can store results, so that a preview is allowed as well.
    let own = |tool: &model::Tool| tool.output_schema.as_ref().unwrap()["anyOf"][0].clone();
    assert_eq!(own(add)["required"], json!(["sum"]));
    let search = tool("search_logs");
    assert_eq!(search.title.as_deref(), Some("Search"));
    assert_eq!(search.description.as_deref(), Some("Searches the logs.\n\nStores what it finds."));
    assert_eq!(json!(search.annotations), json!({ "readOnlyHint": true, "openWorldHint": false }));
    let properties = &search.input_schema["properties"];
    assert_eq!(properties["query"]["minLength"], 1);
    let limit = &properties["limit"];
    assert_eq!((&limit["minimum"], &limit["maximum"]), (&json!(1), &json!(100)));
    assert_eq!(limit["default"], 10);
    assert_eq!(search.input_schema["required"], json!(["query"]));
    assert!(own(search)["properties"]["uri"].is_object());
    assert!(tool("greet").input_schema.get("additionalProperties").is_none());
    assert!(tool("greet").input_schema["properties"]["loud"].is_object());
    assert!(tool("greet").output_schema.is_none(), "it is text");

    let prompt = &client.prompts().await?[0];
    assert_eq!(
        (&*prompt.name, prompt.description.as_deref()),
        ("main_ideas", Some("Lists a text's main ideas."))
    );
    let count = &prompt.arguments.as_ref().unwrap()[0];
    assert_eq!(
        (&*count.name, count.description.as_deref(), count.required),
        ("count", Some("How many."), Some(true))
    );
    let template = &client.templates().await?[0];
    assert_eq!(
        (&*template.name, template.description.as_deref()),
        ("weather", Some("Weather of a city."))
    );
    assert_eq!(template.mime_type.as_deref(), Some("application/json"));
    assert_eq!(client.resources().await?[0].name, "count");
    Ok(())
}

#[larder::test]
async fn functions_answer_in_both_eras() -> Result<(), TestError> {
    let mut caches = Vec::new();
    for test in both(|| larder::test(logs(Arc::default()))) {
        let client = test.await;
        let sum = client.call("add", json!({ "a": 1, "b": 2.5 })).await?;
        assert!((sum.structured::<Sum>().sum - 3.5).abs() < f64::EPSILON);
        assert_eq!(client.call("halve", json!({ "n": 8 })).await?.structured::<i64>(), 4);
        assert_eq!(client.call("greet", json!({ "more": 1 })).await?.text(), "Hello, you.");
        let loud = client.call("greet", json!({ "name": "Ana", "loud": true })).await?;
        assert_eq!(loud.text(), "HELLO, ANA.");
        assert_eq!(client.read("logs://count").await?.text(), "100");
        let weather = client.read("weather://Lima/3").await?;
        assert_eq!(weather.json::<Value>(), json!({ "city": "Lima", "days": 3 }));
        if let Some(ttl) = weather.result().get("ttlMs") {
            caches.push((ttl.clone(), weather.result()["cacheScope"].clone()));
        }
        let ideas = client.prompt("main_ideas", json!({ "count": "3", "text": "x" })).await?;
        assert_eq!(ideas.texts(), ["List 3 main ideas of: x", "1."]);
    }
    // Only the modern era has them.
    assert_eq!(caches, [(json!(300_000), json!("public"))]);
    assert!((add::call(1.0, 1.0).sum - 2.0).abs() < f64::EPSILON);
    Ok(())
}

#[larder::test]
async fn what_the_schema_excludes_never_arrives() {
    let client = client().await;
    let refused = async |tool: &str, arguments: Value| {
        client.call(tool, arguments).await.unwrap_err().message().to_owned()
    };
    assert!(refused("add", json!({ "a": 1, "b": 2, "c": 3 })).await.contains('c'));
    assert!(refused("search_logs", json!({ "query": "" })).await.contains("query"));
    assert!(refused("search_logs", json!({ "query": "x", "limit": 101 })).await.contains("limit"));
    assert_eq!(refused("halve", json!({ "n": 3 })).await, "Give an even number.");
    let ideas = client.prompt("main_ideas", json!({ "count": "10", "text": "x" })).await;
    assert!(ideas.unwrap_err().message().contains("count"));
}

#[larder::test]
async fn an_error_says_what_the_model_should_read() {
    let client = client().await;
    let failed = client.call("search_logs", json!({ "query": "fail" })).await.unwrap_err();
    assert_eq!(failed.message(), "The logs cannot be searched now.");
    let failed = client.read("weather://Lima/9").await.unwrap_err();
    assert_eq!(failed.message(), "There are seven days.");
}

#[derive(Debug, thiserror::Error)]
#[error("the index cannot be read")]
struct IndexError(#[source] io::Error);

/// Fails.
#[tool]
fn fail(how: String) -> Result<()> {
    let disk = io::Error::other("the disk /dev/sda is gone");
    match how.as_str() {
        "once" => Err(disk).context("One cause."),
        "twice" => Err(IndexError(disk)).context("Two causes."),
        // So are errors of `anyhow`.
        "boxed" => Err(Box::<dyn Error + Send + Sync>::from(IndexError(disk))).context("A box."),
        "nested" => Err(IndexError(disk)).context("The inner text.").context("The outer text."),
        _ => Err(ToolError::permanent("It was never there.")).context("It is not there."),
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[larder::test]
async fn the_model_reads_the_text_and_the_log_has_all_causes() {
    // With a single subscriber, code that another thread reaches first would never be logged.
    let _second = tracing::Dispatch::new(tracing_subscriber::fmt().finish());
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let _log = tracing::subscriber::set_default(lines.finish());
    let client = larder::test(larder::server("failing").tool(fail)).await;
    let index = "the index cannot be read: the disk /dev/sda is gone";
    for (how, text, causes) in [
        ("once", "One cause.", "the disk /dev/sda is gone"),
        ("twice", "Two causes.", index),
        ("boxed", "A box.", index),
        ("nested", "The outer text.", &format!("The inner text.: {index}")),
        ("permanent", "It is not there.", "It was never there."),
    ] {
        log.0.lock().unwrap().clear();
        let failed = client.call("fail", json!({ "how": how })).await.unwrap_err();
        assert_eq!(failed.message(), text);
        let lines = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let line = lines.lines().find(|line| line.contains("a handler failed"));
        let line = line.unwrap_or_else(|| panic!("{how}: {lines}"));
        assert!(line.contains(&format!("error={text} cause={causes}")), "{line}");
    }
    let permanent = fail::call("permanent".to_owned()).unwrap_err();
    assert!(permanent.is_permanent(), "a text around it does not change that");
}

#[larder::test]
async fn what_a_model_stores_is_text_link_and_structure_under_the_listed_schema()
-> Result<(), TestError> {
    let mut config = Config::default();
    config.tools.output_schemas = true;
    let server = || larder::server("notes").reading().writing().config(config.clone());
    for test in both(|| larder::test(server())) {
        let client = test.await;
        let tools = client.tools().await?;
        let create = tools.iter().find(|tool| tool.name == "create_resource").unwrap();
        let listed = json!(create.output_schema.as_ref().unwrap());
        let reply = client.call("create_resource", json!({ "text": "a\nb" })).await?;
        let stored = reply.structured::<Value>();
        assert!(jsonschema::validator_for(&listed).unwrap().is_valid(&stored), "{stored}");
        assert!(!jsonschema::is_valid(&listed, &json!({ "uri": 1 })), "{listed}");
        let uri = stored["uri"].as_str().unwrap();
        assert!(reply.text().contains(uri), "{}", reply.text());
        let mut links =
            reply.result().content.iter().filter_map(model::ContentBlock::as_resource_link);
        assert!(links.any(|link| link.uri == uri), "{reply:?}");
        assert_eq!(client.read(uri).await?.text(), "a\nb");
    }
    Ok(())
}

#[larder::test]
async fn a_stored_result_is_text_link_and_structure() -> Result<(), TestError> {
    for test in both(|| larder::test(logs(Arc::default()))) {
        let client = test.await;
        let reply = client.call("search_logs", json!({ "query": "line", "limit": 3 })).await?;
        let uri = reply.structured::<Value>()["uri"].as_str().unwrap().to_owned();
        let text = reply.text();
        assert!(
            text.starts_with(&format!("Found 3 lines. Stored as {uri}: text/plain, 20 bytes")),
            "{text}"
        );
        assert!(text.contains(&format!("Next: read_resource {{\"uri\":\"{uri}\"")), "{text}");
        let links = reply.result().content.iter().filter_map(model::ContentBlock::as_resource_link);
        let links: Vec<_> = links.map(|link| (&*link.uri, &*link.name)).collect();
        assert_eq!(links, [(&*uri, "Results")]);
        let [note] = reply.progress() else { panic!("{reply:?}") };
        assert_eq!(
            (note.progress, note.total, note.message.as_deref()),
            (1.0, Some(2.0), Some("searched"))
        );
        assert_eq!(client.read(&uri).await?.text(), "line 0\nline 1\nline 2");
    }
    Ok(())
}

#[larder::test]
async fn questions_are_answered_in_both_eras() -> Result<(), TestError> {
    let ask = |answer: Option<&'static str>| {
        both(move || {
            larder::test(logs(Arc::default())).on_form(move |params| {
                assert_eq!(params["message"], "Who are you?");
                answer.map(|name| json!({ "name": name }))
            })
        })
    };
    for test in ask(Some("Ana")) {
        assert_eq!(test.await.call("who", json!({})).await?.text(), "Ana");
    }
    for test in ask(None) {
        assert_eq!(test.await.call("who", json!({})).await?.text(), "nobody");
    }
    Ok(())
}

#[larder::test]
async fn state_is_closed_when_the_server_has_ended() {
    let closed = Arc::new(AtomicBool::new(false));
    let client = larder::test(logs(Arc::clone(&closed))).await;
    client.call("add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert!(!closed.load(Ordering::Relaxed));
    drop(client);
    let ended = async {
        while !closed.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(minutes(1), ended).await.expect("it closes");
}

mod other {
    use larder::prelude::*;

    /// Adds as well.
    #[tool]
    pub(super) fn add(a: i64) -> i64 {
        a
    }

    /// Counts as well.
    #[resource("logs://count")]
    pub(super) fn count() -> String {
        String::new()
    }

    /// Lists as well.
    #[prompt]
    pub(super) fn main_ideas() -> String {
        String::new()
    }
}

#[larder::test]
#[should_panic(expected = "by the functions authoring::add and authoring::other::add")]
async fn two_functions_of_one_name_are_named() {
    larder::test(larder::server("twice").tool(add).tool(other::add)).await;
}

#[larder::test]
#[should_panic(
    expected = "by the functions authoring::main_ideas and authoring::other::main_ideas"
)]
async fn two_prompts_of_one_name_are_named() {
    let server = larder::server("twice").prompt(main_ideas);
    larder::test(server.prompt(other::main_ideas)).await;
}

#[larder::test]
#[should_panic(expected = "by the functions authoring::count and authoring::other::count")]
async fn two_resources_of_one_uri_are_named() {
    larder::test(logs(Arc::default()).resource(other::count)).await;
}

#[larder::test]
async fn a_router_holds_its_server() {
    let closed = Arc::new(AtomicBool::new(false));
    let router = Box::pin(logs(Arc::clone(&closed)).router()).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let params = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = http.post(format!("http://{address}/mcp")).body(call.to_string());
    let response = request.header("content-type", "application/json").send().await.unwrap();
    let answer = response.text().await.unwrap();
    assert!(answer.contains(r#""sum":3.0"#), "{answer}");
    drop(http);
    serving.abort();
    let ended = async {
        while !closed.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(minutes(1), ended).await.expect("it closes");
}

#[test]
fn a_new_project_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let new = |name: &str| {
        let mut larder = std::process::Command::new(env!("CARGO_BIN_EXE_larder"));
        larder.current_dir(&folder).args(["new", name, "--path", env!("CARGO_MANIFEST_DIR")]);
        larder.output().unwrap()
    };
    assert!(new("my-server").status.success());
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let manifest = read("my-server/Cargo.toml");
    assert!(manifest.contains("name = \"my-server\"\n"), "{manifest}");
    assert!(manifest.contains(&format!("larder = {{ path = {:?} }}", env!("CARGO_MANIFEST_DIR"))));
    assert!(read("my-server/src/main.rs").contains("larder::server(\"my-server\")"));
    let dockerfile = read("my-server/Dockerfile");
    assert!(dockerfile.contains("/src/target/release/my-server"), "{dockerfile}");
    let copy = format!("COPY --from=larder [\".\", {:?}]\nCOPY . .\n", env!("CARGO_MANIFEST_DIR"));
    assert!(dockerfile.contains(&copy), "{dockerfile}");
    assert!(!dockerfile.contains("{{"), "{dockerfile}");
    let again = new("my-server");
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"));
    assert_eq!(new("../up").status.code(), Some(2));
}

#[larder::args]
struct Nested {
    #[allow(dead_code)]
    names: Vec<Vec<String>>,
}

/// Asks by a form that no client can show.
#[tool]
async fn ask(ctx: &Context) -> Result<&'static str> {
    ctx.elicit::<Nested>("names", "Which names?").await?;
    Ok("done")
}

#[test]
fn a_form_that_clients_cannot_show_does_not_build() {
    let problems = larder::Registry::builder("forms").tool(ask()).build().unwrap_err().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");

    let names = |word| problems[0].contains(word);
    assert!(names("Tool \"ask\"") && names("Form \"Nested\"") && names("\"names\""));
}
