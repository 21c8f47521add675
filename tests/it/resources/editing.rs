//! Edits of stored content: texts, JSON Patch and JSON Merge Patch.

use serde_json::{Value, json};

use crate::support::{Legacy, Modern, Server};

/// The text of an answer below the URI.
async fn edited(client: &Modern, arguments: Value) -> String {
    let result = client.call("update_resource", arguments.clone()).await.result();
    assert_ne!(result["isError"], true, "{arguments}: {result}");
    result["content"][1]["text"].as_str().unwrap().to_owned()
}

async fn content(client: &Modern, uri: &str) -> String {
    client.read(uri).await["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn exact_texts_are_replaced_and_the_answer_is_what_has_changed() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let text = (1..=400).map(|n| format!("line {n} of a document\n")).collect::<Vec<_>>().concat();
    client.create(json!({ "uri": "x:doc", "text": text, "mime_type": "text/markdown" })).await;

    let edits = json!([{ "old": "line 7 of", "new": "line seven of" }, { "old": "line 400 of a document\n", "new": "" }]);
    let said = edited(&client, json!({ "uri": "x:doc", "edits": edits, "if_revision": 1 })).await;
    assert!(said.starts_with("Edited: revision 2, text/markdown"), "{said}");
    for part in ["-line 7 of a document", "+line seven of a document", "-line 400 of a document"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.len() < 1_000, "{said}");
    let expected =
        text.replace("line 7 of", "line seven of").replace("line 400 of a document\n", "");
    assert_eq!(content(&client, "x:doc").await, expected);

    for (arguments, expected) in [
        (
            json!({ "edits": [{ "old": "of a document", "new": "x" }] }),
            "old occurs 399 times, in lines 1, 2, 3, 4, 5, …",
        ),
        (
            json!({ "edits": [{ "old": "line 9 of", "new": "a" }, { "old": "nowhere", "new": "b" }] }),
            "edits[1]: old is not in its 399 lines",
        ),
        (
            json!({ "edits": [{ "old": "line 9 of", "new": "a" }], "if_revision": 1 }),
            "it has revision 2, not 1",
        ),
        (
            json!({ "edits": [{ "old": "line 9 of", "new": "a" }], "text": "b" }),
            "Edits change the current content",
        ),
        (json!({ "edits": [], "json_patch": [] }), "one of edits, json_patch and merge_patch"),
        (json!({ "edits": [] }), "edits is empty"),
        (json!({ "if_revision": 2 }), "if_revision is for edits"),
        (json!({ "json_patch": [] }), "it is not JSON"),
        (json!({ "edits": [{ "old": "a" }] }), "new"),
    ] {
        let mut asked = arguments.clone();
        asked["uri"] = json!("x:doc");
        let refused = client.call("update_resource", asked).await.failure();
        assert!(refused.contains(expected), "{arguments}: {refused}");
    }
    // Nothing of a refused edit is applied.
    assert_eq!(content(&client, "x:doc").await, expected);

    let all = json!({ "uri": "x:doc", "edits": "[{\"old\": \"document\", \"new\": \"page\", \"all\": \"true\"}]" });
    let said = edited(&client, all).await;
    assert!(said.len() < 1_000 && said.contains("more changed lines not shown"), "{said}");
    assert_eq!(content(&client, "x:doc").await, expected.replace("document", "page"));
}

#[tokio::test]
async fn json_is_patched_and_merged_in_its_layout() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let rows: Vec<_> = (0..50).map(|id| json!({ "id": id })).collect();
    client.create(json!({ "uri": "x:json", "json": { "rows": rows, "total": 50 } })).await;

    let patch = json!([
        { "op": "test", "path": "/rows/3/id", "value": 3 },
        { "op": "add", "path": "/rows/4", "value": { "id": 99 } },
        { "op": "replace", "path": "/total", "value": 51 },
    ]);
    let said = edited(&client, json!({ "uri": "x:json", "json_patch": patch })).await;
    assert!(said.contains("+{\"id\":99}") && said.len() < 1_000, "{said}");
    let merge = json!({ "total": null, "note": { "by": "me" } });
    let said = edited(&client, json!({ "uri": "x:json", "merge_patch": merge })).await;
    assert!(said.contains("revision 3"), "{said}");

    let now: Value = serde_json::from_str(&content(&client, "x:json").await).unwrap();
    assert_eq!((&now["rows"][4], &now["rows"][5]), (&json!({ "id": 99 }), &json!({ "id": 4 })));
    assert_eq!((now.get("total"), &now["note"]), (None, &json!({ "by": "me" })));

    for (change, expected) in [
        (
            json!({ "json_patch": [{ "op": "test", "path": "/rows/0/id", "value": 1 }] }),
            "json_patch: ",
        ),
        (json!({ "json_patch": [{ "op": "remove", "path": "/rows/900" }] }), "json_patch: "),
        (json!({ "merge_patch": {} }), "nothing of it would change"),
    ] {
        let mut asked = change.clone();
        asked["uri"] = json!("x:json");
        let refused = client.call("update_resource", asked).await.failure();
        assert!(refused.contains(expected), "{change}: {refused}");
    }
    client.create(json!({ "uri": "x:exact", "text": "{\"price\": 1.10}" })).await;
    let exact = json!({ "uri": "x:exact", "merge_patch": { "a": 1 } });
    let refused = client.call("update_resource", exact).await.failure();
    assert!(refused.contains("by edits"), "{refused}");
}

