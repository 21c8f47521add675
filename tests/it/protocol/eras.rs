//! Both protocol eras on one endpoint: the same content, each in its own encoding.

use serde_json::{Value, json};

use crate::support::{Answer, Legacy, Modern, Server};

#[tokio::test]
async fn both_eras_get_the_same_content() {
    let server = Server::start().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    for (method, params) in [
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "docs://welcome" })),
        ("resources/read", json!({ "uri": "docs://binary" })),
        ("resources/read", json!({ "uri": "logs://web/2026-01-01" })),
        ("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } })),
        ("tools/call", json!({ "name": "fails" })),
    ] {
        let mut newer = modern.send(method, params.clone()).await.result();
        let older = legacy.send(method, params).await.result();
        let members = newer.as_object_mut().unwrap();
        assert_eq!(members.remove("resultType"), Some(json!("complete")), "{method}");
        let meta = members.remove("_meta").unwrap();
        assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "fixture");
        let (ttl, scope) = (members.remove("ttlMs"), members.remove("cacheScope"));
        assert_eq!(ttl.is_some() && scope.is_some(), method != "tools/call", "{method}");
        assert_eq!(newer, older, "{method}");
    }
}

#[tokio::test]
async fn both_eras_run_side_by_side() {
    let server = Server::streaming().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let mut newer = modern.stream_call(1, "stepwise", json!({ "key": "m", "steps": 1 })).await;
    let mut older = legacy.stream_call(1, "stepwise", json!({ "key": "l", "steps": 1 })).await;
    assert_eq!(older.next().await.unwrap().data, "");
    server.control.release("l", 2);
    server.control.release("m", 2);
    for events in [&mut newer, &mut older] {
        assert_eq!(events.message().await["params"]["progressToken"], "token");
    }
    assert_eq!(newer.message().await["result"]["content"][0]["text"], "done m");
    assert_eq!(older.message().await["result"]["content"][0]["text"], "done l");
    legacy.create(json!({ "uri": "x:shared", "text": "both" })).await;
    assert_eq!(modern.read("x:shared").await["text"], "both");
}

#[tokio::test]
async fn a_missing_resource_has_the_code_of_its_era() {
    let server = Server::start().await;
    let params = json!({ "uri": "x:none" });
    let newer = Modern::of(&server).send("resources/read", params.clone()).await;
    assert_eq!(newer.refusal(), (200, -32602, Some(json!(1))));
    assert_eq!(newer.error()["data"]["uri"], "x:none");
    let older = Legacy::of(&server).await.send("resources/read", params).await;
    assert_eq!(older.refusal(), (200, -32002, Some(json!(1))));
    assert_eq!(older.error()["data"]["uri"], "x:none");
}

#[tokio::test]
async fn bad_uris_and_bad_cursors_are_bad_parameters() {
    let server = Server::start().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    for (method, params) in [
        ("resources/read", json!({ "uri": "no scheme" })),
        ("resources/read", json!({ "uri": 7 })),
        ("resources/read", json!({})),
        ("tools/list", json!({ "cursor": "bad" })),
        ("tools/list", json!({ "cursor": 7 })),
        ("resources/list", json!({ "cursor": "bad" })),
        ("resources/templates/list", json!({ "cursor": "bad" })),
    ] {
        for answer in
            [modern.send(method, params.clone()).await, legacy.send(method, params.clone()).await]
        {
            assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{method} {params}");
        }
    }
    // The cursor of another listing.
    let small = Server::configured(|setup| setup.page_size = 1).await;
    let client = Modern::of(&small);
    let next = client.send("tools/list", json!({})).await.result()["nextCursor"].clone();
    let crossed = client.send("resources/list", json!({ "cursor": next })).await;
    assert_eq!(crossed.error()["code"], -32602);
}

#[tokio::test]
async fn request_ids_are_returned_unchanged() {
    let server = Server::start().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    for id in [json!(0), json!(-7), json!(9_007_199_254_740_991_i64), json!(""), json!("ü\n\"")] {
        let request = modern.request(id.clone(), "tools/list", json!({}));
        let answer = Answer::of(request).await;
        assert_eq!(answer.json()["id"], id);
        let body: Value = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        let answer = Answer::of(legacy.post(&body)).await;
        assert_eq!(answer.json()["id"], id);
    }
}
