//! Workflows as their clients see them.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use larder::{
    registry::{Context, Registry, Resource, ResourceError, Template, Tool, ToolError, Variables},
    workflow::{self, dsl::*},
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::{
    process::serving_with,
    support::{Answer, Modern, Server, http},
};

/// Looks a user up.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Lookup {
    /// Who.
    #[serde(default)]
    name: Option<String>,
    /// How many of them.
    #[serde(default)]
    count: Option<i64>,
}

/// Fails a few times.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Flaky {}

/// Puts something by.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Park {}

async fn lookup(_: Context, args: Lookup) -> Result<String, ToolError> {
    if args.name.as_deref() == Some("nobody") {
        return Err(ToolError::new("There is nobody of that name."));
    }
    let user = json!({
        "id": 123,
        "name": args.name,
        "count": args.count,
        "path": "a/b?c#d",
        "up": "..",
        "list": ["One", "two", "three"],
        "api": { "endpoint_name": "v1" },
        "none": null,
    });
    Ok(user.to_string())
}

async fn park(ctx: Context, _: Park) -> Result<CallToolResult, ToolError> {
    let entry = ctx.create_resource("results://parked", "parked content").await?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(format!("At {entry}"))]);
    result.structured_content = Some(json!({ "uri": entry.uri.as_str() }));
    Ok(result)
}

async fn page(_: Context, variables: Variables) -> Result<String, ResourceError> {
    match variables["page"].as_str() {
        "missing" => Err(ResourceError::NotFound),
        page => Ok(format!("page {page}")),
    }
}

/// A client of a server with that one workflow, and how often the flaky tool was called.
async fn client(workflow: SequentialWorkflow) -> (Server, Modern, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let flaky = Tool::new(move |_: Context, _: Flaky| {
        let calls = Arc::clone(&counted);
        async move {
            match calls.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => Err(ToolError::new("Not yet.")),
                _ => Ok("At last."),
            }
        }
    });
    let registry = Registry::builder("workflows")
        .with(workflow::prompt(workflow))
        .tool(Tool::new(lookup))
        .tool(Tool::new(park))
        .tool(flaky)
        .resource(Resource::text("docs://static-page", "The static page."))
        .resource(Resource::binary("docs://picture", b"\x89PNG".to_vec()).mime_type("image/png"))
        .resource(Resource::text("docs://huge", "x".repeat(200_000)))
        .template(Template::new("docs://{page}", "Page", page))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    (server, client, calls)
}

async fn get(client: &Modern, arguments: Value) -> Value {
    let answer = client.send("prompts/get", json!({ "name": "w", "arguments": arguments })).await;
    answer.result()
}

fn workflow() -> SequentialWorkflow {
    SequentialWorkflow::new("w", "Do it").argument("a", "Anything", false)
}

fn user() -> WorkflowStep {
    WorkflowStep::new("look up", ToolHandle::new("lookup")).bind("user")
}

fn outcome(result: &Value) -> &Value {
    &result["_meta"]["larder/workflow"]
}

fn messages(result: &Value) -> Vec<(String, Value)> {
    let messages = result["messages"].as_array().unwrap().iter();
    messages.map(|m| (m["role"].as_str().unwrap().to_owned(), m["content"].clone())).collect()
}

fn resources(result: &Value) -> Vec<Value> {
    let contents = messages(result).into_iter().map(|(_, content)| content);
    contents.filter(|c| c["type"] == "resource").map(|c| c["resource"].clone()).collect()
}

fn texts(result: &Value) -> String {
    let contents = messages(result).into_iter();
    let texts = contents.filter_map(|(_, c)| c["text"].as_str().map(str::to_owned));
    texts.collect::<Vec<_>>().join("\n---\n")
}

async fn read_by(source: DataSource) -> (Value, Vec<Value>) {
    let step = read_resource("docs://{v}").named("read").with_template_binding("v", source);
    let (_server, client, _) = client(workflow().step(user()).step(step)).await;
    let result = get(&client, json!({ "a": "ds1" })).await;
    let resources = resources(&result);
    (result, resources)
}

