//! jq filters answer as jq does, byte for byte.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::query::{Service, text_of};

/// The answers of jq 1.7.1 to filters, as `record.cjs` beside them writes them.
const ANSWERS: &str = include_str!("jq/answers.ndjson");
/// The inputs, each a line.
const INPUTS: &str = include_str!("jq/inputs.ndjson");
/// How many filters are run at once.
const AT_ONCE: usize = 100;

/// The filters whose answers differ from those of jq, as docs/querying.md says.
const DEVIATIONS: &[&str] = &[
    // Integers are exact, and jq rounds those beyond 53 bits when it computes.
    "[9007199254740993 + 1, 100000000000000000000 + 1, 12345678901234567890 * 1]",
    "[1e17 + 0, 123456789012345678 + 0, 1.5e300 + 0, 1e-7 + 0, 1e-5 + 0, 1e15 + 0.5]",
    "100000000000000000001|.+0",
    "100000000000000000001|tojson,tostring,floor",
    "-100000000000000000001",
    "[9007199254740993]|.[0],(.[0]|-.)",
    // Entries may be named k and v; @base32 and its inverse are formats.
    "from_entries",
    r#"[{"k":"z","v":[1]}]|from_entries"#,
    r#"[{"k":"z","v":false}]|from_entries"#,
    "@base32",
    "@base32d",
    r#""a" | @base32, (@base32 | @base32d)"#,
    // Regular expressions have more escapes, and no limit where they need no way back.
    r#""ab"|test("\\h")"#,
    r#""aaa"|[match("a{,2}").string]"#,
    r#""A"|test("\\x41"),test("\\u0041")"#,
    r#""aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"|test("^(a+)+$")"#,
    // Years have four digits; the environment is empty.
    "1e12 | todate",
    "env == {}, ($ENV | length)",
];

