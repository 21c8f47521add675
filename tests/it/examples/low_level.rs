//! Servers whose handlers implement whole methods.

use serde_json::{Value, json};

use super::serving;

#[tokio::test]
async fn only_methods_with_a_handler_are_declared() {
    let (_bare, bare) = serving("low_level").await;
    let discovered = bare.send("server/discover", json!({})).await.result();
    let capabilities = &discovered["capabilities"];
    assert!(capabilities.get("tools").is_none() && capabilities.get("prompts").is_none());
    assert_eq!(capabilities["experimental"], json!({ "example.com/nothing": {} }));
    let info = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!((&info["name"], &info["version"]), (&json!("low-level-server"), &json!("0.1.0")));

    let (_listing, listing) = serving("low_level_tools").await;
    let discovered = listing.send("server/discover", json!({})).await.result();
    assert_eq!(discovered["capabilities"]["tools"], json!({ "listChanged": true }));
}

#[tokio::test]
async fn custom_tools_list_and_call() {
    let (_example, client) = serving("low_level_tools").await;
    let tools = client.list("tools/list", "tools").await;
    assert_eq!(tools.len(), 1);
    let schema = &tools[0]["inputSchema"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["a", "b"]));
    for argument in ["a", "b"] {
        assert_eq!(schema["properties"][argument]["type"], "number");
        assert!(schema["properties"][argument]["description"].is_string());
    }
    let added = client.call("add", json!({ "a": 2, "b": 3 })).await;
    assert_eq!(added.text(), "2 + 3 = 5");
    assert!(added.result().get("structuredContent").is_none());

    let unknown = client.call("nope", json!({})).await.error();
    assert_eq!(
        (&unknown["code"], &unknown["message"]),
        (&json!(-32602), &json!("Unknown tool: nope"))
    );
    let refused = client.call("add", json!({ "a": "two", "b": 3 })).await.failure();
    assert!(refused.contains('a') && refused.starts_with("Invalid arguments"), "{refused}");
    let refused = client.call("add", json!({ "a": 2 })).await.failure();
    assert!(refused.contains("\"b\""), "{refused}");
}

#[tokio::test]
async fn results_that_do_not_fit_the_listed_schema_are_failures() {
    let (_example, client) = serving("low_level_output").await;
    let tools = client.list("tools/list", "tools").await;
    let properties = tools[0]["outputSchema"]["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["augend", "addend", "sum"]);

    let arguments = json!({ "a": 2, "b": 3 });
    let answer = client.call("add", arguments.clone()).await;
    let expected = json!({ "augend": 2, "addend": 3, "sum": 5 });
    assert_eq!(answer.result()["structuredContent"], expected);
    assert_eq!(serde_json::from_str::<Value>(&answer.text()).unwrap(), expected);

    for (tool, named) in [("add_misspelled", "sum"), ("add_as_text", "sum")] {
        let answer = client.call(tool, arguments.clone()).await;
        assert!(answer.failure().contains(named), "{answer:?}");
        assert!(answer.result().get("structuredContent").is_none(), "{answer:?}");
    }
    // A schema without `required` accepts any object.
    let answer = client.call("add_whatever", arguments).await;
    assert_eq!(answer.result()["structuredContent"], json!({ "anything": 5 }));
}