#[tokio::test]
async fn uris_are_built_from_each_source() {
    for (source, uri) in [
        (field("user", "id"), "docs://123"),
        (field("user", "api.endpoint_name"), "docs://v1"),
        (field("user", "list.1"), "docs://two"),
        (field("user", "list.0").to_lowercase(), "docs://one"),
        (prompt_arg("a"), "docs://ds1"),
        (constant("v2"), "docs://v2"),
        (constant("{a}"), "docs://%7Ba%7D"),
        (template("x-{n}", [("n", field("user", "id"))]), "docs://x-123"),
    ] {
        let (result, resources) = read_by(source).await;
        assert_eq!(resources.len(), 1, "{uri}: {result}");
        assert_eq!(resources[0]["uri"], uri);
        assert_eq!(outcome(&result)["outcome"], "completed");
    }
}

#[tokio::test]
async fn what_cannot_stand_in_a_uri_fails_visibly_and_reads_nothing() {
    for (source, words) in [
        (field("user", "nope"), "no field"),
        (field("user", "list.9"), "out of range in a list of 3"),
        (field("user", "none"), "null is no text"),
        (from_step("user"), "an object is no text"),
        (field("user", "up"), "a path of its own"),
        (constant("missing"), "docs://missing"),
        // Its slash is encoded, and a template's variable is no path.
        (field("user", "path"), "docs://a%2Fb%3Fc%23d"),
    ] {
        let (result, resources) = read_by(source).await;
        assert!(resources.is_empty(), "{words}");
        assert_eq!(outcome(&result)["outcome"], "failed");
        assert_eq!(outcome(&result)["step"], "read");
        let last = messages(&result).pop().unwrap();
        assert_eq!(last.0, "user");
        assert!(last.1["text"].as_str().unwrap().contains(words), "{words}: {}", last.1);
    }
}

