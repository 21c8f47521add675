//! Results that are too large for an answer: stored, and replaced by a preview
//! that is honest in whatever a host shows of it.

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::{
    registry::{Builder, Context, Image, Json, Registry, Spill, Structured, Tool, ToolError},
    tools::{self, ToolOptions},
    workflow::{self, SequentialWorkflow, ToolHandle, WorkflowStep, dsl::*},
};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResourceContents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Legacy, Modern, RedisServer, Server, numbered_lines};

/// Gives that much.
#[derive(Deserialize, JsonSchema)]
struct Much {
    /// How many rows, lines or whatever it gives.
    #[serde(default)]
    n: usize,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    id: usize,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Rows {
    rows: Vec<Row>,
    total: usize,
}

fn rows(n: usize) -> Rows {
    let row = |id| Row {
        id,
        name: format!("row number {id}"),
        note: (id % 3 == 0).then(|| "a third".to_owned()),
    };
    Rows { rows: (0..n).map(row).collect(), total: n }
}

fn tool<R>(name: &'static str, make: impl Fn(usize) -> R + Send + Sync + 'static) -> Tool
where
    R: larder::registry::IntoToolResult + Send + 'static,
{
    Tool::new(move |_: Context, args: Much| std::future::ready(make(args.n))).name(name)
}

fn table(n: usize) -> String {
    let rows: Vec<_> = (0..n).map(|id| format!("{id},\"name, {id}\",{id}.5\n")).collect();
    format!("id,name,price\n{}", rows.concat())
}

fn picture(n: usize) -> Image {
    Image::png(vec![7; n])
}

fn offers(builder: Builder) -> Builder {
    let with_ui =
        MetaObject(json!({ "ui": { "resourceUri": "ui://x" } }).as_object().cloned().unwrap());
    builder
        .tool(tool("lines", numbered_lines))
        .tool(tool("table", table))
        .tool(tool("json", |n| Json(rows(n))))
        .tool(tool("rows", |n| Structured(rows(n))))
        .tool(tool("rows_and_words", |n| (Structured(rows(n)), format!("{n} rows"))))
        .tool(tool("total_and_rows", |n| (Structured(n), json!(rows(n)).to_string())))
        .tool(tool("wrapped_text", numbered_lines).structured_output(true))
        .tool(tool("picture", picture))
        .tool(tool("failing", |n| Err::<String, _>(ToolError::new(numbered_lines(n)))))
        .tool(tool("embedded", |n| {
            let log = ResourceContents::text(numbered_lines(n), "logs://today");
            vec![ContentBlock::text("The log:"), ContentBlock::resource(log)]
        }))
        .tool(tool("mixed", |n| {
            let blob = ResourceContents::blob(BASE64_STANDARD.encode(vec![1; n]), "files://bin");
            vec![
                ContentBlock::text("What was found:"),
                ContentBlock::text(table(n)),
                ContentBlock::image(BASE64_STANDARD.encode([137, 80]), "image/png"),
                ContentBlock::resource(blob),
            ]
        }))
        .tool(tool("always", |_| "short").spill(Spill::Always))
        .tool(tool("never", numbered_lines).spill(Spill::Never))
        .tool(tool("with_ui", numbered_lines).meta(with_ui))
        .with(tools::reading(ToolOptions::default()))
        .with(tools::writing())
}

async fn server() -> Server {
    Server::of(Registry::builder("spilling").with(offers).build().unwrap()).await
}

async fn configured(change: impl FnOnce(&mut larder::config::Config) + 'static) -> Server {
    Server::configured(|setup| {
        change(&mut setup.config);
        setup.offers = Box::new(|_, _| Registry::builder("spilling").with(offers).build().unwrap());
    })
    .await
}

async fn call(client: &Modern, tool: &str, n: usize) -> Value {
    client.call(tool, json!({ "n": n })).await.result()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn links(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter();
    let links = blocks.filter(|block| block["type"] == "resource_link");
    links.map(|link| link["uri"].as_str().unwrap()).collect()
}

/// The only thing that was put by.
#[track_caller]
fn link(result: &Value) -> String {
    let [uri] = links(result)[..] else { panic!("{result}") };
    uri.to_owned()
}

/// The calls that a text proposes, as they stand there.
fn proposed(text: &str) -> Vec<(String, Value)> {
    let mut calls = Vec::new();
    for (at, _) in text.match_indices("_resource {") {
        let tool = text[..at].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap();
        let arguments = &text[at + "_resource ".len()..];
        let mut stream = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
        calls.push((format!("{tool}_resource"), stream.next().unwrap().unwrap()));
    }
    calls
}

#[tokio::test]
async fn handle_size_completeness_expiry_and_next_call_stand_in_plain_text() {
    let server = server().await;
    let client = Modern::of(&server);
    let whole = numbered_lines(5_000);
    let result = call(&client, "lines", 5_000).await;
    let (said, uri) = (text(&result), link(&result));
    assert!(uri.starts_with("larder://r/lines/"), "{uri}");
    assert!(said.starts_with("PREVIEW ONLY: this is not the whole result of lines."), "{said}");
    let size = format!(
        "{},{:03},{:03}",
        whole.len() / 1_000_000,
        whole.len() / 1000 % 1000,
        whole.len() % 1000
    );
    let size = size.trim_start_matches("0,");
    assert!(said.contains(&format!("text/plain, {size} bytes, 5,000 lines")), "{said}");
    let listed = client.list("resources/list", "resources").await;
    assert_eq!((&listed[0]["uri"], &listed[0]["size"]), (&json!(uri), &json!(whole.len())));
    assert!(said.contains("expires at 19") || said.contains("expires at 20"), "{said}");
    assert!(
        said.contains("\n\nLines 1-") && said.contains(" of 5,000 lines:\n00000000 év"),
        "{said}"
    );
    assert!(said.contains("The last ") && said.contains("\n00004999 év"), "{said}");
    assert!(said.len() < 8_000, "{}", said.len());
    // All of it is there, and the calls that are proposed work as they stand.
    assert_eq!(client.read(&uri).await["text"], whole);
    let proposed = proposed(said);
    assert_eq!(
        proposed.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>(),
        ["read_resource", "search_resource"]
    );
    for (tool, mut arguments) in proposed {
        if tool == "search_resource" {
            arguments["query"] = json!("^00004321");
        }
        let answer = client.call(&tool, arguments).await.text();
        let expected = if tool == "search_resource" { "00004321 év" } else { "00000099 év" };
        assert!(answer.contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn what_fits_is_sent_as_it_is() {
    let server = server().await;
    let client = Modern::of(&server);
    for tool in
        ["lines", "table", "json", "rows", "rows_and_words", "wrapped_text", "embedded", "with_ui"]
    {
        let result = call(&client, tool, 3).await;
        assert!(links(&result).is_empty() && !result.to_string().contains("PREVIEW"), "{result}");
    }
    assert!(client.list("resources/list", "resources").await.is_empty());
}

#[tokio::test]
async fn a_link_comes_in_addition_and_not_where_the_tool_has_an_interface() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "lines", 5_000).await;
    let uri = link(&result);
    assert!(text(&result).contains(&uri));
    let result = call(&client, "with_ui", 5_000).await;
    assert!(links(&result).is_empty(), "{result}");
    let (_, arguments) = proposed(text(&result)).remove(0);
    assert_eq!(
        client.read(arguments["uri"].as_str().unwrap()).await["text"],
        numbered_lines(5_000)
    );
}

#[tokio::test]
async fn structured_content_is_there_in_the_spilled_form_with_the_handle_in_it() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "rows", 10_000).await;
    let uri = link(&result);
    let spilled = &result["structuredContent"]["spilled"];
    assert_eq!(spilled["complete"], false);
    let resource = &spilled["resources"][0];
    assert_eq!(resource["uri"], uri);
    assert_eq!(resource["mime_type"], "application/json");
    assert!(resource["next"][0].as_str().unwrap().contains(&uri));
    assert!(spilled["note"].as_str().unwrap().starts_with("PREVIEW ONLY"));
    assert!(resource["head"]["text"].as_str().unwrap().contains("row number 0"));
    let shape =
        "Shape: { rows: [10000 x { id: integer, name: string, note?: string }], total: integer }";
    assert_eq!(resource["facts"][1], shape);
    assert!(text(&result).contains(shape), "{}", text(&result));
    // The big value is nowhere in the answer.
    assert!(result.to_string().len() < 16_000);
    let stored: Value =
        serde_json::from_str(client.read(&uri).await["text"].as_str().unwrap()).unwrap();
    assert_eq!(stored, json!(rows(10_000)));
    // A tool without structured content has none when it spills.
    assert!(call(&client, "json", 10_000).await["structuredContent"].is_null());
}

#[tokio::test]
async fn what_is_sent_fits_what_is_listed_whether_it_spilled_or_not() {
    let server = server().await;
    for client in [Client::Modern(Modern::of(&server)), Client::Legacy(Legacy::of(&server).await)] {
        let listed = client.send("tools/list", json!({})).await;
        let structured = ["rows", "rows_and_words", "total_and_rows", "wrapped_text"];
        for tool in structured {
            let listed = listed["tools"].as_array().unwrap().iter().find(|t| t["name"] == tool);
            let schema = &listed.unwrap()["outputSchema"];
            assert_eq!(schema["type"], "object", "{schema}");
            assert_eq!(schema["anyOf"].as_array().unwrap().len(), 2, "{schema}");
            let validator = jsonschema::draft202012::new(schema).unwrap();
            for n in [0, 3, 10_000] {
                let result = client
                    .send("tools/call", json!({ "name": tool, "arguments": { "n": n } }))
                    .await;
                let sent = &result["structuredContent"];
                assert_eq!(sent.get("spilled").is_some(), n == 10_000, "{tool} {n}");
                assert!(validator.is_valid(sent), "{tool} {n}: {sent}");
            }
            assert!(!validator.is_valid(&json!({ "spilled": true })));
        }
    }
}

/// A client of either era.
enum Client {
    Modern(Modern),
    Legacy(Legacy),
}

impl Client {
    async fn send(&self, method: &str, params: Value) -> Value {
        match self {
            Self::Modern(client) => client.send(method, params).await.result(),
            Self::Legacy(client) => client.send(method, params).await.result(),
        }
    }
}

#[tokio::test]
async fn a_session_gets_the_same() {
    let server = server().await;
    let client = Legacy::of(&server).await;
    let result = client.call("rows", json!({ "n": 10_000 })).await.result();
    let uri = link(&result);
    assert_eq!(result["structuredContent"]["spilled"]["resources"][0]["uri"], uri);
    let read = client.send("resources/read", json!({ "uri": uri })).await.result();
    let stored: Value =
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(stored["total"], 10_000);
}

#[tokio::test]
async fn text_and_structured_copies_are_stored_once() {
    let server = server().await;
    let client = Modern::of(&server);
    for (tool, mime_type) in [("rows", "application/json"), ("wrapped_text", "text/plain")] {
        let uri = link(&call(&client, tool, 10_000).await);
        assert_eq!(client.read(&uri).await["mimeType"], mime_type);
    }
    assert_eq!(client.list("resources/list", "resources").await.len(), 2);
}

#[tokio::test]
async fn records_of_structured_content_have_a_line_each() {
    let server = server().await;
    let client = Modern::of(&server);
    let uri = link(&call(&client, "rows", 10_000).await);
    let found =
        client.call("search_resource", json!({ "uri": uri, "query": "number 777\"" })).await.text();
    assert!(found.contains(r#"{"id":777,"name":"row number 777","note":"a third"}"#), "{found}");
    assert!(found.starts_with("1 matching line in "), "{found}");
}

#[tokio::test]
async fn small_structured_content_beside_a_large_text_is_not_lost() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "total_and_rows", 10_000).await;
    let spilled = &result["structuredContent"]["spilled"];
    assert_eq!(spilled["value"], json!({ "result": 10_000 }));
    assert_eq!(spilled["resources"][0]["uri"], link(&result));
    // The other way round, the words stay as they are.
    let result = call(&client, "rows_and_words", 10_000).await;
    assert_eq!(result["content"][1]["text"], "10000 rows");
    assert!(text(&result).contains("smaller parts follow as they are"));
    assert!(text(&result).contains(&link(&result)));
}

#[tokio::test]
async fn parts_of_a_result_are_put_by_each_as_what_it_is() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "mixed", 200_000).await;
    let [csv, blob] = links(&result)[..] else { panic!("{result}") };
    for uri in [csv, blob] {
        assert!(text(&result).contains(uri));
    }
    assert_eq!(result["content"][1]["text"], "What was found:");
    assert_eq!(result["content"][2]["type"], "image");
    let read = client.read(csv).await;
    assert_eq!((&read["mimeType"], &read["text"]), (&json!("text/csv"), &json!(table(200_000))));
    let said = text(&result);
    assert!(said.contains("Table: 200,000 rows below a line of names, 3 columns"), "{said}");
    assert!(said.contains("id: integer, name: text, price: number"), "{said}");
    assert!(said.contains("Binary; the first bytes are 01 01"), "{said}");
    assert_eq!(client.read(blob).await["blob"], BASE64_STANDARD.encode(vec![1; 200_000]));

    let result = call(&client, "embedded", 5_000).await;
    assert_eq!(client.read(&link(&result)).await["text"], numbered_lines(5_000));
    let listed = client.list("resources/list", "resources").await;
    assert!(listed.iter().any(|r| r["name"] == "logs://today (of embedded)"), "{listed:?}");
}

