//! Who queries, what, and from where: links, revisions, eras, workflows, scopes.

use std::{collections::BTreeMap, time::Duration};

use larder::{
    config::{AuthMode, Config, TokenConfig},
    query::QueryLimits,
    tools::{self, ToolOptions},
    workflow::{self, dsl::*},
};
use serde_json::{Value, json};

use super::query::{Service, numbered, text_of};
use crate::{
    sharing::links::share,
    support::{Answer, Legacy, Modern, Server, TextFile, post, process::serving, request, sha256},
};

/// Queries by the binary.
fn limits() -> QueryLimits {
    let program = Some(env!("CARGO_BIN_EXE_larder").into());
    QueryLimits { program, time: Duration::from_secs(60), ..QueryLimits::default() }
}

/// A server with all tools over the store, for these callers.
async fn server(callers: &[(&str, &[&str])], change: impl FnOnce(&mut Config)) -> Server {
    let token = |(name, scopes): &(&str, &[&str])| TokenConfig {
        name: (*name).into(),
        sha256: sha256(name),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        groups: vec![format!("{name}s")],
        expires: None,
    };
    let tokens: Vec<_> = callers.iter().map(token).collect();
    Server::configured(|setup| {
        if !tokens.is_empty() {
            setup.config.auth.mode = AuthMode::Static;
            setup.config.auth.tokens = tokens;
        }
        change(&mut setup.config);
        setup.offer(|builder| {
            builder
                .with(tools::reading(ToolOptions::default()))
                .with(tools::writing())
                .with(tools::querying(limits(), true))
        });
    })
    .await
}

const CSV: &str = "id,zip\n1,00501\n2,10001\n3,00501\n";

async fn store(client: &Modern, uri: &str, text: &str) {
    client.create(json!({ "uri": uri, "text": text, "mime_type": "text/csv" })).await;
}

/// The rows of a query that succeeds.
async fn rows(client: &Modern, arguments: Value) -> Value {
    let answer = client.call("query_resource", arguments).await;
    answer.text();
    answer.result()["structuredContent"]["rows"].take()
}

#[tokio::test]
async fn a_shared_resource_is_queried_by_its_link_and_by_no_other_uri() {
    let server = server(&[("alice", &[]), ("bob", &[]), ("carol", &[])], |_| {}).await;
    let client = |name| Modern::bearing(&server, name);
    let (alice, bob, carol) = (client("alice"), client("bob"), client("carol"));
    store(&alice, "x:orders", CSV).await;
    store(&bob, "x:places", "zip,name\n00501,Holtsville\n10001,New York\n").await;
    let link = share(&alice, "x:orders", "group", Some("bobs")).await;
    let count =
        |uri: &str| json!({ "from": uri, "sql": "SELECT count(*) FROM t WHERE zip = '00501'" });
    assert_eq!(rows(&bob, count(&link)).await, json!([[2]]));
    assert_eq!(rows(&alice, count(&link)).await, json!([[2]]), "the sharer, too");
    // With the reader's own, and stored as the reader's own.
    let join = json!({
        "from": { "orders": link, "places": "x:places" },
        "sql": "SELECT id, name FROM orders JOIN places USING (zip) ORDER BY id",
        "into": { "uri": "x:joined" },
    });
    let joined = json!([[1, "Holtsville"], [2, "New York"], [3, "Holtsville"]]);
    assert_eq!(rows(&bob, join).await, joined);
    assert_eq!(
        bob.read("x:joined").await["text"],
        "id,name\n1,Holtsville\n2,New York\n3,Holtsville\n"
    );
    let jq = json!({ "from": link, "jq": ".zip", "limit": 1 });
    assert_eq!(rows(&bob, jq).await, json!([["00501"]]));
    // For others a link, a private URI and a missing one read alike; and nothing is written by a
    // link.
    for (client, uri) in
        [(&carol, &*link), (&bob, "x:orders"), (&alice, "x:joined"), (&bob, "x:none")]
    {
        let said = client.call("query_resource", count(uri)).await.failure();
        assert_eq!(said, format!("Resource not found: {uri}"));
    }
    let onto = json!({ "from": link, "sql": "SELECT 1 FROM t", "into": { "uri": link } });
    bob.call("query_resource", onto).await.failure();
    assert_eq!(alice.read("x:orders").await["text"], CSV);
    // A new revision is read at once, by a link as well; after the end of sharing there is nothing.
    store(&alice, "x:orders", "id,zip\n7,00501\n").await;
    assert_eq!(rows(&bob, count(&link)).await, json!([[1]]));
    alice.call("delete_resource", json!({ "uri": "x:orders" })).await.text();
    bob.call("query_resource", count(&link)).await.failure();
}

