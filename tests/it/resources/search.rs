//! The search for words in all resources of a caller.

use larder::{
    Tool, ToolError,
    config::{AuthMode, Config, TokenConfig},
    tools::{self, ToolOptions},
};
use serde_json::{Value, json};

use crate::support::{Ctx, Legacy, Modern, Server, numbered_lines, sha256};

async fn search(client: &Modern, arguments: Value) -> String {
    client.call("search_resources", arguments).await.text()
}

/// The URIs of an answer, in its order.
fn uris(said: &str) -> Vec<String> {
    let shown = said.lines().filter_map(|line| {
        let (place, rest) = line.split_once(". ")?;
        place.parse::<usize>().ok()?;
        Some(rest.split(' ').next().unwrap().to_owned())
    });
    shown.collect()
}

#[tokio::test]
async fn the_best_matches_come_first_with_lines_and_the_call_that_shows_all() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let log = format!("{}The disk is full.\n{}", numbered_lines(20_000), numbered_lines(20_000));
    client.create(json!({ "uri": "log://big", "text": log })).await;
    client
        .create(json!({ "uri": "log://disks", "text": "disk one\ndisk two\ndisk three\n" }))
        .await;
    client.create(json!({ "uri": "log://other", "text": "nothing\n" })).await;
    client.create(json!({ "uri": "note://bin", "blob": "AAEC", "name": "the disk image" })).await;
    let said = search(&client, json!({ "query": "DISK full" })).await;
    assert_eq!(uris(&said), ["log://big", "log://disks", "note://bin"]);
    assert!(
        said.starts_with("3 stored resources have some of \"DISK\", \"full\", the best first."),
        "{said}"
    );
    assert!(said.contains("\n   20001: The disk is full.\n"), "{said}");
    assert!(said.contains("1 matching line of 40,001, with \"DISK\", \"full\""), "{said}");
    assert!(
        said.contains("3 matching lines of 3, with \"DISK\"\n   1: disk one\n   2: disk two\n"),
        "{said}"
    );
    assert!(said.contains("its name or description has \"DISK\""), "{said}");
    assert!(
        said.contains("Searched: 3 texts, ") && said.contains("NOT searched: 1 binary"),
        "{said}"
    );
    assert!(said.contains(" Complete.\n"), "{said}");
    // The proposed call works unchanged.
    let at = said.find("search_resource {").unwrap() + "search_resource ".len();
    let next = said[at..].lines().next().unwrap();
    let all = client.call("search_resource", serde_json::from_str(next).unwrap()).await.text();
    assert!(all.contains("20001: The disk is full."), "{all}");
    // The same in a session.
    let legacy =
        Legacy::of(&server).await.call("search_resources", json!({ "query": "DISK full" })).await;
    assert_eq!(uris(&legacy.text()).len(), 3);
}

#[tokio::test]
async fn prefixes_and_phrases_narrow_the_search() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for (uri, text) in
        [("a://1", "red apple"), ("a://2", "apple red (raw)"), ("b://1", "red apple")]
    {
        client.create(json!({ "uri": uri, "text": text })).await;
    }
    let said = search(&client, json!({ "query": "\"red apple\"" })).await;
    assert_eq!(uris(&said).len(), 2, "{said}");
    let said = search(&client, json!({ "query": "\"red apple\"", "prefix": "a://" })).await;
    assert_eq!(uris(&said), ["a://1"]);
    assert!(
        said.starts_with("1 stored resource under a:// has \"red apple\". Searched: 2 texts"),
        "{said}"
    );
    // Words are not patterns.
    assert_eq!(uris(&search(&client, json!({ "query": "(raw)" })).await), ["a://2"]);
    let said = search(&client, json!({ "query": "pear" })).await;
    assert!(
        said.starts_with("No stored resource has \"pear\". Searched: 3 texts, ")
            && said.ends_with("Complete."),
        "{said}"
    );
    for (query, expected) in [
        (" ", "no word"),
        (&*(0..20).map(|n| n.to_string()).collect::<Vec<_>>().join(" "), "at most 16"),
    ] {
        let said = client.call("search_resources", json!({ "query": query })).await.failure();
        assert!(said.contains(expected), "{said}");
    }
}