/// A filter, and what jq gives for each of the inputs.
#[derive(Deserialize)]
struct Recorded {
    filter: String,
    answers: Answers,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answers {
    /// The answer to each input.
    Of(Vec<String>),
    /// The answer to all inputs.
    All(String),
}

impl Answers {
    fn to(&self, input: usize) -> &str {
        match self {
            Self::Of(answers) => &answers[input],
            Self::All(answer) => answer,
        }
    }
}

/// A program that gives the outputs of each filter as a line.
fn program(filters: &[Recorded]) -> String {
    let each =
        filters.iter().map(|recorded| format!("[try [{}\n] catch \"error\"]", recorded.filter));
    each.collect::<Vec<_>>().join(", ")
}

/// The lines that Larder stores.
async fn lines_of_larder(service: &Service, program: &str) -> Vec<String> {
    let query =
        json!({ "from": "x:inputs", "jq": program, "limit": 1, "into": { "uri": "x:out" } });
    let result = service.call("query_resource", query).await;
    assert_ne!(result["isError"], true, "{}", text_of(&result));

    let mut lines = Vec::new();
    let mut read = Some(json!({ "uri": "x:out", "unit": "lines", "limit": 10_000 }));
    while let Some(arguments) = read {
        let said = text_of(&service.call("read_resource", arguments).await);
        let (head, part) = said.split_once("\n\n").unwrap();
        assert!(!head.contains("longer than one result"), "{head}");
        lines.extend(part.lines().map(str::to_owned));

        read = head.split_once("read_resource ").map(|(_, call)| {
            serde_json::Deserializer::from_str(call).into_iter::<Value>().next().unwrap().unwrap()
        });
    }
    lines
}

#[tokio::test]
async fn more_than_a_thousand_filters_answer_as_jq_does() {
    let service = Service::start().await;
    service.store("x:inputs", "application/x-ndjson", INPUTS).await;
    let recorded: Result<Vec<Recorded>, _> = ANSWERS.lines().map(serde_json::from_str).collect();
    let recorded = recorded.unwrap();
    assert!(recorded.len() > 1_000, "{}", recorded.len());

    let mut differing = BTreeSet::new();
    let mut told = String::new();
    for filters in recorded.chunks(AT_ONCE) {
        let found = lines_of_larder(&service, &program(filters)).await;
        assert_eq!(found.len(), filters.len() * INPUTS.lines().count());

        for (index, found) in found.iter().enumerate() {
            let Recorded { filter, answers } = &filters[index % filters.len()];
            let input = index / filters.len();
            let expected = answers.to(input);
            if expected != found && differing.insert(filter.as_str()) {
                told +=
                    &format!("{filter}\n    input {input}: {expected:.200}, not {found:.200}\n");
            }
        }
    }

    let known: BTreeSet<&str> = DEVIATIONS.iter().copied().collect();
    assert_eq!(differing, known, "{told}");
}

#[tokio::test]
async fn numbers_stay_as_they_are_written_until_they_are_computed_with() {
    let service = Service::start().await;
    let text =
        r#"{"version": 1.10, "large": 12345678901234567890, "e": 1e3, "id": 9007199254740993}"#;
    service.store("x:1", "application/json", text).await;

    for (filter, expected) in [
        (".", r#"{"version":1.10,"large":12345678901234567890,"e":1E+3,"id":9007199254740993}"#),
        ("[.version + 0, .e + 0, .version * 10]", "[1.1,1000,11]"),
        (".id + 1", "9007199254740994"),
        (r#""1.10" | tonumber"#, "1.10"),
        ("[.version | tostring, tojson]", r#"["1.10","1.10"]"#),
    ] {
        let said =
            text_of(&service.call("query_resource", json!({ "from": "x:1", "jq": filter })).await);
        assert_eq!(said.split_once("\n\n").unwrap().1, format!("{expected}\n"), "{filter}");
    }
}

#[tokio::test]
async fn values_one_after_another_are_inputs_and_lines_are_named_as_lines() {
    let service = Service::start().await;
    let objects: Vec<Value> = (0..2_000).map(|n| json!({ "id": n, "of": [n] })).collect();
    let pretty = objects.iter().map(|object| format!("{object:#}\n")).collect::<Vec<_>>();
    let plain = "10:00 started\n10:01 failed\n";

    for (uri, mime_type, text) in [
        ("x:several", "application/json", pretty.concat()),
        ("x:untyped", "text/plain", pretty.concat()),
        ("x:joined", "text/plain", pretty.join(" ")),
        ("x:few", "application/json", pretty[..3].concat()),
        ("x:log", "text/plain", plain.to_owned()),
    ] {
        service.store(uri, mime_type, &text).await;
    }

    let head = async |uri: &str, filter: &str| {
        let said = service.call("query_resource", json!({ "from": uri, "jq": filter })).await;
        text_of(&said)
            .split_once("\n\n")
            .map(|(head, rest)| (head.to_owned(), rest.to_owned()))
            .unwrap()
    };

    for (uri, count) in
        [("x:several", "2,000"), ("x:untyped", "2,000"), ("x:joined", "2,000"), ("x:few", "3")]
    {
        let (said, rows) = head(uri, "select(.id < 2) | .id").await;
        assert!(said.contains(&format!("complete; read {count} rows")), "{uri}: {said}");
        assert_eq!(rows, "0\n1\n", "{uri}");
    }
    let (said, rows) = head("x:log", ".line_no").await;
    assert!(said.ends_with("read 2 lines of text, each as {line_no, line}."), "{said}");
    assert_eq!(rows, "1\n2\n");
}

#[tokio::test]
async fn records_are_counted_with_those_that_are_skipped_and_repaired() {
    let service = Service::start().await;
    let lines = "{\"a\": 1}\nnot JSON\n{\"a\": 2,}\n\nnor this\n{\"a\": 3,}\n{\"a\": 4}\n";
    service.store("x:lines", "application/x-ndjson", lines).await;

    let answer = service.query(json!({ "from": "x:lines", "jq": ".a" })).await;
    assert_eq!(answer["rows"], json!([[1], [2], [3], [4]]));
    assert_eq!((&answer["read"]["rows"], &answer["read"]["skipped"]), (&json!(4), &json!(2)));

    // The record of the note is that of SQL, which reads the lines by other code.
    let by_sql = service.query(json!({ "from": "x:lines", "sql": "SELECT a FROM t" })).await;
    let repaired = |answer: &Value| {
        let notes = answer["notes"].as_array().unwrap();
        notes.iter().find(|note| note["kind"] == "repaired").cloned()
    };
    assert!(repaired(&answer).is_some(), "{answer}");
    assert_eq!(repaired(&answer), repaired(&by_sql));
}

#[tokio::test]
async fn an_error_over_rows_names_their_members() {
    let service = Service::start().await;
    service.store("x:rows", "text/csv", "id,zip,ok\n1,00501,true\n2,10001,false\n").await;

    let rows = service.query(json!({ "from": "x:rows", "jq": "., (.ok | not)", "limit": 2 })).await;
    let first = json!({ "id": 1, "zip": "00501", "ok": true });
    assert_eq!(rows["rows"], json!([[first], [false]]));

    let said = service.refusal(json!({ "from": "x:rows", "jq": ".[0]" })).await;
    assert!(said.starts_with("jq: cannot index "), "{said}");
    assert!(said.ends_with(". Each row is an object with id, zip, ok."), "{said}");
}
