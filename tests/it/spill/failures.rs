//! A store that is full or away, and stored results that have expired.

use serde_json::json;

use super::{call, configured, link, links, text};
use crate::support::{Modern, RedisServer};

#[tokio::test]
async fn a_full_store_fails_the_call_and_says_what_to_do() {
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
    // No part of the result is stored.
    assert!(client.list("resources/list", "resources").await.is_empty());
    // A result that may be sent in full is sent although it cannot be stored.
    client.create(json!({ "text": "x".repeat(98_500) })).await;
    assert_eq!(text(&call(&client, "always", 0).await), "short");
}

#[tokio::test]
async fn an_unreachable_store_fails_the_call_without_internal_details() {
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
async fn an_expired_result_names_the_tool_to_run_again() {
    let server = configured(|config| config.store.default_ttl = 60).await;
    let client = Modern::of(&server);
    let uri = link(&call(&client, "lines", 5_000).await);
    server.clock.advance(std::time::Duration::from_secs(61));
    let expected = "Run lines again to make a new one.";
    let said = client.call("read_resource", json!({ "uri": uri })).await.failure();
    assert!(said.contains(" was removed at ") && said.ends_with(expected), "{said}");
    let error = client.send("resources/read", json!({ "uri": uri })).await.error();
    assert!(error["message"].as_str().unwrap().ends_with(expected), "{error}");
    // The same for a URI of a result that the server does not remember.
    let said = client.call("read_resource", json!({ "uri": "larder://r/lines/0" })).await.failure();
    assert!(said.ends_with("run lines again to make a new one."), "{said}");
}
