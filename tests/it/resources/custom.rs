//! Custom handlers for whole methods: listing, getting, reading and completing.

use std::sync::Arc;

use larder::{
    Builder, CompletionInput, Context, Prompt, Registry, ResourceError, Tool, UriTemplate,
    protocol::Fault,
    tools::{self, ToolOptions},
};
use rmcp::model::{self, JsonObject, PromptArgument, Reference};
use serde_json::{Value, json};

use crate::support::{Ctx, Legacy, Modern, Server, ToolControl, ToolState};

fn prompts() -> Vec<model::Prompt> {
    let mut who = PromptArgument::new("who");
    who.required = Some(true);
    let greet = model::Prompt::new("greet", Some("Greets somebody."), Some(vec![who]));
    let panics = model::Prompt::new("panics", None::<String>, None);
    vec![greet, panics]
}

async fn write(ctx: Ctx, name: String, arguments: JsonObject) -> Result<String, Fault> {
    ctx.state().record(&name, ToolState::Started);
    assert_ne!(name, "panics", "a secret in a panic");
    Ok(format!("Greet {}.", arguments["who"].as_str().unwrap_or_default()))
}

async fn read(_: Ctx, uri: String) -> Result<String, ResourceError> {
    let template = UriTemplate::parse("books://{title}").unwrap();
    match (uri.as_str(), template.matches(&uri)) {
        ("docs://broken", _) => Err(ResourceError::Failed("The page is torn.".into())),
        ("docs://panics", _) => panic!("a secret in a panic"),
        ("docs://one", _) => Ok("The first page.".into()),
        (_, Some(variables)) => Ok(format!("The book {}.", variables["title"])),
        _ => Err(ResourceError::NotFound),
    }
}

async fn suggest(
    _: Ctx,
    reference: Reference,
    argument: String,
    completing: CompletionInput,
) -> Result<Vec<String>, Fault> {
    let item = reference.as_prompt_name().or(reference.as_resource_uri()).unwrap_or_default();
    Ok(vec![format!("{item} {argument} {}", completing.value)])
}

fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    builder
        .page_size(1)
        .list_prompts(|_: Ctx| async { Ok(prompts()) })
        .get_prompt(write)
        .list_resources(|ctx: Ctx| async move {
            // The list depends on the caller.
            let name = &ctx.client().info.as_ref().map_or("nobody", |info| &*info.name).to_owned();
            let two = model::Resource::new("docs://two", name);
            Ok(vec![model::Resource::new("docs://one", "one"), two])
        })
        .list_resource_templates(|_: Ctx| async {
            Ok(vec![model::ResourceTemplate::new("books://{title}", "book")])
        })
        .read_resource(read)
        .complete(suggest)
        .with(tools::reading(ToolOptions::default()))
        .with(tools::writing())
}

#[tokio::test]
async fn custom_prompts_are_listed_and_got() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let listed = client.list("prompts/list", "prompts").await;
    let names: Vec<_> = listed.iter().map(|prompt| &prompt["name"]).collect();
    assert_eq!(names, ["greet", "panics"]);
    let first = client.send("prompts/list", json!({})).await.result();
    assert_eq!((&first["cacheScope"], &first["ttlMs"]), (&json!("private"), &json!(0)));
    let get = async |name: &str, arguments: Value| {
        client.send("prompts/get", json!({ "name": name, "arguments": arguments })).await
    };
    let greeting = get("greet", json!({ "who": "Ana" })).await.result();
    assert_eq!(greeting["messages"][0]["content"]["text"], "Greet Ana.");
    assert_eq!(greeting["description"], "Greets somebody.");
    let before = server.control.count("greet", ToolState::Started);
    for (name, arguments, named) in [
        ("nope", json!({}), "nope"),
        ("greet", json!({}), "who"),
        ("greet", json!({ "who": "Ana", "when": "now" }), "when"),
    ] {
        let error = get(name, arguments).await.error();
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().unwrap().contains(named), "{error}");
    }
    assert_eq!(server.control.count("greet", ToolState::Started), before);
    let error = get("panics", json!({})).await.error();
    assert_eq!(error["code"], -32603);
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn custom_resources_are_listed_and_read_together_with_stored_ones() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "notes://own", "text": "A note." })).await;
    let listed = client.list("resources/list", "resources").await;
    let uris: Vec<_> = listed.iter().map(|resource| &resource["uri"]).collect();
    assert_eq!(uris, ["docs://one", "docs://two", "notes://own"]);
    assert_eq!(listed[1]["name"], "it");
    let templates = client.list("resources/templates/list", "resourceTemplates").await;
    let templates: Vec<_> = templates.iter().map(|template| &template["uriTemplate"]).collect();
    assert!(templates.contains(&&json!("books://{title}")) && templates.len() > 1, "{templates:?}");
    let page = client.read("docs://one").await;
    assert_eq!(
        (&page["text"], &page["mimeType"]),
        (&json!("The first page."), &json!("text/plain"))
    );
    assert_eq!(client.read("books://Moby%20Dick").await["text"], "The book Moby Dick.");
    for (uri, code) in
        [("docs://none", -32602), ("docs://broken", -32603), ("docs://panics", -32603)]
    {
        let error = client.send("resources/read", json!({ "uri": uri })).await.error();
        assert_eq!(error["code"], code, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    // A stored resource overrides a custom one of the same URI, and is listed once.
    client.create(json!({ "uri": "docs://one", "text": "Mine." })).await;
    assert_eq!(client.read("docs://one").await["text"], "Mine.");
    assert_eq!(client.list("resources/list", "resources").await.len(), 3);
    let legacy = Legacy::of(&server).await;
    let missing = legacy.send("resources/read", json!({ "uri": "docs://none" })).await.error();
    assert_eq!(missing["code"], -32002);
}

#[tokio::test]
async fn the_tools_list_and_read_custom_resources() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let listed = client.call("list_resources", json!({})).await.text();
    assert!(listed.contains("docs://two") && listed.contains("books://{title}"), "{listed}");
    let read = client.call("read_resource", json!({ "uri": "books://Emma" })).await.text();
    assert!(read.contains("The book Emma."), "{read}");
}

