//! When results of an upstream's tools are stored, for how long, and where they may flow.

use std::time::Duration;

use chrono::DateTime;
use larder::{
    Registry,
    registry::Spill,
    tools::{self, ToolOptions},
    upstream::Upstream,
};
use serde_json::json;

use super::{in_front_of, odd, uri_in};
use crate::support::{Modern, Server};

#[tokio::test]
async fn results_are_stored_by_the_policies_of_the_upstream() {
    let mut odd = odd("odd", &[]);
    let always = [("*", Spill::Always), ("echo", Spill::Auto), ("huge", Spill::Never)];
    odd.spill = always.map(|(tool, spill)| (tool.to_owned(), spill)).into();
    let seconds = [("*", 60), ("lo*", 3600)];
    odd.ttl = seconds.map(|(tool, ttl)| (tool.to_owned(), Duration::from_secs(ttl))).into();
    let server = in_front_of(vec![odd]).await;
    let client = Modern::of(&server);

    assert_eq!(client.call("echo", json!({ "a": 1 })).await.text(), "{\"a\":1}");
    assert_eq!(client.call("huge", json!({ "bytes": 100_000 })).await.text().len(), 100_000);
    for (tool, ttl) in [("slow", 60), ("log", 3600)] {
        let preview = client.call(tool, json!({})).await.text();
        let uri = uri_in(&preview);
        let facts = client.call("describe_resource", json!({ "uri": uri })).await.text();
        let time = |label: &str| {
            let line = facts.lines().find_map(|line| line.strip_prefix(label));
            DateTime::parse_from_rfc3339(line.unwrap_or_else(|| panic!("{facts}"))).unwrap()
        };
        assert_eq!((time("expires: ") - time("created: ")).num_seconds(), ttl, "{facts}");
    }
}

#[tokio::test]
async fn content_flows_only_from_accepted_origins() {
    let mut from = odd("from", &[]);
    from.spill = [("*".to_owned(), Spill::Always)].into();
    let (mut strict, open) = (odd("strict", &[]), odd("open", &[]));
    strict.accept = vec!["larder".into(), "op*".into()];
    let mut builder = Registry::builder("gateway")
        .with(tools::reading(ToolOptions::default()))
        .with(tools::writing());
    for provider in Upstream::all(vec![from, strict, open], builder.tool_names()) {
        builder = builder.provider(provider);
    }
    let server = Server::of(builder.build().unwrap()).await;
    let client = Modern::of(&server);
    let stored = uri_in(&client.call("from__slow", json!({})).await.text());
    let create = async |uri: &str, text: &str| {
        client.call("create_resource", json!({ "uri": uri, "text": text })).await.result();
    };
    create("x:own", "written by the caller").await;
    // It keeps its origin through another resource, and when that is replaced.
    create("x:copy", &format!("{{{{{stored}}}}}")).await;
    let text = json!({ "uri": "x:copy", "text": "new" });
    client.call("update_resource", text).await.result();

    let pass = async |tool: &str, uri: &str| {
        client.call(tool, json!({ "text": format!("{{{{{uri}}}}}") })).await
    };
    assert_eq!(pass("strict__echo", "x:own").await.text(), r#"{"text":"written by the caller"}"#);
    for uri in [stored.as_str(), "x:copy"] {
        let refused = pass("strict__echo", uri).await.failure();
        let reason = "strict__echo was not called: arguments.text: its content comes from from";
        assert!(refused.contains(reason) && refused.contains("refs.accept"), "{refused}");
        assert!(pass("open__echo", uri).await.text().starts_with("{\"text\":"));
    }
}
