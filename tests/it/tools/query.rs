//! `query_resource`: what SQL and jq answer, compared with other programs.

use std::{collections::BTreeMap, fmt::Write, process::Stdio};

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::support::{
    Answer, patiently, post,
    process::{Process, larder, run, serving, serving_in},
    request,
};

/// A server of its own, and what a test asks it.
pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) url: String,
}

impl Service {
    pub(crate) async fn start() -> Self {
        let (process, url) = serving(&[]).await;
        Self { process, url }
    }

    pub(crate) async fn start_in(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let (process, url) = serving_in(arguments, environment).await;
        Self { process, url }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_as(None, tool, arguments).await
    }

    pub(crate) async fn call_as(&self, token: Option<&str>, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let mut request = post(&self.url, &request("tools/call", params));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        Answer::of(request).await.result()
    }

    pub(crate) async fn store(&self, uri: &str, mime_type: &str, text: &str) {
        let content = json!({ "uri": uri, "mime_type": mime_type, "text": text });
        let stored = self.call("create_resource", content).await;
        assert_eq!(stored["isError"], false, "{stored}");
    }

    /// The result of a query, which succeeds.
    pub(crate) async fn query(&self, arguments: Value) -> Value {
        let result = self.call("query_resource", arguments.clone()).await;
        assert_eq!(result["isError"], false, "{arguments}: {}", text_of(&result));
        result["structuredContent"].clone()
    }

    /// The rows of a SELECT over a URI.
    pub(crate) async fn rows(&self, uri: &str, sql: &str) -> Value {
        self.query(json!({ "from": uri, "sql": sql })).await["rows"].clone()
    }

    /// What a query that fails says.
    pub(crate) async fn refusal(&self, arguments: Value) -> String {
        let result = self.call("query_resource", arguments.clone()).await;
        assert_eq!(result["isError"], true, "{arguments}: {result}");
        text_of(&result)
    }
}

pub(crate) fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// A text of so many lines.
pub(crate) fn numbered(lines: u32, line: impl Fn(u32) -> String) -> String {
    (0..lines).fold(String::new(), |text, n| text + &line(n) + "\n")
}

/// What a program prints for this input.
pub(crate) async fn output_of(program: &str, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.as_bytes().to_vec());
    let written = tokio::spawn(async move { drop(stdin.write_all(&input).await) });
    let output = patiently(program, child.wait_with_output()).await.unwrap();
    written.await.unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Orders, some of them with line breaks and quotes in a field.
fn orders() -> String {
    let mut csv = "order_id,customer,zip,status,price,note\r\n".to_owned();
    for n in 0..3_000 {
        let zip = if n % 2 == 0 { format!("{:05}", n % 900) } else { (10_000 + n).to_string() };
        let note = if n % 7 == 0 { "\"two\nlines, \"\"quoted\"\"\"" } else { "" };
        let status = if n % 3 == 0 { 404 } else { 200 };
        let price = f64::from(n) / 4.0;
        let _ = write!(csv, "{n},{},{zip},{status},{price},{note}\r\n", n % 40);
    }
    csv
}

/// Customers, some without a name, some with a text as their level.
fn customers() -> String {
    (0..40).fold(String::new(), |lines, n| {
        let level = if n % 5 == 0 { json!("none") } else { json!(n % 3) };
        let mut customer = json!({ "id": n, "level": level, "tags": ["a", n] });
        if n % 4 > 0 {
            customer["name"] = json!(format!("Customer {n} \u{e4}"));
        }
        lines + &customer.to_string() + "\n"
    })
}

#[tokio::test]
async fn cells_have_the_types_that_they_look_like() {
    let service = Service::start().await;
    service.store("x:orders", "text/csv", &orders()).await;
    let rows = service.rows("x:orders", "SELECT count(*) FROM t WHERE status = 200").await;
    assert_eq!(rows, json!([[2_000]]));
    let sql = "SELECT count(*), min(typeof(zip)), max(typeof(zip)) FROM t WHERE zip = '00500' OR zip = '10001' OR zip = '10003'";
    assert_eq!(service.rows("x:orders", sql).await, json!([[5, "text", "text"]]));
    let sql = "SELECT count(*), count(note), max(note), round(avg(price), 3) FROM t";
    let expected = json!([[3_000, 429, "two\nlines, \"quoted\"", 374.875]]);
    assert_eq!(service.rows("x:orders", sql).await, expected);
    service.store("x:customers", "application/x-ndjson", &customers()).await;
    let sql = "SELECT level, typeof(level), count(*) FROM t GROUP BY level ORDER BY level";
    let expected =
        json!([[0, "integer", 11], [1, "integer", 11], [2, "integer", 10], ["none", "text", 8]]);
    assert_eq!(service.rows("x:customers", sql).await, expected);
    let sql = "SELECT tags ->> '$[1]', typeof(name) FROM t WHERE id < 2 ORDER BY id";
    assert_eq!(service.rows("x:customers", sql).await, json!([[0, "null"], [1, "text"]]));
}

