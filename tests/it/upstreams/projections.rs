//! The answer in one call: the reserved argument of tools behind the server, and of an author's.

use std::sync::Arc;

use larder::{
    Context, Registry, Tool,
    query::{Queries, QueryLimits},
    registry::Builder,
    tools::{self, ToolOptions},
    upstream::{Settings, Upstream},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{listed, meaning::answering, text, uri_in};
use crate::support::{Answer, Legacy, Modern, Server};

/// The arguments that a tool has seen, by call.
type Seen = Arc<Mutex<Vec<Value>>>;

pub(crate) fn projecting(builder: Builder<()>) -> Builder<()> {
    let limits = QueryLimits {
        program: Some(env!("CARGO_BIN_EXE_larder").into()),
        time: std::time::Duration::from_secs(60),
        ..QueryLimits::default()
    };
    let queries = Arc::new(Queries::new(limits));
    builder
        .with(tools::reading(ToolOptions::default()))
        .with(tools::writing())
        .with(tools::querying_with(Arc::clone(&queries), true))
        .with(tools::projecting(queries, true))
}

pub(super) async fn in_front_of(upstream: Settings) -> Server {
    let mut builder = projecting(Registry::builder("gateway"));
    for provider in Upstream::all(vec![upstream], builder.tool_names()) {
        builder = builder.provider(provider);
    }
    Server::of(builder.build().unwrap()).await
}

fn issues(count: u64) -> Value {
    let issue = |n: u64| {
        json!({
            "number": n, "title": format!("Issue {n}"), "state": if n.is_multiple_of(3) { "closed" } else { "open" },
            "user": { "login": format!("user-{}", n % 7) }, "body": "A long text. ".repeat(20),
        })
    };
    (1..=count).map(issue).collect()
}

/// A server of issues, which are its text, its structured content, or lines.
async fn tracker() -> (Settings, Seen) {
    let schema = json!({
        "type": "object", "properties": { "count": { "type": "integer" } }, "additionalProperties": false,
    });
    let output = json!({
        "type": "object", "required": ["issues"],
        "properties": { "issues": { "type": "array", "items": { "$ref": "#/$defs/issue" } } },
        "$defs": { "issue": { "type": "object", "required": ["number"] } },
    });
    let own = json!({ "type": "object", "properties": { "_larder": { "type": "string" } } });
    let listed = json!([
        { "name": "list_issues", "inputSchema": schema },
        { "name": "structured", "inputSchema": schema, "outputSchema": output },
        { "name": "csv", "inputSchema": schema },
        { "name": "log", "inputSchema": { "type": "object" } },
        { "name": "refusing", "inputSchema": { "type": "object" } },
        {
            "name": "get_issue", "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
        },
        { "name": "own", "inputSchema": own },
    ]);

    let seen = Seen::default();
    let record = Arc::clone(&seen);
    let upstream = answering("far", move |method, params| match method {
        "tools/list" => Some(json!({ "tools": listed })),
        "tools/call" => {
            let arguments = &params["arguments"];
            record.lock().push(arguments.clone());
            let issues = issues(arguments["count"].as_u64().unwrap_or(30));
            let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
            Some(match params["name"].as_str().unwrap() {
                "structured" => json!({
                    "content": [{ "type": "text", "text": json!({ "issues": issues }).to_string() }],
                    "structuredContent": { "issues": issues },
                }),
                "csv" => text("id,city\n1,Bonn\n2,Köln\n3,Bonn\n".into()),
                "log" => text("12:00 ERROR disk\n12:01 INFO fine\n12:02 ERROR net\n".into()),
                "refusing" => json!({
                    "content": [{ "type": "text", "text": "No such repository." }], "isError": true,
                }),
                "own" => text(arguments.to_string()),
                "get_issue" if arguments["number"] == 3 => json!({
                    "content": [{ "type": "text", "text": "There is no issue 3." }], "isError": true,
                }),
                "get_issue" => {
                    text(json!({ "asked": arguments, "body": "x".repeat(1_500) }).to_string())
                }
                _ => text(issues.to_string()),
            })
        }
        _ => None,
    });
    (upstream.await, seen)
}

/// Calls a tool with arguments as they are written here.
pub(super) async fn exactly(client: &Legacy, tool: &str, arguments: &str) -> Answer {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    Answer::of(client.post(&json!({})).body(body)).await
}

/// The text below the first paragraph.
pub(super) fn body(result: &Value) -> &str {
    text(result).split_once("\n\n").unwrap_or_else(|| panic!("{result}")).1.trim_end()
}

#[tokio::test]
async fn the_part_that_is_asked_for_comes_with_the_total_and_the_uri() {
    let (upstream, seen) = tracker().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;

    let titles = "1,Issue 1\n2,Issue 2";
    for (tool, larder, shown, total) in [
        (
            "list_issues",
            json!({ "jq": "map({number, title})[:1]" }),
            "[{\"number\":1,\"title\":\"Issue 1\"}]",
            "1 value",
        ),
        ("list_issues", json!({ "jq": "length" }), "30", "1 value"),
        (
            "list_issues",
            json!({ "jq": ".[] | select(.state == \"closed\") | .number" }),
            "3\n6\n9\n12\n15\n18\n21\n24\n27\n30",
            "10 of 10 values",
        ),
        (
            "list_issues",
            json!({ "sql": "SELECT number, title FROM t ORDER BY number LIMIT 2" }),
            &*format!("number,title\n{titles}"),
            "2 of 2 rows",
        ),
        (
            "list_issues",
            json!({ "sql": "SELECT state, count(*) AS n FROM t GROUP BY state ORDER BY 1" }),
            "state,n\nclosed,10\nopen,20",
            "2 of 2 rows",
        ),
        ("structured", json!({ "jq": ".issues | length" }), "30", "1 value"),
        (
            "csv",
            json!({ "sql": "SELECT city, count(*) AS n FROM t GROUP BY city ORDER BY 1" }),
            "city,n\nBonn,2\nKöln,1",
            "2 of 2 rows",
        ),
        (
            "csv",
            json!({ "fields": ["city"] }),
            "{\"city\":\"Bonn\"}\n{\"city\":\"Köln\"}\n{\"city\":\"Bonn\"}",
            "3 of 3 values",
        ),
    ] {
        let result = client.call(tool, json!({ "count": 30, "_larder": larder })).await.result();
        assert_ne!(result["isError"], true, "{tool} {larder}: {result}");
        assert_eq!(body(&result), shown, "{tool} {larder}: {result}");
        let head = text(&result).split_once("\n\n").unwrap().0;
        assert!(head.contains(total), "{larder}: {head}");

        // The whole is there, and its URI ends a line.
        let uri = uri_in(head);
        assert!(head.lines().any(|line| line == uri), "{head}");
        let whole =
            client.call("query_resource", json!({ "from": uri, "sql": "SELECT count(*) FROM t" }));
        assert!(whole.await.text().contains(if tool == "csv" { "\n3" } else { "\n30" }));
    }
    // The server behind has seen its own arguments only.
    assert!(seen.lock().iter().all(|arguments| *arguments == json!({ "count": 30 })), "{seen:?}");
}

#[tokio::test]
async fn fields_head_and_search_select_from_records_lines_and_members() {
    let (upstream, _) = tracker().await;
    let server = in_front_of(upstream).await;
    let client = Modern::of(&server);
    let asked = async |tool: &str, larder: Value| {
        client.call(tool, json!({ "count": 20, "_larder": larder })).await.result()
    };

    let first = asked("list_issues", json!({ "fields": ["number", "user.login"] })).await;
    assert!(
        body(&first).starts_with("{\"number\":1,\"user.login\":\"user-1\"}\n{\"number\":2,"),
        "{first}"
    );
    let nested = asked("structured", json!({ "fields": "number,title" })).await;
    assert!(body(&nested).starts_with("{\"number\":1,\"title\":\"Issue 1\"}\n"), "{nested}");

    let head = asked("list_issues", json!({ "head": 2 })).await;
    assert!(text(&head).contains("of 20 records"), "{head}");
    assert_eq!(body(&head).matches("\"number\":").count(), 2, "{head}");
    let head = asked("log", json!({ "head": 1 })).await;
    assert_eq!(body(&head), "12:00 ERROR disk", "{head}");

    let found = asked("log", json!({ "search": "ERROR" })).await;
    assert!(text(&found).contains("2 matches"), "{found}");
    assert!(body(&found).contains("ERROR net") && !body(&found).contains("INFO"), "{found}");
}

#[tokio::test]
async fn a_projection_that_cannot_work_fails_before_the_call_and_one_that_does_not_after_it() {
    let (upstream, seen) = tracker().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    let asked = async |larder: &Value| {
        client.call("list_issues", json!({ "count": 5, "_larder": larder })).await.failure()
    };

    for larder in [
        json!({ "jq": ".[" }),
        json!({ "jq": "nonsense(1)" }),
        json!({ "sql": "SELEC 1" }),
        json!({ "sql": "DELETE FROM t" }),
        json!({ "sql": "SELECT 1; SELECT 2" }),
        json!({ "sql": "SELECT * FROM issues" }),
        json!({ "search": "(" }),
        json!({ "filter": "." }),
        json!({ "jq": ".", "sql": "SELECT 1" }),
        json!("number"),
    ] {
        let said = asked(&larder).await;
        assert!(said.starts_with("list_issues was not called: "), "{larder}: {said}");
    }
    assert!(seen.lock().is_empty(), "{seen:?}");

    for (calls, (larder, cause)) in [
        (json!({ "jq": ".[] | .number / \"x\"" }), "cannot calculate"),
        (json!({ "sql": "SELECT numbr FROM t" }), "No column numbr"),
        (json!({ "sql": "SELECT nofunction(number) FROM t" }), "There is no function nofunction"),
        (json!({ "fields": ["numbr"] }), "no record has numbr; the first one has number, title"),
    ]
    .into_iter()
    .enumerate()
    {
        let said = asked(&larder).await;
        assert!(said.starts_with("list_issues was executed"), "{larder}: {said}");
        assert!(said.contains(cause), "{larder}: {said}");
        assert_eq!(seen.lock().len(), calls + 1);
        let read = client.call("read_resource", json!({ "uri": uri_in(&said) })).await.text();
        assert!(read.contains("Issue 5"), "{read}");
    }
}

#[tokio::test]
async fn an_error_of_the_tool_is_its_error_and_whole_is_the_result() {
    let (upstream, seen) = tracker().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;

    let failure = client.call("refusing", json!({ "_larder": { "jq": ".a" } })).await.failure();
    assert_eq!(failure, "No such repository.");
    for larder in [json!({ "whole": true }), json!({}), Value::Null] {
        let result = client.call("csv", json!({ "_larder": larder })).await.result();
        assert_eq!(text(&result), "id,city\n1,Bonn\n2,Köln\n3,Bonn\n");
    }
    // A tool that has such an argument gets it.
    let own = client.call("own", json!({ "_larder": "mine" })).await.result();
    assert_eq!(text(&own), "{\"_larder\":\"mine\"}");
    assert_eq!(seen.lock().last().unwrap(), &json!({ "_larder": "mine" }));
    let raw = exactly(&client, "own", r#"{"_larder":"mine","price":1.10}"#).await;
    assert_ne!(raw.result()["isError"], true);
    assert_eq!(seen.lock().last().unwrap(), &json!({ "_larder": "mine", "price": 1.1 }));
}

#[tokio::test]
async fn the_list_grows_by_few_bytes_and_results_fit_their_schemas() {
    let (upstream, _) = tracker().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    let tools = listed(&client).await;

    let reserved = &tools["list_issues"]["inputSchema"]["properties"]["_larder"];
    assert_eq!(reserved, &json!({ "type": "object" }));
    assert_eq!(tools["own"]["inputSchema"]["properties"]["_larder"], json!({ "type": "string" }));
    assert!(tools["read_resource"]["inputSchema"]["properties"].get("_larder").is_none());

    let valid = jsonschema::draft202012::new(&tools["structured"]["outputSchema"]).unwrap();
    for larder in
        [json!({ "jq": ".issues[0].number" }), json!({ "head": 1 }), json!({ "search": "Issue 3" })]
    {
        let result = client.call("structured", json!({ "_larder": larder })).await.result();
        assert!(valid.is_valid(&result["structuredContent"]), "{result}");
        assert_eq!(
            result["structuredContent"]["spilled"]["resources"][0]["uri"],
            uri_in(text(&result))
        );
    }
    let small = client.call("structured", json!({ "count": 2 })).await.result();
    assert!(valid.is_valid(&small["structuredContent"]), "{small}");
    assert!(!valid.is_valid(&json!({ "issues": [{ "title": "without a number" }] })));
}

#[tokio::test]
async fn the_answer_can_be_stored_and_numbers_are_kept() {
    let (upstream, seen) = tracker().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;

    let larder = json!({ "sql": "SELECT number FROM t", "into": { "uri": "x:numbers" } });
    let stored = client.call("list_issues", json!({ "_larder": larder })).await.result();
    assert!(text(&stored).contains("x:numbers"), "{stored}");
    let read = client.call("read_resource", json!({ "uri": "x:numbers" })).await.text();
    assert!(read.ends_with("29\n30\n") && read.contains("\n1\n2\n"), "{read}");

    assert_eq!(seen.lock().len(), 1);
}

#[tokio::test]
async fn what_the_operator_has_chosen_is_given_unless_the_call_says_otherwise() {
    let (mut upstream, _) = tracker().await;
    upstream.project =
        [("list_*", "[.[:2][] | {number, title}]"), ("csv", ".["), ("log", ".number / \"x\"")]
            .map(|(tool, filter)| (tool.to_owned(), filter.to_owned()))
            .into();
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;

    let chosen = client.call("list_issues", json!({})).await.result();
    let expected = "[{\"number\":1,\"title\":\"Issue 1\"},{\"number\":2,\"title\":\"Issue 2\"}]";
    assert_eq!(body(&chosen), expected);
    let whole = json!({ "count": 3, "_larder": { "whole": true } });
    let whole = client.call("list_issues", whole).await.result();
    assert_eq!(text(&whole), issues(3).to_string());
    let other = client.call("list_issues", json!({ "_larder": { "jq": "length" } })).await.result();
    assert_eq!(body(&other), "30");

    // A filter that does not work hides nothing.
    let csv = client.call("csv", json!({})).await.result();
    assert_eq!(text(&csv), "id,city\n1,Bonn\n2,Köln\n3,Bonn\n");
    let log = client.call("log", json!({})).await.result();
    assert!(log["isError"] != true, "{log}");
    assert_eq!(text(&log), "12:00 ERROR disk\n12:01 INFO fine\n12:02 ERROR net\n");
}

#[tokio::test]
async fn one_call_runs_a_tool_for_each_of_many_arguments() {
    let (upstream, seen) = tracker().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;

    let each: Vec<_> = (1..=271).map(|number| json!({ "number": number })).collect();
    let sql = "SELECT count(*) AS n, sum(ok) AS ok, max(value ->> '$.asked.number') AS last FROM t";
    let asked = json!({ "repo": "a", "_larder": { "each": each, "sql": sql } });
    let result = client.call("get_issue", asked).await.result();
    assert_eq!(body(&result), "n,ok,last\n271,270,271", "{result}");
    let said = text(&result);
    let summary =
        "271 calls of get_issue: 270 ok, 1 failed (the first is record 2: There is no issue 3.)";
    assert!(said.starts_with(summary) && said.len() < 1_000, "{said}");
    assert_eq!(seen.lock().len(), 271);
    assert!(seen.lock().iter().all(|arguments| arguments["repo"] == "a"));

    // The records are in the order of the arguments, and are arguments again.
    let uri = uri_in(said);
    let order = json!({ "from": uri, "jq": "[.input.number] | .[]", "slurp": false, "limit": 300 });
    let order = client.call("query_resource", order).await.text();
    let numbers: Vec<u64> =
        order.split("\n\n").nth(1).unwrap().lines().map(|n| n.parse().unwrap()).collect();
    assert_eq!(numbers, (1..=271).collect::<Vec<_>>());

    client.create(json!({ "uri": "x:numbers", "text": "number,repo\n5,b\n6,\n", "mime_type": "text/csv" })).await;
    seen.lock().clear();
    for reference in ["x:numbers", "{{x:numbers}}"] {
        let asked = json!({ "repo": "a", "_larder": { "each": reference } });
        let result = client.call("get_issue", asked).await.result();
        assert!(text(&result).starts_with("2 calls of get_issue: 2 ok, none failed."), "{result}");
        assert!(text(&result).contains("Next: query_resource {"), "{result}");
    }
    let mut asked = seen.lock().clone();
    asked.truncate(2);
    asked.sort_by_key(|arguments| arguments["number"].as_u64());
    assert_eq!(asked, [json!({ "repo": "b", "number": 5 }), json!({ "repo": "a", "number": 6 })]);
}

#[tokio::test]
async fn only_what_reads_is_called_for_each_and_nothing_if_it_cannot_be() {
    let (mut upstream, seen) = tracker().await;
    let server = in_front_of(upstream.clone()).await;
    let client = Legacy::of(&server).await;
    let many: Vec<_> = (0..1_001).map(|n| json!({ "n": n })).collect();
    for (tool, each, expected) in [
        ("list_issues", json!([{}]), "each and pages are for tools that only read"),
        ("get_issue", json!([]), "each is empty"),
        ("get_issue", json!([1]), "each is a list of arguments"),
        ("get_issue", json!({ "n": 1 }), "each is a list of arguments"),
        ("get_issue", json!(many), "more than 1000 arguments"),
        ("get_issue", json!("x:none"), "Resource not found: x:none"),
    ] {
        let refused = client.call(tool, json!({ "_larder": { "each": each } })).await.failure();
        assert!(refused.starts_with(&format!("{tool} was not called: ")), "{refused}");
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
    let wrong = json!({ "_larder": { "each": [{}], "jq": ".[" } });
    let refused = client.call("get_issue", wrong).await.failure();
    assert!(refused.starts_with("get_issue was not called: "), "{refused}");
    assert!(seen.lock().is_empty());

    upstream.fans_out = true;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    let each =
        json!({ "_larder": { "each": [{ "count": 1 }, { "count": 2 }], "jq": ".value | length" } });
    let result = client.call("list_issues", each).await.result();
    assert_eq!(body(&result), "1\n2", "{result}");
    let each = json!({ "_larder": { "each": [{ "count": 1 }] } });
    let structured = client.call("structured", each).await.result();
    assert!(structured["structuredContent"]["spilled"]["resources"][0]["uri"].is_string());
}

/// Rows of a table.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rows {
    /// How many.
    n: u64,
}

#[tokio::test]
async fn an_authors_tool_is_projected_where_it_says_so() {
    let rows = |_: Context, args: Rows| async move { issues(args.n).to_string() };
    let builder = projecting(Registry::builder("mine"))
        .tool(Tool::new(rows).projectable())
        .tool(Tool::new(rows).name("plain"));
    let server = Server::of(builder.build().unwrap()).await;

    for client in [Legacy::of(&server).await, Legacy::speaking(&server, "2025-03-26").await] {
        let asked = json!({ "n": 4, "_larder": { "jq": "[.[].number]" } });
        let result = client.call("rows", asked.clone()).await.result();
        assert_eq!(body(&result), "[1,2,3,4]", "{result}");
        let refused = client.call("plain", asked).await.failure();
        assert!(refused.contains("_larder"), "{refused}");
    }
    let tools = listed(&Legacy::of(&server).await).await;
    assert!(tools["rows"]["inputSchema"]["properties"]["_larder"].is_object());
    assert!(tools["plain"]["inputSchema"]["properties"].get("_larder").is_none());
}
