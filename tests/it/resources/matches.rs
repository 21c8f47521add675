//! `search_resource` counts matches and tells the place of each.

use serde_json::{Value, json};

use crate::support::{Modern, Server};

async fn search(client: &Modern, arguments: Value) -> String {
    client.call("search_resource", arguments).await.text()
}

/// 49,000 objects; every thousandth is an error.
fn events() -> Vec<Value> {
    let event = |n: usize| {
        let level = if n % 1_000 == 17 { "ERROR" } else { "INFO" };
        json!({ "id": n, "level": level, "message": format!("request {n} was handled") })
    };
    (0..49_000).map(event).collect()
}

/// The arguments of the call of this tool that a text names.
fn named_call(text: &str, tool: &str) -> Value {
    let (_, arguments) = text.split_once(&format!("{tool} {{")).unwrap();
    serde_json::from_str(&format!("{{{}", &arguments[..=arguments.find('}').unwrap()])).unwrap()
}

#[tokio::test]
async fn each_match_in_json_has_its_record_and_pointer_however_it_was_stored() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let events = events();
    let text = serde_json::to_string(&events).unwrap();
    client.create(json!({ "uri": "x:json", "json": events })).await;
    client.create(json!({ "uri": "x:text", "text": text, "mime_type": "application/json" })).await;
    for uri in ["x:json", "x:text"] {
        let said = search(&client, json!({ "uri": uri, "query": "\"level\":\"ERROR\"" })).await;
        assert!(said.starts_with("49 matches "), "{said}");
        let (head, rows) = said.split_once("\n\n").unwrap();
        assert!(head.contains("Complete."), "{head}");
        assert_eq!(rows.lines().count(), 49, "{rows}");
        for (n, row) in rows.lines().enumerate() {
            let record = n * 1_000 + 17;
            assert!(row.contains(&format!("record {record}, /{record}/level: ")), "{row}");
            assert!(row.contains("\"level\":\"ERROR\""), "{row}");
        }
        let next = named_call(head, "read_resource");
        let expected = json!({ "uri": uri, "unit": "records", "offset": 17, "limit": 1 });
        assert_eq!(next, expected);
    }
    let said = search(&client, json!({ "uri": "x:text", "query": "ERROR", "limit": 20 })).await;
    assert!(said.starts_with("Matches 1-20 of 49 in x:text"), "{said}");
    let said = search(&client, named_call(&said, "search_resource")).await;
    assert!(said.starts_with("Matches 21-40 of 49 in x:text"), "{said}");
    assert!(said.contains(", record 20017, /20017/level: "), "{said}");
    let most = json!({ "uri": "x:text", "query": "ERROR", "max_per_line": 2 });
    let said = search(&client, most).await;
    assert!(said.starts_with("49 matches on 1 line "), "{said}");
    assert!(said.contains("(max_per_line)") && !said.contains("Complete"), "{said}");
    assert_eq!(said.split_once("\n\n").unwrap().1.lines().count(), 2, "{said}");
}

#[tokio::test]
async fn a_match_deep_in_a_line_of_13_mb_is_shown_whole_with_its_place() {
    const AT: usize = 9_158_330;
    let server = Server::start().await;
    let client = Modern::of(&server);
    let mut text = String::from("{\"rows\":[");
    while text.len() < AT - 200 {
        text.push_str("{\"id\":1,\"name\":\"nothing to see\"},");
    }
    let record = text.matches("id").count();
    text.push_str("{\"id\":2,\"name\":\"");
    text.push_str(&"x".repeat(AT - text.len()));
    text.push_str("the extraordinary value\"}");
    while text.len() < 13_000_000 {
        text.push_str(",{\"id\":1,\"name\":\"nothing to see\"}");
    }
    text.push_str("]}");
    let stored = json!({ "uri": "x:wide", "text": text, "mime_type": "application/json" });
    client.create(stored).await;
    let said = search(&client, json!({ "uri": "x:wide", "query": "the extraordinary \\w+" })).await;
    assert!(said.starts_with("1 match in x:wide"), "{said}");
    let place = format!("1: byte {AT}, record {record}, /rows/{record}/name: ");
    assert!(said.contains(&place), "{said}");
    assert!(said.contains("xxthe extraordinary value\"}"), "{said}");
    let read = named_call(&said, "read_resource");
    let expected = json!({ "uri": "x:wide", "unit": "records", "offset": record, "limit": 1 });
    assert_eq!(read, expected);
    assert!(said.contains("matches over 65,536 bytes may be missed"), "{said}");
    let said = search(&client, json!({ "uri": "x:wide", "query": "the extraordinary" })).await;
    assert!(said.contains(" Complete. "), "{said}");
}