#[tokio::test]
async fn joins_are_those_of_sqlite_in_python() {
    const PYTHON: &str = r#"
import csv, io, json, sqlite3, sys
orders, customers, regions, sql = json.load(sys.stdin)
db = sqlite3.connect(":memory:")
def load(name, columns, rows):
    db.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
def number(text):
    return int(text) if text.isdigit() else float(text)
rows = list(csv.reader(io.StringIO(orders, newline="")))
load("orders", rows[0], [[number(r[0]), number(r[1]), r[2], number(r[3]), number(r[4]), r[5] or None] for r in rows[1:]])
people = [json.loads(line) for line in customers.splitlines()]
load("customers", ["id", "level", "name"], [[p["id"], p["level"], p.get("name")] for p in people])
load("regions", ["level", "region"], [[r["level"], r["region"]] for r in json.loads(regions)["data"]["regions"]])
json.dump(db.execute(sql).fetchall(), sys.stdout)
"#;
    let service = Service::start().await;
    let regions = json!({ "data": { "regions": [
        { "level": 0, "region": "north" }, { "level": 1, "region": "east" }, { "level": "none", "region": "?" },
    ] }, "version": 3 })
    .to_string();
    service.store("x:orders", "text/csv", &orders()).await;
    service.store("x:customers", "application/x-ndjson", &customers()).await;
    service.store("x:regions", "application/json", &regions).await;
    let from = json!({ "orders": "x:orders", "customers": "x:customers", "regions": "x:regions" });
    for sql in [
        "SELECT c.name, count(*) AS n, sum(o.price) FROM orders o JOIN customers c ON o.customer = c.id WHERE o.status = 200 GROUP BY c.id ORDER BY n DESC, c.id",
        "SELECT region, count(*), max(o.zip) FROM orders o JOIN customers c ON c.id = o.customer LEFT JOIN regions r ON r.level = c.level GROUP BY region ORDER BY region",
        "WITH big AS (SELECT customer, sum(price) AS s FROM orders GROUP BY customer) SELECT c.id, s, rank() OVER (ORDER BY s DESC) FROM big JOIN customers c ON c.id = customer ORDER BY c.id",
        "SELECT c.id, c.name IS NULL, (SELECT count(*) FROM orders WHERE customer = c.id AND note LIKE '%lines%') FROM customers c ORDER BY 1",
    ] {
        let answer = service.query(json!({ "from": from, "sql": sql })).await;
        let input = json!([orders(), customers(), regions, sql]).to_string();
        let expected = output_of("python3", &["-c", PYTHON], &input).await;
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(answer["rows"], expected, "{sql}");
        assert_eq!(answer["complete"], true);
    }
}

