//! `query_resource`: the options of each resource that a query reads.

use serde_json::json;

use super::query::{Service, text_of};

#[tokio::test]
async fn each_table_has_its_own_options() {
    let service = Service::start().await;
    let people = json!({ "meta": [1, 2, 3], "people": [{ "id": 1, "name": "Ann" }, { "id": 2, "name": "Bo" }] });
    service.store("x:people", "application/json", &people.to_string()).await;
    // Without a type that says so, both are lists of lines.
    service.store("x:points", "text/plain", "id,points\n1,10\n2,20\n").await;
    service.store("x:log", "text/plain", "GET 1 5ms\n-- rotated --\nGET 2 7ms\nPUT 1 9ms\n").await;
    let from = json!({
        "people": { "uri": "x:people", "rows": "/people" },
        "points": { "uri": "x:points", "format": "csv" },
        "log": { "uri": "x:log", "format": "log", "pattern": r"^(?P<verb>[A-Z]+) (?P<id>\d+) (?P<ms>\d+)ms" },
    });
    let sql = "SELECT name, points, sum(ms), max(line_no) FROM people JOIN points USING (id) JOIN log USING (id) GROUP BY name ORDER BY name";
    let arguments = json!({ "from": from, "sql": sql, "limit": 1 });
    let answer = service.query(arguments.clone()).await;
    assert_eq!(answer["rows"], json!([["Ann", 10, 14, 4]]));
    assert_eq!(answer["read"]["skipped"], 1);
    // The next call has the same options.
    assert_eq!(answer["next"]["from"], from);
    assert_eq!(service.query(answer["next"].clone()).await["rows"], json!([["Bo", 20, 7, 3]]));
    // Some hosts pass objects as text.
    let mut as_text = arguments.clone();
    as_text["from"] = json!(from.to_string());
    assert_eq!(service.query(as_text).await["rows"], json!([["Ann", 10, 14, 4]]));
    // One table may be named, too, and have options of the call.
    let named =
        json!({ "from": { "p": "x:people" }, "rows": "/people", "sql": "SELECT count(*) FROM p" });
    assert_eq!(service.query(named).await["rows"], json!([[2]]));
    // jq reads the one resource by its options.
    let filter =
        json!({ "from": { "p": { "uri": "x:people", "rows": "/people" } }, "jq": ".name" });
    assert_eq!(service.query(filter).await["rows"], json!([["Ann"], ["Bo"]]));
}

#[tokio::test]
async fn a_revision_belongs_to_its_table() {
    let service = Service::start().await;
    service.store("x:a", "text/csv", "n\n1\n").await;
    let update = json!({ "uri": "x:a", "text": "n\n1\n2\n" });
    let updated = service.call("update_resource", update).await;
    assert_eq!(updated["isError"], false, "{updated}");
    let from = json!({ "old": { "uri": "x:a", "revision": 1 }, "new": "x:a" });
    let sql = "SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM new)";
    assert_eq!(service.query(json!({ "from": from, "sql": sql })).await["rows"], json!([[1, 2]]));
}

#[tokio::test]
async fn an_option_that_says_nothing_is_an_error_that_shows_the_right_form() {
    let service = Service::start().await;
    service.store("x:json", "application/json", r#"[{"a": 1}]"#).await;
    service.store("x:csv", "text/csv", "a\n1\n").await;
    let both = json!({ "one": "x:json", "two": "x:csv" });
    let sql = "SELECT 1";
    for (arguments, expected) in [
        (
            json!({ "from": both, "sql": sql, "format": "csv" }),
            "format needs a single URI in from; with several, give it to a table: {\"orders\":{\"uri\":\"results://1\",\"format\":\"csv\"}}.",
        ),
        (json!({ "from": both, "sql": sql, "rows": "/a" }), "rows needs a single URI in from"),
        (json!({ "from": both, "sql": sql, "pattern": "(?P<x>.)" }), "pattern needs a single URI"),
        (json!({ "from": both, "sql": sql, "revision": 1 }), "revision needs a single URI"),
        (
            json!({ "from": { "t": { "uri": "x:csv", "rows": "/a" } }, "sql": sql }),
            "rows is for JSON, and t is a table, whose rows are below its header: leave it out.",
        ),
        (
            json!({ "from": { "t": { "uri": "x:csv", "pattern": "(?P<x>.)" } }, "sql": sql }),
            "pattern is for logs: add \"format\":\"log\".",
        ),
    ] {
        let said = service.refusal(arguments.clone()).await;
        assert!(said.starts_with(expected), "{arguments}: {said}");
    }
    // An unknown option is refused before the tool runs.
    for from in [
        json!({ "t": { "rows": "/a" } }),
        json!({ "t": { "uri": "x:csv", "row": "/a" } }),
        json!({ "t": 7 }),
    ] {
        let arguments = json!({ "from": from, "sql": sql });
        let result = service.call("query_resource", arguments).await;
        assert_eq!(result["isError"], true, "{from}: {result}");
        assert!(text_of(&result).contains("from"), "{from}: {result}");
    }
}

#[tokio::test]
async fn what_a_pattern_does_not_match_is_skipped_and_no_row() {
    let service = Service::start().await;
    for (log, rows, skipped) in [
        ("a=1\nnone\na=2\n", 2, 1),
        ("none\nnone\n", 0, 2),
        ("a=1\na=2\n", 2, 0),
        ("\n\na=1", 1, 2),
        ("a=1\r\n  at x\r\n  at y\r\na=2\r\n", 2, 2),
        ("", 0, 0),
    ] {
        service.store("x:log", "text/plain", log).await;
        let pattern = r"a=(?P<a>\d)";
        let sql = json!({ "from": "x:log", "format": "log", "pattern": pattern, "sql": "SELECT count(*), count(a) FROM t" });
        let answer = service.query(sql).await;
        assert_eq!(answer["rows"], json!([[rows, rows]]), "{log:?}");
        assert_eq!(
            (&answer["read"]["rows"], &answer["read"]["skipped"]),
            (&json!(rows), &json!(skipped))
        );
        let jq = json!({ "from": "x:log", "format": "log", "pattern": pattern, "slurp": true, "jq": "length" });
        let answer = service.query(jq).await;
        assert_eq!(answer["rows"], json!([[rows]]), "{log:?}");
        assert_eq!(answer["read"]["skipped"], skipped, "{log:?}");
    }
    // A line keeps its number.
    service.store("x:log", "text/plain", "a=1\nnone\na=2\n").await;
    let sql = json!({ "from": "x:log", "format": "log", "pattern": "a=(?P<a>.)", "sql": "SELECT line_no, a FROM t" });
    assert_eq!(service.query(sql).await["rows"], json!([[1, 1], [3, 2]]));
}
