//! The calls that code makes: of the tools of servers behind this one, and of stored content.

use std::sync::Arc;

use larder::{
    Registry,
    query::{ScriptLimits, Scripts},
    tools::{self, CodeWrites, Coding, ToolOptions},
    upstream::{Settings, Upstream},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    support::{Answer, Legacy, Modern, Server},
    upstreams::{meaning::answering, projections::projecting},
};

/// The names of the tools that the upstreams were asked for.
pub(super) type Called = Arc<Mutex<Vec<String>>>;

/// A server of issues.
async fn tracker(name: &str, called: &Called) -> Settings {
    let number = json!({
        "type": "object", "required": ["n"], "additionalProperties": false,
        "properties": { "n": { "type": "integer" } },
    });
    let reads = json!({ "readOnlyHint": true });
    let any = json!({ "type": "object" });
    let listed = json!([
        { "name": "get", "inputSchema": number, "annotations": reads },
        { "name": "all", "inputSchema": any, "annotations": reads },
        { "name": "size", "inputSchema": any, "annotations": reads },
        { "name": "flaky", "inputSchema": number, "annotations": reads },
        { "name": "create", "inputSchema": any },
    ]);

    let called = Arc::clone(called);
    let upstream = answering(name, move |method, params| match method {
        "tools/list" => Some(json!({ "tools": listed })),
        "tools/call" => {
            let tool = params["name"].as_str().unwrap();
            let arguments = &params["arguments"];
            let call = if tool == "flaky" { format!("flaky {arguments}") } else { tool.to_owned() };
            let is_first = !called.lock().contains(&call);
            called.lock().push(call);
            let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
            Some(match tool {
                "flaky" if is_first => json!({
                    "content": [{ "type": "text", "text": "Try again." }], "isError": true,
                }),
                "flaky" => text(format!("value {}", arguments["n"])),
                "get" if arguments["n"] == 13 => json!({
                    "content": [{ "type": "text", "text": "There is no issue 13." }], "isError": true,
                }),
                "get" => {
                    text(json!({ "n": arguments["n"], "body": "x".repeat(1_500) }).to_string())
                }
                "all" => {
                    let issues: Vec<_> = (0..2_000)
                        .map(|n| json!({ "n": n, "user": n % 7, "body": "text ".repeat(20) }))
                        .collect();
                    text(json!(issues).to_string())
                }
                "size" => {
                    let items = arguments["text"].as_array().map_or(0, Vec::len);
                    text(arguments["text"].as_str().map_or(items, str::len).to_string())
                }
                _ => text("created".to_owned()),
            })
        }
        _ => None,
    });
    upstream.await
}

/// A server that runs code in front of two trackers, `a` and `b`.
async fn in_front(writes: CodeWrites) -> (Server, Called) {
    in_front_of(["a", "b"], writes).await
}

/// A server that runs code in front of two trackers with these names.
pub(super) async fn in_front_of(names: [&str; 2], writes: CodeWrites) -> (Server, Called) {
    let called = Called::default();
    let first = tracker(names[0], &called).await;
    let trackers =
        vec![Settings { accept: vec!["larder".into()], ..first }, tracker(names[1], &called).await];

    let limits = ScriptLimits {
        program: Some(env!("CARGO_BIN_EXE_larder").into()),
        ..ScriptLimits::default()
    };
    let coding = Coding {
        scripts: Arc::new(Scripts::new(limits)),
        writes,
        may_store: true,
        ref_bytes: 8 << 20,
    };
    let mut builder = projecting(Registry::builder("gateway")).with(tools::coding(coding));
    builder = builder.with(tools::finding(ToolOptions::default()));
    for provider in Upstream::all(trackers, builder.tool_names()) {
        builder = builder.provider(provider);
    }
    (Server::of(builder.build().unwrap()).await, called)
}

async fn run(client: &Legacy, code: &str) -> Answer {
    client.call("run_code", json!({ "code": code })).await
}

/// The value that code returns.
async fn value(client: &Legacy, code: &str) -> Value {
    let result = run(client, code).await.result();
    assert_ne!(result["isError"], true, "{code}: {result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{code}: {result}"))
}

/// The bytes of a result as it is sent.
pub(super) fn bytes(answer: &Answer) -> usize {
    answer.result().to_string().len()
}

