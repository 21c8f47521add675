//! Listings: pages, order, and the members of each item.

use std::collections::BTreeSet;

use larder::{
    Resource,
    tools::{self, ToolOptions},
};
use serde_json::{Value, json};

use crate::support::{Legacy, Modern, Server};

fn uris(resources: &[Value]) -> Vec<String> {
    resources.iter().map(|r| r["uri"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tools_are_listed_with_the_same_bytes_each_time() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let first = client.send("tools/list", json!({})).await;
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    let _session = Legacy::of(&server).await;
    for _ in 0..3 {
        assert_eq!(client.send("tools/list", json!({})).await.body, first.body);
    }
    let other = Server::start().await;
    assert_eq!(Modern::of(&other).send("tools/list", json!({})).await.body, first.body);
}

#[tokio::test]
async fn a_tool_is_described_by_its_arguments() {
    let server = Server::start().await;
    let tools = Modern::of(&server).list("tools/list", "tools").await;
    let add = tools.iter().find(|t| t["name"] == "add").unwrap();
    assert_eq!(add["description"], "Adds two numbers.");
    let schema = &add["inputSchema"];
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["a", "b"])));
    assert_eq!(
        schema["properties"]["a"],
        json!({ "type": "integer", "description": "The first." })
    );
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].as_str().is_some_and(|d| d.len() > 5), "{tool}");
    }
}

#[tokio::test]
async fn pages_cover_everything_once() {
    for page_size in [1, 2, 3, 5, 7] {
        let server = Server::configured(|setup| setup.page_size = page_size).await;
        let client = Modern::of(&server);
        for n in 0..7 {
            client.create(json!({ "uri": format!("x:{n}"), "text": "" })).await;
        }
        // A stored resource that overrides a static one.
        client.create(json!({ "uri": "docs://welcome", "text": "mine" })).await;
        let listed = uris(&client.list("resources/list", "resources").await);
        let distinct: BTreeSet<_> = listed.iter().cloned().collect();
        assert_eq!((listed.len(), distinct.len()), (10, 10), "{page_size}: {listed:?}");
        let names: BTreeSet<_> = client
            .list("tools/list", "tools")
            .await
            .iter()
            .map(|t| t["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(names.len(), 17);
        assert_eq!(client.list("resources/templates/list", "resourceTemplates").await.len(), 2);
    }
}

#[tokio::test]
async fn changes_between_pages_do_not_affect_other_items() {
    let server = Server::configured(|setup| setup.page_size = 4).await;
    let client = Modern::of(&server);
    for n in 0..6 {
        client.create(json!({ "uri": format!("x:{n}"), "text": "" })).await;
    }
    let mut first = client.send("resources/list", json!({})).await.result();
    let mut seen = uris(first["resources"].as_array().unwrap());
    // The last listed item is deleted, and one is created that sorts before it.
    client.call("delete_resource", json!({ "uri": seen.last().unwrap() })).await.text();
    client.create(json!({ "uri": "a:0", "text": "" })).await;
    let mut cursor = first["nextCursor"].take();
    while !cursor.is_null() {
        let mut page = client.send("resources/list", json!({ "cursor": cursor })).await.result();
        seen.extend(uris(page["resources"].as_array().unwrap()));
        cursor = page["nextCursor"].take();
    }
    for n in 0..6 {
        let uri = format!("x:{n}");
        assert_eq!(seen.iter().filter(|u| **u == uri).count(), 1, "{seen:?}");
    }
}

#[tokio::test]
async fn a_listed_resource_has_name_description_type_and_size() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client
        .create(json!({
            "uri": "results://1", "json": { "data": [1, 2, 3] }, "name": "Analysis Results",
            "description": "Detailed analysis output",
        }))
        .await;
    let listed = client.list("resources/list", "resources").await;
    let mine = listed.iter().find(|r| r["uri"] == "results://1").unwrap();
    assert_eq!(mine["name"], "Analysis Results");
    assert_eq!(mine["description"], "Detailed analysis output");
    assert_eq!(mine["mimeType"], "application/json");
    assert_eq!(mine["size"], "{\"data\":[\n1,\n2,\n3\n]}".len());
    assert_eq!(mine["annotations"]["lastModified"], "2026-01-01T00:00:00Z");
}

#[tokio::test]
async fn the_tool_lists_resources_and_templates_in_pages() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for n in 0..5 {
        client.create(json!({ "uri": format!("x:{n}"), "text": "" })).await;
    }
    let list = async |arguments: Value| -> Value {
        serde_json::from_str(&client.call("list_resources", arguments).await.text()).unwrap()
    };
    let all = list(json!({})).await;
    assert_eq!((&all["complete"], &all["returned"]), (&json!(true), &json!(10)));
    assert_eq!(all["templates"][0]["uri_template"], "logs://{service}/{date}");
    let first = list(json!({ "prefix": "x:", "limit": 3 })).await;
    assert_eq!(uris(first["resources"].as_array().unwrap()), ["x:0", "x:1", "x:2"]);
    let (tool, next) = first["next"].as_str().unwrap().split_once(' ').unwrap();
    assert_eq!((tool, &first["complete"]), ("list_resources", &json!(false)));
    let second = list(serde_json::from_str(next).unwrap()).await;
    assert_eq!(uris(second["resources"].as_array().unwrap()), ["x:3", "x:4"]);
    assert_eq!(second["complete"], true);
}