#[tokio::test]
async fn a_picture_is_for_the_model_to_see_until_it_is_too_large_for_any_host() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "picture", 300_000).await;
    assert_eq!((links(&result).len(), &result["content"][0]["type"]), (0, &json!("image")));
    let result = call(&client, "picture", 900_000).await;
    let uri = link(&result);
    assert_eq!(client.read(&uri).await["mimeType"], "image/png");
    assert!(text(&result).contains("image/png, 900,000 bytes, binary"), "{}", text(&result));
    assert!(
        text(&result)
            .contains(&format!("read_resource {}", json!({ "uri": uri, "unit": "bytes" })))
    );
}

#[tokio::test]
async fn a_failure_that_is_too_large_stays_a_failure() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "failing", 5_000).await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).starts_with("PREVIEW ONLY: this is not the whole failure message"));
    assert_eq!(client.read(&link(&result)).await["text"], numbered_lines(5_000));
}

#[tokio::test]
async fn a_tool_may_always_spill_or_never() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "always", 0).await;
    assert_eq!(client.read(&link(&result)).await["text"], "short");
    assert!(
        text(&result).contains("complete below") && text(&result).ends_with("All of it:\nshort")
    );
    let result = call(&client, "never", 5_000).await;
    assert_eq!(text(&result), numbered_lines(5_000));
}

