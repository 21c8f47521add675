//! Scopes: an item that needs one is not listed without it, and its use is refused with
//! the scopes that it needs.

use std::collections::BTreeMap;

use larder::{
    Context, Prompt, Registry, Resource, Template, Tool, Variables,
    config::Config,
    tools::{self, ToolOptions},
    workflow::{self, dsl::*},
};
use serde_json::{Value, json};

use super::{METADATA, World, accept, challenge, issuer::Issuer, world_with};
use crate::support::{Answer, Legacy, Modern, Server};

/// Needs no scope.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Plain;

/// Needs a scope.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Secret;

/// Greets.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greeting;

fn registry() -> Registry {
    Registry::builder("scoped")
        .page_size(2)
        .tool(Tool::new(|_: Context, _: Secret| async { "secret" }).scope("mcp:write").scope("x"))
        .tool(Tool::new(|_: Context, _: Plain| async { "plain" }))
        .tool(Tool::new(|_: Context, _: Secret| async { "2" }).name("secret_two").scope("x"))
        .tool(Tool::new(|_: Context, _: Plain| async { "2" }).name("plain_two"))
        .tool(Tool::new(|_: Context, _: Plain| async { "3" }).name("plain_three"))
        .prompt(Prompt::new(|_: Context, _: Greeting| async { "hello" }).scope("x"))
        .resource(Resource::text("docs://open", "open"))
        .resource(Resource::text("docs://secret", "secret").scope("x"))
        .template(
            Template::new("logs://{name}", "logs", |_: Context, v: Variables| async move {
                v["name"].clone()
            })
            .scope("x"),
        )
        .with(workflow::prompt(
            SequentialWorkflow::new("steps", "Does it")
                .step(WorkflowStep::new("tool", ToolHandle::new("secret")).bind("said")),
        ))
        .with(workflow::prompt(
            SequentialWorkflow::new("reads", "Reads it")
                .step(read_resource("docs://secret").named("read"))
                .as_tool(),
        ))
        .with(tools::reading(ToolOptions::default()))
        .build()
        .unwrap()
}

async fn scoped() -> World {
    let issuer = Issuer::start().await;
    let server = Server::configured(|setup| {
        setup.offers = Box::new(|_, _| registry());
        accept(&mut setup.config, &issuer.url);
        setup.config.auth.required_scopes = vec!["mcp:read".into()];
        setup.config.auth.hierarchy = BTreeMap::from([(
            "admin".into(),
            vec!["mcp:write".into(), "x".into(), "mcp:read".into()],
        )]);
    })
    .await;
    World { issuer, server }
}

/// Checks that a request is refused with the scopes that it needs, before a stream begins.
#[track_caller]
fn assert_step_up(answer: &Answer, scope: &str) {
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(
        challenge(answer),
        format!(
            "resource_metadata=\"{METADATA}\", error=\"insufficient_scope\", scope=\"{scope}\""
        )
    );
    let error = answer.error();
    assert_eq!(error["data"]["requiredScopes"], json!(scope.split(' ').collect::<Vec<_>>()));
    assert_eq!(answer.json()["id"], 1);
}

