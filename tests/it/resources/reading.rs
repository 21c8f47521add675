//! Reading and searching large resources in parts.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::support::{Legacy, Modern, Server, numbered_lines};

const LINES: usize = 120_000;

/// Stores a large result by a tool; its URI and its content.
async fn parked(client: &Modern, lines: usize) -> (String, String) {
    let answer = client.call("park", json!({ "lines": lines })).await;
    assert!(answer.body.len() < 4096, "{}", answer.body.len());
    let text = answer.text();
    let uri = text.split("Access at ").nth(1).unwrap().to_owned();
    assert_eq!(answer.result()["content"][1]["uri"], uri);
    (uri, numbered_lines(lines))
}

/// Makes the call that each answer proposes, until an answer says that it is the end.
async fn read_on(client: &Modern, mut arguments: Value) -> Vec<String> {
    let mut parts = Vec::new();
    loop {
        let answer = client.call("read_resource", arguments).await.text();
        assert!(answer.len() <= 32_000, "{}", answer.len());
        let (head, part) = answer.split_once("\n\n").unwrap();
        parts.push(part.to_owned());
        match head.split_once("next: read_resource ") {
            Some((_, next)) => {
                arguments = serde_json::from_str(next.strip_suffix('.').unwrap()).unwrap();
            }
            None => {
                assert!(
                    head.ends_with("This is the end.") || head.ends_with("Complete."),
                    "{head}"
                );
                return parts;
            }
        }
    }
}

#[tokio::test]
async fn ten_megabytes_are_read_whole_and_in_parts() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let (uri, expected) = parked(&client, LINES).await;
    assert!(expected.len() > 10_000_000);
    let legacy = Legacy::of(&server).await.send("resources/read", json!({ "uri": uri })).await;
    assert!(legacy.result()["contents"][0]["text"] == expected.as_str());
    assert!(client.read(&uri).await["text"] == expected.as_str());

    let by_lines = read_on(&client, json!({ "uri": uri, "limit": 100_000 })).await;
    assert!(by_lines.len() > 300 && by_lines.concat() == expected);
    let by_bytes = read_on(&client, json!({ "uri": uri, "unit": "bytes" })).await;
    assert!(by_bytes.concat() == expected);
}

#[tokio::test]
async fn a_window_names_its_lines_and_the_next_call() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let (uri, expected) = parked(&client, 1000).await;
    let lines: Vec<_> = expected.lines().collect();
    let read = async |arguments: Value| client.call("read_resource", arguments).await.text();
    let first = read(json!({ "uri": uri, "limit": 10 })).await;
    let (head, content) = first.split_once("\n\n").unwrap();
    assert!(head.starts_with("Lines 1-10 of 1,000 lines"), "{head}");
    assert!(head.contains(r#""offset":10"#), "{head}");
    assert_eq!(content.lines().collect::<Vec<_>>(), lines[..10]);
    let last = read(json!({ "uri": uri, "offset": 999, "limit": 10 })).await;
    assert!(
        last.starts_with("Line 1,000 of 1,000 lines") && last.contains("This is the end."),
        "{last}"
    );
    let beyond = read(json!({ "uri": uri, "offset": 5000 })).await;
    assert!(beyond.contains("No line at offset 5,000"), "{beyond}");
}

#[tokio::test]
async fn parts_never_split_a_character() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let text = "🦀é".repeat(500);
    client.create(json!({ "uri": "x:1", "text": text })).await;
    let parts = read_on(&client, json!({ "uri": "x:1", "unit": "bytes", "limit": 7 })).await;
    assert!(parts.len() > 400 && parts.concat() == text);
}

#[tokio::test]
async fn a_line_longer_than_an_answer_is_read_by_bytes() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let text = format!("short\n{}\nshort", "0123456789".repeat(20_000));
    client.create(json!({ "uri": "x:1", "text": text })).await;
    assert!(read_on(&client, json!({ "uri": "x:1" })).await.concat() == text);
}

