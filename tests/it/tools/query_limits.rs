//! What queries may not do, and what ends them.

use std::fs;

use serde_json::json;

use super::query::{Service, numbered, text_of};
use crate::support::{eventually, post, request, sha256};

/// Never ends by itself.
const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

/// The process IDs of a process's workers, and whether each is a zombie.
pub(crate) fn workers(parent: u32) -> Vec<(u32, bool)> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let child = |id: u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(") ")?;
        let mut fields = after_name.split(' ');
        let state = fields.next()?;
        (fields.next()?.parse() == Ok(parent)).then_some((id, state == "Z"))
    };
    ids.filter_map(child).collect()
}

#[tokio::test]
async fn a_query_that_needs_too_much_ends_within_its_time_and_leaves_nothing() {
    let limits = [
        ("LARDER_QUERY__SECONDS", "2"),
        ("LARDER_QUERY__INPUT_BYTES", "1000000"),
        ("LARDER_QUERY__WARM_SECONDS", "0"),
    ];
    let service = Service::start_in(&[], &limits).await;
    service.store("x:1", "application/json", r#"[{"a": 1}]"#).await;
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    service.store("x:deep", "application/json", &deep).await;
    service.store("x:large", "text/plain", &"x\n".repeat(600_000)).await;
    let time = "Stopped after 2 s (query.seconds)";
    for (query, expected) in [
        (json!({ "from": "x:1", "sql": ENDLESS }), time),
        (json!({ "from": "x:1", "jq": "def f: f; f" }), time),
        (json!({ "from": "x:1", "jq": "range(1e18)" }), time),
        (json!({ "from": "x:1", "jq": "repeat(.)" }), time),
        (json!({ "from": "x:1", "jq": "recurse(.)" }), time),
        (json!({ "from": "x:1", "jq": "until(false; .)" }), time),
        (json!({ "from": "x:1", "jq": "\"a\" | test(\"(a{1000}){1000}\")" }), "jq: "),
        (
            json!({ "from": "x:1", "sql": "SELECT regexp('(a{1000}){1000}', a) FROM t" }),
            "SQLite: invalid regular expression",
        ),
        (json!({ "from": "x:deep", "jq": "." }), "t: its JSON is nested deeper than 1000 levels"),
        (
            json!({ "from": "x:deep", "sql": "SELECT * FROM t" }),
            "t: its JSON is nested deeper than 1000 levels",
        ),
        (
            json!({ "from": "x:large", "sql": "SELECT 1 FROM t" }),
            "1,200,000 bytes are too many for one query, which reads at most 1,000,000 (query.input_bytes)",
        ),
    ] {
        let said = service.refusal(query.clone()).await;
        assert!(said.starts_with(expected), "{query}: {said}");
    }
    eventually("all workers to be gone", async || workers(service.process.id()).is_empty()).await;
    assert_eq!(service.rows("x:1", "SELECT a FROM t").await, json!([[1]]));
}

#[tokio::test]
async fn a_query_that_needs_too_much_memory_ends_and_leaves_nothing() {
    // Memory is the first to end, on a busy machine as well.
    let limits = [
        ("LARDER_QUERY__SECONDS", "300"),
        ("LARDER_QUERY__MEMORY_BYTES", "134217728"),
        ("LARDER_QUERY__WARM_SECONDS", "0"),
    ];
    let service = Service::start_in(&[], &limits).await;
    service.store("x:1", "application/json", r#"[{"a": 1}]"#).await;
    let memory = "It needs more than 128 MiB (query.memory_bytes): ";
    for (query, expected) in [
        (json!({ "from": "x:1", "jq": "[range(1e9)]" }), memory),
        (json!({ "from": "x:1", "jq": "[limit(1e9; repeat(1))]" }), memory),
        (json!({ "from": "x:1", "jq": "\"x\" * 1e9 | length" }), memory),
        (json!({ "from": "x:1", "jq": "reduce repeat(1) as $x (\"x\"; . + .)" }), memory),
        (json!({ "from": "x:1", "jq": "def f: 1 + f; f" }), "The query recurs too deeply."),
    ] {
        let said = service.refusal(query.clone()).await;
        assert!(said.starts_with(expected), "{query}: {said}");
    }
    eventually("all workers to be gone", async || workers(service.process.id()).is_empty()).await;
    assert_eq!(service.rows("x:1", "SELECT a FROM t").await, json!([[1]]));
}

/// The most memory that each process has had so far, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_stays_within_its_memory_and_ends_when_it_needs_more() {
    const LIMIT: u64 = 128 << 20;

    let limits = [("LARDER_QUERY__SECONDS", "300"), ("LARDER_QUERY__MEMORY_BYTES", "134217728")];
    let service = Service::start_in(&[], &limits).await;
    service.store("x:1", "application/json", r#"[{"a": 1}]"#).await;
    let id = service.process.id();
    // Sorts texts of eight megabytes.
    let sorts = "WITH RECURSIVE
        text(s) AS (SELECT 'abcdefgh' UNION ALL SELECT s || s FROM text WHERE length(s) < 8000000),
        n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
        SELECT s || x AS y FROM text, n WHERE length(s) > 5000000 ORDER BY y";
    for query in
        [json!({ "from": "x:1", "sql": sorts }), json!({ "from": "x:1", "jq": "[range(1e9)]" })]
    {
        let mut asking = std::pin::pin!(service.refusal(query.clone()));
        let mut peak = 0;
        let said = loop {
            // Looks often: a worker over its limit stays there only until it is ended.
            let pause = tokio::time::sleep(std::time::Duration::from_millis(5));
            tokio::select! {
                said = &mut asking => break said,
                () = pause => {}
            }
            peak = workers(id).iter().filter_map(|(id, _)| peak_memory(*id)).fold(peak, u64::max);
        };
        let memory = "It needs more than 128 MiB (query.memory_bytes): ";
        assert!(said.starts_with(memory), "{query}: {said}");
        assert!(peak > LIMIT / 4 && peak <= LIMIT, "{query}: {peak} bytes");
        eventually("the worker to be gone", async || workers(id).is_empty()).await;
    }
}

#[tokio::test]
async fn only_one_select_is_run() {
    let service = Service::start().await;
    service.store("x:1", "text/csv", "id,user_id,ts\n1,2,3\n4,5,6\n").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let file = file.to_str().unwrap();
    for sql in [
        &format!("ATTACH '{file}' AS other"),
        &format!("VACUUM INTO '{file}'"),
        "PRAGMA table_info(t)",
        "WITH a AS (SELECT 1) DELETE FROM t",
        "INSERT INTO t SELECT * FROM t",
        "UPDATE t SET id = 1 RETURNING id",
        "CREATE TABLE u AS SELECT * FROM t",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "BEGIN",
        "ANALYZE",
        "",
    ] {
        let said = service.refusal(json!({ "from": "x:1", "sql": sql })).await;
        assert_eq!(said, "Only one SELECT is run.", "{sql}");
    }
    for (sql, expected) in [
        (&*format!("SELECT load_extension('{file}')"), "There is no function load_extension here."),
        ("SELECT zeroblob(1000000000)", "There is no function zeroblob here."),
        ("SELECT * FROM pragma_table_info('t')", "No table pragma_table_info. Tables: t."),
        ("SELECT * FROM dbstat", "No table dbstat. Tables: t."),
        ("SELECT * FROM users", "No table users. Tables: t."),
        ("SELECT usrId FROM t", "No column usrId in t. Columns: id, user_id, ts."),
        (
            "SELECT id FROM t WHERE ts = \"x\"",
            "No column x in t. Columns: id, user_id, ts. A text takes single quotes.",
        ),
        ("SELEC 1", "SQLite: near \"SELEC\": syntax error."),
    ] {
        assert_eq!(service.refusal(json!({ "from": "x:1", "sql": sql })).await, expected);
    }
    assert!(!std::path::Path::new(file).exists());
    // Neither a trailing semicolon nor a comment is a second statement.
    for sql in ["SELECT count(*) FROM t;", "SELECT count(*) FROM t -- all\n"] {
        assert_eq!(service.rows("x:1", sql).await, json!([[2]]));
    }
    let both = json!({ "from": "x:1", "sql": "SELECT 1", "jq": "." });
    assert_eq!(service.refusal(both).await, "Give exactly one of sql and jq.");
}

#[tokio::test]
async fn filters_reach_nothing_outside() {
    let service = Service::start_in(&[], &[("TEST_SECRET", "hidden")]).await;
    service.store("x:1", "application/json", "[1]").await;
    for (filter, expected) in [
        (
            "input",
            "jq: filter input is not defined: each value of the content is an input already; slurp gives a list of all.",
        ),
        (
            "[inputs]",
            "jq: filter inputs is not defined: each value of the content is an input already; slurp gives a list of all.",
        ),
        ("halt", "jq: filter halt is not defined: leave it out."),
        ("halt_error", "jq: filter halt_error is not defined: leave it out."),
        ("debug", "jq: filter debug is not defined: leave it out."),
        ("stderr", "jq: filter stderr is not defined: leave it out."),
        (
            "input_line_number",
            "jq: filter input_line_number is not defined: the lines of a log have line_no.",
        ),
        ("$ARGS.named", "jq: variable $ARGS is not defined: write values into the filter."),
        ("get_search_list", "jq: filter get_search_list is not defined."),
        ("$secret", "jq: variable $secret is not defined."),
        ("import \"a\" as a; .", "jq: modules cannot be imported."),
        ("include \"/etc/passwd\"; .", "jq: modules cannot be imported."),
        (".[", "jq: expected closing bracket at its end."),
        (".[0].a", "jq: cannot index 1 with \"a\". The input is a list of 1 item."),
    ] {
        assert_eq!(service.refusal(json!({ "from": "x:1", "jq": filter })).await, expected);
    }

    // The process of a filter has no environment, and its input no name.
    let around = json!({ "from": "x:1", "jq": "env, $ENV, $ENV.TEST_SECRET, input_filename" });
    let answer = service.query(around).await;
    assert_eq!(answer["rows"], json!([[{}], [{}], [null], [null]]));
}

#[tokio::test]
async fn hostile_filters_are_answered() {
    let service = Service::start_in(&[], &[]).await;
    service.store("x:1", "application/json", "[1]").await;

    let backtracking = "\"\\(\"a\" * 5000)b\" | test(\"^(a|a)*\\\\1c(?!d)\")";
    for (filter, expected) in [
        ("[limit(0; error)], [first(empty)]", json!([[[]], [[]]])),
        ("[limit(3; range(1e18))] | add", json!([[3]])),
        ("first(repeat(1)), [limit(2; 5 | recurse(.))]", json!([[1], [[5, 5]]])),
        ("[1, 2] | getpath([-1]), .[-1:], (.[-1] = 9)", json!([[2], [[2]], [[1, 9]]])),
        (
            "[\"!!\", \"Y\", \"\\u0000\"] | map(try @base64d catch \"junk\")",
            json!([[["junk", "junk", "junk"]]]),
        ),
        ("try (\"x\" * 1e10) catch \"long\"", json!([["long"]])),
        ("try ([] | .[1e15] = 1) catch \"large\"", json!([["large"]])),
        ("try (\"a\" | test(\"(\")) catch \"regex\"", json!([["regex"]])),
        ("try (\"x\" | fromdate) catch \"date\"", json!([["date"]])),
        ("try (1e300 | todate) catch \"date\"", json!([["date"]])),
        ("[.[] | (ltrimstr(1), rtrimstr(null), ltrimstr(\"1\"))]", json!([[[1, 1, 1]]])),
        ("try error(\"\\($__loc__)\") catch fromjson.line", json!([[1]])),
        ("1 as $x |\n $__loc__.line", json!([[2]])),
    ] {
        let query = json!({ "from": "x:1", "jq": filter });
        let rows = service.query(query).await["rows"].clone();
        assert_eq!(rows, expected, "{filter}");
    }

    let said = service.refusal(json!({ "from": "x:1", "jq": backtracking })).await;
    assert!(said.starts_with("jq: "), "{said}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_worker_has_no_environment_no_files_and_few_system_calls() {
    let service = Service::start_in(&[], &[("TEST_SECRET", "hidden")]).await;
    service.store("x:1", "text/csv", "a\n1\n").await;
    assert_eq!(service.rows("x:1", "SELECT a FROM t").await, json!([[1]]));
    // The start of the server has started another worker, to see how it is confined.
    let server = service.process.id();
    eventually("only the idle worker", async || workers(server).len() == 1).await;
    let warm = workers(server);
    let [(id, false)] = warm[..] else { panic!("one idle worker, not {warm:?}") };
    let read = |name: &str| fs::read_to_string(format!("/proc/{id}/{name}")).unwrap();
    assert!(read("cmdline").contains("\0query-worker\0"), "{}", read("cmdline"));
    // The size of the allocator's reserve is all that it is told.
    let environment = read("environ");
    let mut variables = environment.split_terminator('\0');
    assert!(variables.all(|v| v.starts_with("MIMALLOC_ARENA_RESERVE=")), "{environment:?}");
    for file in 0..3 {
        let file = fs::read_link(format!("/proc/{id}/fd/{file}")).unwrap();
        assert!(file.to_string_lossy().starts_with("pipe:"), "{file:?}");
    }
    assert!(read("status").contains("Seccomp:\t2\n"));
    let limits = read("limits");
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!((&*limit("Max file size"), &*limit("Max open files")), ("0", "3"));
    assert_ne!(limit("Max address space"), "unlimited");
    assert_ne!(limit("Max cpu time"), "unlimited");
    // The same worker answers the next question about the same content.
    assert_eq!(service.rows("x:1", "SELECT a + 1 FROM t").await, json!([[2]]));
    assert_eq!(workers(service.process.id()), warm);
    // Of another content it knows nothing.
    service.store("x:1", "text/csv", "a\n5\n").await;
    assert_eq!(service.rows("x:1", "SELECT a FROM t").await, json!([[5]]));
}

#[tokio::test]
async fn results_are_stored_as_the_callers_and_only_whole() {
    let limits =
        [("LARDER_MEMORY__BYTES_PER_OWNER", "600000"), ("LARDER_QUERY__RESULT_BYTES", "300000")];
    let service = Service::start_in(&[], &limits).await;
    let lines: String = numbered(5_000, |n| format!("{{\"n\":{n},\"even\":{}}}", n % 2 == 0));
    service.store("x:1", "application/x-ndjson", &lines).await;
    for (format, mime_type) in
        [("csv", "text/csv"), ("ndjson", "application/x-ndjson"), ("json", "application/json")]
    {
        let arguments = json!({
            "from": "x:1", "sql": "SELECT n, n * 2 AS twice FROM t WHERE n < 1000", "limit": 3,
            "into": { "uri": "x:result", "name": "Doubled", "ttl": 60, "format": format },
        });
        let answer = service.query(arguments).await;
        assert_eq!((&answer["stored"], &answer["total"]), (&json!("x:result"), &json!(1_000)));
        assert_eq!(answer["rows"], json!([[0, 0], [1, 2], [2, 4]]));
        let rows =
            service.rows("x:result", "SELECT count(*), sum(twice), max(typeof(n)) FROM t").await;
        assert_eq!(rows, json!([[1_000, 999_000, "integer"]]), "{format}");
        let described =
            text_of(&service.call("describe_resource", json!({ "uri": "x:result" })).await);
        assert!(
            described.contains("name: Doubled\n") && described.contains(mime_type),
            "{described}"
        );
    }
    for (query, expected) in [
        (json!({ "sql": "SELECT nope FROM t" }), "No column nope in t."),
        (json!({ "jq": "if .n == 4000 then error(\"late\") else . end" }), "jq: \"late\"."),
        (
            json!({ "jq": "., ., ., ." }),
            "The result is larger than 300,000 bytes (query.result_bytes)",
        ),
        (
            json!({ "jq": ".", "into": { "uri": "x:failed", "format": "csv" } }),
            "jq results are stored as",
        ),
    ] {
        let mut arguments = json!({ "from": "x:1", "into": { "uri": "x:failed" } });
        arguments.as_object_mut().unwrap().extend(query.as_object().unwrap().clone());
        let said = service.refusal(arguments).await;
        assert!(said.starts_with(expected), "{query}: {said}");
        let missing =
            service.refusal(json!({ "from": "x:failed", "sql": "SELECT 1 FROM t" })).await;
        assert_eq!(missing, "Resource not found: x:failed");
    }
    // The quota counts them.
    let arguments = |uri: &str| json!({ "from": "x:1", "jq": "., .", "into": { "uri": uri } });
    assert_eq!(service.query(arguments("x:kept")).await["total"], 10_000);
    let said = service.refusal(arguments("x:failed")).await;
    assert!(said.starts_with("Your resources would exceed 600000 bytes"), "{said}");
    let missing = service.refusal(json!({ "from": "x:failed", "jq": "." })).await;
    assert_eq!(missing, "Resource not found: x:failed");
}

#[tokio::test]
async fn what_belongs_to_others_reads_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    let token =
        |name: &str| format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{}\"\n", sha256(name));
    let text = format!("[auth]\nmode = \"static\"\n{}{}", token("alice"), token("bob"));
    fs::write(&config, text).unwrap();
    let service = Service::start_in(&["--config", config.to_str().unwrap()], &[]).await;
    let secret = json!({ "uri": "x:1", "text": "a,b\n1,2\n3,4\n", "mime_type": "text/csv" });
    service.call_as(Some("alice"), "create_resource", secret).await;
    let query = |uri: &str| json!({ "from": uri, "sql": "SELECT sum(a) FROM t" });
    let own = service.call_as(Some("alice"), "query_resource", query("x:1")).await;
    assert_eq!(own["structuredContent"]["rows"], json!([[4]]));
    for uri in ["x:1", "x:2"] {
        let other = service.call_as(Some("bob"), "query_resource", query(uri)).await;
        assert_eq!(text_of(&other), format!("Resource not found: {uri}"));
        let both = json!({ "from": { "a": uri }, "sql": "SELECT 1 FROM a" });
        let other = service.call_as(Some("bob"), "query_resource", both).await;
        assert_eq!(text_of(&other), format!("Resource not found: {uri}"));
    }
}

#[tokio::test]
async fn a_cancelled_query_ends_its_worker() {
    // Its own time is not over in this test.
    let service = Service::start_in(&[], &[("LARDER_QUERY__SECONDS", "3600")]).await;
    service.store("x:1", "application/json", "[1]").await;
    let arguments = json!({ "from": "x:1", "sql": ENDLESS });
    let call = request("tools/call", json!({ "name": "query_resource", "arguments": arguments }));
    let waiting = tokio::spawn(post(&service.url, &call).send());
    let id = service.process.id();
    eventually("a worker", async || !workers(id).is_empty()).await;
    waiting.abort();
    eventually("the worker to be gone", async || workers(id).is_empty()).await;
}

#[tokio::test]
async fn a_worker_ends_with_its_server() {
    let mut service = Service::start_in(&[], &[("LARDER_QUERY__SECONDS", "3600")]).await;
    service.store("x:1", "application/json", "[1]").await;
    let arguments = json!({ "from": "x:1", "sql": ENDLESS });
    let call = request("tools/call", json!({ "name": "query_resource", "arguments": arguments }));
    let waiting = tokio::spawn(post(&service.url, &call).send());

    let id = service.process.id();
    eventually("a worker that computes", async || {
        workers(id).iter().any(|(worker, _)| cpu_ticks(*worker) > 20)
    })
    .await;
    let (worker, _) = workers(id)[0];

    service.process.kill().await;
    eventually("the worker to be gone", async || {
        !fs::exists(format!("/proc/{worker}/stat")).unwrap()
    })
    .await;
    assert!(waiting.await.unwrap().is_err());
}

/// The time that a process has computed.
fn cpu_ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    after_name.split(' ').nth(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