#[tokio::test]
async fn the_configuration_has_the_last_word() {
    let server = configured(|config| {
        config.tools.output_bytes = 400_000;
        config.tools.spill =
            [("l*".to_owned(), Spill::Auto), ("always".to_owned(), Spill::Never)].into();
    })
    .await;
    let client = Modern::of(&server);
    assert!(links(&call(&client, "lines", 3_000).await).is_empty());
    assert_eq!(links(&call(&client, "lines", 6_000).await).len(), 1);
    assert_eq!(text(&call(&client, "always", 0).await), "short");
    // Clients may have bounds of their own, by the name they give; readers, too.
    let server = configured(|config| {
        config.tools.clients = [("it".to_owned(), 4_000)].into();
    })
    .await;
    let client = Modern::of(&server);
    let result = call(&client, "lines", 100).await;
    assert!(text(&result).len() < 4_000, "{}", text(&result).len());
    let read = client.call("read_resource", json!({ "uri": link(&result) })).await.text();
    assert!(read.len() <= 4_000 && read.contains("Not complete; next: "), "{read}");

    let mut config = larder::config::Config::default();
    config.tools.spill = [("lnies".to_owned(), Spill::Never)].into();
    let registry = Registry::builder("spilling").with(offers).build().unwrap();
    let refused = larder::app::App::new(registry, config).err().unwrap().to_string();
    assert_eq!(refused, "tools.spill: this server has no tool called lnies");
}

