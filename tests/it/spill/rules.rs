//! Which results spill: by tool, by configuration, by what the server offers.

use larder::{Registry, Spill, Structured};
use serde_json::json;

use super::{call, configured, link, links, offers, rows, server, text, tool};
use crate::support::{Modern, Server, numbered_lines};

#[tokio::test]
async fn a_tool_can_always_spill_or_never() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "always", 0).await;
    assert_eq!(client.read(&link(&result)).await["text"], "short");
    assert!(
        text(&result).contains("complete below") && text(&result).ends_with("All of it:\nshort")
    );
    let result = call(&client, "never", 5_000).await;
    assert_eq!(text(&result), numbered_lines(5_000));
}

#[tokio::test]
async fn the_configuration_overrides_the_tools() {
    let server = configured(|config| {
        config.tools.output_bytes = 400_000;
        config.tools.spill =
            [("l*".to_owned(), Spill::Auto), ("always".to_owned(), Spill::Never)].into();
    })
    .await;
    let client = Modern::of(&server);
    assert!(links(&call(&client, "lines", 3_000).await).is_empty());
    assert_eq!(links(&call(&client, "lines", 6_000).await).len(), 1);
    assert_eq!(text(&call(&client, "always", 0).await), "short");
    // The limit of one client, by the name in its `clientInfo`; it applies to reads, too.
    let server = configured(|config| {
        config.tools.clients = [("it".to_owned(), 4_000)].into();
    })
    .await;
    let client = Modern::of(&server);
    let result = call(&client, "lines", 100).await;
    assert!(text(&result).len() < 4_000, "{}", text(&result).len());
    let read = client.call("read_resource", json!({ "uri": link(&result) })).await.text();
    assert!(read.len() <= 4_000 && read.contains("Not complete; next: "), "{read}");

    let mut config = larder::config::Config::default();
    config.tools.spill = [("lnies".to_owned(), Spill::Never)].into();
    let registry = Registry::builder("spilling").with(offers).build().unwrap();
    let refused = larder::app::App::new(registry, config).err().unwrap().to_string();
    assert_eq!(refused, "tools.spill: this server has no tool called lnies");
}

#[tokio::test]
async fn without_the_tool_read_resource_nothing_spills() {
    let registry = Registry::builder("plain")
        .tool(tool("lines", numbered_lines))
        .tool(tool("rows", |n| Structured(rows(n))));
    let server = Server::of(registry.build().unwrap()).await;
    let client = Modern::of(&server);
    assert_eq!(text(&call(&client, "lines", 5_000).await), numbered_lines(5_000));
    let tools = client.list("tools/list", "tools").await;
    assert!(tools[1]["outputSchema"]["anyOf"].is_null(), "{tools:?}");
}
