//! Content that is damaged, or written as few others write it: the answer is right, or says what
//! it is not.

use serde_json::{Value, json};

use super::{
    query::{Service, text_of},
    query_formats::python,
};

/// The text of a query in SQL that succeeds, with its head.
async fn answer(service: &Service, from: &str, sql: &str) -> String {
    let result = service.call("query_resource", json!({ "from": from, "sql": sql })).await;
    assert_eq!(result["isError"], false, "{sql}: {}", text_of(&result));
    text_of(&result)
}

async fn slurped(service: &Service, from: &str, filter: &str) -> Value {
    let answer = service.query(json!({ "from": from, "jq": filter, "slurp": true })).await;
    answer["rows"][0][0].clone()
}

#[tokio::test]
async fn fields_of_a_record_that_is_repaired_count_once() {
    let service = Service::start().await;
    for (uri, mime_type, text) in [
        ("odd://list", "application/json", r#"[{"v":"NA","\ud83d":1},{"v":5},{"v":6}]"#),
        (
            "odd://lines",
            "application/x-ndjson",
            "{\"v\":\"NA\",\"\\ud83d\":1}\n{\"v\":5}\n{\"v\":6}\n",
        ),
        (
            "odd://members",
            "application/json",
            r#"{"a":{"v":"NA","\ud83d":1},"b":{"v":5},"c":{"v":6}}"#,
        ),
    ] {
        service.store(uri, mime_type, text).await;
        let told = answer(&service, uri, "SELECT sum(v), count(*) FROM t").await;
        assert!(told.contains("v: 1 of 3 is \"NA\", taken as null"), "{text}: {told}");
        assert!(told.ends_with("11,3\n"), "{told}");
    }
}

#[tokio::test]
async fn lines_above_a_table_that_is_damaged_are_no_silent_failure() {
    let service = Service::start().await;
    let damaged = python("gzip.compress(b'note\\n' + b'a,b\\n1,2\\n' * 9)[:-20]").await;
    service.store_bytes("odd://damaged", "application/gzip", &damaged).await;

    for skip in [0, 1, 5] {
        let from = json!({ "t": { "uri": "odd://damaged", "skip": skip } });
        let refused = service.refusal(json!({ "from": from, "sql": "SELECT 1 FROM t" })).await;
        assert!(refused.contains("cannot be read: "), "{skip}: {refused}");
    }
}

#[tokio::test]
async fn a_quoted_field_that_begins_like_a_comment_is_a_field() {
    let service = Service::start().await;
    for (number, (text, expected)) in [
        ("# made by x\nid,v\n\"#1\",2\n# c\n\"#3\",4\n", json!([["#1", 2], ["#3", 4]])),
        ("id,v\r\n# c\r\n\"#1\",2\r\n\r\n# d\r\nx,4\r\n", json!([["#1", 2], ["x", 4]])),
        ("\u{feff}# made by x\nid,v\n\"#1\",2\n", json!([["#1", 2]])),
        ("id,v\n\"# 1\n# 2\",2\n# c", json!([["# 1\n# 2", 2]])),
    ]
    .into_iter()
    .enumerate()
    {
        let uri = format!("odd://comment/{number}");
        service.store(&uri, "text/csv", text).await;
        let from = json!({ "t": { "uri": uri, "comment": "#", "header": true, "skip": 0 } });
        let rows = service.query(json!({ "from": from, "sql": "SELECT id, v FROM t" })).await;
        assert_eq!(rows["rows"], expected, "{text:?}");
    }
}

#[tokio::test]
async fn columns_and_rows_with_faults_are_a_table_and_the_filter_sees_them_as_they_are() {
    let service = Service::start().await;
    let text = "// exported\n{\"columns\": [\"a\", \"b\"], \"rows\": [[1, 'x'], [2, NaN],],}\n";
    service.store("odd://columns", "application/json", text).await;

    for _ in 0..2 {
        let rows = service.rows("odd://columns", "SELECT a, b FROM t ORDER BY a").await;
        assert_eq!(rows, json!([[1, "x"], [2, null]]));
        let first = slurped(&service, "odd://columns", ".[0] | [.columns, .rows[0]]").await;
        assert_eq!(first, json!([["a", "b"], [1, "x"]]));
    }
    let told = answer(&service, "odd://columns", "SELECT a FROM t").await;
    assert!(told.contains("the rows of the object have the names of its columns"), "{told}");
    let described =
        text_of(&service.call("describe_resource", json!({ "uri": "odd://columns" })).await);
    assert!(described.contains("records: 2 records"), "{described}");
}

#[tokio::test]
async fn a_plus_sign_before_each_number_stays() {
    let service = Service::start().await;
    let csv = "country,code\nUS,+1\nGB,+44\nDE,+49\n";
    let list = r#"[{"country":"US","code":"+1"},{"country":"GB","code":"+44"}]"#;
    for (uri, mime_type, text) in
        [("odd://plus.csv", "text/csv", csv), ("odd://plus.json", "application/json", list)]
    {
        service.store(uri, mime_type, text).await;
        let code = service.rows(uri, "SELECT code FROM t WHERE country = 'US'").await;
        assert_eq!(code, json!([["+1"]]), "{uri}");
        let country = service.rows(uri, "SELECT country FROM t WHERE code = '+44'").await;
        assert_eq!(country, json!([["GB"]]), "{uri}");
        assert_eq!(
            slurped(&service, uri, "flatten | map(.code)[:2]").await,
            json!(["+1", "+44"]),
            "{uri}"
        );

        let refused = json!({ "from": uri, "sql": "SELECT * FROM t WHERE code = 44" });
        let refused = service.refusal(refused).await;
        assert!(refused.contains("code is text, such as '+1', and 44 is a number"), "{refused}");
        assert!(refused.contains("number(code)"), "{refused}");
        let found = service.rows(uri, "SELECT country FROM t WHERE number(code) = 44").await;
        assert_eq!(found, json!([["GB"]]), "{uri}");
    }

    service.store("odd://changes", "text/csv", "day,change\n1,+3\n2,-4\n3,0\n").await;
    let sum = service.rows("odd://changes", "SELECT sum(change), max(change) FROM t").await;
    assert_eq!(sum, json!([[-1, 3]]));
}

#[tokio::test]
async fn a_table_of_a_page_that_is_missing_is_an_error_and_cells_that_span_are_told() {
    let service = Service::start().await;
    let page =
        "<p>Teams</p><table><tr><th>team<th>name<tr><td rowspan=2>red<td>Ann<tr><td>Bob</table>";
    service.store("odd://page", "text/html", page).await;

    let told = answer(&service, "odd://page", "SELECT name FROM t WHERE team = 'red'").await;
    assert!(told.ends_with("Ann\nBob\n"), "{told}");
    assert!(told.contains("1 cell that span rows or columns is repeated in each"), "{told}");

    let missing = json!({ "from": "odd://page", "rows": "/3", "sql": "SELECT 1 FROM t" });
    let refused = service.refusal(missing).await;
    assert!(
        refused.contains("it has no table 3. Tables of HTML are counted from 0: \"/0\""),
        "{refused}"
    );

    let from = json!({ "t": { "uri": "odd://page", "header": false } });
    let rows = service.query(json!({ "from": from, "sql": "SELECT column_2 FROM t" })).await;
    assert_eq!(rows["rows"], json!([["name"], ["Ann"], ["Bob"]]));
}

#[tokio::test]
async fn words_of_yaml_are_texts_and_told() {
    let service = Service::start().await;
    let text = "- {id: NO, zip: 00501, n: 1}\n- {id: DE, zip: 10115, n: .nan}\n- {id: SE, zip: 11115, n: 3, n: 4}\n";
    service.store("odd://yaml", "application/yaml", text).await;

    let told = answer(&service, "odd://yaml", "SELECT zip, n FROM t WHERE id = 'NO'").await;
    assert!(told.ends_with("00501,1\n"), "{told}");
    assert!(told.contains("1 value such as NO is text, as in YAML 1.2"), "{told}");
    assert!(told.contains("a key occurs twice, and its last value counts"), "{told}");
    assert_eq!(service.rows("odd://yaml", "SELECT sum(n) FROM t").await, json!([[5]]));
}

#[tokio::test]
async fn records_deeper_than_a_parser_allows_have_an_answer() {
    let service = Service::start().await;
    for depth in [127, 128, 200, 900] {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        for (mime_type, text) in [
            ("application/json", format!("[{{\"a\":1,\"d\":{deep}}},{{\"a\":2,\"d\":[]}}]")),
            ("application/x-ndjson", format!("{{\"a\":1,\"d\":{deep}}}\n{{\"a\":2,\"d\":[]}}\n")),
        ] {
            let uri = format!("odd://deep/{depth}/{mime_type}");
            service.store(&uri, mime_type, &text).await;
            let sum = service.rows(&uri, "SELECT sum(a), max(length(d)) FROM t").await;
            assert_eq!(sum, json!([[3, deep.len()]]), "{depth}");
            let records = slurped(&service, &uri, "flatten | map(.a)").await;
            assert_eq!(records, json!([1, 2]), "{depth}");

            let whole = service.query(json!({ "from": uri, "sql": "SELECT * FROM t" })).await;
            assert_eq!(whole["total"], 2, "{depth}: {whole}");
            for call in ["describe_resource", "read_resource"] {
                let result = service.call(call, json!({ "uri": uri })).await;
                assert_eq!(result["isError"], false, "{depth}: {result}");
            }
            let described = service.call("describe_resource", json!({ "uri": uri })).await;
            assert!(text_of(&described).contains("records: 2 records"), "{described}");
        }
    }
}

#[tokio::test]
async fn integers_within_json_that_sqlite_rounds_are_told() {
    let service = Service::start().await;
    let text =
        r#"[{"o":{"t":18446744073709551615}},{"o":{"t":18446744073709551614}},{"o":{"t":1}}]"#;
    service.store("odd://within", "application/json", text).await;

    let told = answer(&service, "odd://within", "SELECT o ->> '$.t' FROM t").await;
    let note = "o: 2 values with integers beyond 64 bits, such as 18446744073709551615: ->> and functions of JSON round them, -> and jq keep their digits";
    assert!(told.contains(note), "{told}");
    let exact = service.rows("odd://within", "SELECT count(DISTINCT o -> '$.t') FROM t").await;
    assert_eq!(exact, json!([[3]]));
    let exact = slurped(&service, "odd://within", "flatten | map(.o.t) | unique | length").await;
    assert_eq!(exact, 3);
}

#[tokio::test]
async fn a_line_that_names_the_delimiter_is_no_header() {
    let service = Service::start().await;
    for mime_type in ["text/csv", "text/plain"] {
        let uri = format!("odd://sep/{mime_type}");
        service.store(&uri, mime_type, "sep=;\r\na;b\r\n1,5;2\r\n3;4\r\n").await;
        let rows = service.rows(&uri, "SELECT a, b FROM t").await;
        assert_eq!(rows, json!([["1,5", 2], ["3", 4]]), "{mime_type}");
    }
}
