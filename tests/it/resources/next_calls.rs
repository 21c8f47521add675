//! The next call that an answer names: it shows the match that a search has found, and continues
//! where a text ended.

#![allow(clippy::format_collect, clippy::too_many_lines, reason = "tables of cases, made of text")]

use serde_json::{Map, Value, json};

use crate::support::{Modern, Server, noise};

/// The calls of `read_resource` that a text names.
fn reads(text: &str) -> Vec<Value> {
    let starts = text.match_indices("read_resource {").map(|(at, _)| at + "read_resource ".len());
    let parse = |at: usize| {
        serde_json::Deserializer::from_str(&text[at..])
            .into_iter::<Value>()
            .next()
            .unwrap()
            .unwrap()
    };
    starts.map(parse).collect()
}

async fn text(client: &Modern, tool: &str, arguments: Value) -> String {
    client.call(tool, arguments).await.text()
}

/// Follows the call that each match of a search names: its answer has the match.
async fn follow(client: &Modern, uri: &str, query: &str, matched: &[&str]) {
    for (n, matched) in matched.iter().enumerate() {
        let search = json!({ "uri": uri, "query": query, "offset": n, "limit": 1 });
        let said = text(client, "search_resource", search).await;
        let (head, _) = said.split_once("\n\n").unwrap_or_else(|| panic!("{uri} {query}: {said}"));

        let read = reads(head).pop().unwrap_or_else(|| panic!("{uri}: {head}"));
        let shown = text(client, "read_resource", read.clone()).await;
        let (_, shown) = shown.split_once("\n\n").unwrap();
        let shown = &shown[..shown.floor_char_boundary(40_000)];
        assert!(shown.contains(matched), "{uri}: {query}: {read} shows {shown:.500}");
    }
}

