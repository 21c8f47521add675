//! Tools, prompts, resources and templates that handlers add and remove at run time.

use std::sync::Arc;

use larder::{BuildError, Builder, Prompt, Resource, Template, Tool, ToolError, Variables};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Ctx, Events, Legacy, Modern, Server, ToolControl, ToolState, patiently};

/// Changes the catalogue of the server.
#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// The change, such as `add tool`.
    what: String,
    /// The name or URI of the item.
    name: String,
}

/// Has no arguments.
#[derive(Deserialize, JsonSchema)]
struct Added {}

/// Waits until the test releases it.
#[derive(Deserialize, JsonSchema)]
struct Waits {}

fn added(name: String) -> Tool<Arc<ToolControl>> {
    let said = name.clone();
    Tool::new(move |_: Ctx, _: Added| {
        let said = said.clone();
        async move { said }
    })
    .name(name)
}

fn edit(ctx: &Ctx, what: &str, name: String) -> Result<(), BuildError> {
    match what {
        "add tool" => ctx.add_tool(added(name)),
        "remove tool" => ctx.remove_tool(&name),
        "add prompt" => {
            let prompt = Prompt::new(|_: Ctx, _: Added| async { "Hello." });
            ctx.add_prompt(prompt.name(name))
        }
        "remove prompt" => ctx.remove_prompt(&name),
        "add resource" => ctx.add_resource(Resource::text(name, "Added.")),
        "remove resource" => ctx.remove_resource(&name),
        "add template" => {
            let read = |_: Ctx, v: Variables| async move { format!("about {}", v["what"]) };
            ctx.add_template(Template::new(name, "about", read))
        }
        "remove template" => ctx.remove_template(&name),
        other => panic!("{other}"),
    }
}

fn editor() -> Tool<Arc<ToolControl>> {
    Tool::new(|ctx: Ctx, args: Edit| async move {
        edit(&ctx, &args.what, args.name)?;
        Ok::<_, ToolError>("done")
    })
}

fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    let waits = Tool::new(|ctx: Ctx, _: Waits| async move {
        let control = Arc::clone(ctx.state());
        let player = control.enter("waits");
        control.step("waits").await;
        player.finish();
        "waited"
    });
    builder.tool(editor()).tool(waits).prompt(Prompt::new(|_: Ctx, _: Added| async { "Hello." }))
}

fn change(what: &str, name: &str) -> Value {
    json!({ "what": what, "name": name })
}

async fn listed(client: &Modern, kind: &str) -> Vec<String> {
    let key = if kind == "resources" { "uri" } else { "name" };
    let items = client.list(&format!("{kind}/list"), kind).await;
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

/// The methods of the next messages.
async fn methods(events: &mut Events, count: usize) -> Vec<String> {
    let mut methods = Vec::new();
    while methods.len() < count {
        let event = events.next().await.unwrap();
        if !event.data.is_empty() {
            let message: Value = serde_json::from_str(&event.data).unwrap();
            methods.push(message["method"].as_str().unwrap().to_owned());
        }
    }
    methods
}

fn list_changed(kind: &str) -> String {
    format!("notifications/{kind}/list_changed")
}

const ALL: [(&str, &str, &str); 3] = [
    ("tool", "tools", "new_tool"),
    ("prompt", "prompts", "new_prompt"),
    ("resource", "resources", "docs://new"),
];

#[tokio::test]
async fn the_next_list_has_added_items_and_no_removed_ones() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    for (item, kind, name) in ALL {
        let before = listed(&client, kind).await;
        client.call("edit", change(&format!("add {item}"), name)).await.text();
        let with = listed(&client, kind).await;
        assert_eq!(with[..before.len()], before[..]);
        assert_eq!(with[before.len()..], [name]);
        match item {
            "tool" => assert_eq!(client.call(name, json!({})).await.text(), name),
            "prompt" => {
                client.send("prompts/get", json!({ "name": name })).await.result();
            }
            _ => assert_eq!(client.read(name).await["text"], "Added."),
        }
        client.call("edit", change(&format!("remove {item}"), name)).await.text();
        assert_eq!(listed(&client, kind).await, before);
        match item {
            "tool" => assert_eq!(client.call(name, json!({})).await.error()["code"], -32602),
            "prompt" => {
                let answer = client.send("prompts/get", json!({ "name": name })).await;
                assert_eq!(answer.error()["code"], -32602);
            }
            _ => {
                let answer = client.send("resources/read", json!({ "uri": name })).await;
                assert_eq!(answer.error()["code"], -32602);
            }
        }
    }
}