#[tokio::test]
async fn a_line_of_20_mb_is_searched_and_the_next_call_shows_the_place() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let mut text = "wörd ".repeat(3_400_000);
    // Each in place of a word and its space, which are as long.
    let places: Vec<usize> = (0..20).map(|n| 6 * (1 + n * 150_000)).collect();
    for at in &places {
        text.replace_range(at..&(at + 6), "NEEDLE");
    }
    client.create(json!({ "uri": "x:line", "text": text })).await;
    let (mut arguments, mut found) =
        (json!({ "uri": "x:line", "query": "NEEDLE", "limit": 7 }), Vec::new());
    loop {
        let said = search(&client, arguments).await;
        let (head, rows) = said.split_once("\n\n").unwrap();
        for row in rows.lines() {
            let at: usize =
                row.strip_prefix("1: byte ").unwrap().split(':').next().unwrap().parse().unwrap();
            assert!(row.contains("NEEDLE") && !row.contains('\u{FFFD}'), "{row}");
            found.push(at);
        }
        let read = named_call(head, "read_resource");
        assert_eq!(read["unit"], "bytes");
        assert!(client.call("read_resource", read).await.text().contains("NEEDLE"));
        if !head.contains("Not complete") {
            assert!(head.contains("This is the end."), "{head}");
            break;
        }
        arguments = named_call(head, "search_resource");
    }
    assert_eq!(found, places);
    // Many matches, in a line that is searched in pieces as well.
    client.create(json!({ "uri": "x:words", "text": "wörd ".repeat(400_000) })).await;
    for (uri, query, total) in
        [("x:line", "^w", 1), ("x:line", " $", 1), ("x:words", "wörd", 400_000)]
    {
        let said = search(&client, json!({ "uri": uri, "query": query, "count_only": true })).await;
        let total = larder::preview::words::count(total, "match");
        assert!(said.starts_with(&total) && said.ends_with("Complete."), "{query}: {said}");
    }
}

#[tokio::test]
async fn options_change_what_matches() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let text = "error one error\r\nERROR two\r\nerrors a.c\r\nabc done\r\n";
    client.create(json!({ "uri": "x:log", "text": text })).await;
    let found = async |options: Value| {
        let mut arguments = json!({ "uri": "x:log" });
        arguments.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        search(&client, arguments).await
    };
    for (options, head, rows) in [
        (
            json!({ "query": "error" }),
            "3 matches on 2 lines in x:log (4 lines). Complete.",
            "1: error one error\n3: errors a.c\n",
        ),
        (
            json!({ "query": "error", "ignore_case": true }),
            "4 matches on 3 lines in",
            "1: error one error\n2: ERROR two\n3: errors a.c\n",
        ),
        (
            json!({ "query": "error", "whole_word": true }),
            "2 matches on 1 line in",
            "1: error one error\n",
        ),
        (json!({ "query": "a.c", "literal": true }), "1 match in", "3: errors a.c\n"),
        (json!({ "query": "a.c" }), "2 matches in", "3: errors a.c\n4: abc done\n"),
        (
            json!({ "query": "error", "invert": true }),
            "2 lines without a match in",
            "2: ERROR two\n4: abc done\n",
        ),
        (json!({ "query": "two$" }), "1 match in", "2: ERROR two\n"),
        (json!({ "query": "^abc done$" }), "1 match in", "4: abc done\n"),
        (json!({ "query": "done\\r$" }), "1 match in", "4: abc done\n"),
    ] {
        let said = found(options.clone()).await;
        assert!(said.starts_with(head), "{options}: {said}");
        assert!(said.ends_with(&format!("\n\n{rows}")), "{options}: {said}");
    }
    let counted = found(json!({ "query": "error", "count_only": true })).await;
    assert_eq!(counted, "3 matches on 2 lines in x:log (4 lines). Complete.");
    let none = found(json!({ "query": ".", "invert": true })).await;
    assert_eq!(none, "Every line of x:log (4 lines) matches \".\". Complete.");
    // The next call repeats the options.
    let options = json!({ "query": "ERROR", "ignore_case": true, "whole_word": true, "limit": 1 });
    let said = found(options).await;
    assert!(said.starts_with("Matches 1-2 of 3 in x:log"), "{said}");
    let said = search(&client, named_call(&said, "search_resource")).await;
    assert!(said.ends_with("\n\n2: ERROR two\n"), "{said}");
}

#[tokio::test]
async fn lines_of_ndjson_and_rows_of_csv_have_their_number() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let ndjson = "{\"a\":1}\n\n{\"a\":22}\n{\"a\":3}\n";
    let stored = json!({ "uri": "x:lines", "text": ndjson, "mime_type": "application/x-ndjson" });
    client.create(stored).await;
    let said = search(&client, json!({ "uri": "x:lines", "query": "22" })).await;
    assert!(said.ends_with("\n\n3: record 1: {\"a\":22}\n"), "{said}");
    let csv = "id,text\n1,\"two\nlines\"\n2,one\n";
    client.create(json!({ "uri": "x:rows", "text": csv, "mime_type": "text/csv" })).await;
    let said = search(&client, json!({ "uri": "x:rows", "query": "text|lines|one" })).await;
    assert!(said.ends_with("\n\n1: id,text\n3: record 0: lines\"\n4: record 1: 2,one\n"), "{said}");
}

