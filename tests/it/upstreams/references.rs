//! References in arguments: what one tool has stored, another one gets without the model.

use std::{fs, path::Path, sync::Arc};

use async_trait::async_trait;
use larder::{
    Registry,
    handler::Scope,
    protocol::Fault,
    registry::{FoundTool, Offer, ProvidedTool, Provider},
    tools,
    upstream::Settings,
};
use rmcp::model;
use serde_json::{Value, json};

use super::{env, for_ana_and_bob, lines, odd, package, text, writing_gateway};
use crate::support::{Legacy, Modern, Server};

/// A server in front of these, with the tools that store.
async fn writing(upstreams: Vec<Settings>) -> Server {
    let registry = writing_gateway(upstreams);
    Server::configured(|setup| {
        setup.config.limits.ref_bytes = 100_000;
        setup.offers = Box::new(|_, _| registry);
    })
    .await
}

/// The calls that the misbehaving server has seen.
fn calls(record: &Path) -> Vec<Value> {
    let messages = lines(record).into_iter().map(|line| serde_json::from_str(&line).unwrap());
    messages.filter(|message: &Value| message["method"] == "tools/call").collect()
}

#[tokio::test]
async fn a_large_result_is_written_by_another_tool_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let log = "A line with ä and \"quotes\" and {{braces}}.\n".repeat(2_000);
    fs::write(path("log"), &log).unwrap();
    let folder = folder.path().to_str().unwrap();
    let server = writing(vec![package("filesystem", &[folder])]).await;
    let client = Legacy::of(&server).await;
    let read = client.call("read_text_file", json!({ "path": path("log") })).await.result();
    let link = read["content"].as_array().unwrap().iter().find(|b| b["type"] == "resource_link");
    let uri = link.unwrap()["uri"].as_str().unwrap();
    // The preview says how.
    assert!(text(&read).contains(&format!("\"{{{{{uri}}}}}\"")), "{read}");
    let arguments = json!({ "path": path("copy"), "content": format!("{{{{{uri}}}}}") });
    assert!(arguments.to_string().len() < 1_000);
    let written = client.call("write_file", arguments).await.result();
    assert_ne!(written["isError"], true, "{written}");
    assert_eq!(fs::read_to_string(path("copy")).unwrap(), log);

    let part = json!({ "path": path("part"), "content": format!("{{{{{uri}?lines=2-2}}}}") });
    client.call("write_file", part).await.result();
    assert_eq!(
        fs::read_to_string(path("part")).unwrap(),
        log.lines().next().unwrap().to_owned() + "\n"
    );
    // Within longer text it is text.
    let longer = format!("see {{{{{uri}}}}}");
    let literal = json!({ "path": path("literal"), "content": longer });
    client.call("write_file", literal).await.result();
    assert_eq!(fs::read_to_string(path("literal")).unwrap(), longer);
}

#[tokio::test]
async fn a_selected_part_has_the_type_that_the_tool_expects() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = package("memory", &[]);
    let file = folder.path().join("memory.jsonl").display().to_string();
    env(&mut memory).insert("MEMORY_FILE_PATH".into(), file);
    let server = writing(vec![memory]).await;
    let client = Legacy::of(&server).await;
    let people = json!({ "people": [
        { "name": "Ada", "entityType": "person", "observations": ["wrote a program"] },
        { "name": "Bob", "entityType": "person", "observations": [] },
    ] });
    client
        .create(json!({ "uri": "data://people", "text": people.to_string(), "mime_type": "application/json" }))
        .await;
    let arguments = json!({ "entities": { "$larder": "data://people", "select": "/people" } });
    let created = client.call("create_entities", arguments).await.result();
    assert_eq!(created["structuredContent"]["entities"], people["people"], "{created}");
    let one = json!({ "names": [{ "$larder": "data://people", "select": "$.people[1].name" }] });
    let opened = client.call("open_nodes", one).await.result();
    assert_eq!(opened["structuredContent"]["entities"][0]["name"], "Bob", "{opened}");
    // What does not fit the schema never reaches the tool.
    let wrong =
        json!({ "entities": { "$larder": "data://people", "select": "/people/0/observations" } });
    let refused = client.call("create_entities", wrong).await.result();
    let expected = "create_entities was not called: Invalid arguments: entities.0: ";
    assert!(refused["isError"] == true && text(&refused).starts_with(expected), "{refused}");
}