#[tokio::test]
async fn added_and_removed_templates_are_listed_and_notified() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let mut heard = client.listen(1, json!({ "resourcesListChanged": true })).await;
    let listed = async || client.list("resources/templates/list", "resourceTemplates").await;
    assert!(listed().await.is_empty());
    let template = "about://{what}";
    client.call("edit", change("add template", template)).await.text();
    assert_eq!(methods(&mut heard, 1).await, [list_changed("resources")]);
    assert_eq!(listed().await[0]["uriTemplate"], template);
    assert_eq!(client.read("about://bees").await["text"], "about bees");
    let twice = client.call("edit", change("add template", template)).await.failure();
    assert!(twice.contains(template), "{twice}");
    client.call("edit", change("remove template", template)).await.text();
    assert_eq!(methods(&mut heard, 1).await, [list_changed("resources")]);
    assert!(listed().await.is_empty());
    let gone = client.send("resources/read", json!({ "uri": "about://bees" })).await;
    assert_eq!(gone.error()["code"], -32602);
    let twice = client.call("edit", change("remove template", template)).await.failure();
    assert!(twice.contains(template), "{twice}");
}

#[tokio::test]
async fn every_session_is_notified_of_each_change() {
    let server = Server::offering(offers).await;
    let (one, other) = (Legacy::of(&server).await, Legacy::of(&server).await);
    let mut streams = [one.listen().await, other.listen().await];
    for (item, kind, name) in ALL {
        one.call("edit", change(&format!("add {item}"), name)).await.text();
        one.call("edit", change(&format!("remove {item}"), name)).await.text();
        for stream in &mut streams {
            assert_eq!(methods(stream, 2).await, [list_changed(kind), list_changed(kind)]);
        }
    }
}

#[tokio::test]
async fn subscriptions_are_notified_of_the_lists_that_they_ask_for() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let mut tools = client.listen("tools", json!({ "toolsListChanged": true })).await;
    let mut prompts = client
        .listen("prompts", json!({ "promptsListChanged": true, "toolsListChanged": false }))
        .await;
    let mut resources = client.listen("resources", json!({ "resourcesListChanged": true })).await;
    let mut both = client
        .listen("both", json!({ "resourcesListChanged": true, "toolsListChanged": true }))
        .await;
    for (item, _, name) in ALL {
        client.call("edit", change(&format!("add {item}"), name)).await.text();
    }
    client.call("edit", change("remove tool", "new_tool")).await.text();
    client.call("edit", change("remove prompt", "new_prompt")).await.text();
    client.call("edit", change("remove resource", "docs://new")).await.text();
    let id = "io.modelcontextprotocol/subscriptionId";
    for (events, name, kinds) in [
        (&mut tools, "tools", &["tools", "tools"][..]),
        (&mut prompts, "prompts", &["prompts", "prompts"]),
        (&mut resources, "resources", &["resources", "resources"]),
        (&mut both, "both", &["tools", "resources", "tools", "resources"]),
    ] {
        for kind in kinds {
            let message = events.message().await;
            assert_eq!(message["method"], list_changed(kind), "{name}: {message}");
            assert_eq!(message["params"]["_meta"][id], name);
        }
    }
    // The next message is the end of the subscription.
    server.stop();
    for events in [&mut tools, &mut prompts, &mut resources, &mut both] {
        assert!(events.message().await["result"].is_object());
    }
}

#[tokio::test]
async fn a_subscription_gets_only_the_notifications_that_were_acknowledged() {
    let server = Server::offering(|builder| builder.tool(editor())).await;
    let client = Modern::of(&server);
    let both = json!({ "notifications": { "promptsListChanged": true, "toolsListChanged": true } });
    let mut events = client.stream(1, "subscriptions/listen", both).await;
    let acknowledged = events.message().await;
    assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }));
    client.call("edit", change("add prompt", "first")).await.text();
    client.call("edit", change("add tool", "first")).await.text();
    assert_eq!(events.message().await["method"], list_changed("tools"));
    // Now the server has a prompt, so a new subscription includes prompts.
    let both = json!({ "notifications": { "promptsListChanged": true, "toolsListChanged": true } });
    let mut events = client.stream(1, "subscriptions/listen", both.clone()).await;
    let acknowledged = events.message().await;
    assert_eq!(acknowledged["params"]["notifications"], both["notifications"]);
    client.call("edit", change("remove prompt", "first")).await.text();
    assert_eq!(events.message().await["method"], list_changed("prompts"));
}

