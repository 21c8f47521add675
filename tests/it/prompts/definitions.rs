//! Prompts: their listing, their arguments, and their messages.

use std::sync::Arc;

use larder::{Builder, Prompt, ToolError};
use rmcp::model::{ContentBlock, PromptMessage, Resource, ResourceContents, Role};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, Ctx, Legacy, Modern, Server, ToolControl, ToolState};

/// Greets somebody by name.
#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// Whom to greet.
    username: String,
}

/// Sums a text up.
#[derive(Deserialize, JsonSchema)]
struct MainIdeas {
    /// The text.
    text: String,
    /// How many ideas to find.
    main_idea_count: u32,
    /// Whether to be brief.
    #[serde(default)]
    brief: Option<bool>,
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing;

fn user(content: ContentBlock) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}

fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    let greeting = Prompt::new(|_: Ctx, args: Greeting| async move {
        format!("Say hello to the user using their name: {}", args.username)
    });
    let ideas = Prompt::new(|ctx: Ctx, args: MainIdeas| async move {
        ctx.state().record("ideas", ToolState::Started);
        let brief = if args.brief == Some(true) { " Be brief." } else { "" };
        let count = args.main_idea_count;
        vec![
            PromptMessage::new_text(Role::User, format!("{}{brief}", args.text)),
            PromptMessage::new_text(
                Role::Assistant,
                format!("Here are {count} main ideas from the text:\n1."),
            ),
        ]
    });
    let kinds = Prompt::new(|_: Ctx, _: Nothing| async {
        vec![
            user(ContentBlock::resource(ResourceContents::text("the text", "docs://embedded"))),
            user(ContentBlock::image("AAAA", "image/png")),
            user(ContentBlock::resource_link(Resource::new("docs://linked", "linked"))),
        ]
    });
    let panics =
        Prompt::new(|_: Ctx, _: Nothing| async { Err::<String, _>(panics_with_a_secret()) });
    let fails = Prompt::new(|_: Ctx, _: Nothing| async {
        Err::<String, _>(ToolError::new("Not today. Try tomorrow."))
    });
    builder
        .prompt(greeting.title("A greeting"))
        .prompt(ideas)
        .prompt(kinds.name("kinds").description("All kinds of content"))
        .prompt(panics.name("panics"))
        .prompt(fails.name("fails"))
}

fn panics_with_a_secret() -> ToolError {
    panic!("a secret in a panic")
}

async fn get(client: &Modern, name: &str, arguments: Value) -> Answer {
    client.send("prompts/get", json!({ "name": name, "arguments": arguments })).await
}

/// The only message's text.
fn text(result: &Value) -> &str {
    assert_eq!(result["messages"].as_array().unwrap().len(), 1, "{result}");
    assert_eq!(result["messages"][0]["role"], "user");
    assert_eq!(result["messages"][0]["content"]["type"], "text");
    result["messages"][0]["content"]["text"].as_str().unwrap()
}

#[tokio::test]
async fn prompts_are_listed_with_their_arguments() {
    let server = Server::offering(offers).await;
    let listed = Modern::of(&server).send("prompts/list", json!({})).await.result();
    assert_eq!(
        listed["prompts"][0],
        json!({
            "name": "greeting", "title": "A greeting", "description": "Greets somebody by name.",
            "arguments": [
                { "name": "username", "description": "Whom to greet.", "required": true },
            ],
        })
    );
    let required = |argument: usize| &listed["prompts"][1]["arguments"][argument]["required"];
    assert_eq!([required(0), required(1), required(2)], [true, true, false]);
    assert!(listed["prompts"][2].get("arguments").is_none(), "{listed}");
    assert_eq!((&listed["resultType"], &listed["ttlMs"]), (&json!("complete"), &json!(300_000)));
}

#[tokio::test]
async fn both_eras_list_and_get_the_same() {
    let server = Server::offering(offers).await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let params = json!({ "name": "greeting", "arguments": { "username": "Ana" } });
    for (method, params, member) in
        [("prompts/list", json!({}), "prompts"), ("prompts/get", params, "messages")]
    {
        let newer = modern.send(method, params.clone()).await.result();
        let older = legacy.send(method, params).await.result();
        assert_eq!(newer[member], older[member]);
        assert_eq!(newer["resultType"], "complete");
        assert!(older.get("resultType").is_none(), "{older}");
    }
}

#[tokio::test]
async fn pages_of_prompts_cover_all_once() {
    let server = Server::configured(|setup| {
        setup.page_size = 2;
        setup.offer(offers);
    })
    .await;
    let client = Modern::of(&server);
    let listed = client.list("prompts/list", "prompts").await;
    let names: Vec<_> = listed.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["greeting", "main_ideas", "kinds", "panics", "fails"]);
    let bad = client.send("prompts/list", json!({ "cursor": "nonsense" })).await;
    assert_eq!(bad.refusal(), (200, -32602, Some(json!(1))));
}