#[tokio::test]
async fn where_nothing_reads_resources_nothing_is_hidden_in_one() {
    let registry = Registry::builder("plain")
        .tool(tool("lines", numbered_lines))
        .tool(tool("rows", |n| Structured(rows(n))));
    let server = Server::of(registry.build().unwrap()).await;
    let client = Modern::of(&server);
    assert_eq!(text(&call(&client, "lines", 5_000).await), numbered_lines(5_000));
    let tools = client.list("tools/list", "tools").await;
    assert!(tools[1]["outputSchema"]["anyOf"].is_null(), "{tools:?}");
}

#[tokio::test]
async fn a_full_store_is_told_with_what_to_do_and_nothing_looks_whole() {
    let server = configured(|config| config.memory.bytes_per_owner = 100_000).await;
    let client = Modern::of(&server);
    for tool in ["lines", "rows", "mixed"] {
        let result = call(&client, tool, 10_000).await;
        assert_eq!(result["isError"], true);
        let said = text(&result);
        assert!(
            said.contains("could not be stored: ") && said.contains("Nothing of it is shown."),
            "{said}"
        );
        assert!(
            said.contains("delete_resource")
                && said.contains(&format!("call {tool} again for less")),
            "{said}"
        );
        assert!(result.to_string().len() < 2_000, "{result}");
    }
    // Not even a part of it stays.
    assert!(client.list("resources/list", "resources").await.is_empty());
    // What fits all the same is sent.
    client.create(json!({ "text": "x".repeat(100_000) })).await;
    assert_eq!(text(&call(&client, "always", 0).await), "short");
}

