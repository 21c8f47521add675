//! Questions of upstreams to the client of a session: elicitation, sampling and roots.

use serde_json::{Value, json};

use super::{in_front_of, listed, package};
use crate::support::{Events, Legacy};

/// The next message that is a question or the response.
async fn next(events: &mut Events) -> Value {
    loop {
        let event = events.next().await.expect("a message");
        let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if message.get("id").is_some() {
            return message;
        }
    }
}

/// Calls a tool and answers its questions, each with the result for its method. Returns
/// the methods that were asked, and the text of the result.
async fn answered(client: &Legacy, tool: &str, arguments: Value) -> (Vec<String>, String) {
    let mut events = client.stream_call("call", tool, arguments).await;
    let mut asked = Vec::new();
    loop {
        let message = next(&mut events).await;
        let Some(method) = message["method"].as_str() else {
            return (asked, message["result"].to_string());
        };
        asked.push(method.to_owned());
        let result = match method {
            "roots/list" => {
                json!({ "roots": [{ "uri": "file:///srv/project", "name": "the project" }] })
            }
            "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
            _ => json!({
                "role": "assistant", "model": "m", "content": { "type": "text", "text": "sampled words" },
            }),
        };
        client.answer(&message, "result", result).await;
    }
}

#[tokio::test]
async fn questions_reach_the_client_and_their_answers_the_upstream() {
    let server = in_front_of(vec![package("everything", &[])]).await;
    let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    let client = Legacy::able(&server, capabilities).await;
    // It offers more to a client that can be asked.
    let tools = listed(&client).await;
    assert!(tools.contains_key("trigger-elicitation-request"), "{:?}", tools.keys());
    assert!(!listed(&Legacy::of(&server).await).await.contains_key("trigger-elicitation-request"));

    // It asks for the roots at its start; the first call carries that question.
    let (asked, result) = answered(&client, "get-roots-list", json!({})).await;
    assert!(asked.contains(&"roots/list".to_owned()), "{asked:?}");
    assert!(result.contains("file:///srv/project"), "{result}");
    let prompt = json!({ "prompt": "Say something", "maxTokens": 10 });
    let (asked, result) = answered(&client, "trigger-sampling-request", prompt).await;
    assert_eq!(asked, ["sampling/createMessage"]);
    assert!(result.contains("sampled words"), "{result}");
    let (asked, result) = answered(&client, "trigger-elicitation-request", json!({})).await;
    assert_eq!(asked, ["elicitation/create"]);
    assert!(result.contains("Ada"), "{result}");
}