#[tokio::test]
async fn a_custom_completion_is_declared_and_called() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let capabilities =
        client.send("server/discover", json!({})).await.result()["capabilities"].take();
    assert!(capabilities["completions"].is_object() && capabilities["prompts"].is_object());
    for reference in [
        json!({ "type": "ref/prompt", "name": "greet" }),
        json!({ "type": "ref/resource", "uri": "books://{title}" }),
    ] {
        let item = reference.get("name").or(reference.get("uri")).unwrap().clone();
        let params = json!({ "ref": reference, "argument": { "name": "a", "value": "x" } });
        let found = client.send("completion/complete", params).await.result();
        let said = format!("{} a x", item.as_str().unwrap());
        assert_eq!(found["completion"]["values"], json!([said]));
    }
}

/// Returns what a handler finds in its context.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {}

#[tokio::test]
async fn a_context_has_the_principal_the_client_and_the_state() {
    let server = Server::offering(|builder| {
        let look = Tool::new(|ctx: Ctx, _: Look| async move {
            ctx.state().record(ctx.request_id(), ToolState::Started);
            let client = ctx.client().info.as_ref().map(|info| info.name.clone());
            let seen = json!({
                "id": ctx.request_id(),
                "principal": ctx.principal().to_string(),
                "client": client,
                "server": ctx.registry().info().name,
            });
            seen.to_string()
        });
        builder.tool(look)
    })
    .await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let mut ids = Vec::new();
    for answer in [modern.call("look", json!({})).await, legacy.call("look", json!({})).await] {
        let seen: Value = serde_json::from_str(&answer.text()).unwrap();
        assert_eq!((&seen["client"], &seen["server"]), (&json!("it"), &json!("fixture")));
        assert_eq!(seen["principal"], "local");
        let id = seen["id"].as_str().unwrap().to_owned();
        assert!(server.control.has(&id, ToolState::Started));
        ids.push(id);
    }
    // The ids differ although both clients sent the same JSON-RPC id.
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_caller_can_use_only_the_tools_that_are_listed_for_it() {
    let tool = |name: &'static str| {
        let schema = json!({ "type": "object" }).as_object().cloned().unwrap();
        model::Tool::new(name, "Does it.", schema)
    };
    let server = Server::offering(move |builder| {
        builder
            .list_tools(move |ctx: Ctx| async move {
                let sees_all = ctx.can_elicit();
                Ok(if sees_all { vec![tool("one"), tool("two")] } else { vec![tool("one")] })
            })
            .call_tool(|_: Ctx, name: String, _: JsonObject| async move { Ok(name) })
    })
    .await;
    let able = Modern::able(&server, json!({ "elicitation": {} }));
    let plain = Modern::of(&server);
    assert_eq!(able.list("tools/list", "tools").await.len(), 2);
    assert_eq!(plain.list("tools/list", "tools").await.len(), 1);
    assert_eq!(able.call("two", json!({})).await.text(), "two");
    assert_eq!(plain.call("two", json!({})).await.error()["code"], -32602);
}

#[test]
fn incomplete_pairs_and_mixtures_with_definitions_do_not_build() {
    let list = |_: Context| async { Ok(prompts()) };
    let lists = |_: Context| async { Ok(Vec::<model::Resource>::new()) };
    let reads = |_: Context, _: String| async { Err::<String, _>(ResourceError::NotFound) };
    let gets = |_: Context, _: String, _: JsonObject| async { Ok("") };
    /// Greets.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Greet {}
    let greet = || Prompt::new(|_: Context, _: Greet| async { "" });
    for (builder, words) in [
        (Registry::builder("x").list_prompts(list), "prompts/get has none"),
        (Registry::builder("x").get_prompt(gets), "prompts/list has none"),
        (Registry::builder("x").list_resources(lists), "resources/read has none"),
        (Registry::builder("x").read_resource(reads), "resources/list has none"),
        (Registry::builder("x").list_prompts(list).get_prompt(gets).prompt(greet()), "both"),
    ] {
        let problems = builder.build().unwrap_err().problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(words), "{problems:?}");
    }
}