#[tokio::test]
async fn two_hundred_and_seventy_one_calls_are_one_answer_of_less_than_a_kilobyte() {
    let (server, called) = in_front(CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    let answer = run(
        &client,
        "const all = Array.from({ length: 271 }, (_, n) => a.get({ n }).catch((e) => e.message));
         const rows = await Promise.all(all);
         const table = await larder.store(rows.filter((row) => row.n !== undefined));
         return { stored: table.uri, failed: rows.filter((row) => row.n === undefined) };",
    )
    .await;

    let result = answer.result();
    assert_eq!(called.lock().len(), 271);
    let value: Value =
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(value["failed"], json!(["There is no issue 13."]));
    assert_eq!(
        result["content"][1]["text"],
        "272 calls: 271 done, 1 failed (first: \"a__get\": There is no issue 13.)."
    );
    assert!(bytes(&answer) < 1_000, "{} bytes", bytes(&answer));

    let sql = json!({ "from": value["stored"], "sql": "SELECT count(*), max(n) FROM t" });
    let rows = client.call("query_resource", sql).await.result();
    assert_eq!(rows["structuredContent"]["rows"], json!([[270, 270]]));
}

#[tokio::test]
async fn a_large_result_is_a_handle_of_which_parts_are_values() {
    let (server, _) = in_front(CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    for (code, expected) in [
        ("return Object.keys(await a.all())", json!(["uri", "mime_type", "size", "line_count"])),
        ("return (await a.all()).mime_type", json!("application/json")),
        ("return await (await a.all()).jq('length')", json!([2000])),
        (
            "return await (await a.all()).sql('SELECT user, count(*) AS n FROM t GROUP BY user LIMIT 2')",
            json!([{ "user": 0, "n": 286 }, { "user": 1, "n": 286 }]),
        ),
        (
            "return (await (await a.all()).records({ offset: 1998 })).map((r) => r.n)",
            json!([1998, 1999]),
        ),
        ("return (await (await a.all()).text({ offset: 0, limit: 7 }))", json!("[\n{\"n\":")),
        ("return (await (await a.all()).search('\"n\":1999,')).total", json!(1)),
        ("return (await (await a.all()).jq('.[]')).mime_type", json!("application/x-ndjson")),
        (
            "return await larder.sql({ x: await a.all(), y: await b.all() },
               'SELECT count(*) AS n FROM x JOIN y ON x.n = y.n WHERE x.user = 3')",
            json!([{ "n": 286 }]),
        ),
        // The content itself is the argument, parsed where it is JSON.
        ("return await b.size({ text: await a.all() })", json!("2000")),
        (
            "return await (await a.all()).value().catch((e) => e.message.includes('give a range'))",
            json!(true),
        ),
    ] {
        assert_eq!(value(&client, code).await, expected, "{code}");
    }
}

#[tokio::test]
async fn tools_that_are_found_have_signatures() {
    let (server, _) = in_front(CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    let found = client.call("find_tools", json!({ "query": "a__get" })).await.text();
    let signature = found.lines().find_map(|line| line.strip_prefix("in code: "));
    assert_eq!(signature, Some("a__get(args: { n: number }): Promise<any>"), "{found}");

    let several = client.call("find_tools", json!({ "query": "get" })).await.text();
    let lines: Vec<_> = several.lines().filter(|line| line.contains("__get(")).collect();
    assert_eq!(lines[0], "a__get(args: { n: number }): Promise<any> [read-only]: ", "{several}");
}

#[tokio::test]
async fn what_a_tool_would_not_take_is_told_before_the_call() {
    let (server, called) = in_front(CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    for (code, error) in [
        ("await a.get({ n: 'x' })", "The arguments do not fit the tool a__get: "),
        ("await a.get({})", "The arguments do not fit the tool a__get: "),
        ("await call('a__gett', {})", "There is no tool \"a__gett\"."),
    ] {
        let said =
            value(&client, &format!("try {{ {code} }} catch (e) {{ return e.message }}")).await;
        let said = said.as_str().unwrap();
        assert!(said.starts_with(error), "{code}: {said}");
    }
    assert_eq!(*called.lock(), Vec::<String>::new());
}

#[tokio::test]
async fn texts_like_references_are_content() {
    let (server, _) = in_front(CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    client.call("create_resource", json!({ "uri": "x:1", "text": "a secret text" })).await.result();
    assert_eq!(value(&client, "return await a.size({ text: '{{x:1}}' })").await, json!("7"));

    let mixed = "return await a.size({ text: await larder.open('x:1'), other: '{{x:1}}' }).catch((e) => e.message)";
    let said = value(&client, mixed).await;
    assert_eq!(
        said,
        "a__size was not called: beside handles its arguments have other references, which code must not pass on."
    );
}

#[tokio::test]
async fn a_tool_that_writes_is_called_only_where_somebody_allows_it() {
    let create = "return await a.create({ title: 'x' }).catch((e) => e.message)";

    let (server, called) = in_front(CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    let said = value(&client, create).await;
    assert!(said.as_str().unwrap().contains("code.writes = \"allow\""), "{said}");
    assert_eq!(*called.lock(), Vec::<String>::new());

    let (server, called) = in_front(CodeWrites::Allow).await;
    let client = Legacy::of(&server).await;
    assert_eq!(value(&client, create).await, "created");
    assert_eq!(*called.lock(), ["create"]);
}

#[tokio::test]
async fn the_user_is_asked_once_and_before_anything_is_called() {
    let (server, called) = in_front(CodeWrites::Ask).await;
    let client = Modern::able(&server, json!({ "elicitation": { "form": {} } }));
    let code = "await a.get({ n: 1 })\nawait a.create({ title: 'x' })\nreturn await b.create({})";
    let arguments = json!({ "code": code });

    for (action, is_run) in [("decline", false), ("cancel", false), ("accept", true)] {
        let asked = client.call("run_code", arguments.clone()).await.result();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(
            asked["inputRequests"]["writes"]["params"]["message"],
            "run_code runs code that may call tools which change things: a__create, b__create. Allow it for this run?\n  await a.create({ title: 'x' })\n  return await b.create({})"
        );
        assert_eq!(*called.lock(), Vec::<String>::new());

        let answered = client
            .send(
                "tools/call",
                json!({
                    "name": "run_code", "arguments": arguments, "requestState": asked["requestState"],
                    "inputResponses": { "writes": { "action": action, "content": {} } },
                }),
            )
            .await;
        let result = answered.result();
        assert_eq!(result["isError"] != true, is_run, "{result}");
    }
    assert_eq!(*called.lock(), ["get", "create", "create"]);
}

#[tokio::test]
async fn a_run_that_fails_says_which_calls_were_made_and_keeps_their_results() {
    let (server, called) = in_front(CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    let code = "const one = await a.get({ n: 1 });\nawait a.get({ n: 13 }).catch(() => null);\n\n  throw new Error('no ' + one.n)";
    let said = run(&client, code).await.failure();

    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "Error: no 1 (line 4, column 27)");
    assert_eq!(
        lines[1],
        "2 calls: 1 done, 1 failed (first: \"a__get\": There is no issue 13.). Do not repeat calls that are done."
    );
    assert!(lines[2].starts_with("Their results (application/x-ndjson, "), "{said}");
    assert_eq!(called.lock().len(), 2);

    let sql = json!({ "from": lines[3], "sql": "SELECT tool, state, error FROM t" });
    let rows = client.call("query_resource", sql).await.result();
    assert_eq!(
        rows["structuredContent"]["rows"],
        json!([["a__get", "done", null], ["a__get", "failed", "There is no issue 13."]])
    );
}

#[tokio::test]
async fn content_of_a_server_does_not_flow_into_a_tool_that_takes_none_of_it() {
    // The first of the servers takes only content that callers have stored.
    let (server, _) = in_front(CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    for (code, expected) in [
        ("return await a.size({ text: 'abc' })", json!("3")),
        ("await a.get({ n: 1 }); return await a.size({ text: 'abc' })", json!("3")),
        (
            "const { body } = await a.get({ n: 1 }); return await b.size({ text: body })",
            json!("1500"),
        ),
    ] {
        assert_eq!(value(&client, code).await, expected, "{code}");
    }

    for code in [
        "const { body } = await b.get({ n: 1 }); return await a.size({ text: body })",
        "const all = await b.all(); return await a.size({ text: all })",
        "const h = await larder.store((await b.get({ n: 1 })).body); return await a.size({ text: h })",
    ] {
        let said = run(&client, code).await.failure();
        let refused = "ToolError: a__size was not called: this run has read content of b, from which this tool takes none (upstreams.refs.accept).";
        assert!(said.starts_with(refused), "{code}: {said}");
    }
}