#[tokio::test]
async fn older_revisions_are_queried_by_number() {
    let server = server(&[], |_| {}).await;
    let client = Modern::of(&server);
    for n in 1..=3 {
        let rows = numbered(n * 10, |id| format!("{id},{n}"));
        store(&client, "x:1", &format!("id,of\n{rows}")).await;
    }
    let query = |revision: Value| {
        let mut query = json!({ "from": "x:1", "sql": "SELECT count(*), max(of) FROM t" });
        if !revision.is_null() {
            query["revision"] = revision;
        }
        query
    };
    assert_eq!(rows(&client, query(Value::Null)).await, json!([[30, 3]]));
    for revision in [1, 2, 3, 1] {
        let expected = json!([[revision * 10, revision]]);
        assert_eq!(rows(&client, query(json!(revision))).await, expected);
    }
    // The next call stays in the revision.
    let first = json!({ "from": "x:1", "jq": ".id", "limit": 7, "revision": 1 });
    let first = client.call("query_resource", first).await.result();
    let next = &first["structuredContent"]["next"];
    assert_eq!((&next["revision"], &next["offset"]), (&json!(1), &json!(7)));
    assert_eq!(rows(&client, next.clone()).await, json!([[7], [8], [9]]));
    let missing = client.call("query_resource", query(json!(9))).await.failure();
    assert!(missing.contains("revision"), "{missing}");
    let both =
        json!({ "from": { "a": "x:1", "b": "x:1" }, "sql": "SELECT 1 FROM a", "revision": 1 });
    let said = client.call("query_resource", both).await.failure();
    assert!(said.starts_with("revision needs a single URI in from; with several, give"), "{said}");
}

#[tokio::test]
async fn an_expired_resource_is_not_queried_and_a_stored_result_expires_by_itself() {
    let server = server(&[], |_| {}).await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": CSV, "mime_type": "text/csv", "ttl": 100 })).await;
    let query = |uri: &str| json!({ "from": uri, "sql": "SELECT count(*) FROM t" });
    let mut into = query("x:1");
    into["into"] = json!({ "uri": "x:2", "ttl": 1_000 });
    assert_eq!(rows(&client, into).await, json!([[3]]));
    server.clock.advance(Duration::from_secs(101));
    // Not even by the worker that still has its tables.
    let said = client.call("query_resource", query("x:1")).await.failure();
    assert!(said.starts_with("Resource expired: x:1 was removed at "), "{said}");
    assert_eq!(rows(&client, query("x:2")).await, json!([[1]]));
    server.clock.advance(Duration::from_secs(1_000));
    let said = client.call("query_resource", query("x:2")).await.failure();
    assert!(said.starts_with("Resource expired: x:2 was removed at "), "{said}");
}

#[tokio::test]
async fn a_million_rows_have_a_total_and_are_given_in_parts() {
    const SQL: &str = "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 999999) SELECT n FROM c";

    let server = server(&[], |_| {}).await;
    let client = Modern::of(&server);
    store(&client, "x:1", CSV).await;
    let mut query = json!({ "from": "x:1", "sql": SQL, "limit": 10_000 });
    // From one end, and to the other; what is between is the same.
    for start in [0, 1_000_000 - 2_500] {
        query["offset"] = json!(start);
        let (mut next, mut expected) = (Some(query.clone()), start);
        for _ in 0..4 {
            let Some(arguments) = next.take() else { break };
            let answer = client.call("query_resource", arguments).await.result();
            let answer = &answer["structuredContent"];
            assert_eq!((&answer["total"], &answer["complete"]), (&json!(1_000_000), &json!(false)));
            for row in answer["rows"].as_array().unwrap() {
                assert_eq!(row[0], expected);
                expected += 1;
            }
            next = answer.get("next").cloned();
            assert_eq!(next.is_none(), expected == 1_000_000);
        }
        assert!(expected > start + 2_000, "{expected}");
    }
}