#[tokio::test]
async fn filters_are_those_of_jq() {
    let service = Service::start().await;
    let document = json!({
        "total": 3, "ratio": 1.5, "text": "a\u{e4}\"\\\n", "none": null,
        "items": (0..50).map(|n| json!({
            "id": n, "name": format!("Item {n}"), "tags": [format!("t{}", n % 4), "all"],
            "price": f64::from(n) / 8.0 + 0.0625, "on": n % 2 == 0, "deep": { "a": { "b": [n, null] } },
        })).collect::<Vec<_>>(),
    });
    let document = document.to_string();
    service.store("x:doc", "application/json", &document).await;
    for filter in [
        ".",
        ".items[] | select(.price > 3) | .name",
        ".items | (map(.id) | add), (map(.price) | add / length), nan, [infinite]",
        ".items | group_by(.tags[0]) | map({tag: .[0].tags[0], n: length})",
        "[.items[].deep.a.b[0]] | min, max",
        ".items[3:6]",
        ".items | map(select(.on)) | length",
        "to_entries | map(.key)",
        "keys",
        ".items | sort_by(-.price) | .[0:2] | map(.price)",
        "[paths(type == \"null\")] | length",
        ".text | ascii_upcase, length, explode",
        ".items[0] | del(.deep, .tags)",
        ".items[:2] | map(del(.deep.a, .tags[0], .none))",
        "del(.items[1:], .text, .items[0].name) | keys, .items",
        "[.items[0] | tostream] | length, (fromstream(.[]) | .id)",
        ".items[:2][] | [.id, .name, .on, null, \"a\\\"b\\tc\"] | @csv, @tsv",
        "{} | setpath([\"a\", \"b\", 0]; 1), (.c += 2)",
        "delpaths([[\"items\"], [\"none\", \"x\"], [\"ratio\"]])",
        ".items | map({(.name): .id}) | add | to_entries[:3] | from_entries",
        "[.items[] | .tags[]] | unique",
        ".items | any(.id == 49), all(.price > 0)",
        "reduce .items[] as $i (0; . + $i.id)",
        ".items[:3] | map(.name | test(\"Item [01]$\")), map(.name | sub(\"Item\"; \"x\"))",
        "[limit(3; .items[])] | map(.id | tostring) | join(\"-\")",
        ".items[] | select(.id < 3) | \"\\(.id): \\(.name)\" , [.id, .on]",
        "if .total > 2 then .ratio else empty end, (.none // \"default\"), (.items | first | .id)",
        "[.items[] | {id, first: .tags[0]}] | INDEX(.id) | .[\"7\"]",
        "[foreach .items[:5][] as $i (0; . + $i.price)], ([.items[:2][] | .price * 3] | @csv)",
    ] {
        let expected = output_of("jq", &["-c", filter], &document).await;
        let arguments = json!({ "from": "x:doc", "jq": filter, "limit": 10_000 });
        let answer = service.call("query_resource", arguments).await;
        let text = text_of(&answer);
        let (head, values) = text.split_once("\n\n").expect(&text);
        assert!(head.contains(", complete; read 1 row."), "{filter}: {head}");
        assert_eq!(values, expected, "{filter}");
    }
    // NDJSON: a filter for each line, or for all of them.
    service.store("x:lines", "application/x-ndjson", &customers()).await;
    for (filter, slurp) in [(".id, .name", false), ("map(.id) | add", true), ("length", true)] {
        let arguments = if slurp { vec!["-c", "-s", filter] } else { vec!["-c", filter] };
        let expected = output_of("jq", &arguments, &customers()).await;
        let arguments = json!({ "from": "x:lines", "jq": filter, "slurp": slurp });
        let text = text_of(&service.call("query_resource", arguments).await);
        assert_eq!(text.split_once("\n\n").unwrap().1, expected, "{filter}");
    }
    // Rows of CSV are objects, and records can be pointed at.
    service.store("x:orders", "text/csv", &orders()).await;
    let ids = json!({ "from": "x:orders", "jq": "select(.order_id < 2) | .zip" });
    assert_eq!(service.query(ids).await["rows"], json!([["00000"], ["10001"]]));
    let items = json!({ "from": "x:doc", "jq": ".id", "rows": "/items", "offset": 48 });
    let answer = service.query(items).await;
    assert_eq!((&answer["rows"], &answer["read"]["rows"]), (&json!([[48], [49]]), &json!(50)));
}

