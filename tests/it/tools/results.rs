//! Results of handlers: structured content, media, metadata, and problems of definitions.

use std::collections::BTreeMap;

use larder::{
    Audio, Builder, Context, Image, IntoPromptResult, Json, Prompt, Registry, Structured, Tool,
    ToolError, assistant, user,
};
use rmcp::model::{ContentBlock, Icon, MetaObject, PromptMessage, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Legacy, Modern, Server};

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing;

#[derive(Serialize, JsonSchema)]
struct Point {
    x: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

/// An enum that is recursive, and not an object.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tree {
    Leaf(i32),
    Both(Vec<Tree>),
}

fn tool<R>(name: &'static str, make: impl Fn() -> R + Send + Sync + 'static) -> Tool
where
    R: larder::IntoToolResult + Send + 'static,
{
    Tool::new(move |_: Context, _: Nothing| std::future::ready(make())).name(name)
}

fn kinds(builder: Builder) -> Builder {
    let point = || Point { x: 1, label: None };
    builder
        .tool(tool("a_struct", move || Structured(point())))
        .tool(tool("a_map", || Structured(BTreeMap::from([("one", 1)]))))
        .tool(tool("a_list", || Structured(vec![1, 2])))
        .tool(tool("a_number", || Structured(1.5)))
        .tool(tool("an_option", || Structured(None::<i32>)))
        .tool(tool("a_tree", || Structured(Tree::Both(vec![Tree::Leaf(1)]))))
        .tool(tool("a_pair", || (Structured(2), "two")))
        .tool(tool("a_result", || Ok::<_, ToolError>(Structured(3))))
        .tool(tool("an_error", || Err::<Structured<i32>, _>(ToolError::new("No."))))
        .tool(tool("text_by_default", || "text"))
        .tool(tool("text_always", || "text").structured_output(true))
        .tool(tool("number_never", || Structured(4)).structured_output(false))
        .tool(tool("by_default_json", || Json(json!({ "x": 1 }))))
}

/// The structured content and the text of a result.
async fn structured(client: &Modern, tool: &str) -> (Value, Value) {
    let result = client.call(tool, json!({})).await.result();
    assert_ne!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let text = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    (result["structuredContent"].clone(), text)
}

#[tokio::test]
async fn each_type_of_value_becomes_structured_content() {
    let server = Server::of(Registry::builder("kinds").with(kinds).build().unwrap()).await;
    let client = Modern::of(&server);
    for (tool, value) in [
        ("a_struct", json!({ "x": 1 })),
        ("a_map", json!({ "one": 1 })),
        ("a_list", json!({ "result": [1, 2] })),
        ("a_number", json!({ "result": 1.5 })),
        ("an_option", json!({ "result": null })),
        ("a_tree", json!({ "result": { "both": [{ "leaf": 1 }] } })),
        ("a_result", json!({ "result": 3 })),
    ] {
        assert_eq!(structured(&client, tool).await, (value.clone(), value), "{tool}");
    }
    assert_eq!(structured(&client, "a_pair").await, (json!({ "result": 2 }), json!("two")));
    assert_eq!(client.call("an_error", json!({})).await.failure(), "No.");

    let tools = client.list("tools/list", "tools").await;
    let schema =
        |tool: &str| tools.iter().find(|t| t["name"] == tool).unwrap()["outputSchema"].clone();
    assert_eq!(schema("a_struct")["required"], json!(["x"]), "an optional member is required");
    assert_eq!(schema("a_list")["properties"]["result"]["type"], "array");
    for tool in &tools {
        let schema = &tool["outputSchema"];
        assert!(schema.is_null() || schema["type"] == "object", "{tool}");
    }
    // The same in a session of an older version.
    let legacy = Legacy::speaking(&server, "2025-06-18").await;
    let result = legacy.call("a_list", json!({})).await.result();
    assert_eq!(result["structuredContent"], json!({ "result": [1, 2] }));
}