#[tokio::test]
async fn a_large_document_is_edited_and_passed_on_in_three_small_calls() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let table: String = "id,name,price\n".to_owned()
        + &(0..10_000)
            .map(|id| format!("{id},\"a name, {id}\",{id}.50\n"))
            .collect::<Vec<_>>()
            .concat();
    assert!(table.len() > 200_000);
    client.create(json!({ "uri": "x:table", "text": table, "mime_type": "text/csv" })).await;

    let find = json!({ "uri": "x:table", "query": "a name, 5000", "literal": true });
    let edits = json!([{ "old": "5000,\"a name, 5000\",5000.50\n", "new": "5000,\"a name, 5000\",5000.50\n5000,\"new\",1\n" }]);
    let edit = json!({ "uri": "x:table", "edits": edits });
    let pass = json!({ "uri": "x:copy", "text": "{{x:table}}" });
    let sent =
        [&find, &edit, &pass].map(|arguments| arguments.to_string().len()).iter().sum::<usize>();
    assert!(sent < 1_000, "{sent}");

    client.call("search_resource", find).await.text();
    let said = edited(&client, edit).await;
    assert!(said.contains("+5000,\"new\",1") && said.len() < 1_000, "{said}");
    client.call("create_resource", pass).await.text();
    let copy = content(&client, "x:copy").await;
    assert_eq!(copy, table.replace("5000.50\n", "5000.50\n5000,\"new\",1\n"));
}

#[tokio::test]
async fn edits_of_many_callers_at_once_are_all_kept() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:list", "json": { "of": [] } })).await;

    let adding = (0..12).map(|n| {
        let patch = json!([{ "op": "add", "path": "/of/-", "value": n }]);
        client.call("update_resource", json!({ "uri": "x:list", "json_patch": patch }))
    });
    for answer in futures_util::future::join_all(adding).await {
        answer.text();
    }
    let now: Value = serde_json::from_str(&content(&client, "x:list").await).unwrap();
    let mut added: Vec<_> =
        now["of"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    added.sort_unstable();
    assert_eq!(added, (0..12).collect::<Vec<_>>());

    // In a session as well; what is binary is not edited.
    let session = Legacy::of(&server).await;
    session.create(json!({ "uri": "x:bytes", "blob": "/wA=" })).await;
    let edit = json!({ "uri": "x:bytes", "edits": [{ "old": "a", "new": "b" }] });
    let refused = session.call("update_resource", edit).await.failure();
    assert!(refused.contains("is binary"), "{refused}");
}

#[tokio::test]
async fn an_edit_that_would_grow_without_end_is_refused_and_the_server_lives() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:text", "text": "a" })).await;
    client.create(json!({ "uri": "x:json", "json": { "a": 1 } })).await;

    let growing = json!({ "old": "a", "new": "a".repeat(300), "all": true });
    let doubling = json!({ "op": "copy", "from": "", "path": "/x" });
    let deep = json!({ "op": "add", "path": "/x".repeat(200), "value": 1 });
    for (arguments, expected) in [
        (
            json!({ "uri": "x:text", "edits": vec![growing; 13] }),
            "and an edit gives at most 16,777,216 (limits.read_bytes)",
        ),
        (
            json!({ "uri": "x:json", "json_patch": vec![doubling.clone(); 900] }),
            "json_patch: operation ",
        ),
        (
            json!({ "uri": "x:json", "json_patch": vec![doubling; 1_001] }),
            "at most 1,000 operations",
        ),
        (json!({ "uri": "x:json", "json_patch": [deep] }), "nested deeper than 127"),
    ] {
        let refused = client.call("update_resource", arguments).await.failure();
        assert!(refused.contains(expected), "{refused}");
    }
    assert_eq!(content(&client, "x:text").await, "a");
    assert_eq!(content(&client, "x:json").await.replace(['\n', ' '], ""), "{\"a\":1}");
}

#[tokio::test]
async fn what_a_patch_would_not_keep_is_refused_or_told() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let twice = json!({ "uri": "x:twice", "text": "{\"a\": 1, \"a\": 2}" });
    client.create(twice).await;
    let merge = json!({ "uri": "x:twice", "merge_patch": { "b": 1 } });
    let refused = client.call("update_resource", merge).await.failure();
    assert!(refused.contains("a member that occurs twice"), "{refused}");

    let by_hand = json!({ "uri": "x:hand", "text": "{\n  \"a\": 1,\n  \"b\": [1, 2]\n}\n" });
    client.create(by_hand).await;
    let merge = json!({ "uri": "x:hand", "merge_patch": { "a": 2 } });
    let said = edited(&client, merge).await;
    assert!(
        said.contains("Its layout is written anew.\n@@ ") && said.contains("-  \"b\": [1, 2]"),
        "{said}"
    );

    let record =
        json!({ "uri": "x:lines", "text": "{\"id\": 1}\n", "mime_type": "application/x-ndjson" });
    client.create(record).await;
    let patch = json!([{ "op": "add", "path": "/-", "value": { "id": 2 } }]);
    edited(&client, json!({ "uri": "x:lines", "json_patch": patch })).await;
    assert_eq!(content(&client, "x:lines").await, "{\"id\": 1}\n{\"id\": 2}\n");
}
