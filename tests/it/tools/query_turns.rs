//! How callers share the workers of queries.

use std::fs;

use serde_json::json;

use super::query::{Service, text_of};
use crate::support::{eventually, sha256};

/// Never ends by itself.
const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

#[tokio::test]
async fn endless_queries_of_two_callers_end_when_a_third_asks() {
    let callers = ["alice", "bob", "carol"];
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    let tokens = callers.iter().fold("[auth]\nmode = \"static\"\n".to_owned(), |text, name| {
        let digest = sha256(name);
        text + &format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n")
    });
    fs::write(&config, tokens).unwrap();

    // A query that waits for the time limit of another query fails the test.
    let limits = [("LARDER_QUERY__SECONDS", "3600"), ("LARDER_QUERY__SHARE_SECONDS", "1")];
    let service = Service::start_in(&["--config", config.to_str().unwrap()], &limits).await;
    for name in callers {
        let content = json!({ "uri": "x:1", "text": "a\n1\n2\n", "mime_type": "text/csv" });
        service.call_as(Some(name), "create_resource", content).await;
    }

    let ask = async |name: &str, sql: &str| {
        let query = json!({ "from": "x:1", "sql": sql });
        service.call_as(Some(name), "query_resource", query).await
    };
    let endless = async |name: &str| loop {
        let ended = text_of(&ask(name, ENDLESS).await);
        let yielded = "Stopped after 1 s (query.share_seconds), because another caller waits and all 2 query workers are busy (query.concurrent).";
        assert!(ended.starts_with(yielded), "{ended}");
    };
    let third = async {
        let id = service.process.id();
        eventually("two workers", async || super::query_limits::workers(id).len() == 2).await;
        for n in 0..5 {
            let answer = ask("carol", &format!("SELECT sum(a) + {n} FROM t")).await;
            assert_eq!(answer["structuredContent"]["rows"], json!([[3 + n]]), "{answer}");
        }
    };
    tokio::select! {
        () = third => {}
        () = async { futures_util::join!(endless("alice"), endless("bob")); } => unreachable!(),
    }
}
