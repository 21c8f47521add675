//! jq filters answer as jq does, byte for byte.

use std::{collections::BTreeSet, process::Stdio};

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

use super::query::{Service, text_of};
use crate::support::patiently;

/// A filter a line. Those on which versions of jq disagree are left out.
const FILTERS: &str = include_str!("jq/filters.txt");
/// The inputs, each a line.
const INPUTS: &str = include_str!("jq/inputs.ndjson");
/// How many filters are run at once.
const AT_ONCE: usize = 25;

/// The filters whose answers differ from those of jq, as docs/querying.md says.
const DEVIATIONS: &[&str] = &[];

/// A program that gives the outputs of each filter as a line.
fn program(filters: &[&str]) -> String {
    let each = filters.iter().map(|filter| format!("(try [{filter}\n] catch \"error\")"));
    each.collect::<Vec<_>>().join(", ")
}

/// What jq prints; `None` if it does not compile the program.
async fn lines_of_jq(program: &str) -> Option<Vec<String>> {
    let mut command = Command::new("jq");
    command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();

    let mut stdin = child.stdin.take().unwrap();
    let writing = tokio::spawn(async move { drop(stdin.write_all(INPUTS.as_bytes()).await) });
    let output = patiently("jq", child.wait_with_output()).await.unwrap();
    writing.await.unwrap();

    let printed = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| printed.lines().map(str::to_owned).collect())
}

/// What Larder stores; `None` if it does not compile the program.
async fn lines_of_larder(service: &Service, program: &str) -> Option<Vec<String>> {
    let query =
        json!({ "from": "x:inputs", "jq": program, "limit": 1, "into": { "uri": "x:out" } });
    let result = service.call("query_resource", query).await;
    if result["isError"] == true {
        return None;
    }

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
    Some(lines)
}

/// The filters of which the answers differ, with the first difference.
async fn differences(service: &Service, filters: &[&'static str]) -> Vec<(&'static str, String)> {
    let program = program(filters);
    let expected = lines_of_jq(&program).await;
    let found = lines_of_larder(service, &program).await;

    match (expected, found, filters) {
        (Some(expected), Some(found), _) => {
            assert_eq!(expected.len(), filters.len() * INPUTS.lines().count(), "{filters:?}");
            assert_eq!(found.len(), expected.len(), "{filters:?}");
            let pairs = expected.iter().zip(&found).enumerate();
            let differing = pairs.filter(|(_, (expected, found))| expected != found);
            let mut seen = BTreeSet::new();
            differing
                .filter(|(index, _)| seen.insert(index % filters.len()))
                .map(|(index, (expected, found))| {
                    let input = index / filters.len();
                    let difference = format!("input {input}: {expected:.200}, not {found:.200}");
                    (filters[index % filters.len()], difference)
                })
                .collect()
        }
        // What does not compile is an error for each input.
        (expected, found, [filter]) => {
            let is_error = |lines: Option<Vec<String>>| {
                lines.is_none_or(|lines| lines.iter().all(|line| line == "\"error\""))
            };
            let (expected, found) = (is_error(expected), is_error(found));
            if expected == found {
                return Vec::new();
            }
            vec![(*filter, format!("an error: {expected}, not {found}"))]
        }
        _ => {
            let mut all = Vec::new();
            for filter in filters {
                all.extend(Box::pin(differences(service, &[*filter])).await);
            }
            all
        }
    }
}

#[tokio::test]
async fn hundreds_of_filters_answer_as_jq_does() {
    let service = Service::start().await;
    service.store("x:inputs", "application/x-ndjson", INPUTS).await;

    let filters: Vec<&str> = FILTERS.lines().collect();
    assert!(filters.len() > 700, "{}", filters.len());
    let mut differing = Vec::new();
    for filters in filters.chunks(AT_ONCE) {
        differing.extend(differences(&service, filters).await);
    }

    let names: BTreeSet<&str> = differing.iter().map(|(filter, _)| *filter).collect();
    let known: BTreeSet<&str> = DEVIATIONS.iter().copied().collect();
    let all = differing.iter().map(|(filter, difference)| format!("{filter}\n    {difference}\n"));
    assert_eq!(names, known, "{}", all.collect::<String>());
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
        ("x:glued", "application/json", "{\"id\":0}{\"id\":1}[2]".into()),
        ("x:log", "text/plain", plain.to_owned()),
        ("x:brackets", "text/plain", "[10:00] started\n[10:01] failed\n".into()),
        ("x:mixed", "text/plain", "{\"id\":0}\nthen text\n".into()),
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
        assert!(said.ends_with(&format!("complete; read {count} rows.")), "{uri}: {said}");
        assert_eq!(rows, "0\n1\n", "{uri}");
    }
    let (said, rows) = head("x:glued", ".[\"id\"]? // .[0]").await;
    assert!(said.contains("read 3 rows"), "{said}");
    assert_eq!(rows, "0\n1\n2\n");

    for uri in ["x:log", "x:brackets", "x:mixed"] {
        let (said, rows) = head(uri, ".line_no").await;
        assert!(said.ends_with("read 2 lines of text, each as {line_no, line}."), "{uri}: {said}");
        assert_eq!(rows, "1\n2\n");
    }

    // A value that is cut off is an error, not a line.
    let cut = format!("{}{{\"id\": ", pretty.concat());
    service.store("x:cut", "application/json", &cut).await;
    let said = service.refusal(json!({ "from": "x:cut", "jq": ".id" })).await;
    assert!(said.starts_with("t: it is not JSON"), "{said}");
}