#[tokio::test]
async fn both_eras_get_the_same_answer_that_fits_the_schema() {
    let server = server(&[], |config| config.tools.output_schemas = true).await;
    let modern = Modern::of(&server);
    let (newest, old) = (Legacy::of(&server).await, Legacy::speaking(&server, "2025-03-26").await);
    store(&modern, "x:1", CSV).await;
    let query = json!({ "from": "x:1", "sql": "SELECT zip, count(*) AS n FROM t GROUP BY zip", "limit": 1 });
    let of_modern = modern.call("query_resource", query.clone()).await.result();
    let of_newest = newest.call("query_resource", query.clone()).await.result();
    let of_old = old.call("query_resource", query.clone()).await.result();
    for result in [&of_newest, &of_old] {
        assert_eq!(result["content"], of_modern["content"]);
    }
    assert_eq!(of_newest["structuredContent"], of_modern["structuredContent"]);
    let listed = newest.send("tools/list", json!({})).await.result();
    let listed = listed["tools"].as_array().unwrap().iter();
    let schema = |name: &str| {
        listed.clone().find(|tool| tool["name"] == name).unwrap()["outputSchema"].clone()
    };
    let found = json!({ "uri": "x:1", "query": "00501", "limit": 1 });
    let found = newest.call("search_resource", found).await.result();
    for (tool, result) in [("query_resource", of_newest), ("search_resource", found)] {
        let validator = jsonschema::draft202012::new(&schema(tool)).unwrap();
        assert!(validator.is_valid(&result["structuredContent"]), "{tool}: {result}");
    }
    let refused = json!({ "from": "x:1", "sql": "SELECT nope FROM t" });
    let said = modern.call("query_resource", refused.clone()).await.failure();
    assert_eq!(newest.call("query_resource", refused).await.failure(), said);
}

const WORKFLOW: &str = r#"
[[workflows]]
name = "worst"
description = "The most frequent zip code"
also = "tool"

[[workflows.arguments]]
name = "uri"
description = "The orders"
required = true

[[workflows.steps]]
name = "count"
tool = "query_resource"
bind = "counted"
[workflows.steps.arguments]
from = { prompt_arg = "uri" }
sql = { constant = "SELECT zip, count(*) AS n FROM t GROUP BY zip ORDER BY n DESC" }

[[workflows.steps]]
name = "find"
tool = "search_resource"
bind = "found"
[workflows.steps.arguments]
uri = { prompt_arg = "uri" }
query = { step = "counted", field = "rows.0.0" }

[[workflows.steps]]
name = "keep"
tool = "create_resource"
[workflows.steps.arguments]
uri = { constant = "x:rows" }
json = { step = "found", field = "rows" }
"#;

/// What the workflow has stored: the lines of the most frequent zip code.
fn assert_kept(kept: &Value) {
    let kept: Value = serde_json::from_str(kept["text"].as_str().unwrap()).unwrap();
    let lines: Vec<_> = kept.as_array().unwrap().iter().map(|row| &row["line"]).collect();
    assert_eq!(lines, [&json!(2), &json!(4)], "{kept}");
}

#[tokio::test]
async fn a_configured_workflow_queries_and_uses_the_rows() {
    let file = TextFile::new(WORKFLOW);
    let (_larder, url) = serving(&["--config", file.path()]).await;
    let client = Modern::at(&url);
    store(&client, "x:1", CSV).await;
    let params = json!({ "name": "worst", "arguments": { "uri": "x:1" } });
    let prompt = client.send("prompts/get", params).await.result();
    assert!(prompt.to_string().contains("3 rows"), "{prompt}");
    assert_kept(&client.read("x:rows").await);
}

#[tokio::test]
async fn a_workflow_in_code_queries_and_uses_the_rows() {
    let server = Server::offering(|builder| {
        let count = WorkflowStep::new("count", ToolHandle::new("query_resource"))
            .arg("from", prompt_arg("uri"))
            .arg("sql", constant("SELECT zip, count(*) AS n FROM t GROUP BY zip ORDER BY n DESC"))
            .bind("counted");
        let find = WorkflowStep::new("find", ToolHandle::new("search_resource"))
            .arg("uri", prompt_arg("uri"))
            .arg("query", field("counted", "rows.0.0"))
            .bind("found");
        let keep = WorkflowStep::new("keep", ToolHandle::new("create_resource"))
            .arg("uri", constant("x:rows"))
            .arg("json", field("found", "rows"));
        let workflow = SequentialWorkflow::new("worst", "The most frequent zip code")
            .argument("uri", "The orders", true)
            .step(count)
            .step(find)
            .step(keep)
            .as_tool();
        builder
            .with(tools::reading(ToolOptions::default()))
            .with(tools::writing())
            .with(tools::querying(limits(), true))
            .with(workflow::prompt(workflow))
    })
    .await;
    let client = Modern::of(&server);
    store(&client, "x:1", CSV).await;
    client.call("worst", json!({ "uri": "x:1" })).await.text();
    assert_kept(&client.read("x:rows").await);
    // A query that fails fails its step, with the reason.
    client.create(json!({ "uri": "x:2", "text": "no\nzip\nhere\n" })).await;
    let said = client.call("worst", json!({ "uri": "x:2" })).await.failure();
    assert!(said.contains("No column zip in t."), "{said}");
}

