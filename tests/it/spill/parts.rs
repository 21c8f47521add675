//! Results of several parts: each is stored as its own media type.

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::{
    Registry,
    tools::{self, ToolOptions},
};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResourceContents};
use serde_json::json;

use super::{call, link, links, server, table, text, tool};
use crate::support::{Modern, Server, numbered_lines};

#[tokio::test]
async fn each_large_part_is_stored_with_its_own_media_type() {
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
    assert!(said.contains("Table: 200,000 rows below a header line, 3 columns"), "{said}");
    assert!(said.contains("id: integer, name: text, price: number"), "{said}");
    assert!(said.contains("Binary; the first bytes are 01 01"), "{said}");
    assert_eq!(client.read(blob).await["blob"], BASE64_STANDARD.encode(vec![1; 200_000]));

    let result = call(&client, "embedded", 5_000).await;
    assert_eq!(client.read(&link(&result)).await["text"], numbered_lines(5_000));
    let listed = client.list("resources/list", "resources").await;
    assert!(listed.iter().any(|r| r["name"] == "logs://today (of embedded)"), "{listed:?}");
}

#[tokio::test]
async fn an_image_is_sent_unless_it_is_too_large_for_hosts() {
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
async fn a_complete_call_tool_result_spills_too() {
    let whole_result = |n: usize| {
        let mut result = CallToolResult::success(vec![ContentBlock::text(numbered_lines(n))]);
        result.meta = Some(MetaObject(json!({ "mine": 1 }).as_object().cloned().unwrap()));
        result
    };
    let registry = Registry::builder("whole")
        .tool(tool("whole_result", whole_result))
        .with(tools::reading(ToolOptions::default()));
    let server = Server::of(registry.build().unwrap()).await;
    let client = Modern::of(&server);
    let result = call(&client, "whole_result", 5_000).await;
    assert_eq!(client.read(&link(&result)).await["text"], numbered_lines(5_000));
    assert_eq!(result["_meta"]["mine"], 1);
}

#[tokio::test]
async fn the_previews_of_many_parts_together_stay_within_the_limit() {
    let files = |n: usize| {
        let file = |name| ResourceContents::text(numbered_lines(300), format!("files://{name}"));
        (0..n).map(|name| ContentBlock::resource(file(name))).collect::<Vec<_>>()
    };
    let registry = Registry::builder("many")
        .tool(tool("files", files))
        .with(tools::reading(ToolOptions::default()));
    let server = Server::of(registry.build().unwrap()).await;
    let client = Modern::of(&server);
    let result = call(&client, "files", 64).await;
    let (text, links) = (text(&result), links(&result));
    assert_eq!(links.len(), 64);
    assert!(text.len() < 32_000, "{}", text.len());
    assert!(links.iter().all(|uri| text.contains(uri)));
    assert!(text.matches("Next: ").count() > 10, "{text}");
}