#[tokio::test]
async fn the_first_page_tells_what_is_left_of_the_quota() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let quota = async |arguments: Value| -> Value {
        let text = client.call("list_resources", arguments).await.text();
        serde_json::from_str::<Value>(&text).unwrap()["quota"].take()
    };
    let before = quota(json!({})).await;
    assert_eq!((&before["used_bytes"], &before["used_resources"]), (&json!(0), &json!(0)));
    assert!(before["bytes"].as_u64() > Some(0) && before["resources"].as_u64() > Some(0));
    for n in 0..2 {
        client.create(json!({ "uri": format!("x:{n}"), "text": "a".repeat(1_000) })).await;
    }
    let after = quota(json!({ "prefix": "x:", "limit": 1 })).await;
    assert_eq!(after["used_resources"], 2);
    assert!(after["used_bytes"].as_u64() >= Some(2_000), "{after}");
    assert!(quota(json!({ "after": "x:0" })).await.is_null());
}

/// All that `list_resources` lists, page by page as its results say.
async fn list_all(client: &Modern) -> Vec<String> {
    let (mut seen, mut arguments) = (Vec::new(), json!({}));
    loop {
        let text = client.call("list_resources", arguments).await.text();
        let page: Value = serde_json::from_str(&text).unwrap();
        seen.extend(uris(page["resources"].as_array().unwrap()));
        for template in page["templates"].as_array().unwrap() {
            seen.push(template["uri_template"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else {
            assert_eq!(page["complete"], true);
            return seen;
        };
        assert_eq!(page["complete"], false);
        let (_, next) = next.split_once(' ').unwrap();
        arguments = serde_json::from_str(next).unwrap();
    }
}

#[tokio::test]
async fn the_pages_of_the_tool_reach_everything_whatever_its_size() {
    let server = Server::configured(|setup| {
        setup.config.tools.output_bytes = 2_000;
        setup.offer(|mut builder| {
            for n in 0..60 {
                let long = "long ".repeat(if n % 7 == 3 { 1_000 } else { 10 });
                let text = Resource::text(format!("docs://{n}"), "text").description(long);
                builder = builder.resource(text);
            }
            let options = ToolOptions::default();
            builder.with(tools::reading(options)).with(tools::writing())
        });
    })
    .await;
    let client = Modern::of(&server);
    for n in 0..10 {
        let description = "long ".repeat(if n == 0 || n == 5 { 700 } else { 100 });
        client
            .create(json!({ "uri": format!("x:{n}"), "text": "", "description": description }))
            .await;
    }
    let seen = list_all(&client).await;
    let distinct: BTreeSet<_> = seen.iter().collect();
    // 60 resources of the server, the template of windows, and 10 stored ones.
    assert_eq!((seen.len(), distinct.len()), (71, 71), "{seen:?}");
}
