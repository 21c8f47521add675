//! `_larder: {pages: n}`: the pages of a list in one call, and what is wrong with them.

use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{
    meaning::answering,
    projections::{body, in_front_of},
    text, uri_in,
};
use crate::support::Legacy;

/// A page of ten records from `from` on; there are 25.
fn page(from: u64) -> (Vec<Value>, Option<u64>) {
    let end = (from + 10).min(25);
    let next = (end < 25).then_some(end);
    ((from..end).map(|id| json!({ "id": id })).collect(), next)
}

/// Servers' ways to give pages, a tool for each.
async fn lists() -> Settings {
    let tools = [
        ("by_cursor", json!({ "cursor": { "type": "string" } })),
        ("by_page", json!({ "page": { "type": "integer" } })),
        ("by_offset", json!({ "offset": { "type": "integer" }, "limit": { "type": "integer" } })),
        ("by_url", json!({ "start": { "type": "integer" } })),
        ("graph", json!({ "after": { "type": "string" } })),
        ("by_id", json!({ "from_id": { "type": "string" } })),
        ("circle", json!({ "cursor": { "type": "string" } })),
        ("stuck", json!({ "page": { "type": "integer" } })),
        ("gap", json!({ "page": { "type": "integer" } })),
        ("failing", json!({ "cursor": { "type": "string" } })),
        ("lost", json!({})),
        ("from_zero", json!({ "page": { "type": "integer" } })),
        ("prices", json!({ "cursor": { "type": "string" } })),
        ("cut", json!({ "cursor": { "type": "string" } })),
        ("empty", json!({ "cursor": { "type": "string" } })),
    ];
    let hints = json!({ "readOnlyHint": true });
    let listed: Vec<_> = tools
        .iter()
        .map(|(name, properties)| {
            let schema = json!({ "type": "object", "properties": properties });
            json!({ "name": name, "inputSchema": schema, "annotations": hints })
        })
        .collect();

    answering("far", move |method, params| match method {
        "tools/list" => Some(json!({ "tools": listed })),
        "tools/call" => {
            let given = &params["arguments"];
            let number = |name: &str| match &given[name] {
                Value::String(text) => text.parse().unwrap(),
                value => value.as_u64().unwrap_or(0),
            };
            let paged = given["page"].as_u64().unwrap_or(1);
            let block = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
            let text = match params["name"].as_str().unwrap() {
                "by_cursor" | "failing" if params["name"] == "failing" && number("cursor") == 20 => {
                    return Some(json!({ "content": [{ "type": "text", "text": "Rate limit" }], "isError": true }));
                }
                "by_cursor" | "failing" | "circle" => {
                    let (items, next) = page(number("cursor"));
                    let next = if params["name"] == "circle" { next.map(|n| n % 20) } else { next };
                    let next = next.map(|next| next.to_string());
                    json!({ "total": 25, "items": items, "nextCursor": next })
                }
                "prices" if given["cursor"] == "b" => {
                    return Some(block("{\"items\":[{\"id\":2,\"price\":1.50}],\"nextCursor\":null}"));
                }
                "prices" => {
                    let first = "{\"items\":[{\"id\":0,\"price\":19.90},\n{\"id\":12345678901234567890123}],\"nextCursor\":\"b\"}";
                    return Some(block(first));
                }
                "cut" => {
                    let next = (given["cursor"] != "b").then_some("b");
                    let from = u64::from(next.is_none());
                    json!({ "items": page(from).0, "nextCursor": next, "incomplete_results": next.is_some() })
                }
                // A list that ends only long after the pages that are wanted.
                "empty" => {
                    let next = Some(number("cursor") + 1).filter(|next| *next < 60);
                    let items = if number("cursor") == 0 { page(0).0 } else { Vec::new() };
                    json!({ "items": items, "nextCursor": next.map(|next| next.to_string()) })
                }
                "from_zero" => json!(page(given["page"].as_u64().unwrap_or(0) * 10).0),
                "by_page" => json!(page((paged - 1) * 10).0),
                "by_offset" => json!({ "rows": page(number("offset")).0 }),
                "by_url" => {
                    let (items, next) = page(number("start"));
                    let next = next.map(|start| format!("https://far.example/x?start={start}&z=1"));
                    json!({ "results": items, "links": { "next": next } })
                }
                "graph" => {
                    let (items, next) = page(number("after"));
                    let end = next.unwrap_or(25).to_string();
                    json!({ "data": { "nodes": items, "pageInfo": { "hasNextPage": next.is_some(), "endCursor": end } } })
                }
                "by_id" => {
                    let (items, next) = page(number("from_id"));
                    json!({ "items": items, "next": next.map(|next| next.to_string()) })
                }
                "gap" => json!({ "items": page((paged - 1) * 10).0, "page": paged * paged, "has_more": true }),
                // "stuck", too.
                _ => json!({ "items": page(0).0, "has_more": true }),
            };
            Some(json!({ "content": [{ "type": "text", "text": text.to_string() }] }))
        }
        _ => None,
    })
    .await
}