#[tokio::test]
async fn rows_are_found_where_they_are() {
    let service = Service::start().await;
    let rows = async |uri: &str, extra: Value| {
        let mut arguments = json!({ "from": uri, "sql": "SELECT * FROM t" });
        arguments.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        service.query(arguments).await
    };
    let nested = r#"{"meta": {"tags": ["x"]}, "data": {"items": [{"a": 1}, {"a": 2}], "n": 2}}"#;
    service.store("x:nested", "application/json", nested).await;
    let answer = rows("x:nested", json!({ "rows": "/data/items" })).await;
    assert_eq!(answer["rows"], json!([[1], [2]]));
    let missing = json!({ "from": "x:nested", "sql": "SELECT 1 FROM t", "rows": "/nothing" });
    assert_eq!(service.refusal(missing).await, "t: it has no value at /nothing");
    service
        .store("x:page", "application/json", r#"{"n": 2, "hits": [{"a": 1, "b": null}, 7]}"#)
        .await;
    let answer =
        service.call("query_resource", json!({ "from": "x:page", "sql": "SELECT * FROM t" })).await;
    assert!(
        text_of(&answer)
            .starts_with("2 of 2 rows, complete; read 2 rows of /hits.\n\na,b,value\n1,,\n,,7\n"),
        "{answer}"
    );
    service.store("x:map", "application/json", r#"{"u1": {"n": 1}, "u2": {"n": 2}}"#).await;
    assert_eq!(rows("x:map", json!({})).await["rows"], json!([["u1", 1], ["u2", 2]]));
    let log = "10:00 ERROR disk full\n10:01 INFO ok\n\n10:02 ERROR again\n";
    service.store("x:log", "text/plain", log).await;
    assert_eq!(rows("x:log", json!({})).await["rows"][3], json!([4, "10:02 ERROR again"]));
    let pattern = r"^(?P<time>\S+) (?P<level>[A-Z]+) (?P<what>.*)$";
    let sql = "SELECT level, count(*), max(line_no) FROM t GROUP BY level";
    let answer = service.query(json!({ "from": "x:log", "sql": sql, "pattern": pattern })).await;
    assert_eq!(answer["rows"], json!([["ERROR", 2, 4], ["INFO", 1, 2]]));
    assert_eq!(answer["read"], json!({ "rows": 3, "bytes": log.len(), "skipped": 1 }));
    service.store("x:bad", "application/x-ndjson", "{\"a\":1}\nnot json\n{\"a\":3}\n").await;
    let answer = service.query(json!({ "from": "x:bad", "sql": "SELECT sum(a) FROM t" })).await;
    assert_eq!((&answer["rows"], &answer["read"]["skipped"]), (&json!([[4]]), &json!(1)));
}

#[tokio::test]
async fn all_rows_are_given_once_and_the_total_is_always_known() {
    let service = Service::start().await;
    let lines: String = numbered(20_000, |n| format!("{{\"n\":{n},\"text\":\"row {n}\"}}"));
    service.store("x:many", "application/x-ndjson", &lines).await;
    let mut arguments =
        json!({ "from": "x:many", "sql": "SELECT n, text FROM t", "limit": 10_000 });
    let mut seen = BTreeMap::new();
    loop {
        let answer = service.query(arguments).await;
        assert_eq!((&answer["total"], &answer["complete"]), (&json!(20_000), &json!(false)));
        for row in answer["rows"].as_array().unwrap() {
            *seen.entry(row[0].as_u64().unwrap()).or_insert(0) += 1;
        }
        match answer.get("next") {
            Some(next) => arguments = next.clone(),
            None => break,
        }
    }
    assert_eq!(seen, (0..20_000).map(|n| (n, 1)).collect());
    // A row that is too long is cut, and the next call stores it.
    let cut = service.query(json!({ "from": "x:many", "jq": ".", "slurp": true })).await;
    assert_eq!((&cut["total"], &cut["complete"]), (&json!(1), &json!(false)));
    let stored = service.query(cut["next"].clone()).await;
    let count = json!({ "from": stored["stored"], "jq": "length" });
    assert_eq!(service.query(count).await["rows"], json!([[20_000]]));
}

#[tokio::test]
async fn a_terminal_prints_all_rows() {
    let service = Service::start().await;
    let lines: String = numbered(9_000, |n| format!("{{\"n\":{n},\"text\":\"row {n}\"}}"));
    service.store("x:many", "application/x-ndjson", &lines).await;
    service.store("x:names", "text/csv", "n,name\n1,one\n2,two\n3,three\n").await;
    let printed = async |arguments: &[&str]| {
        let mut command = larder(arguments);
        command.env("LARDER_URL", &service.url);
        let finished = run(command).await;
        (finished.code, finished.stdout, finished.stderr)
    };
    let (code, rows, _) = printed(&["query", "x:many", "SELECT n, text FROM t"]).await;
    let expected: String = numbered(9_000, |n| format!("{n},row {n}"));
    assert_eq!((code, rows), (Some(0), format!("n,text\n{expected}")));
    let join = "SELECT name, text FROM t JOIN names USING (n) ORDER BY n DESC";
    let (_, rows, _) = printed(&["query", "--table", "names=x:names", "x:many", join]).await;
    assert_eq!(rows, "name,text\nthree,row 3\ntwo,row 2\none,row 1\n");
    let (code, values, _) = printed(&["jq", "x:many", "select(.n > 8997) | .text"]).await;
    assert_eq!((code, &*values), (Some(0), "\"row 8998\"\n\"row 8999\"\n"));
    let (code, _, error) = printed(&["query", "x:names", "SELECT nane FROM t"]).await;
    assert_eq!((code, &*error), (Some(1), "larder: No column nane in t. Columns: n, name.\n"));
}