#[tokio::test]
async fn text_becomes_one_message_of_the_user() {
    let server = Server::offering(offers).await;
    let got = get(&Modern::of(&server), "greeting", json!({ "username": "Ana" })).await.result();
    assert_eq!(text(&got), "Say hello to the user using their name: Ana");
    assert_eq!(got["description"], "Greets somebody by name.");
}

#[tokio::test]
async fn arguments_are_inserted_without_further_expansion() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    for name in ["{username}", "{{username}}", "{0}", "%s", "${username}", "<instruction>"] {
        let got = get(&client, "greeting", json!({ "username": name })).await.result();
        assert_eq!(text(&got), format!("Say hello to the user using their name: {name}"));
    }
}

#[tokio::test]
async fn string_arguments_are_converted_to_the_types_of_the_prompt() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let arguments = json!({ "text": "7", "main_idea_count": "3", "brief": "true" });
    let got = get(&client, "main_ideas", arguments).await.result();
    let messages = got["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["content"]["text"], "7 Be brief.");
    assert_eq!(messages[1]["role"], "assistant");
    assert_eq!(messages[1]["content"]["text"], "Here are 3 main ideas from the text:\n1.");
}

#[tokio::test]
async fn invalid_arguments_are_named_and_the_handler_does_not_run() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    for (arguments, named) in [
        (json!({ "text": "t", "main_idea_count": "abc" }), "main_idea_count"),
        (json!({ "text": "t", "main_idea_count": "-1" }), "main_idea_count"),
        (json!({ "text": "t", "main_idea_count": "3.5" }), "main_idea_count"),
        (json!({ "text": "t", "main_idea_count": "" }), "main_idea_count"),
        (json!({ "text": "t", "main_idea_count": "3", "brief": "perhaps" }), "brief"),
        (json!({ "text": "t" }), "main_idea_count"),
        (json!({ "main_idea_count": "3" }), "text"),
        (json!({}), "text"),
        // The schema accepts this number, the type does not.
        (json!({ "text": "t", "main_idea_count": "5000000000" }), ""),
    ] {
        let answer = get(&client, "main_ideas", arguments.clone()).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{arguments}");
        let message = answer.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(named) && !message.contains("abc"), "{message}");
    }
    let answer = client.send("prompts/get", json!({ "name": "main_ideas" })).await;
    assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    assert!(!server.control.has("ideas", ToolState::Started));
}

#[tokio::test]
async fn malformed_parameters_are_refused() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    for params in [
        json!({}),
        json!({ "name": 7 }),
        json!({ "name": "greeting", "arguments": [] }),
        json!({ "name": "greeting", "arguments": { "username": ["Ana"] } }),
    ] {
        let answer = client.send("prompts/get", params.clone()).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{params}");
    }
}

#[tokio::test]
async fn resources_images_and_links_are_separate_messages() {
    let server = Server::offering(offers).await;
    let got = get(&Modern::of(&server), "kinds", json!({})).await.result();
    let contents: Vec<_> =
        got["messages"].as_array().unwrap().iter().map(|m| m["content"].clone()).collect();
    assert_eq!(contents[0]["type"], "resource");
    assert_eq!(contents[0]["resource"]["uri"], "docs://embedded");
    assert_eq!(contents[0]["resource"]["text"], "the text");
    assert_eq!(contents[1], json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" }));
    assert_eq!(
        contents[2],
        json!({ "type": "resource_link", "uri": "docs://linked", "name": "linked" })
    );
}

#[tokio::test]
async fn an_unknown_prompt_is_a_protocol_error() {
    let server = Server::offering(offers).await;
    let answer = get(&Modern::of(&server), "nope", json!({})).await;
    assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    assert_eq!(answer.error()["message"], "Unknown prompt: nope");
}

#[tokio::test]
async fn a_panic_is_the_failure_of_its_request_only() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let answer = get(&client, "panics", json!({})).await;
    assert_eq!(answer.refusal(), (200, -32603, Some(json!(1))));
    assert!(!answer.error().to_string().contains("secret"));
    get(&client, "greeting", json!({ "username": "Ana" })).await.result();
}

#[tokio::test]
async fn the_error_of_a_prompt_is_the_message_of_the_error() {
    let server = Server::offering(offers).await;
    let answer = get(&Modern::of(&server), "fails", json!({})).await;
    assert_eq!(answer.refusal(), (200, -32603, Some(json!(1))));
    assert_eq!(answer.error()["message"], "Not today. Try tomorrow.");
}

#[tokio::test]
async fn the_capability_is_declared_if_there_are_prompts() {
    let with = Server::offering(offers).await;
    let without = Server::start().await;
    for (server, declared) in [(with, json!({ "listChanged": true })), (without, Value::Null)] {
        let discovered = Modern::of(&server).send("server/discover", json!({})).await.result();
        assert_eq!(discovered["capabilities"]["prompts"], declared);
        let session = Legacy::of(&server).await;
        assert_eq!(session.initialized["capabilities"]["prompts"], declared);
        let listed = Modern::of(&server).send("prompts/list", json!({})).await;
        if declared.is_null() {
            assert_eq!(listed.refusal(), (404, -32601, Some(json!(1))));
        } else {
            assert_eq!(listed.status, 200);
        }
    }
}