#[tokio::test]
async fn what_cannot_be_resolved_is_not_called() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("received");
    let server = writing(vec![odd("odd", &[&format!("--record={}", record.display())])]).await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "data://short", "text": "x", "ttl": 60 })).await;
    client.create(json!({ "uri": "data://large", "text": "some line\n".repeat(20_000) })).await;
    let refused = async |arguments: Value| {
        let result = client.call("echo", arguments).await.result();
        assert_eq!(result["isError"], true, "{result}");
        let said = text(&result).strip_prefix("echo was not called: ").map(str::to_owned);
        said.unwrap_or_else(|| panic!("{result}"))
    };
    for (arguments, expected) in [
        (json!({ "a": "{{data://none}}" }), "arguments.a: Resource not found: data://none"),
        (
            json!({ "deep": [{ "b": "{{data://large}}" }] }),
            "arguments.deep.0.b: data://large has 200,000 bytes, limits.ref_bytes is 100,000 bytes: add ?lines=1-9000.",
        ),
        (
            json!({ "a": { "$larder": "data://short", "as": "json" } }),
            "arguments.a: data://short is not JSON.",
        ),
        (
            json!({ "a": { "$larder": "data://short", "lines": 1 } }),
            "arguments.a: \"lines\" is not known",
        ),
    ] {
        let said = refused(arguments).await;
        assert!(said.starts_with(expected), "{said}");
    }
    let many: Vec<_> = (0..17).map(|_| "{{data://short}}").collect();
    let said = refused(json!({ "a": many })).await;
    assert!(said.contains("more than 16 references"), "{said}");
    server.clock.advance(std::time::Duration::from_secs(120));
    let said = refused(json!({ "a": "{{data://short}}" })).await;
    assert!(said.starts_with("arguments.a: Resource expired: data://short"), "{said}");
    assert!(calls(&record).is_empty());
    let fits = client.call("echo", json!({ "a": "{{data://large?lines=1-9000}}" })).await.result();
    assert_ne!(fits["isError"], true);
    assert_eq!(calls(&record)[0]["params"]["arguments"]["a"], "some line\n".repeat(9_000));
}

#[tokio::test]
async fn content_is_not_searched_for_references() {
    let server = writing(vec![odd("odd", &[])]).await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "data://secret", "text": "secret" })).await;
    // The reference in the text of a resource stays what it is.
    let literal = json!({ "uri": "data://lure", "text": "see", "mime_type": "text/plain" });
    client.create(literal).await;
    let update = json!({ "uri": "data://lure", "text": "see {{data://secret}}" });
    client.call("update_resource", update).await.result();
    let echoed = client.call("echo", json!({ "a": "{{data://lure}}" })).await.result();
    assert_eq!(text(&echoed), "{\"a\":\"see {{data://secret}}\"}");
    // White space around a reference is not content.
    for around in [" {{data://secret}}", "{{ data://secret }}\n"] {
        let echoed = client.call("echo", json!({ "a": around })).await.result();
        assert_eq!(text(&echoed), "{\"a\":\"secret\"}", "{around:?}");
    }
    // Larder's own tools take references, too.
    let copy = json!({ "uri": "data://copy", "text": "{{data://secret}}" });
    client.create(copy).await;
    let read = client.send("resources/read", json!({ "uri": "data://copy" })).await.result();
    assert_eq!(read["contents"][0]["text"], "secret");
}

#[tokio::test]
async fn what_belongs_to_another_principal_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("received");
    let odd = odd("odd", &[&format!("--record={}", record.display())]);
    let server = for_ana_and_bob(vec![odd]).await;
    let (ana, bob) = (Modern::bearing(&server, "ana"), Modern::bearing(&server, "bob"));
    ana.create(json!({ "uri": "data://hers", "text": "hers" })).await;
    let argument = json!({ "a": "{{data://hers}}" });
    let refused = bob.call("echo", argument.clone()).await.result();
    let expected = "echo was not called: arguments.a: Resource not found: data://hers";
    assert!(text(&refused).starts_with(expected), "{refused}");
    assert!(calls(&record).is_empty());
    assert_eq!(text(&ana.call("echo", argument).await.result()), "{\"a\":\"hers\"}");
}

/// Has a tool of any name, whose arguments nobody can give.
struct AnyName;

#[async_trait]
impl Provider for AnyName {
    fn offers(&self, what: Offer) -> bool {
        what == Offer::Tools
    }

    async fn tool(&self, name: &str, _: &Arc<Scope>) -> Result<Option<FoundTool>, Fault> {
        let schema = json!({ "type": "object", "required": ["unknown"] });
        let schema = schema.as_object().cloned().unwrap_or_default();
        let listed = model::Tool::new(name.to_owned(), "Any.", schema.clone());
        Ok(Some(FoundTool::Listed(Arc::new(ProvidedTool::new(listed, Some(schema))))))
    }
}

#[tokio::test]
async fn arguments_of_a_registered_tool_are_not_those_of_a_providers_tool_of_that_name() {
    let builder = Registry::builder("gateway").with(tools::writing());
    let registry = builder.provider(Arc::new(AnyName)).build().unwrap();
    let server = Server::configured(|setup| setup.offers = Box::new(|_, _| registry)).await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "data://one", "text": "one" })).await;
    let copy = json!({ "uri": "data://copy", "text": "{{data://one}}" });
    let copied = client.call("create_resource", copy).await.result();
    assert_ne!(copied["isError"], true, "{copied}");
    let refused = client.call("other", json!({ "a": "{{data://one}}" })).await.result();
    let expected = "other was not called: Invalid arguments: ";
    assert!(text(&refused).starts_with(expected), "{refused}");
}
