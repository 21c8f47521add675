//! Records of stored content: `read_resource` with `"unit": "records"`.

use serde_json::{Value, json};

use crate::support::{Modern, Server, numbered_lines};

/// The arguments of the call of `read_resource` that a text proposes last.
fn proposed(said: &str) -> Value {
    let head = said.split("\n\n").next().unwrap();
    let at = head.rfind("read_resource {").unwrap() + "read_resource ".len();
    let mut calls = serde_json::Deserializer::from_str(&head[at..]).into_iter();
    calls.next().unwrap().unwrap()
}

async fn read(client: &Modern, arguments: Value) -> String {
    client.call("read_resource", arguments).await.text()
}

/// The paragraph about the records, and the records.
async fn records(client: &Modern, uri: &str, offset: usize, limit: usize) -> (String, String) {
    let arguments = json!({ "uri": uri, "unit": "records", "offset": offset, "limit": limit });
    let said = read(client, arguments).await;
    let (head, records) = said.split_once("\n\n").unwrap();
    (head.to_owned(), records.to_owned())
}

const TOTAL: usize = 49_000;

fn object(n: usize) -> String {
    json!({ "id": n, "level": if n.is_multiple_of(1_000) { "ERROR" } else { "INFO" }, "tags": ["a b", { "é": null }] })
        .to_string()
}

#[tokio::test]
async fn records_are_exact_at_any_offset() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let items: Vec<_> = (0..TOTAL).map(object).collect();
    let pretty: Vec<Value> = items.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
    let pretty = serde_json::to_string_pretty(&json!({ "n": 1, "rows": pretty })).unwrap();
    let rows: Vec<_> = (0..TOTAL).map(|n| format!("{n},\"a\nb\"\"{n}\",x")).collect();
    let text = |uri: &str, mime_type: &str, text: String| {
        let arguments = json!({ "uri": uri, "mime_type": mime_type, "text": text });
        let client = &client;
        async move { client.create(arguments).await }
    };
    text("x:json", "application/json", format!("[{}]", items.join(","))).await;
    text("x:pretty", "application/json", pretty).await;
    text("x:ndjson", "application/x-ndjson", items.join("\n")).await;
    text("x:csv", "text/csv", format!("id,text,last\r\n{}\r\n", rows.join("\r\n"))).await;
    // Detected by the content alone.
    text("x:plain", "text/plain", items.join("\n")).await;
    for (uri, expected, header) in [
        ("x:json", &items, ""),
        ("x:pretty", &items, ""),
        ("x:ndjson", &items, ""),
        ("x:csv", &rows, "id,text,last\n"),
        ("x:plain", &items, ""),
    ] {
        for offset in [0, 1, TOTAL / 2, TOTAL - 3, TOTAL - 1] {
            let (head, found) = records(&client, uri, offset, 3).await;
            let end = (offset + 3).min(TOTAL);
            assert_eq!(found, format!("{header}{}\n", expected[offset..end].join("\n")), "{uri}");
            assert!(head.contains("of 49,000 records of x:"), "{head}");
            assert_eq!(head.ends_with("This is the end."), end == TOTAL, "{head}");
        }
        let (head, found) = records(&client, uri, TOTAL, 3).await;
        assert!(head.starts_with("No record at offset 49,000 of x:"), "{head}");
        assert_eq!(found, header);
        assert_eq!(proposed(&head)["offset"], TOTAL - 3);
    }
    let (head, _) = records(&client, "x:pretty", 10, 2).await;
    let next = r#"read_resource {"uri":"x:pretty","unit":"records","offset":12,"limit":2}"#;
    let expected = format!(
        "Records 11-12 of 49,000 records of x:pretty at /rows. Not complete; next: {next}."
    );
    assert_eq!(head, expected);
}

#[tokio::test]
async fn following_the_next_call_reads_each_record_once() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let items: Vec<_> = (0..3_000).map(object).collect();
    let text = format!("{{\"data\": {{\"items\": [{}]}}}}", items.join(" ,\n "));
    client.create(json!({ "uri": "x:json", "mime_type": "application/json", "text": text })).await;
    let mut next = json!({ "uri": "x:json", "unit": "records", "limit": 700 });
    let mut all = Vec::new();
    loop {
        let said = read(&client, next).await;
        assert!(said.len() <= 32_000, "{}", said.len());
        all.extend(said.split_once("\n\n").unwrap().1.lines().map(str::to_owned));
        if said.contains("This is the end.") {
            break;
        }
        next = proposed(&said);
    }
    assert_eq!(all, items);
}

#[tokio::test]
async fn another_pointer_and_short_content_are_scanned() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let text =
        json!({ "meta": { "a/b": [1, 2, 3], "c": { "x": "y z", "n": [] } }, "rows": [[1], {}] });
    let text = text.to_string();
    client.create(json!({ "uri": "x:json", "mime_type": "application/json", "text": text })).await;
    for (at, expected) in [
        (None, "All of x:json at /rows: 2 records. Complete.\n\n[1]\n{}\n"),
        (Some("/rows"), "All of x:json at /rows: 2 records. Complete.\n\n[1]\n{}\n"),
        (Some("/meta/a~1b"), "All of x:json at /meta/a~1b: 3 records. Complete.\n\n1\n2\n3\n"),
        (
            Some("/meta/c"),
            "All of x:json at /meta/c: 2 records. Complete.\n\n{\"x\":\"y z\"}\n{\"n\":[]}\n",
        ),
        (Some("/meta/c/n"), "x:json at /meta/c/n has no records. Complete.\n\n"),
        (Some("/rows/0/0"), "All of x:json at /rows/0/0: 1 record. Complete.\n\n1\n"),
    ] {
        let mut arguments = json!({ "uri": "x:json", "unit": "records" });
        if let Some(at) = at {
            arguments["at"] = at.into();
        }
        assert_eq!(read(&client, arguments).await, expected);
    }
    let arguments =
        json!({ "uri": "x:json", "unit": "records", "at": "/meta/a~1b", "offset": 1, "limit": 1 });
    let next =
        json!({ "uri": "x:json", "unit": "records", "at": "/meta/a~1b", "offset": 2, "limit": 1 });
    assert_eq!(proposed(&read(&client, arguments).await), next);
}