#[tokio::test]
async fn an_invalid_change_names_the_item_and_has_no_effect() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let mut events = client
        .listen(
            1,
            json!({ "toolsListChanged": true, "promptsListChanged": true,
            "resourcesListChanged": true }),
        )
        .await;
    let before = [
        listed(&client, "tools").await,
        listed(&client, "prompts").await,
        listed(&client, "resources").await,
    ];
    for (what, name) in [
        ("add tool", "edit"),
        ("add tool", "not a name"),
        ("remove tool", "nope"),
        ("add prompt", "added"),
        ("add prompt", ""),
        ("remove prompt", "nope"),
        ("add resource", "no scheme"),
        ("remove resource", "docs://nope"),
    ] {
        let failure = client.call("edit", change(what, name)).await.failure();
        assert!(failure.contains(&format!("{name:?}")), "{what}: {failure}");
    }
    let after = [
        listed(&client, "tools").await,
        listed(&client, "prompts").await,
        listed(&client, "resources").await,
    ];
    assert_eq!(after, before);
    server.stop();
    assert!(events.message().await["result"].is_object());
}

#[tokio::test]
async fn a_call_goes_on_when_its_tool_is_removed() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call("waits", json!({})).await.text() }
    });
    server.control.reached("waits", ToolState::Started).await;
    client.call("edit", change("remove tool", "waits")).await.text();
    assert_eq!(client.call("waits", json!({})).await.error()["code"], -32602);
    server.control.release("waits", 1);
    assert_eq!(patiently("the call", call).await.unwrap(), "waited");
}

#[tokio::test]
async fn without_any_prompt_the_capability_is_not_declared() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let declared = async || {
        let discovered = client.send("server/discover", json!({})).await.result();
        discovered["capabilities"]["prompts"].is_object()
    };
    assert!(declared().await);
    client.call("edit", change("remove prompt", "added")).await.text();
    assert!(!declared().await);
    client.call("edit", change("add prompt", "again")).await.text();
    assert!(declared().await);
}

#[tokio::test]
async fn lists_of_custom_handlers_change_only_by_announcement() {
    let server = Server::offering(|builder| {
        let input = json!({ "type": "object" }).as_object().cloned().unwrap();
        let tool = rmcp::model::Tool::new("change", "Changes.", input);
        builder
            .list_tools(move |_: Ctx| {
                let tools = vec![tool.clone()];
                async move { Ok(tools) }
            })
            .call_tool(|ctx: Ctx, _: String, _: rmcp::model::JsonObject| async move {
                let refused = ctx.add_tool(added("more".into())).unwrap_err().to_string();
                ctx.tools_changed();
                // There are no prompts, so there is nothing to announce.
                ctx.prompts_changed();
                Ok(refused)
            })
    })
    .await;
    let client = Modern::of(&server);
    let capabilities = client.send("server/discover", json!({})).await.result();
    assert_eq!(capabilities["capabilities"]["tools"], json!({ "listChanged": true }));
    let mut session = Legacy::of(&server).await.listen().await;
    let mut heard = client.listen(1, json!({ "toolsListChanged": true })).await;
    let refused = client.call("change", json!({})).await.text();
    assert!(refused.contains("ctx.tools_changed()"), "{refused}");
    assert_eq!(heard.message().await["method"], list_changed("tools"));
    assert_eq!(methods(&mut session, 1).await, [list_changed("tools")]);
    client.call("change", json!({})).await.text();
    assert_eq!(methods(&mut session, 1).await, [list_changed("tools")]);
    assert_eq!(listed(&client, "tools").await, ["change"]);
}

#[tokio::test]
async fn fixed_lists_are_neither_declared_nor_acknowledged() {
    let server = Server::offering(|builder| offers(builder).fixed_lists()).await;
    let client = Modern::of(&server);
    let capabilities = client.send("server/discover", json!({})).await.result();
    assert_eq!(capabilities["capabilities"]["tools"], json!({}));
    let all = json!({ "notifications": { "promptsListChanged": true, "toolsListChanged": true } });
    let mut events = client.stream(1, "subscriptions/listen", all).await;
    assert_eq!(events.message().await["params"]["notifications"], json!({}));
}