#[tokio::test]
async fn a_store_that_is_gone_is_told_without_its_inside() {
    let mut redis = RedisServer::start().await;
    let url = redis.url();
    let server = configured(|config| {
        config.store.url = url;
        config.redis.migrate = true;
        config.redis.timeout = 1.0;
    })
    .await;
    let client = Modern::of(&server);
    assert_eq!(links(&call(&client, "rows", 10_000).await).len(), 1);
    redis.kill();
    let result = call(&client, "rows", 10_000).await;
    assert_eq!(result["isError"], true);
    let said = text(&result);
    assert!(said.contains("The redis store is not available now; try again shortly."), "{said}");
    assert!(!said.contains("127.0.0.1") && !said.contains("row number"), "{said}");
}

#[tokio::test]
async fn an_expired_handle_names_the_tool_to_run_again() {
    let server = configured(|config| config.store.default_ttl = 60).await;
    let client = Modern::of(&server);
    let uri = link(&call(&client, "lines", 5_000).await);
    server.clock.advance(std::time::Duration::from_secs(61));
    let expected = "Run lines again to make a new one.";
    let said = client.call("read_resource", json!({ "uri": uri })).await.failure();
    assert!(said.contains(" was removed at ") && said.ends_with(expected), "{said}");
    let error = client.send("resources/read", json!({ "uri": uri })).await.error();
    assert!(error["message"].as_str().unwrap().ends_with(expected), "{error}");
    // Also when nobody knows any more that it was there.
    let said = client.call("read_resource", json!({ "uri": "larder://r/lines/0" })).await.failure();
    assert!(said.ends_with("run lines again to make a new one."), "{said}");
}

#[tokio::test]
async fn the_tools_alone_do() {
    // No list, no template, no link, no subscription: what the text says is enough.
    let server = server().await;
    let client = Modern::of(&server);
    let said = text(&call(&client, "lines", 3_000).await).to_owned();
    let (mut tool, mut arguments) = proposed(&said).remove(0);
    let mut whole = String::new();
    loop {
        let answer = client.call(&tool, arguments).await.text();
        let (head, content) = answer.split_once("\n\n").unwrap();
        whole += content;
        match proposed(head).pop() {
            Some(next) => (tool, arguments) = next,
            None => break,
        }
    }
    assert_eq!(whole, numbered_lines(3_000));
}

#[tokio::test]
async fn tools_that_read_say_that_they_do_and_are_bounded() {
    let server = server().await;
    let tools = Modern::of(&server).list("tools/list", "tools").await;
    for name in ["read_resource", "search_resource", "list_resources", "describe_resource"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["annotations"]["openWorldHint"], false);
        assert!(tool["_meta"]["anthropic/maxResultSizeChars"].as_u64().unwrap() >= 32_000);
    }
}

#[tokio::test]
async fn what_is_described_has_its_shape() {
    let server = server().await;
    let client = Modern::of(&server);
    let uri = client.create(json!({ "text": table(50_000) , "mime_type": "text/csv"})).await;
    let said = client.call("describe_resource", json!({ "uri": uri })).await.text();
    assert!(said.contains("Table: 50,000 rows below a line of names, 3 columns"), "{said}");
    assert!(said.contains("Lines 1-") && said.contains("49999,\"name, 49999\""), "{said}");
    assert!(said.len() < 5_000);
}