fn names(items: &[Value], member: &str) -> Vec<String> {
    items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn items_without_permission_are_not_listed() {
    let world = scoped().await;
    let reader = Modern::bearing(&world.server, &world.token_for("alice", "mcp:read"));
    let admin = Modern::bearing(&world.server, &world.token_for("bob", "admin"));
    for (client, tools, prompts, resources, templates) in
        [(&reader, 9, 2, 1, 1), (&admin, 11, 3, 2, 2)]
    {
        assert_eq!(client.list("tools/list", "tools").await.len(), tools);
        assert_eq!(client.list("prompts/list", "prompts").await.len(), prompts);
        assert_eq!(client.list("resources/list", "resources").await.len(), resources);
        let found = client.list("resources/templates/list", "resourceTemplates").await;
        assert_eq!(found.len(), templates);
    }
    let tools = names(&reader.list("tools/list", "tools").await, "name");
    assert!(tools.iter().all(|name| !name.starts_with("secret")), "{tools:?}");
    assert_eq!(tools[..3], ["plain", "plain_two", "plain_three"]);
    let listed = reader.call("list_resources", json!({})).await.text();
    assert!(listed.contains("docs://open"), "{listed}");
    assert!(!listed.contains("docs://secret") && !listed.contains("logs://"), "{listed}");
    // The same in a session.
    let legacy = Legacy::bearing(&world.server, &world.token_for("alice", "mcp:read")).await;
    let page = legacy.send("tools/list", json!({})).await.result();
    assert_eq!(names(page["tools"].as_array().unwrap(), "name"), ["plain", "plain_two"]);
}

#[tokio::test]
async fn lists_that_depend_on_the_caller_are_private_on_every_page() {
    let world = scoped().await;
    let reader = Modern::bearing(&world.server, &world.token_for("alice", "mcp:read"));
    for method in ["tools/list", "prompts/list", "resources/templates/list", "resources/list"] {
        let mut cursor = None;
        loop {
            let params = cursor.map_or(json!({}), |cursor: Value| json!({ "cursor": cursor }));
            let page = reader.send(method, params).await.result();
            assert_eq!(page["cacheScope"], "private", "{method}");
            match page.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
    }
}

#[tokio::test]
async fn use_is_refused_with_all_scopes_that_it_needs() {
    let world = scoped().await;
    let token = world.token_for("alice", "mcp:read");
    let modern = Modern::bearing(&world.server, &token);
    let legacy = Legacy::bearing(&world.server, &token).await;
    for (method, params, scope) in [
        ("tools/call", json!({ "name": "secret", "arguments": {} }), "mcp:read mcp:write x"),
        ("tools/call", json!({ "name": "secret_two" }), "mcp:read x"),
        ("prompts/get", json!({ "name": "greeting" }), "mcp:read x"),
        ("resources/read", json!({ "uri": "docs://secret" }), "mcp:read x"),
        ("resources/read", json!({ "uri": "logs://a" }), "mcp:read x"),
        ("resources/read", json!({ "uri": "logs://%61" }), "mcp:read x"),
    ] {
        assert_step_up(&modern.send(method, params.clone()).await, scope);
        assert_step_up(&legacy.send(method, params).await, scope);
    }
    let subscribe = json!({ "uri": "docs://secret" });
    assert_step_up(&legacy.send("resources/subscribe", subscribe).await, "mcp:read x");
    let complete = json!({
        "ref": { "type": "ref/resource", "uri": "logs://{name}" },
        "argument": { "name": "name", "value": "" },
    });
    assert_step_up(&modern.send("completion/complete", complete).await, "mcp:read x");
}

#[tokio::test]
async fn a_client_that_takes_streams_only_is_refused_before_one_begins() {
    let world = scoped().await;
    let modern = Modern::bearing(&world.server, &world.token_for("alice", "mcp:read"));
    let request = modern.request(1, "tools/call", json!({ "name": "secret", "arguments": {} }));
    let answer = Answer::of(request.header("accept", "text/event-stream")).await;
    assert_step_up(&answer, "mcp:read mcp:write x");
}

#[tokio::test]
async fn a_tool_cannot_bypass_the_scopes_of_a_resource() {
    let world = scoped().await;
    let reader = Modern::bearing(&world.server, &world.token_for("alice", "mcp:read"));
    for uri in ["docs://secret", "logs://a"] {
        for tool in ["read_resource", "describe_resource"] {
            let failure = reader.call(tool, json!({ "uri": uri })).await.failure();
            assert!(failure.contains("scope"), "{failure}");
        }
    }
}

#[tokio::test]
async fn a_workflow_cannot_bypass_the_scopes_of_its_steps() {
    let world = scoped().await;
    let reader = Modern::bearing(&world.server, &world.token_for("alice", "mcp:read"));
    let admin = Modern::bearing(&world.server, &world.token_for("bob", "admin"));
    for name in ["steps", "reads"] {
        let refused = reader.send("prompts/get", json!({ "name": name })).await.result();
        assert_ne!(refused["_meta"]["larder/workflow"]["outcome"], "completed", "{refused}");
        assert!(refused.to_string().contains("needs a token with the scope"), "{refused}");
        let done = admin.send("prompts/get", json!({ "name": name })).await.result();
        assert_eq!(done["_meta"]["larder/workflow"]["outcome"], "completed", "{done}");
    }
    let refused = reader.call("reads", json!({})).await.failure();
    assert!(refused.contains("needs a token with the scope"), "{refused}");
    assert!(admin.call("reads", json!({})).await.text().contains("docs://secret"));
}

#[tokio::test]
async fn one_challenge_names_the_scopes_of_the_server_and_of_the_tool() {
    let world = scoped().await;
    let nobody = Modern::bearing(&world.server, &world.token_for("alice", ""));
    assert_step_up(&nobody.send("tools/list", json!({})).await, "mcp:read");
    assert_step_up(&nobody.send("server/discover", json!({})).await, "mcp:read");
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    assert_step_up(&nobody.send("subscriptions/listen", listen).await, "mcp:read");
    let call = json!({ "name": "secret", "arguments": {} });
    assert_step_up(&nobody.send("tools/call", call).await, "mcp:read mcp:write x");
}

#[tokio::test]
async fn a_broad_scope_implies_the_narrow_ones() {
    let world = scoped().await;
    let admin = Modern::bearing(&world.server, &world.token_for("alice", "admin"));
    assert_eq!(admin.call("secret", json!({})).await.text(), "secret");
    assert_eq!(admin.read("docs://secret").await["text"], "secret");
    // Narrow scopes do not imply a broad one.
    let parts = Modern::bearing(&world.server, &world.token_for("alice", "mcp:read mcp:write"));
    assert_step_up(
        &parts.send("tools/call", json!({ "name": "secret" })).await,
        "mcp:read mcp:write x",
    );
}

#[tokio::test]
async fn scopes_are_compared_exactly() {
    let world = scoped().await;
    for scope in ["MCP:READ", "mcp:rea", "mcp:read2", "mcp", "mcp:*"] {
        let client = Modern::bearing(&world.server, &world.token_for("alice", scope));
        assert_eq!(client.send("tools/list", json!({})).await.status, 403, "{scope}");
    }
}

fn writing(config: &mut Config) {
    let write = vec!["mcp:write".to_owned()];
    for tool in ["create_resource", "update_resource", "delete_*", "share_resource"] {
        config.auth.scopes.insert(tool.into(), write.clone());
    }
    config.auth.required_scopes = vec!["mcp:read".into()];
}

#[tokio::test]
async fn the_configuration_requires_a_scope_for_writing() {
    let world = world_with(writing).await;
    let reader = Modern::bearing(&world.server, &world.token_for("alice", "mcp:read"));
    let writer = Modern::bearing(&world.server, &world.token_for("alice", "mcp:read mcp:write"));
    let create = json!({ "uri": "a://1", "text": "x" });
    let refused = reader.call("create_resource", create.clone()).await;
    assert_step_up(&refused, "mcp:read mcp:write");
    writer.call("create_resource", create).await.text();
    assert_eq!(reader.read("a://1").await["text"], "x");
    for tool in ["update_resource", "delete_resource", "share_resource"] {
        let refused = reader.call(tool, json!({ "uri": "a://1", "text": "y" })).await;
        assert_step_up(&refused, "mcp:read mcp:write");
    }
    let listed = names(&reader.list("tools/list", "tools").await, "name");
    assert!(listed.contains(&"read_resource".to_owned()));
    assert!(!listed.iter().any(|name| name.ends_with("e_resource") && name != "describe_resource"));
}

#[test]
fn an_invalid_scope_is_an_error_of_the_definition() {
    let built = Registry::builder("x")
        .tool(Tool::new(|_: Context, _: Plain| async { "" }).scope("offline_access"))
        .resource(Resource::text("a://b", "").scope("two words"))
        .build();
    let problems = built.unwrap_err().problems;
    assert!(
        problems[0].contains("plain") && problems[0].contains("offline_access"),
        "{problems:?}"
    );
    assert!(problems[1].contains("a://b") && problems[1].contains("two words"), "{problems:?}");
}