#[tokio::test]
async fn structured_content_can_be_forced_or_disabled() {
    let server = Server::of(Registry::builder("kinds").with(kinds).build().unwrap()).await;
    let client = Modern::of(&server);
    let tools = client.list("tools/list", "tools").await;
    for (tool, text, value) in [
        ("text_by_default", json!("text"), Value::Null),
        ("text_always", json!("text"), json!({ "result": "text" })),
        ("number_never", json!(4), Value::Null),
        ("by_default_json", json!({ "x": 1 }), Value::Null),
    ] {
        assert_eq!(structured(&client, tool).await, (value.clone(), text), "{tool}");
        let listed = tools.iter().find(|t| t["name"] == tool).unwrap();
        assert_eq!(listed.get("outputSchema").is_some(), !value.is_null(), "{tool}");
    }
}

fn object(value: &Value) -> rmcp::model::JsonObject {
    value.as_object().cloned().unwrap()
}

#[tokio::test]
async fn a_result_that_does_not_fit_its_schema_is_a_failure() {
    let schema = json!({
        "type": "object",
        "properties": { "sum": { "type": "number" } },
        "required": ["sum"],
    });
    let with_schema =
        |name, value: Value| tool(name, move || Json(value.clone())).output_schema(object(&schema));
    let registry = Registry::builder("promises")
        .tool(with_schema("right", json!({ "sum": 5 })))
        .tool(with_schema("misspelled", json!({ "sun": 5 })))
        .tool(with_schema("wrong_type", json!({ "sum": "five secrets" })))
        .tool(with_schema("missing", json!({})))
        .tool(with_schema("no_object", json!([5])))
        .tool(tool("nothing", || ContentBlock::text("5")).output_schema(object(&schema)))
        .tool(
            tool("anything", || Json(json!({ "x": [] })))
                .output_schema(object(&json!({ "type": "object" }))),
        )
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    assert_eq!(structured(&client, "right").await.0, json!({ "sum": 5 }));
    assert_eq!(structured(&client, "anything").await.0, json!({ "x": [] }));
    for tool in ["misspelled", "wrong_type", "missing", "no_object", "nothing"] {
        let answer = client.call(tool, json!({})).await;
        let failure = answer.failure();
        assert!(failure.contains("sum") && !failure.contains("secrets"), "{tool}: {failure}");
        assert!(answer.result().get("structuredContent").is_none(), "{tool}");
    }
}