#[tokio::test]
async fn the_transcript_goes_step_by_step() {
    let steps = workflow()
        .with_instructions("Be brief.")
        .step(user().with_guidance("First {a}, not {user}.").with_resource("docs://static-page"))
        .step(read_resource("docs://static-page").named("read"))
        .finish();
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({ "a": "{user}" })).await;
    let said: Vec<_> = messages(&result)
        .into_iter()
        .map(|(role, content)| (role, content["type"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        ("user", "text"),
        ("assistant", "text"),
        ("assistant", "text"),
        ("user", "resource"),
        ("assistant", "text"),
        ("user", "text"),
        ("user", "resource"),
    ];
    assert_eq!(said, expected.map(|(r, t)| (r.to_owned(), t.to_owned())));
    let texts = texts(&result);
    assert!(texts.contains("Be brief.") && texts.contains("First {user}, not {user}."), "{texts}");
    assert!(texts.contains("I call lookup with {}."), "{texts}");
    let read = &resources(&result)[1];
    assert_eq!(read["uri"], "docs://static-page");
    assert_eq!(
        (&read["mimeType"], &read["text"]),
        (&json!("text/plain"), &json!("The static page."))
    );
    assert_eq!(result["description"], "Do it");
    let steps = &outcome(&result)["steps"];
    assert_eq!(steps[0], json!({ "name": "look up", "status": "done" }));
}

#[tokio::test]
async fn arguments_keep_their_types() {
    let steps = SequentialWorkflow::new("w", "Do it")
        .typed_argument("n", ArgumentKind::Integer, "How many", true)
        .step(user().arg("count", prompt_arg("n")).arg("name", constant("'; DROP {n}")));
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({ "n": "42" })).await;
    assert!(texts(&result).contains(r#""count":42"#));
    assert!(texts(&result).contains("'; DROP {n}"));
    for wrong in [json!({ "n": "many" }), json!({}), json!({ "n": "1", "other": "x" })] {
        let refused = client.send("prompts/get", json!({ "name": "w", "arguments": wrong })).await;
        assert_eq!(refused.error()["code"], -32602, "{wrong}");
    }
}

#[tokio::test]
async fn a_failing_tool_stops_the_workflow() {
    let steps = workflow()
        .step(user().arg("name", constant("nobody")))
        .step(read_resource("docs://static-page").named("never"));
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({})).await;
    assert!(resources(&result).is_empty());
    assert_eq!(outcome(&result)["outcome"], "failed");
    let (role, content) = messages(&result).pop().unwrap();
    assert_eq!(role, "user");
    let text = content["text"].as_str().unwrap();
    assert!(text.contains("nobody of that name") && text.contains("Not done: never"), "{text}");
}

#[tokio::test]
async fn a_step_is_tried_again_where_it_may_be() {
    let flaky = || WorkflowStep::new("flaky", ToolHandle::new("flaky"));
    let delay = std::time::Duration::from_millis(1);
    let (_server, one, calls) = client(workflow().step(flaky().retryable_with(3, delay))).await;
    let result = get(&one, json!({})).await;
    assert_eq!(outcome(&result)["outcome"], "completed");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert!(texts(&result).contains("At last."));
    let (_server, two, _) = client(workflow().step(flaky().retryable_with(2, delay))).await;
    assert_eq!(outcome(&get(&two, json!({})).await)["retryable"], true);
    let (_server, once, _) = client(workflow().step(flaky())).await;
    assert!(outcome(&get(&once, json!({})).await).get("retryable").is_none());
}

#[tokio::test]
async fn a_resource_that_a_step_put_by_is_read_by_the_next() {
    let steps = workflow()
        .step(WorkflowStep::new("park", ToolHandle::new("park")).bind("parked"))
        .step(WorkflowStep::new("read", ResourceHandle::from_source(field("parked", "uri"))));
    let (_server, client, _) = client(steps).await;
    let read = resources(&get(&client, json!({})).await);
    assert_eq!(read[0]["uri"], "results://parked");
    assert_eq!(read[0]["text"], "parked content");
}

#[tokio::test]
async fn conditions_skip_and_say_so() {
    let steps = workflow().step(
        read_resource("docs://static-page").named("maybe").when(prompt_arg("a"), equals("yes")),
    );
    let (_server, client, _) = client(steps).await;
    assert_eq!(resources(&get(&client, json!({ "a": "yes" })).await).len(), 1);
    for arguments in [json!({ "a": "no" }), json!({})] {
        let result = get(&client, arguments).await;
        assert!(resources(&result).is_empty() && texts(&result).contains("I skip \"maybe\""));
        assert_eq!(outcome(&result)["steps"][0]["status"], "skipped");
    }
}

#[tokio::test]
async fn an_optional_argument_that_is_missing_skips_or_has_a_default() {
    let read =
        |source| read_resource("docs://{v}").named("read").with_template_binding("v", source);
    let (_server, skips, _) = client(workflow().step(read(prompt_arg("a")))).await;
    let result = get(&skips, json!({})).await;
    assert!(resources(&result).is_empty() && texts(&result).contains("was not given"));
    let (_server, defaults, _) = client(workflow().step(read(prompt_arg("a").or("front")))).await;
    assert_eq!(resources(&get(&defaults, json!({})).await)[0]["uri"], "docs://front");
}

#[tokio::test]
async fn a_list_is_read_one_by_one() {
    let each =
        |source| read_resources("docs://{v}").named("all").with_template_binding("v", source);
    let all = each(field("user", "list").to_lowercase()).for_each();
    let (_server, one, _) = client(workflow().step(user()).step(all)).await;
    let uris: Vec<_> =
        resources(&get(&one, json!({})).await).iter().map(|r| r["uri"].clone()).collect();
    assert_eq!(uris, ["docs://one", "docs://two", "docs://three"]);

    let some = each(field("user", "list")).for_each_up_to(2, OnError::Stop);
    let (_server, two, _) = client(workflow().step(user()).step(some)).await;
    let result = get(&two, json!({})).await;
    assert_eq!(resources(&result).len(), 2);
    assert!(texts(&result).contains("Only the first 2 of 3"), "{}", texts(&result));

    let list = || constant(json!(["x", "missing", null, "y"]));
    let (_server, stops, _) = client(workflow().step(each(list()).for_each())).await;
    assert_eq!(outcome(&get(&stops, json!({})).await)["outcome"], "failed");
    let skipping = each(list()).for_each_up_to(9, OnError::Skip);
    let (_server, skips, _) = client(workflow().step(skipping)).await;
    let result = get(&skips, json!({})).await;
    assert_eq!(resources(&result).len(), 2);
    assert_eq!(texts(&result).matches("left out").count(), 2);
    let none = each(constant(json!([]))).for_each();
    let (_server, empty, _) = client(workflow().step(none)).await;
    assert_eq!(outcome(&get(&empty, json!({})).await)["outcome"], "completed");
}

#[tokio::test]
async fn what_is_binary_or_large_does_not_stop_it() {
    let steps =
        workflow().step(read_resource("docs://picture").with_resource("docs://huge").bind("both"));
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({})).await;
    let picture = &resources(&result)[0];
    assert_eq!((&picture["mimeType"], &picture["blob"]), (&json!("image/png"), &json!("iVBORw==")));
    let links: Vec<_> =
        messages(&result).into_iter().filter(|(_, c)| c["type"] == "resource_link").collect();
    assert_eq!(links[0].1["uri"], "docs://huge");
    assert!(result.to_string().len() < 10_000);
    assert_eq!(outcome(&result)["outcome"], "completed");
}