/// Asks for lines, and looks at them itself.
#[derive(Deserialize, JsonSchema)]
struct Nested;

async fn nested(ctx: Context, _: Nested) -> Result<String, ToolError> {
    let result = ctx.call_tool("lines", json!({ "n": 5_000 })).await;
    let result = result.map_err(|fault| ToolError::new(fault.to_string()))?;
    Ok(format!("{} lines", result.content[0].as_text().unwrap().text.lines().count()))
}

#[tokio::test]
async fn a_tool_that_calls_another_gets_all_of_it() {
    let registry = Registry::builder("nested").with(offers).tool(Tool::new(nested));
    let server = Server::of(registry.build().unwrap()).await;
    let answer = Modern::of(&server).call("nested", json!({})).await;
    assert_eq!(answer.text(), "5000 lines");
}

#[tokio::test]
async fn a_workflows_step_is_shown_as_a_preview_and_used_whole() {
    let workflow = SequentialWorkflow::new("w", "Counts")
        .step(
            WorkflowStep::new("rows", ToolHandle::new("rows"))
                .arg("n", constant(10_000))
                .bind("all"),
        )
        .step(WorkflowStep::new("again", ToolHandle::new("lines")).arg("n", field("all", "total")));
    let registry = Registry::builder("w").with(offers).with(workflow::prompt(workflow));
    let server = Server::of(registry.build().unwrap()).await;
    let client = Modern::of(&server);
    let result = client.send("prompts/get", json!({ "name": "w" })).await.result();
    assert_eq!(result["_meta"]["larder/workflow"]["outcome"], "completed", "{result}");
    let messages = result["messages"].as_array().unwrap();
    let links: Vec<_> =
        messages.iter().filter(|m| m["content"]["type"] == "resource_link").collect();
    let texts: Vec<_> = messages.iter().filter_map(|m| m["content"]["text"].as_str()).collect();
    for link in &links {
        let uri = link["content"]["uri"].as_str().unwrap();
        let said = texts.iter().find(|text| text.contains(uri)).unwrap();
        assert!(said.contains("PREVIEW ONLY") && said.contains("Next: read_resource "), "{said}");
    }
    let uri = links[1]["content"]["uri"].as_str().unwrap();
    assert_eq!(client.read(uri).await["text"], numbered_lines(10_000));
    assert!(result.to_string().len() < 20_000);
}

#[tokio::test]
async fn a_workflows_step_fails_where_nothing_can_be_stored() {
    let workflow = SequentialWorkflow::new("w", "Counts")
        .step(WorkflowStep::new("rows", ToolHandle::new("rows")).arg("n", constant(10_000)));
    let server = Server::configured(|setup| {
        setup.config.memory.bytes_per_owner = 1_000;
        setup.offers = Box::new(|_, _| {
            Registry::builder("w").with(offers).with(workflow::prompt(workflow)).build().unwrap()
        });
    })
    .await;
    let client = Modern::of(&server);
    let result = client.send("prompts/get", json!({ "name": "w" })).await.result();
    let outcome = &result["_meta"]["larder/workflow"];
    assert_eq!(outcome["outcome"], "failed");
    assert!(outcome["reason"].as_str().unwrap().contains("could not be stored"), "{outcome}");
}

/// For `CallToolResult` by hand.
#[tokio::test]
async fn a_whole_result_by_hand_spills_too() {
    let by_hand = |n: usize| {
        let mut result = CallToolResult::success(vec![ContentBlock::text(numbered_lines(n))]);
        result.meta = Some(MetaObject(json!({ "mine": 1 }).as_object().cloned().unwrap()));
        result
    };
    let registry = Registry::builder("by-hand")
        .tool(tool("by_hand", by_hand))
        .with(tools::reading(ToolOptions::default()));
    let server = Server::of(registry.build().unwrap()).await;
    let client = Modern::of(&server);
    let result = call(&client, "by_hand", 5_000).await;
    assert_eq!(client.read(&link(&result)).await["text"], numbered_lines(5_000));
    assert_eq!(result["_meta"]["mine"], 1);
}