#[tokio::test]
async fn media_and_options_reach_the_client() {
    let mut meta = MetaObject::default();
    meta.0.insert("example.com/x".into(), json!(1));
    let icon = Icon::new("https://example.com/i.png").with_sizes(vec!["48x48".into()]);
    let registry = Registry::builder("media")
        .icon(icon.clone())
        .tool(tool("image", || Image::png(&b"\x89PNG"[..])))
        .tool(tool("sound", || Audio::wav(&b"RIFF"[..])))
        .tool(
            tool("options", || "")
                .title("Options")
                .description("Other words.")
                .icon(icon)
                .annotations(ToolAnnotations::new().read_only(true).open_world(false))
                .meta(meta),
        )
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    for (tool, block) in [
        ("image", json!({ "type": "image", "data": "iVBORw==", "mimeType": "image/png" })),
        ("sound", json!({ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" })),
    ] {
        assert_eq!(client.call(tool, json!({})).await.result()["content"], json!([block]));
    }
    let tools = client.list("tools/list", "tools").await;
    let listed = &tools[2];
    assert_eq!(
        (&listed["title"], &listed["description"]),
        (&json!("Options"), &json!("Other words."))
    );
    assert_eq!(listed["annotations"], json!({ "readOnlyHint": true, "openWorldHint": false }));
    assert_eq!(
        listed["icons"],
        json!([{ "src": "https://example.com/i.png", "sizes": ["48x48"] }])
    );
    assert_eq!(listed["_meta"], json!({ "example.com/x": 1 }));
    let legacy = Legacy::of(&server).await;
    assert_eq!(legacy.initialized["serverInfo"]["icons"][0]["sizes"], json!(["48x48"]));
}

#[test]
fn invalid_definitions_are_reported_when_the_server_is_built() {
    let faulty = Registry::builder("faulty")
        .tool(tool("bad name", || ""))
        .tool(tool("always", || ContentBlock::text("")).structured_output(true))
        .tool(
            tool("both", || "")
                .structured_output(false)
                .output_schema(object(&json!({ "type": "object" }))),
        )
        .tool(tool("list", || "").output_schema(object(&json!({ "type": "array" }))))
        .tool(tool("icon", || "").icon(Icon::new("javascript:alert(1)")))
        .tool(
            tool("size", || "")
                .icon(Icon::new("https://a.example/").with_sizes(vec!["big".into()])),
        );
    let problems = faulty.build().unwrap_err().problems;
    for named in ["\"bad name\"", "\"always\"", "\"both\"", "\"list\"", "\"icon\"", "\"size\""] {
        let found: Vec<_> = problems.iter().filter(|fault| fault.contains(named)).collect();
        assert_eq!(found.len(), 1, "{named}: {problems:#?}");
    }
    assert_eq!(problems.len(), 6, "{problems:#?}");
}

#[test]
fn custom_list_and_call_handlers_need_each_other_and_exclude_tools() {
    let list = |builder: Builder| builder.list_tools(|_: Context| async { Ok(Vec::new()) });
    let call = |builder: Builder| builder.call_tool(|_: Context, _, _| async { Ok("") });
    let start = || Registry::builder("x");
    for (builder, fault) in [
        (list(start()), "tools/call has none"),
        (call(start()), "tools/list has none"),
        (call(list(start().tool(tool("a", || "")))), "both"),
    ] {
        let problems = builder.build().unwrap_err().to_string();
        assert!(problems.contains(fault), "{problems}");
    }
    assert!(call(list(start())).build().is_ok());
}

#[tokio::test]
async fn fixed_lists_declare_no_changes_and_refuse_them() {
    let adding = Tool::new(|ctx: Context, _: Nothing| async move {
        ctx.add_tool(tool("more", || ""))?;
        Ok::<_, ToolError>("added")
    });
    let prompt = Prompt::new(|_: Context, _: Nothing| async { "a" }).name("a");
    let prompt = prompt.icon(Icon::new("https://example.com/p.png"));
    let registry = Registry::builder("fixed").fixed_lists().tool(adding.name("add")).prompt(prompt);
    let server = Server::of(registry.build().unwrap()).await;
    let client = Modern::of(&server);
    let capabilities =
        client.send("server/discover", json!({})).await.result()["capabilities"].clone();
    assert_eq!((&capabilities["tools"], &capabilities["prompts"]), (&json!({}), &json!({})));
    let failure = client.call("add", json!({})).await.failure();
    assert!(failure.contains("tools and prompts are fixed"), "{failure}");
    let prompts = client.list("prompts/list", "prompts").await;
    assert_eq!(prompts[0]["icons"], json!([{ "src": "https://example.com/p.png" }]));
}

#[test]
fn prompts_return_messages_of_every_kind() {
    fn messages(result: impl IntoPromptResult) -> Vec<PromptMessage> {
        result.into_prompt_result().unwrap().messages
    }
    assert_eq!(messages("a"), [user("a")]);
    assert_eq!(messages(assistant("b")), [assistant("b")]);
    assert_eq!(messages(vec!["a", "b"]), [user("a"), user("b")]);
    assert_eq!(messages(ContentBlock::text("c")), [user("c")]);
    let block = json!({ "role": "assistant", "content": { "type": "text", "text": "d" } });
    assert_eq!(messages(vec![json!("a"), block]), [user("a"), assistant("d")]);
    for wrong in [json!({ "role": "system", "content": "x" }), json!(1), json!({ "role": "user" })]
    {
        assert!(wrong.into_prompt_result().is_err());
    }
    let prompt = Prompt::new(|_: Context, _: Nothing| async { vec![user("a"), assistant("b")] });
    assert!(Registry::builder("p").prompt(prompt.name("p")).build().is_ok());
}
