//! The preview of a result with records says how to query it, and each printed query works.

use larder::{Registry, query::QueryLimits, tools};
use serde_json::{Value, json};

use super::{call, link, links, offers, proposed, text};
use crate::support::{Modern, Server};

/// A server whose callers have `query_resource`, too.
async fn with_queries() -> Server {
    let limits = QueryLimits {
        program: Some(env!("CARGO_BIN_EXE_larder").into()),
        time: std::time::Duration::from_secs(60),
        ..QueryLimits::default()
    };
    let registry = Registry::builder("spilling").with(offers).with(tools::querying(limits, true));
    Server::of(registry.build().unwrap()).await
}

/// The part of the text between two others.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("{start:?} is not in {text}"));
    rest.split_once(end).unwrap_or_else(|| panic!("{end:?} is not in {rest}")).0
}

async fn query(client: &Modern, arguments: Value) -> Value {
    let mut result = client.call("query_resource", arguments.clone()).await.result();
    assert_eq!(result["isError"], false, "{arguments}: {result}");
    result["structuredContent"].take()
}

#[tokio::test]
async fn a_preview_names_table_columns_and_jq_root_and_its_queries_work() {
    let server = with_queries().await;
    let client = Modern::of(&server);
    for (tool, at, columns, root, first) in [
        ("rows", " at /rows", "id, name, note", ".rows[]", json!([0, "row number 0", "a third"])),
        ("json", " at /rows", "id, name, note", ".rows[]", json!([0, "row number 0", "a third"])),
        ("table", "", "id, name, price", ".", json!([0, "name, 0", 0.5])),
    ] {
        let result = call(&client, tool, 10_000).await;
        let (said, uri) = (text(&result), link(&result));
        let fact = format!("Records: 10,000{at}; table t ({columns}); jq root {root}\n");
        assert!(said.contains(&fact), "{tool}: {said}");
        // The query that is printed counts the records.
        let queries: Vec<_> =
            proposed(said).into_iter().filter(|(tool, _)| tool == "query_resource").collect();
        let [(_, counting)] = &queries[..] else { panic!("{said}") };
        assert_eq!(query(&client, counting.clone()).await["rows"], json!([[10_000]]), "{tool}");
        // Table, columns and root as they are printed.
        let columns = between(said, "table t (", ")");
        let sql = format!("SELECT {columns} FROM t LIMIT 1");
        let rows = query(&client, json!({ "from": uri, "sql": sql })).await;
        assert_eq!(rows["rows"][0], first, "{tool}: {rows}");
        let root = between(said, "jq root ", "\n");
        let ids = json!({ "from": uri, "jq": format!("{root} | .id"), "limit": 2 });
        let ids = query(&client, ids).await;
        assert_eq!((&ids["total"], &ids["rows"]), (&json!(10_000), &json!([[0], [1]])), "{tool}");
    }
}

#[tokio::test]
async fn the_structured_preview_says_the_same() {
    let server = with_queries().await;
    let client = Modern::of(&server);
    let result = call(&client, "rows", 10_000).await;
    let resource = &result["structuredContent"]["spilled"]["resources"][0];
    let records = json!({
        "total": 10_000, "at": "/rows", "table": "t", "columns": "id, name, note", "jq_root": ".rows[]",
    });
    assert_eq!(resource["records"], records);
    let next = resource["next"].as_array().unwrap();
    let printed = proposed(next.last().unwrap().as_str().unwrap());
    let [(tool, arguments)] = &printed[..] else { panic!("{resource}") };
    assert_eq!(tool, "query_resource");
    assert_eq!(query(&client, arguments.clone()).await["rows"], json!([[10_000]]));
}

#[tokio::test]
async fn only_what_has_records_is_proposed_for_queries_and_only_to_who_may_query() {
    let server = with_queries().await;
    let client = Modern::of(&server);
    let said = call(&client, "lines", 5_000).await;
    assert!(!text(&said).contains("query_resource") && !text(&said).contains("Records:"), "{said}");
    // Parts with and without records.
    let result = call(&client, "mixed", 40_000).await;
    assert_eq!(links(&result).len(), 2, "{result}");
    let said = proposed(text(&result)).into_iter();
    let queries: Vec<_> = said.filter(|(tool, _)| tool == "query_resource").collect();
    let [(_, counting)] = &queries[..] else { panic!("{result}") };
    assert_eq!(query(&client, counting.clone()).await["rows"], json!([[40_000]]));
    // Without the tool there are still the records, for reading.
    let result = call(&Modern::of(&super::server().await), "rows", 10_000).await;
    assert!(text(&result).contains("Records: 10,000 at /rows;"), "{result}");
    assert!(!result.to_string().contains("query_resource"), "{result}");
}