#[tokio::test]
async fn an_incomplete_answer_names_the_call_that_continues() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for n in 0..30 {
        client.create(json!({ "uri": format!("a://{n}"), "text": "word\n".repeat(n + 1) })).await;
    }
    let said = search(&client, json!({ "query": "word", "limit": 10, "prefix": "a:" })).await;
    assert_eq!(uris(&said).len(), 10);
    assert!(
        said.contains("Not complete: 20 more are not shown; next: search_resources "),
        "{said}"
    );
    let at = said.find("next: search_resources ").unwrap() + "next: search_resources ".len();
    let next = said[at..].lines().next().unwrap().trim_end_matches('.');
    let said = search(&client, serde_json::from_str(next).unwrap()).await;
    assert_eq!(uris(&said).len(), 20);
    // An answer that is cut to its limit says so as well.
    let server = Server::configured(|setup| setup.config.tools.output_bytes = 3_000).await;
    let client = Modern::of(&server);
    for n in 0..30 {
        client.create(json!({ "uri": format!("a://{n}"), "text": "word\n".repeat(n + 1) })).await;
    }
    let said = search(&client, json!({ "query": "word", "limit": 200 })).await;
    assert!(
        said.len() <= 3_000 && said.contains("more words or a prefix narrow the search"),
        "{said}"
    );
}

/// Stores a text with one line of over 64 MiB.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct LongLine;

#[tokio::test]
async fn a_line_of_any_length_is_searched() {
    let server = Server::offering(|builder| {
        let long_line = Tool::new(|ctx: Ctx, _: LongLine| async move {
            let line = "x".repeat(24 << 20) + " word " + &"x".repeat(1 << 20);
            ctx.create_resource("a://line", line).await?;
            Ok::<_, ToolError>("stored")
        });
        let tools = builder.tool(long_line).with(tools::reading(ToolOptions::default()));
        tools.with(tools::writing())
    })
    .await;
    let client = Modern::of(&server);
    client.call("long_line", json!({})).await.text();
    client.create(json!({ "uri": "a://word", "text": "a word" })).await;
    let said = search(&client, json!({ "query": "word" })).await;
    assert_eq!(uris(&said), ["a://word", "a://line"]);
    assert!(said.contains("Complete.") && said.contains("x word x"), "{said}");
}

#[tokio::test]
async fn expired_and_deleted_resources_are_not_found() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "a://short", "text": "word", "ttl": 10 })).await;
    client.create(json!({ "uri": "a://gone", "text": "word" })).await;
    client.create(json!({ "uri": "a://there", "text": "word" })).await;
    client.call("delete_resource", json!({ "uri": "a://gone" })).await.text();
    server.clock.advance(std::time::Duration::from_secs(11));
    assert_eq!(uris(&search(&client, json!({ "query": "word" })).await), ["a://there"]);
}

fn two_callers(config: &mut Config) {
    let token = |name: &str| TokenConfig {
        name: name.into(),
        sha256: sha256(name),
        ..TokenConfig::default()
    };
    config.auth.mode = AuthMode::Static;
    config.auth.tokens = vec![token("alice"), token("bob")];
}

#[tokio::test]
async fn the_resources_of_another_caller_are_not_found() {
    let server = Server::configured(|setup| two_callers(&mut setup.config)).await;
    let [alice, bob] = ["alice", "bob"].map(|name| Modern::bearing(&server, name));
    let uri = alice.create(json!({ "text": "a secret word", "name": "secrets" })).await;
    assert_eq!(uris(&search(&alice, json!({ "query": "secret" })).await)[0], uri);
    for query in ["secret", "word", &uri] {
        let said = search(&bob, json!({ "query": query })).await;
        assert!(
            said.starts_with("No stored resource has ")
                && said.contains("Searched: 0 texts, 0 bytes."),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_long_query_does_not_make_the_result_larger_than_its_limit() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    // Four bytes of JSON for each backslash in the pattern of the next call.
    let words = |slashes: usize| (10..26).map(move |n| format!("{n}{}", "\\".repeat(slashes)));
    for n in 0..4 {
        let text: Vec<_> = words(200).collect();
        client.create(json!({ "uri": format!("x:{n}"), "text": text.join("\n") })).await;
    }
    let query = |slashes: usize| words(slashes).collect::<Vec<_>>().join(" ");
    for limit in 1..4 {
        let said = search(&client, json!({ "query": query(126), "limit": limit })).await;
        assert!(said.len() <= 32_000, "{limit}: {}", said.len());
        let (_, next) = said.split_once("next: search_resource {").unwrap();
        let next = format!("{{{}", next.lines().next().unwrap());
        let found = client.call("search_resource", serde_json::from_str(&next).unwrap()).await;
        assert!(found.text().starts_with("16 matches"), "{found:?}");
    }
    // A call that would be refused is not proposed.
    let said = search(&client, json!({ "query": query(200) })).await;
    assert!(!said.contains("search_resource {"), "{}", said.len());
}