#[tokio::test]
async fn a_record_longer_than_a_result_is_read_by_bytes() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let long = "é".repeat(900_000);
    let text = format!("[{}, {}, 3]", json!("short"), json!(long));
    client.create(json!({ "uri": "x:json", "mime_type": "application/json", "text": text })).await;
    let said = read(&client, json!({ "uri": "x:json", "unit": "records" })).await;
    assert!(said.starts_with("Record 1 of 3 records of x:json. Not complete"), "{said:.300}");
    assert!(said.ends_with("\n\n\"short\"\n"));
    let said = read(&client, proposed(&said)).await;
    assert!(said.starts_with("The beginning of record 2 of 3 records of x:json"), "{said:.300}");
    let (_, part) = said.split_once("\n\n").unwrap();
    assert!(part.starts_with("\"éé"), "{said:.400}");
    let end = 10 + part.len();
    let bytes = format!(r#"read_resource {{"uri":"x:json","unit":"bytes","offset":{end}}}"#);
    assert!(said.contains(&bytes), "{said:.400}");
    let said = read(&client, proposed(&said)).await;
    assert!(said.starts_with("Record 3 of 3 records of x:json. This is the end."), "{said}");
    assert!(said.ends_with("\n\n3\n"), "{said}");
}

#[tokio::test]
async fn content_without_records_names_the_other_units() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:log", "text": numbered_lines(3) })).await;
    client.create(json!({ "uri": "x:bytes", "blob": "AAEC" })).await;
    let broken = json!({ "uri": "x:broken", "mime_type": "application/json", "text": "[1, 2}" });
    client.create(broken).await;
    client.create(json!({ "uri": "x:csv", "mime_type": "text/csv", "text": "a,b\n1,2\n" })).await;
    let lines = |uri: &str| format!(r#"read_resource {{"uri":"{uri}","offset":0,"limit":200}}"#);
    for (uri, at, expected) in [
        ("x:log", None, format!("x:log (text/plain) has no records: it is not JSON, NDJSON, CSV or TSV. Read its lines: {}.", lines("x:log"))),
        ("x:bytes", None, r#"x:bytes (application/octet-stream) has no records: it is not JSON, NDJSON, CSV or TSV. Read its bytes: read_resource {"uri":"x:bytes","unit":"bytes"}."#.to_owned()),
        ("x:broken", None, format!("x:broken has no records: it is not JSON: unexpected byte at offset 5. Read its lines: {}.", lines("x:broken"))),
        ("x:csv", Some("/a"), "at is for JSON, and x:csv (text/csv) is not. Leave it out.".to_owned()),
        ("x:broken", Some("a"), "at: a JSON Pointer is empty or begins with /, such as /data/items.".to_owned()),
    ] {
        let mut arguments = json!({ "uri": uri, "unit": "records" });
        if let Some(at) = at {
            arguments["at"] = at.into();
        }
        assert_eq!(client.call("read_resource", arguments).await.failure(), expected);
    }
    let said = client.call("read_resource", json!({ "uri": "x:csv", "at": "/a" })).await;
    assert_eq!(said.failure(), r#"at is for records: add "unit":"records"."#);
}

#[tokio::test]
async fn a_description_is_of_all_records() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    // What is rare is far behind the first bytes.
    let items: Vec<_> = (0..30_000)
        .map(|n| match n {
            29_000 => json!({ "id": "last", "rare": [1] }),
            n => json!({ "id": n, "level": if n % 2 == 0 { Value::Null } else { json!("INFO") } }),
        })
        .collect();
    let text = json!({ "meta": { "tags": [1, 2] }, "items": items }).to_string();
    client.create(json!({ "uri": "x:json", "mime_type": "application/json", "text": text })).await;
    let describe = |uri: &str| {
        let (client, arguments) = (&client, json!({ "uri": uri }));
        async move { client.call("describe_resource", arguments).await.text() }
    };
    let said = describe("x:json").await;
    for line in [
        "records: 30,000 records at /items",
        "table: t; jq root: .items[]",
        "columns (of all records):",
        "- id: integer (29,999) or text (1); e.g. 0",
        "- level: text, 15,000 (50.0 %) null; e.g. \"INFO\"",
        "- rare: list, 29,999 (99.9 %) null; e.g. [1]",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} is not in {said:.2000}");
    }
    assert!(said.contains("/meta/tags (2)") && said.contains("/items (30,000)"), "{said:.2000}");
    let rows = (0..30_000).map(|n| format!("{n},\"a\nb\",\n")).collect::<Vec<_>>().concat();
    let table = format!("id,\"the text\",none\n{rows}");
    client.create(json!({ "uri": "x:csv", "mime_type": "text/csv", "text": table })).await;
    let said = describe("x:csv").await;
    for line in [
        "records: 30,000 records",
        "- id: integer; e.g. 0",
        "- the text: text; e.g. a\\nb",
        "- none: null",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} is not in {said:.2000}");
    }
    client.create(json!({ "uri": "x:log", "text": numbered_lines(300) })).await;
    assert!(!describe("x:log").await.contains("records"));
}