#[tokio::test]
async fn scopes_decide_who_queries_and_who_stores_the_result() {
    let callers: [(&str, &[&str]); 3] =
        [("alice", &["query", "write"]), ("bob", &["query"]), ("carol", &["write"])];
    let server = server(&callers, |config| {
        let scopes = |name: &str| vec![name.to_owned()];
        config.auth.scopes = BTreeMap::from([
            ("query_resource".into(), scopes("query")),
            ("create_resource".into(), scopes("write")),
        ]);
    })
    .await;
    let client = |name| Modern::bearing(&server, name);
    let (alice, bob, carol) = (client("alice"), client("bob"), client("carol"));
    store(&alice, "x:1", CSV).await;
    store(&carol, "x:1", CSV).await;
    let link = share(&alice, "x:1", "everyone", None).await;
    let query = |from: &str| json!({ "from": from, "sql": "SELECT max(id) FROM t" });
    let into = |from: &str| {
        let mut query = query(from);
        query["into"] = json!({ "uri": "x:max" });
        query
    };
    assert_eq!(rows(&alice, into("x:1")).await, json!([[3]]));
    assert_eq!(rows(&bob, query(&link)).await, json!([[3]]));
    let said = bob.call("query_resource", into(&link)).await.failure();
    assert!(said.starts_with("into needs the scopes of create_resource (auth.scopes)"), "{said}");
    // A row that is cut is stored by the next call only if the caller may do that.
    for (client, from, may_store) in [(&alice, "x:1", true), (&bob, &*link, false)] {
        let long = json!({ "from": from, "jq": "[limit(40000; repeat(\"x\"))]" });
        let answer = client.call("query_resource", long).await;
        let cut = &answer.result()["structuredContent"];
        assert_eq!((&cut["cut"], cut["next"]["into"].is_object()), (&json!(true), may_store));
        assert_eq!(answer.text().contains("select less"), !may_store, "{}", answer.text());
    }
    let nothing = bob.call("query_resource", query("x:max")).await.failure();
    assert_eq!(nothing, "Resource not found: x:max");
    // Without its scope the tool is not listed, and its use is refused.
    let listed = |tools: Vec<Value>| tools.iter().any(|tool| tool["name"] == "query_resource");
    assert!(listed(bob.list("tools/list", "tools").await));
    assert!(!listed(carol.list("tools/list", "tools").await));
    let refused = carol.call("query_resource", query("x:1")).await;
    assert_eq!(refused.status, 403, "{refused:?}");
}

#[tokio::test]
async fn more_queries_than_workers_wait_and_are_refused_when_it_takes_too_long() {
    const ENDLESS: &str =
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

    let limits = [("LARDER_QUERY__SECONDS", "2"), ("LARDER_QUERY__CONCURRENT", "1")];
    let service = Service::start_in(&[], &limits).await;
    service.store("x:1", "text/csv", &format!("n\n{}", numbered(5, |n| n.to_string()))).await;
    // One worker serves queries that are quick, one after the other.
    let quick = (0..8).map(|n| {
        let sql = format!("SELECT sum(n) + {n} FROM t");
        let (service, n) = (&service, n);
        async move { assert_eq!(service.rows("x:1", &sql).await, json!([[10 + n]])) }
    });
    futures_util::future::join_all(quick).await;
    // Those that wait longer than a query may take are refused.
    let endless = (0..6).map(|_| {
        let query = json!({ "from": "x:1", "sql": ENDLESS });
        let call = request("tools/call", json!({ "name": "query_resource", "arguments": query }));
        Answer::of(post(&service.url, &call))
    });
    let answers = futures_util::future::join_all(endless).await;
    let said: Vec<_> = answers.iter().map(|answer| text_of(&answer.result())).collect();
    let count = |start: &str| said.iter().filter(|said| said.starts_with(start)).count();
    let busy = "All 1 query workers are busy (query.concurrent). Send the same call again.";
    let (stopped, refused) = (count("Stopped after 2 s (query.seconds)"), count(busy));
    assert!(stopped > 0 && refused > 0 && stopped + refused == 6, "{said:?}");
    assert_eq!(service.rows("x:1", "SELECT max(n) FROM t").await, json!([[4]]));
}
