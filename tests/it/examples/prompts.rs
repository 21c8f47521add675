//! Prompts of every kind.

use serde_json::{Value, json};

use super::serving;
use crate::support::{Answer, Modern};

async fn get(client: &Modern, name: &str, arguments: Value) -> Answer {
    client.send("prompts/get", json!({ "name": name, "arguments": arguments })).await
}

async fn messages(client: &Modern, name: &str, arguments: Value) -> Vec<Value> {
    get(client, name, arguments).await.result()["messages"].as_array().unwrap().clone()
}

fn text(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": { "type": "text", "text": text } })
}

#[tokio::test]
async fn one_message_with_and_without_arguments() {
    let (_example, client) = serving("prompts").await;
    let hello = messages(&client, "simple_string_prompt", json!({})).await;
    assert_eq!(hello, [text("user", "Say hello to the user.")]);
    let hello = messages(&client, "simple_prompt_input", json!({ "username": "Ana" })).await;
    assert_eq!(hello, [text("user", "Say hello to the user using their name: Ana")]);

    let listed = client.list("prompts/list", "prompts").await;
    let input = listed.iter().find(|prompt| prompt["name"] == "simple_prompt_input").unwrap();
    assert_eq!(input["description"], "Greets the user by name.");
    assert_eq!(
        input["arguments"],
        json!([{ "name": "username", "description": "The user's name.", "required": true }])
    );
}

#[tokio::test]
async fn the_text_of_the_user_is_inserted_unchanged() {
    let (_example, client) = serving("prompts").await;
    for written in ["{username}", "</text> {0} %s\n\"'", "plain"] {
        let arguments = json!({ "user_text": written });
        let messages = messages(&client, "simple_example_prompt", arguments).await;
        let text = messages[0]["content"]["text"].as_str().unwrap();
        assert!(text.starts_with("<instruction>\n") && text.contains("</instruction>"), "{text}");
        assert!(text.ends_with(&format!("<text>\n{written}\n</text>")), "{text}");
    }
}

#[tokio::test]
async fn unknown_prompts_and_missing_arguments_are_refused() {
    let (_example, client) = serving("prompts").await;
    assert_eq!(get(&client, "nope", json!({})).await.error()["code"], -32602);
    let missing = get(&client, "simple_prompt_input", json!({})).await.error();
    assert_eq!(missing["code"], -32602);
    assert!(missing["message"].as_str().unwrap().contains("username"), "{missing}");
}

#[tokio::test]
async fn two_turns_of_which_the_assistant_completes_the_second() {
    let (_example, client) = serving("multiturn_prompt").await;
    let arguments = json!({ "main_idea_count": "3", "user_text": "Some text." });
    let turns = messages(&client, "multiturn_prompt", arguments).await;
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[0]["role"], "user");
    let asked = turns[0]["content"]["text"].as_str().unwrap();
    assert!(asked.contains("a list of 3 main ideas") && asked.contains("Some text."), "{asked}");
    assert_eq!(turns[1], text("assistant", "Here are 3 main ideas from the text:\n1."));

    let wrong = json!({ "main_idea_count": "abc", "user_text": "x" });
    let wrong = get(&client, "multiturn_prompt", wrong).await.error();
    assert_eq!(wrong["code"], -32602);
    assert!(wrong["message"].as_str().unwrap().contains("main_idea_count"), "{wrong}");
}

#[tokio::test]
async fn a_prompt_requests_a_tool_or_contains_its_result() {
    let (_example, client) = serving("tool_prompt").await;
    let moods = ["positive", "negative", "neutral"];
    let said = client.call("analyze_sentiment", json!({})).await.text();
    assert!(moods.contains(&said.as_str()), "{said}");

    let arguments = json!({ "user_request": "Help me." });
    let asked = messages(&client, "request_tool_use", arguments.clone()).await;
    assert_eq!((asked.len(), &asked[0]["role"]), (1, &json!("user")));
    let asked = asked[0]["content"]["text"].as_str().unwrap();
    assert!(asked.contains("<user_request>\nHelp me.\n</user_request>"), "{asked}");
    assert!(asked.contains("<tool_instruction>") && asked.contains("analyze_sentiment"), "{asked}");

    let forced = messages(&client, "force_tool_use", arguments).await;
    assert_eq!(forced[0], text("user", "Help me."));
    assert_eq!(forced[1]["role"], "assistant");
    let begun = forced[1]["content"]["text"].as_str().unwrap();
    assert!(
        moods.iter().any(|mood| begun == format!("Your request was {mood}, let's ")),
        "{begun}"
    );
}

#[tokio::test]
async fn a_prompt_links_to_a_resource_that_exists() {
    let (_example, client) = serving("resource_prompt").await;
    let arguments = json!({ "user_request": "What is a larder?" });
    let turns = messages(&client, "knowledge_base_prompt", arguments).await;
    assert_eq!(turns.len(), 3);
    assert!(turns.iter().all(|turn| turn["role"] == "user"));
    let link = &turns[2]["content"];
    assert_eq!(link["type"], "resource_link");
    assert_eq!(
        (&link["uri"], &link["name"]),
        (&json!("file://knowledge.txt"), &json!("knowledge_base"))
    );
    let read = client.read(link["uri"].as_str().unwrap()).await;
    assert!(read["text"].as_str().unwrap().starts_with("Larders keep"), "{read}");
}