#[tokio::test]
async fn each_part_of_a_binary_resource_is_valid_base64() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let bytes: Vec<u8> = (0..300_001_u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
    client.create(json!({ "uri": "x:1", "blob": BASE64_STANDARD.encode(&bytes) })).await;
    assert_eq!(client.read("x:1").await["blob"], BASE64_STANDARD.encode(&bytes));
    let parts = read_on(&client, json!({ "uri": "x:1", "unit": "bytes" })).await;
    let decoded: Vec<_> = parts.iter().map(|p| BASE64_STANDARD.decode(p).unwrap()).collect();
    assert!(decoded.concat() == bytes);
}

#[tokio::test]
async fn a_read_over_the_limit_names_the_tools_that_read_parts() {
    let server = Server::configured(|setup| setup.config.limits.read_bytes = 1000).await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:just", "text": "x".repeat(1000) })).await;
    client.create(json!({ "uri": "x:over", "text": "x".repeat(1001) })).await;
    assert_eq!(client.read("x:just").await["text"].as_str().unwrap().len(), 1000);
    let answer = client.send("resources/read", json!({ "uri": "x:over" })).await;
    assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))));
    let message = answer.error()["message"].as_str().unwrap().to_owned();
    for said in ["1001 bytes", "1000", "read_resource", "search_resource", "x:over"] {
        assert!(message.contains(said), "{message}");
    }
}

#[tokio::test]
async fn a_search_finds_all_lines_in_pages() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let (uri, expected) = parked(&client, 20_000).await;
    let matching: Vec<_> =
        (1..).zip(expected.lines()).filter(|(_, l)| l.contains("«42»")).collect();
    let mut arguments = json!({ "uri": uri, "query": "«42»", "limit": 30 });
    let mut found = Vec::new();
    loop {
        let answer = client.call("search_resource", arguments).await.text();
        assert!(answer.len() <= 32_000);
        let (head, hits) = answer.split_once("\n\n").unwrap();
        found.extend(hits.lines().map(|hit| {
            let (number, line) = hit.split_once(": ").unwrap();
            (number.parse::<usize>().unwrap(), line.to_owned())
        }));
        let Some((_, next)) = head.split_once("next: search_resource ") else { break };
        arguments = serde_json::from_str(&next[..=next.find('}').unwrap()]).unwrap();
    }
    let matching: Vec<_> = matching.into_iter().map(|(n, l)| (n, l.to_owned())).collect();
    assert!(matching.len() > 200);
    assert_eq!(found, matching);
}

#[tokio::test]
async fn anchors_match_lines_also_across_blocks() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    // Many blocks, with lines across their borders.
    let line = |n: usize| format!("{}{n}\n", if n % 50_000 == 7 { "ERROR " } else { "an ERROR " });
    let text: String = (1..=100_000).map(line).collect();
    client.create(json!({ "uri": "x:log", "text": text })).await;
    let search = async |query: &str| {
        let arguments = json!({ "uri": "x:log", "query": query, "context": 1 });
        client.call("search_resource", arguments).await.text()
    };
    // A page has the context of its own matches.
    for (offset, rows) in [
        (0, "6- an ERROR 6\n7: ERROR 7\n8- an ERROR 8\n"),
        (1, "50006- an ERROR 50006\n50007: ERROR 50007\n50008- an ERROR 50008\n"),
    ] {
        let page = json!({ "uri": "x:log", "query": "^ERROR", "context": 1, "limit": 1, "offset": offset });
        let page = client.call("search_resource", page).await.text();
        assert_eq!(page.split_once("\n\n").unwrap().1, rows);
    }
    let said = search("^ERROR").await;
    assert!(said.starts_with("2 matches in "), "{said}");
    let hits = "6- an ERROR 6\n7: ERROR 7\n8- an ERROR 8\n--\n50006- an ERROR 50006\n50007: ERROR 50007\n50008- an ERROR 50008\n";
    assert!(said.ends_with(hits), "{said}");
    let said = search(" 100000$").await;
    assert!(said.ends_with("99999- an ERROR 99999\n100000: an ERROR 100000\n"), "{said}");
}