/// All matches of a search, as its next calls as data give them: the record, the
/// pointer and the text of each. Each answer is compared with its text.
async fn all_matches(client: &Modern, mut arguments: Value) -> Vec<(u64, String, String)> {
    let mut found = Vec::new();
    loop {
        let result = client.call("search_resource", arguments.clone()).await.result();
        let (text, data) =
            (result["content"][0]["text"].as_str().unwrap(), &result["structuredContent"]);
        let (head, rows) = text.split_once("\n\n").unwrap();
        let matches = data["rows"].as_array().unwrap();
        assert_eq!(rows.lines().count(), matches.len(), "{result}");
        for (row, found_line) in rows.lines().zip(matches) {
            let (line, shown) = (&found_line["line"], found_line["text"].as_str().unwrap());
            assert!(row.starts_with(&format!("{line}: ")) && row.ends_with(shown), "{row}");
            let place = &found_line["places"][0];
            let pointer = place["pointer"].as_str().unwrap_or_default();
            found.push((place["record"].as_u64().unwrap(), pointer.to_owned(), shown.to_owned()));
        }
        // The call in words is the call as data.
        assert_eq!(named_call(head, "read_resource"), data["read"]);
        let read = client.call("read_resource", data["read"].clone()).await.text();
        assert!(
            read.contains(found[found.len() - matches.len()].2.trim_end_matches(',')),
            "{read}"
        );
        let Some(next) = data.get("next") else {
            let is_one = arguments["offset"].is_null();
            assert_eq!(data["complete"], is_one, "{head}");
            assert!(head.contains(if is_one { "Complete." } else { "This is the end." }), "{head}");
            assert_eq!(data["total"], found.len(), "{head}");
            return found;
        };
        assert_eq!(data["complete"], false, "{head}");
        assert_eq!(&named_call(head, "search_resource"), next);
        arguments = next.clone();
    }
}

#[tokio::test]
async fn the_next_calls_of_a_search_give_each_match_once() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let events = events();
    client.create(json!({ "uri": "x:list", "json": events })).await;
    client.create(json!({ "uri": "x:object", "json": { "items": events } })).await;
    let lines: Vec<_> = events.iter().map(|event| event.to_string() + "\n").collect();
    let lines =
        json!({ "uri": "x:lines", "text": lines.concat(), "mime_type": "application/x-ndjson" });
    client.create(lines).await;
    for (uri, at) in [("x:list", Some("")), ("x:object", Some("/items")), ("x:lines", None)] {
        // The last is more than fits into one answer.
        for limit in [7, 49, 50, 10_000] {
            let query = if limit == 10_000 { "\"id\":\\d*17," } else { "\"level\":\"ERROR\"" };
            let arguments = json!({ "uri": uri, "query": query, "limit": limit });
            let found = all_matches(&client, arguments).await;
            let records: Vec<u64> = found.iter().map(|(record, ..)| *record).collect();
            let step = if limit == 10_000 { 100 } else { 1_000 };
            assert_eq!(records, (0..49_000 / step).map(|n| n * step + 17).collect::<Vec<_>>());
            for (record, pointer, text) in found {
                let member = if limit == 10_000 { "id" } else { "level" };
                let expected = at.map(|at| format!("{at}/{record}/{member}")).unwrap_or_default();
                assert_eq!(pointer, expected);
                assert_eq!(
                    text.trim_end_matches(','),
                    events[usize::try_from(record).unwrap()].to_string()
                );
            }
        }
    }
}

#[tokio::test]
async fn a_search_says_as_data_what_it_says_in_words() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:log", "text": "one\ntwo\nthree\ntwo two\nfive\n" })).await;
    let data = async |options: Value| {
        let mut arguments = json!({ "uri": "x:log", "query": "two" });
        arguments.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let mut result = client.call("search_resource", arguments).await.result();
        result["structuredContent"].take()
    };
    let totals = json!({ "total": 3, "lines": 2, "complete": true, "rows": [] });
    assert_eq!(data(json!({ "count_only": true })).await, totals);
    let none = json!({ "total": 0, "lines": 0, "complete": true, "rows": [] });
    assert_eq!(data(json!({ "query": "nothing" })).await, none);
    let after = json!({ "total": 3, "lines": 2, "complete": false, "rows": [] });
    assert_eq!(data(json!({ "offset": 3 })).await, after);
    let found = data(json!({ "context": 1, "limit": 1, "revision": 1 })).await;
    let rows = json!([
        { "line": 1, "context": true, "text": "one" },
        { "line": 2, "text": "two" },
        { "line": 3, "context": true, "text": "three" },
    ]);
    assert_eq!(found["rows"], rows);
    let next = json!({
        "uri": "x:log", "query": "two", "offset": 1, "limit": 1, "context": 1, "revision": 1,
    });
    assert_eq!(found["next"], next);
    let read = json!({ "uri": "x:log", "offset": 0, "limit": 20, "revision": 1 });
    assert_eq!(found["read"], read);
}
