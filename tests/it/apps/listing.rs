//! What clients see that show pages, and those that do not.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{EXTENSION, PAGE_TYPE, VIEW, server, showing};
use crate::support::{Legacy, Modern};

/// The tools by name, with their `_meta.ui`.
fn tools(listed: &Value) -> BTreeMap<String, Value> {
    let of_viewer = |name: &str| name.starts_with("view_");
    let tools = listed["tools"].as_array().unwrap().iter();
    let named =
        tools.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["_meta"]["ui"].clone()));
    named.filter(|(name, _)| of_viewer(name)).collect()
}

fn pages(listed: &Value) -> Vec<&str> {
    let uris = listed["resources"].as_array().unwrap().iter();
    uris.filter_map(|resource| resource["uri"].as_str())
        .filter(|uri| uri.starts_with("ui:"))
        .collect()
}

#[tokio::test]
async fn only_clients_that_show_pages_see_their_data_in_both_eras() {
    let server = server(|_| {}).await;
    let text_only = json!({ "extensions": { EXTENSION: { "mimeTypes": ["text/plain"] } } });
    for capabilities in [json!({}), text_only] {
        let modern = Modern::able(&server, capabilities.clone());
        let legacy = Legacy::able(&server, capabilities).await;
        for listed in [
            modern.send("tools/list", json!({})).await.result(),
            legacy.send("tools/list", json!({})).await.result(),
        ] {
            let expected = BTreeMap::from([("view_resource".to_owned(), Value::Null)]);
            assert_eq!(tools(&listed), expected);
        }
        for listed in [
            modern.send("resources/list", json!({})).await.result(),
            legacy.send("resources/list", json!({})).await.result(),
        ] {
            assert!(pages(&listed).is_empty(), "{listed}");
        }
    }
    let modern = Modern::able(&server, showing());
    let legacy = Legacy::able(&server, showing()).await;
    for listed in [
        modern.send("tools/list", json!({})).await.result(),
        legacy.send("tools/list", json!({})).await.result(),
    ] {
        let tools = tools(&listed);
        assert_eq!(tools["view_resource"], json!({ "resourceUri": VIEW }));
        for name in ["view_window", "view_bytes", "view_list"] {
            assert_eq!(tools[name], json!({ "visibility": ["app"] }), "{name}");
        }
    }
    for listed in [
        modern.send("resources/list", json!({})).await.result(),
        legacy.send("resources/list", json!({})).await.result(),
    ] {
        assert!(pages(&listed).contains(&VIEW), "{listed}");
    }
}

#[tokio::test]
async fn lists_that_depend_on_the_client_are_not_shared() {
    let server = server(|_| {}).await;
    let listed = Modern::of(&server).send("tools/list", json!({})).await.result();
    assert_eq!(listed["cacheScope"], "private");
}

#[tokio::test]
async fn the_page_is_complete_in_itself_and_may_connect_to_nothing() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let read = client.send("resources/read", json!({ "uri": VIEW })).await.result();
    let page = &read["contents"][0];
    assert_eq!(page["mimeType"], PAGE_TYPE);
    let ui = &page["_meta"]["ui"];
    assert_eq!(ui["csp"], json!({ "connectDomains": [], "resourceDomains": [] }));
    assert_eq!(ui["domain"], "viewer.example", "by the client's name");
    let html = page["text"].as_str().unwrap();
    assert!(html.len() <= 600_000, "{} bytes", html.len());
    assert!(html.starts_with("<!doctype html>"));
    // The names of XML namespaces are no addresses. A scheme alone is none either: a text may have
    // www.example.com, to which Markdown adds one.
    let outside = html.replace("http://www.w3.org/", "").replace("https://www.w3.org/", "");
    let outside = outside.replace("\"http://\"", "");
    let around = |text: &str, at: usize| {
        let around = &text[text.floor_char_boundary(at.saturating_sub(80))..];
        around[..around.floor_char_boundary(200)].to_owned()
    };
    for reference in ["https://", "http://"] {
        if let Some(at) = outside.find(reference) {
            panic!("{reference}: {}", around(&outside, at));
        }
    }
    // What markup and styles would load. In the script, `src=` is a name like any other.
    let (before, script) = outside.split_once("<script>").unwrap();
    let (_, after) = script.split_once("</script>").unwrap();
    let markup = format!("{before}{after}");
    for reference in ["src=", "@import", "url(", "<script"] {
        if let Some(at) = markup.find(reference) {
            panic!("{reference}: {}", around(&markup, at));
        }
    }
}