#[tokio::test]
async fn the_records_of_all_pages_are_one_resource() {
    let mut upstream = lists().await;
    upstream.pages = [("by_id".to_owned(), "from_id".to_owned())].into();
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;

    for (tool, end) in [
        ("by_cursor", "complete"),
        ("by_page", "no further page is named"),
        ("by_offset", "no further page is named"),
        ("from_zero", "no further page is named"),
        ("by_url", "complete"),
        ("graph", "complete"),
        ("by_id", "complete"),
    ] {
        let sql = "SELECT count(*) AS n, min(id), max(id) FROM t";
        let asked = json!({ "_larder": { "pages": 10, "sql": sql } });
        let result = client.call(tool, asked).await.result();
        assert!(
            text(&result).starts_with(&format!("3 pages of {tool}: 25 records, {end}.")),
            "{result}"
        );
        assert!(body(&result).ends_with("\n25,0,24"), "{tool}: {result}");

        let two = client.call(tool, json!({ "_larder": { "pages": 2 } })).await.result();
        let said = text(&two);
        assert!(
            said.starts_with(&format!("2 pages of {tool}: 20 records, NOT complete: more follow")),
            "{said}"
        );
        let stored = client
            .call("read_resource", json!({ "uri": uri_in(said), "unit": "records" }))
            .await
            .text();
        assert!(
            stored.contains("{\"id\":0}\n{\"id\":1}\n") && stored.contains("{\"id\":19}"),
            "{stored}"
        );
    }
}

#[tokio::test]
async fn a_list_that_goes_wrong_is_an_error_that_keeps_what_came() {
    let server = in_front_of(lists().await).await;
    let client = Legacy::of(&server).await;
    for (tool, expected) in [
        (
            "circle",
            "3 pages of circle: 30 records, NOT complete: page 4 would have a cursor that an earlier page had",
        ),
        (
            "stuck",
            "1 page of stuck: 10 records, NOT complete: page 2 has the records of the page before",
        ),
        ("gap", "1 page of gap: 10 records, NOT complete: page 2 was asked for, and page 4 came"),
        ("failing", "2 pages of failing: 20 records, NOT complete: page 3 failed: Rate limit"),
    ] {
        let failure = client.call(tool, json!({ "_larder": { "pages": 9 } })).await.failure();
        assert!(failure.starts_with(expected), "{failure}");
        assert!(
            client
                .call("read_resource", json!({ "uri": uri_in(&failure) }))
                .await
                .text()
                .contains("{\"id\":0}")
        );
    }

    let lost = client.call("lost", json!({ "_larder": { "pages": 9 } })).await.result();
    let expected = "1 page of lost: 10 records, NOT complete: more follow (the server says so";
    assert!(text(&lost).starts_with(expected), "{lost}");
    for pages in [json!(0), json!(101), json!("many"), json!(true)] {
        let refused =
            client.call("by_page", json!({ "_larder": { "pages": pages } })).await.failure();
        assert!(refused.contains("pages is a number from 1 to 100"), "{refused}");
    }
}

#[tokio::test]
async fn empty_pages_count_as_pages_that_were_wanted() {
    let server = in_front_of(lists().await).await;
    let client = Legacy::of(&server).await;

    let empty = client.call("empty", json!({ "_larder": { "pages": 5 } })).await.result();
    let expected = "1 page of empty: 10 records, NOT complete: more follow ({\"cursor\":\"5\"})";
    assert!(text(&empty).starts_with(expected), "{empty}");

    let all = client.call("empty", json!({ "_larder": { "pages": 60 } })).await.result();
    assert!(text(&all).starts_with("1 page of empty: 10 records, complete."), "{all}");
}

#[tokio::test]
async fn numbers_of_pages_are_kept_and_a_page_that_is_cut_is_told() {
    let server = in_front_of(lists().await).await;
    let client = Legacy::of(&server).await;

    let prices = client.call("prices", json!({ "_larder": { "pages": 9 } })).await.result();
    let said = text(&prices);
    assert!(said.starts_with("2 pages of prices: 3 records, complete."), "{said}");
    let stored = client.call("read_resource", json!({ "uri": uri_in(said) })).await.text();
    for record in [
        "{\"id\":0,\"price\":19.90}\n{\"id\":12345678901234567890123}\n",
        "{\"id\":2,\"price\":1.50}",
    ] {
        assert!(stored.contains(record), "{stored}");
    }

    let cut = client.call("cut", json!({ "_larder": { "pages": 9 } })).await.result();
    let expected =
        "2 pages of cut: 20 records, NOT complete: page 1 is cut: incomplete_results is true";
    assert!(text(&cut).starts_with(expected), "{cut}");
}