/// The shapes that are searched: a name, a type, a text, a query and what it matches.
fn shapes() -> Vec<(&'static str, &'static str, String, &'static str, Vec<&'static str>)> {
    let json = "application/json";
    let meta = json!({ "items": [{ "x": 1 }, { "x": 2 }], "meta": { "note": "needle" } });
    let key = json!({ "items": [[1], [2]], "needle": { "a": [3] }, "of": { "needle": 1 } });
    let nested =
        json!({ "a": [[1, ["needle 1"]], [{ "b": ["x", ["needle 2"]] }]], "c": ["needle 3"] });
    let two = json!({ "a": { "rows": [1, "needle 1"] }, "b": { "rows": [2, "needle 2"] }, "c": "needle 3" });
    let many: Vec<Value> =
        (0..3_000).map(|n| json!({ "id": n, "name": format!("item {n}") })).collect();
    let late = json!({ "items": many, "meta": { "of": { "note": "needle" } } });
    let long = |n: usize| "é and so on ".repeat(n);
    let inside = format!("{}needle{}", long(20_000), long(20_000));
    let deep = (0..60).fold(json!(["needle"]), |inner, n| json!({ format!("key_{n}"): inner }));
    let lines: String = (0..20).map(|n| format!("{} {n}\n", "x".repeat(1_900))).collect();

    vec![
        ("meta", json, meta.to_string(), "needle", vec!["needle"]),
        ("pretty meta", json, format!("{meta:#}"), "needle", vec!["needle"]),
        (
            "pretty member",
            json,
            format!("{meta:#}"),
            "\"note\": \"needle\"",
            vec!["\"note\": \"needle\""],
        ),
        ("white space", json, format!("{meta:#}"), r#"\s+"note""#, vec!["\"note\""]),
        ("keys", json, key.to_string(), "needle", vec!["needle", "needle"]),
        ("pretty keys", json, format!("{key:#}"), "needle\": ", vec!["needle\": ", "needle\": "]),
        (
            "nested lists",
            json,
            nested.to_string(),
            "needle .",
            vec!["needle 1", "needle 2", "needle 3"],
        ),
        ("two lists", json, two.to_string(), "needle .", vec!["needle 1", "needle 2", "needle 3"]),
        ("beside many", json, late.to_string(), "needle", vec!["needle"]),
        ("beside many, pretty", json, format!("{late:#}"), "needle", vec!["needle"]),
        ("across records", json, meta.to_string(), r#"1\},\{"x"#, vec![r#"1},{"x"#]),
        ("from a record on", json, meta.to_string(), r#"2\}\],"meta":"#, vec![r#"2}],"meta":"#]),
        (
            "a member only",
            json,
            json!({ "a": { "b": 1 }, "c": "needle" }).to_string(),
            "needle",
            vec!["needle"],
        ),
        ("a scalar", json, json!("a needle").to_string(), "needle", vec!["needle"]),
        (
            "in a long record",
            json,
            json!({ "items": [1, inside, 2] }).to_string(),
            "needle",
            vec!["needle"],
        ),
        (
            "in a long member",
            json,
            json!({ "items": [1], "meta": { "note": inside } }).to_string(),
            "needle",
            vec!["needle"],
        ),
        (
            "after a long record",
            json,
            json!({ "items": [long(60_000), "needle"] }).to_string(),
            "needle",
            vec!["needle"],
        ),
        (
            "escapes",
            json,
            json!(["a \"needle\" \\ é"]).to_string(),
            r#"\\"needle\\" \\\\"#,
            vec![r#"\"needle\" \\"#],
        ),
        ("deep", json, deep.to_string(), "needle", vec!["needle"]),
        (
            "twice the key",
            json,
            r#"{"a":[{"x":1}],"a":[{"x":1},{"x":"needle"}]}"#.into(),
            "needle",
            vec!["needle"],
        ),
        ("cut off", json, r#"{"a":[{"x":1},{"x":"needle"},{"x"#.into(), "needle", vec!["needle"]),
        (
            "lines",
            "application/x-ndjson",
            "{\"a\": 1}\n\n{\"a\": \"needle 1\"}\n[\"needle 2\"]".into(),
            "needle .",
            vec!["needle 1", "needle 2"],
        ),
        (
            "long line",
            "application/x-ndjson",
            format!("{{\"a\": 1}}\n[\"{inside}\"]\n[\"b\"]\n"),
            "needle",
            vec!["needle"],
        ),
        (
            "rows",
            "text/csv",
            "needle 0,b\n1,\"two\nneedle 1\"\n2,needle 2\n".into(),
            "needle .",
            vec!["needle 0", "needle 1", "needle 2"],
        ),
        (
            "tabs",
            "text/tab-separated-values",
            "a\tb\n1\tneedle\n".into(),
            "\tneedle",
            vec!["\tneedle"],
        ),
        ("log", "text/plain", format!("{lines}a needle\n{lines}"), "needle", vec!["needle"]),
        (
            "long log line",
            "text/plain",
            format!("{lines}{inside}\n{lines}"),
            "needle",
            vec!["needle"],
        ),
        (
            "long match",
            "text/plain",
            format!("a\n{}\n", long(1_000)),
            "é[^\n]*on",
            vec!["é and so on é and"],
        ),
        ("crlf", "text/plain", "one\r\ntwo needle\r\nthree".into(), "needle$", vec!["needle"]),
    ]
}

#[tokio::test]
async fn the_call_that_a_search_names_shows_the_match() {
    let server = Server::start().await;
    let client = Modern::of(&server);

    for (name, mime_type, content, query, matched) in shapes() {
        let uri = format!("x:{}", name.replace(' ', "-"));
        client.create(json!({ "uri": uri, "mime_type": mime_type, "text": content })).await;
        follow(&client, &uri, query, &matched).await;
    }

    let root = json!({ "uri": "x:meta", "query": "needle" });
    let said = text(&client, "search_resource", root).await;
    let read = json!({ "uri": "x:meta", "unit": "records", "at": "", "offset": 1, "limit": 1 });
    assert_eq!(reads(&said), [read]);
}

/// JSON with a word in each key and string that is nowhere else.
fn any_json(noise: &mut impl Iterator<Item = u64>, depth: u32, words: &mut Vec<String>) -> Value {
    let mut word = |noise: &mut dyn Iterator<Item = u64>| {
        let word = format!("w{}z", words.len());
        words.push(word.clone());
        format!("{} {word} ü", "pad ".repeat((noise.next().unwrap() % 30) as usize))
    };

    match noise.next().unwrap() % 6 {
        _ if depth == 0 => word(noise).into(),
        0 => word(noise).into(),
        1 => 7.into(),
        2 | 3 => {
            let items = 1 + noise.next().unwrap() % 5;
            (0..items).map(|_| any_json(noise, depth - 1, words)).collect()
        }
        _ => {
            let mut members = Map::new();
            for _ in 0..=(noise.next().unwrap() % 4) {
                let key = format!("k{}z", words.len());
                words.push(key.clone());
                let value = any_json(noise, depth - 1, words);
                members.insert(key, value);
            }
            members.into()
        }
    }
}

#[tokio::test]
async fn each_word_of_any_json_is_shown_by_the_call_that_its_search_names() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let mut noise = noise(7);

    for n in 0..24 {
        let mut words = Vec::new();
        let value = any_json(&mut noise, 5, &mut words);
        let content = if n % 2 == 0 { value.to_string() } else { format!("{value:#}") };
        let uri = format!("x:{n}");
        client
            .create(json!({ "uri": uri, "mime_type": "application/json", "text": content }))
            .await;

        for word in words.iter().step_by(1 + words.len() / 12) {
            follow(&client, &uri, word, &[word]).await;
        }
    }
}

#[tokio::test]
async fn the_call_that_a_search_of_all_resources_names_shows_the_match() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let many: String = (0..5_000).map(|n| format!("alpha alpha alpha {n}\n")).collect();
    client.create(json!({ "uri": "x:many", "text": format!("{many}alpha beta\n{many}") })).await;
    let named =
        json!({ "uri": "x:named", "text": "nothing", "description": "about the gamma rays" });
    client.create(named).await;

    let said = text(&client, "search_resources", json!({ "query": "alpha beta" })).await;
    let shown = text(&client, "read_resource", reads(&said).remove(0)).await;
    assert!(shown.contains("\n\nalpha beta\n"), "{said}\n{shown:.300}");

    let said = text(&client, "search_resources", json!({ "query": "gamma" })).await;
    assert!(said.contains(r#"next: describe_resource {"uri":"x:named"}"#), "{said}");
}

fn object(n: usize) -> Value {
    json!({ "id": n, "name": format!("item \"{n}\" é"), "tags": ["a", n] })
}

/// All records from this call on.
async fn rest(client: &Modern, mut read: Value) -> Vec<Value> {
    let mut records = Vec::new();
    loop {
        let said = text(client, "read_resource", read).await;
        let (head, lines) = said.split_once("\n\n").unwrap();
        records.extend(lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        match reads(head).pop() {
            Some(next) => read = next,
            None => return records,
        }
    }
}

#[tokio::test]
async fn lines_that_are_longer_than_an_answer_are_cut_between_records() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let objects: Vec<Value> = (0..3_000).map(object).collect();
    let list = json!(objects).to_string();

    for (n, (before, after)) in [
        ("", ""),
        ("  ", "\n"),
        ("{\"n\":1,\"data\":{\"rows\":", ",\"more\":true},\"z\":{\"y\":1}}"),
        ("{\"n\": 1,\n\"rows\": ", "}"),
        ("{\"long\":\"xxxxxxxxxx\",\"list\":", "}"),
    ]
    .into_iter()
    .enumerate()
    {
        let uri = format!("x:{n}");
        let content = format!("{before}{list}{after}");
        client
            .create(json!({ "uri": uri, "mime_type": "application/json", "text": content }))
            .await;

        // The lines before the long one are read first, if there are any.
        let skipped = before.matches('\n').count();
        let said =
            text(&client, "read_resource", json!({ "uri": uri, "offset": skipped, "limit": 10 }))
                .await;
        let (head, shown) = said.split_once("\n\n").unwrap();
        assert!(head.contains("longer than one result, and is cut after record"), "{head}");
        let shown: Vec<Value> =
            serde_json::from_str(&format!("{}]", &shown[shown.find("[{").unwrap()..])).unwrap();

        let read = reads(head).pop().unwrap();
        assert_eq!((&read["unit"], &read["offset"]), (&json!("records"), &json!(shown.len())));
        let all: Vec<Value> = shown.into_iter().chain(rest(&client, read).await).collect();
        assert_eq!(all, objects, "{before}");
    }

    // A record that is longer than an answer is read by bytes, from where the answer ended.
    let long = json!(["é".repeat(100_000), 1]).to_string();
    client.create(json!({ "uri": "x:long", "mime_type": "application/json", "text": long })).await;
    let mut read = json!({ "uri": "x:long" });
    let mut whole = String::new();
    loop {
        let said = text(&client, "read_resource", read).await;
        let (head, part) = said.split_once("\n\n").unwrap();
        whole += part;
        match reads(head).pop() {
            Some(next) => read = next,
            None => break,
        }
    }
    assert_eq!(whole, long);
}

#[tokio::test]
async fn a_description_names_the_call_that_continues_after_its_preview() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let objects: Vec<Value> = (0..3_000).map(object).collect();
    let ndjson: String = objects.iter().map(|object| format!("{object}\n")).collect();
    let csv: String = (0..9_000).map(|n| format!("{n},name {n}\n")).collect();
    client.create(json!({ "uri": "x:value", "json": objects })).await;
    client.create(json!({ "uri": "x:member", "json": { "n": 1, "rows": objects } })).await;
    let text_of = |text: &str, mime_type: &str| json!({ "text": text, "mime_type": mime_type });
    for (uri, mut content) in [
        ("x:line", text_of(&json!(objects).to_string(), "application/json")),
        ("x:ndjson", text_of(&ndjson, "application/x-ndjson")),
        ("x:csv", text_of(&format!("id,name\n{csv}"), "text/csv")),
        ("x:log", text_of(&csv.replace(',', " "), "text/x-log")),
    ] {
        content["uri"] = uri.into();
        client.create(content).await;
    }

    for (uri, marks) in [
        ("x:value", "\"id\":"),
        ("x:member", "\"id\":"),
        ("x:line", "\"id\":"),
        ("x:ndjson", "\"id\":"),
        ("x:csv", ",name "),
        ("x:log", " name "),
    ] {
        let said = text(&client, "describe_resource", json!({ "uri": uri })).await;
        let (_, head) = said.split_once("\n\nLine").unwrap_or_else(|| panic!("{said}"));
        let head = head.split("\n\n").next().unwrap();
        let shown = head.matches(marks).count();

        let read = reads(&said).remove(0);
        let unit = if uri == "x:log" { Value::Null } else { json!("records") };
        assert_eq!(read["unit"], unit, "{uri}: {said}");
        // The last record on a long line may be cut.
        let whole = if uri == "x:line" { shown - 1 } else { shown };
        assert!(shown > 1 && read["offset"] == whole, "{uri}: {read}, {shown}: {said}");

        let next = text(&client, "read_resource", read).await;
        assert!(next.contains(&format!("{whole}")), "{uri}: {next:.300}");
    }
}

#[tokio::test]
async fn a_description_lists_maps_beside_lists() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let user = |n: usize| json!({ "id": n, "orders": [{ "n": 1 }, { "n": 2 }] });
    let users: Map<String, Value> = (0..564).map(|n| (format!("user-{n}"), user(n))).collect();
    let rates: Map<String, Value> = (0..170).map(|n| (format!("R{n:03}"), json!(n))).collect();
    let fields = json!({ "name": "a", "street": "b", "city": "c", "zip": "d" });

    for (value, expected) in [
        (
            json!({ "data": users, "n": 1 }),
            "lists and maps: /data (map of 564), /data/user-0/orders (2)",
        ),
        (
            json!({ "meta": { "tags": ["x"] }, "rates": rates, "rows": [1, 2, 3] }),
            "lists and maps: /rates (map of 170), /rows (3), /meta/tags (1)\n",
        ),
        (
            json!({ "a": { "b": { "users": users } }, "rows": (0..900).collect::<Vec<_>>() }),
            "lists and maps: /rows (900), /a/b/users (map of 564), ",
        ),
        (
            json!({ "small": [1], "large": [1, 2, 3], "fields": fields }),
            "lists: /large (3), /small (1)\n",
        ),
        (
            json!({ "by_day": { "a": [1, 2], "b": [3], "c": [4], "d": [5] }, "rows": [1] }),
            "lists and maps: /by_day (map of 4), /by_day/a (2), ",
        ),
    ] {
        client.create(json!({ "uri": "x:json", "json": value })).await;
        let said = text(&client, "describe_resource", json!({ "uri": "x:json" })).await;
        assert!(said.contains(expected), "{expected}: {said}");
    }

    // A list after many small ones has the records all the same.
    let mut many = json!({ "users": users });
    many["results"] = (0..100).map(object).collect();
    client.create(json!({ "uri": "x:many", "json": many })).await;
    let said = text(&client, "describe_resource", json!({ "uri": "x:many" })).await;
    assert!(said.contains("records: 100 records at /results\n"), "{said}");
    assert!(said.contains("lists and maps: /users (map of 564), /results (100), "), "{said}");
}

#[tokio::test]
async fn appended_text_begins_a_line_of_its_own() {
    let server = Server::start().await;
    let client = Modern::of(&server);

    for (mime_type, content, appended, expected) in [
        ("text/csv", "a,b\n5,6", "7,8", "a,b\n5,6\n7,8"),
        ("text/csv", "a,b\n5,6\n", "7,8\n", "a,b\n5,6\n7,8\n"),
        ("text/csv; charset=utf-8", "a,b\r\n5,6", "7,8\r\n", "a,b\r\n5,6\r\n7,8\r\n"),
        ("application/x-ndjson", "{\"a\":1}", "{\"a\":2}", "{\"a\":1}\n{\"a\":2}"),
        ("text/plain", "{\"a\":1}", "{\"a\":2}", "{\"a\":1}\n{\"a\":2}"),
        ("text/plain", "10:00 started", "10:01 stopped\n", "10:00 started\n10:01 stopped\n"),
        ("text/plain", "[10:00] started", "[10:01] stopped", "[10:00] started\n[10:01] stopped"),
        ("text/markdown", "# Notes", "\n\nMore.", "# Notes\n\nMore."),
        ("text/plain", "", "first", "first"),
        ("text/plain", "old mac\r", "second", "old mac\rsecond"),
        ("application/json", "[1,2]", "[3]", "[1,2]\n[3]"),
        ("application/json", "[\"see [1]", " and more\"]", "[\"see [1] and more\"]"),
        ("application/json", "[{\"a\":1},", "{\"a\":2}]", "[{\"a\":1},{\"a\":2}]"),
    ] {
        client.create(json!({ "uri": "x:1", "text": content, "mime_type": mime_type })).await;
        let append = json!({ "uri": "x:1", "text": appended, "append": true });
        let said = client.call("update_resource", append).await.result();
        assert_eq!(said["isError"], false, "{said}");
        assert_eq!(client.read("x:1").await["text"], expected, "{mime_type}");
    }

    // Bytes are added as they are.
    client.create(json!({ "uri": "x:1", "text": "5,6", "mime_type": "text/csv" })).await;
    client
        .call("update_resource", json!({ "uri": "x:1", "blob": "Nyw4", "append": true }))
        .await
        .result();
    assert_eq!(client.read("x:1").await["text"], "5,67,8");
    client.create(json!({ "uri": "x:2", "blob": "AAE=" })).await;
    client
        .call("update_resource", json!({ "uri": "x:2", "blob": "Ag==", "append": true }))
        .await
        .result();
    assert_eq!(client.read("x:2").await["blob"], "AAEC");

    // Long content, whose end is in another block.
    let rows: String = (0..60_000).map(|n| format!("{n},row {n}\n")).collect();
    let rows = rows.trim_end();
    client.create(json!({ "uri": "x:3", "text": rows, "mime_type": "text/csv" })).await;
    client
        .call("update_resource", json!({ "uri": "x:3", "text": "60000,last", "append": true }))
        .await
        .result();
    assert_eq!(client.read("x:3").await["text"], format!("{rows}\n60000,last"));
}