#[tokio::test]
async fn the_rest_is_handed_over_with_what_is_known() {
    let steps =
        workflow().step(user()).step(WorkflowStep::handoff("yours", "I leave {a} to you.")).step(
            WorkflowStep::new("again", ToolHandle::new("lookup"))
                .arg("count", field("user", "id"))
                .with_resource("docs://static-page"),
        );
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({ "a": "this" })).await;
    let texts = texts(&result);
    assert!(texts.contains("I leave this to you."), "{texts}");
    assert!(
        texts.contains(r#"again: call lookup with {"count":123}: read docs://static-page"#),
        "{texts}"
    );
    assert_eq!(outcome(&result)["outcome"], "handoff");
    assert!(resources(&result).is_empty());
}

#[tokio::test]
async fn progress_never_claims_an_end_that_did_not_come() {
    for (name, ends) in [("somebody", true), ("nobody", false)] {
        let steps = workflow().step(user().arg("name", constant(name)));
        let (_server, client, _) = client(steps).await;
        let params = json!({ "name": "w", "_meta": { "progressToken": "p" } });
        let mut events = client.stream(1, "prompts/get", params).await;
        let mut told = Vec::new();
        loop {
            let message = events.message().await;
            if message["method"] != "notifications/progress" {
                break;
            }
            told.push(message["params"]["progress"].as_f64().unwrap());
        }
        assert_eq!(told.last() == Some(&1.0), ends, "{told:?}");
        assert!(told.is_sorted());
    }
}

#[tokio::test]
async fn a_workflow_is_listed_with_its_arguments() {
    let (_server, client, _) = client(workflow().step(user())).await;
    let prompts = client.list("prompts/list", "prompts").await;
    assert_eq!(prompts[0]["name"], "w");
    assert_eq!(prompts[0]["description"], "Do it");
    let arguments = json!([{ "name": "a", "description": "Anything", "required": false }]);
    assert_eq!(prompts[0]["arguments"], arguments);
}

#[tokio::test]
async fn the_player_who_is_stuck_gets_a_hint_in_one_request() {
    let larder = std::path::Path::new(env!("CARGO_BIN_EXE_larder"));
    let example = larder.with_file_name("examples").join("interactive_fiction");
    let (_process, url) = serving_with(example.to_str().unwrap(), &[]).await;
    let ask = |arguments: Value| {
        let params = json!({ "name": "get_hint", "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params });
        let request = http().post(&url).header("content-type", "application/json");
        Answer::of(request.body(body.to_string()))
    };
    let result = ask(json!({})).await.result();
    let read = &resources(&result)[0];
    assert_eq!(read["uri"], "if://walkthrough/zork1");
    assert!(read["text"].as_str().unwrap().contains("mailbox"));
    assert!(texts(&result).contains("West of House"));
    let unknown = ask(json!({ "game_id": "none" })).await.result();
    assert_eq!(outcome(&unknown)["outcome"], "failed");
    assert!(texts(&unknown).contains("if://walkthrough/none"), "{}", texts(&unknown));
}
