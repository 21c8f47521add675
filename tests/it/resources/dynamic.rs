//! Dynamic resources: created, read, updated and deleted by tools.

use serde_json::{Value, json};

use crate::{
    sharing::links::Callers,
    support::{Legacy, Modern, Server},
};

#[tokio::test]
async fn a_resource_is_created_read_updated_and_deleted() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let created =
        client.call("create_resource", json!({ "uri": "results://test", "text": "one\ntwo\n" }));
    let result = created.await.result();
    assert_eq!(result["content"][0]["text"], "results://test");
    let link = &result["content"][2];
    assert_eq!((&link["type"], &link["uri"]), (&json!("resource_link"), &json!("results://test")));
    assert_eq!((&link["size"], &link["mimeType"]), (&json!(8), &json!("text/plain")));
    let read = client.read("results://test").await;
    let expected =
        json!({ "uri": "results://test", "mimeType": "text/plain", "text": "one\ntwo\n" });
    assert_eq!(read, expected);

    let updated =
        client.call("update_resource", json!({ "uri": "results://test", "text": "three" }));
    let words = updated.await.result()["content"][1]["text"].as_str().unwrap().to_owned();
    assert!(words.contains("Updated results://test"), "{words}");
    assert_eq!(client.read("results://test").await["text"], "three");

    for _ in 0..2 {
        let deleted =
            client.call("delete_resource", json!({ "uri": "results://test" })).await.text();
        assert!(deleted.starts_with("Deleted results://test"), "{deleted}");
    }
    let gone = client.send("resources/read", json!({ "uri": "results://test" })).await;
    assert_eq!(gone.error()["code"], -32602);
    let listed = client.list("resources/list", "resources").await;
    assert!(!listed.iter().any(|r| r["uri"] == "results://test"));
}

#[tokio::test]
async fn each_kind_of_content_is_read_as_it_was_written() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let text = "quotes \" and \\ and \u{0} and \u{2028} and 🦀\r\n\ttabs";
    client.create(json!({ "uri": "x:text", "text": text })).await;
    assert_eq!(client.read("x:text").await["text"], text);
    client.create(json!({ "uri": "x:empty", "text": "" })).await;
    assert_eq!(client.read("x:empty").await["text"], "");
    let value = json!({ "data": [1, 2.5, null], "b": { "a": "ü" } });
    client.create(json!({ "uri": "x:json", "json": value })).await;
    let read = client.read("x:json").await;
    assert_eq!(read["mimeType"], "application/json");
    assert_eq!(serde_json::from_str::<Value>(read["text"].as_str().unwrap()).unwrap(), value);
    client.create(json!({ "uri": "x:null", "json": [null] })).await;
    assert_eq!(client.read("x:null").await["text"], "[\nnull\n]");
    client
        .create(
            json!({ "uri": "x:pdf", "blob": "JVBERi0xLjcA/w==", "mime_type": "application/pdf" }),
        )
        .await;
    let read = client.read("x:pdf").await;
    let expected =
        json!({ "uri": "x:pdf", "mimeType": "application/pdf", "blob": "JVBERi0xLjcA/w==" });
    assert_eq!(read, expected);
    client.create(json!({ "uri": "x:bytes", "blob": "" })).await;
    assert_eq!(client.read("x:bytes").await["mimeType"], "application/octet-stream");
}

#[tokio::test]
async fn any_scheme_is_accepted_and_a_generated_uri_cannot_be_guessed() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for uri in [
        "results://a/1",
        "output://file.json",
        "temp:x",
        "urn:isbn:1",
        "custom+x.y-z://?#f",
        "file:///etc/passwd",
        "x:../../a%2F..",
        "a://%00",
    ] {
        assert_eq!(client.create(json!({ "uri": uri, "text": uri })).await, uri);
        assert_eq!(client.read(uri).await["text"], uri);
    }
    let minted = client.create(json!({ "text": "x" })).await;
    assert!(minted.starts_with("larder://r/") && minted.len() == 43, "{minted}");
    assert_ne!(client.create(json!({ "text": "x" })).await, minted);
}

#[tokio::test]
async fn an_update_changes_only_the_content() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "a,b", "name": "N", "description": "D", "mime_type": "text/csv" })).await;
    client.call("update_resource", json!({ "uri": "x:1", "text": "c,d" })).await.text();
    let listed = client.list("resources/list", "resources").await;
    let mine = listed.iter().find(|r| r["uri"] == "x:1").unwrap();
    assert_eq!(
        (&mine["name"], &mine["description"], &mine["mimeType"]),
        (&json!("N"), &json!("D"), &json!("text/csv"))
    );
    let unknown =
        client.call("update_resource", json!({ "uri": "x:none", "text": "x" })).await.failure();
    assert!(unknown.contains("x:none"), "{unknown}");
    assert_eq!(
        client.send("resources/read", json!({ "uri": "x:none" })).await.error()["code"],
        -32602
    );
}

#[tokio::test]
async fn an_update_without_content_changes_only_the_metadata() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "a,b", "name": "N", "description": "D", "mime_type": "text/csv", "ttl": 60 })).await;
    let expires = async || {
        let described = client.call("describe_resource", json!({ "uri": "x:1" })).await.text();
        described.lines().find(|line| line.starts_with("expires")).map(str::to_owned).unwrap()
    };
    let before = expires().await;
    let update = async |arguments| client.call("update_resource", arguments).await;
    update(json!({ "uri": "x:1", "name": "M" })).await.text();
    assert_eq!(expires().await, before);
    update(json!({ "uri": "x:1", "ttl": 3600 })).await.text();
    assert_ne!(expires().await, before);
    let listed = client.list("resources/list", "resources").await;
    let mine = listed.iter().find(|r| r["uri"] == "x:1").unwrap();
    assert_eq!(
        (&mine["name"], &mine["description"], &mine["mimeType"]),
        (&json!("M"), &json!("D"), &json!("text/csv"))
    );
    assert_eq!(client.read("x:1").await["text"], "a,b");

    let nothing = update(json!({ "uri": "x:1" })).await.failure();
    assert!(nothing.contains("nothing to change"), "{nothing}");
    let refused = update(json!({ "uri": "docs://welcome", "name": "M" })).await.failure();
    assert!(refused.contains("part of this server"), "{refused}");
    let unknown = update(json!({ "uri": "x:none", "name": "M" })).await.failure();
    assert!(unknown.contains("x:none"), "{unknown}");
}

#[tokio::test]
async fn an_update_appends_and_restores_earlier_revisions() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "one\n" })).await;
    let update = async |arguments| client.call("update_resource", arguments).await;
    let append = json!({ "uri": "x:1", "text": "two\n", "append": true });
    let appended = update(append).await.result()["content"][1]["text"].as_str().unwrap().to_owned();
    assert!(appended.starts_with("Appended to x:1"), "{appended}");
    assert_eq!(client.read("x:1").await["text"], "one\ntwo\n");

    let restore = json!({ "uri": "x:1", "revision": 1 });
    let restored =
        update(restore).await.result()["content"][1]["text"].as_str().unwrap().to_owned();
    assert!(restored.starts_with("Restored x:1"), "{restored}");
    assert_eq!(client.read("x:1").await["text"], "one\n");
    assert_eq!(client.read("x:1?revision=2").await["text"], "one\ntwo\n");

    for (arguments, message) in [
        (json!({ "uri": "x:1", "revision": 1, "text": "x" }), "not both"),
        (json!({ "uri": "x:1", "revision": 9 }), "Available revisions: 1, 2, 3"),
        (json!({ "uri": "x:1", "append": true }), "exactly one of text and blob"),
        (json!({ "uri": "x:1", "append": true, "json": [1] }), "exactly one of text and blob"),
    ] {
        let refused = update(arguments).await.failure();
        assert!(refused.contains(message), "{refused}");
    }
    assert_eq!(client.read("x:1").await["text"], "one\n");
}

#[tokio::test]
async fn a_dynamic_resource_overrides_a_static_one() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "docs://welcome", "text": "mine" })).await;
    client.create(json!({ "uri": "logs://web/2026-01-01", "text": "mine, too" })).await;
    assert_eq!(client.read("docs://welcome").await["text"], "mine");
    assert_eq!(client.read("logs://web/2026-01-01").await["text"], "mine, too");
    client.call("delete_resource", json!({ "uri": "docs://welcome" })).await.text();
    client.call("delete_resource", json!({ "uri": "logs://web/2026-01-01" })).await.text();
    assert_eq!(client.read("docs://welcome").await["text"], "Welcome.");
    assert_eq!(client.read("logs://web/2026-01-01").await["text"], "web on 2026-01-01");
}

#[tokio::test]
async fn resources_are_deleted_by_the_beginning_of_their_uris() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for uri in ["x:run/1", "x:run/2", "x:running", "x:other"] {
        client.create(json!({ "uri": uri, "text": "text" })).await;
    }
    let deleted = client.call("delete_resource", json!({ "prefix": "x:run/" })).await.result();
    assert_eq!(deleted["structuredContent"], json!({ "deleted": 2, "more": false }));
    let said = "Deleted 2 resources whose URIs begin with x:run/.";
    assert_eq!(deleted["content"][0]["text"], said);
    let listed = client.list("resources/list", "resources").await;
    let left: Vec<_> = listed.iter().filter_map(|r| r["uri"].as_str()).collect();
    assert!(left.contains(&"x:running") && left.contains(&"x:other"), "{left:?}");
    assert!(!left.iter().any(|uri| uri.starts_with("x:run/")), "{left:?}");

    for (wrong, expected) in [
        (json!({}), "exactly one"),
        (json!({ "uri": "x:other", "prefix": "x:" }), "exactly one"),
        (json!({ "prefix": "" }), "scheme"),
        (json!({ "prefix": "x" }), "scheme"),
    ] {
        let refused = client.call("delete_resource", wrong).await.failure();
        assert!(refused.contains(expected), "{refused}");
    }
    assert_eq!(client.read("x:other").await["text"], "text");
}

#[tokio::test]
async fn a_call_deletes_a_thousand_resources_at_most() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for index in 0..1_001 {
        client.create(json!({ "uri": format!("x:{index}"), "text": "" })).await;
    }
    let delete = async || {
        let deleted = client.call("delete_resource", json!({ "prefix": "x:" })).await.result();
        deleted["structuredContent"].clone()
    };
    assert_eq!(delete().await, json!({ "deleted": 1_000, "more": true }));
    assert_eq!(delete().await, json!({ "deleted": 1, "more": false }));
}

#[tokio::test]
async fn a_resource_is_copied_to_another_uri() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "one", "description": "The first" })).await;
    client.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
    let copy = async |arguments: Value| client.call("create_resource", arguments).await.result();
    let copied = copy(json!({ "uri": "x:2", "copy_of": "x:1" })).await;
    assert_eq!(copied["structuredContent"]["uri"], "x:2");
    assert_eq!(copied["content"][2]["description"], "The first");
    assert_eq!(client.read("x:2").await["text"], "two");
    let earlier = json!({ "uri": "x:3", "copy_of": "x:1", "revision": 1, "description": "Mine" });
    assert_eq!(copy(earlier).await["content"][2]["description"], "Mine");
    assert_eq!(client.read("x:3").await["text"], "one");
    let minted = copy(json!({ "copy_of": "docs://welcome" })).await;
    let minted = minted["structuredContent"]["uri"].as_str().expect("a URI").to_owned();
    assert_eq!(client.read(&minted).await["text"], "Welcome.");
    let shared = client.call("share_resource", json!({ "uri": "x:1", "with": "everyone" })).await;
    let shared = shared.text();
    let link = shared.lines().next().expect("a link");
    copy(json!({ "uri": "x:4", "copy_of": link })).await;
    client.call("delete_resource", json!({ "uri": "x:1" })).await.text();
    assert_eq!(client.read("x:4").await["text"], "two");

    for (wrong, expected) in [
        (json!({ "uri": "x:9", "copy_of": "x:2", "text": "new" }), "not both"),
        (json!({ "uri": "x:9", "text": "new", "revision": 1 }), "revision needs copy_of"),
        (json!({ "uri": "x:9", "copy_of": "x:2", "revision": 7 }), "x:2"),
        (json!({ "uri": "x:9", "copy_of": "x:0" }), "x:0"),
        (json!({ "uri": "no uri", "copy_of": "x:2" }), "no uri"),
    ] {
        let refused = client.call("create_resource", wrong.clone()).await.failure();
        assert!(refused.contains(expected), "{wrong}: {refused}");
    }
}

#[tokio::test]
async fn a_resource_is_moved_to_another_uri() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let described = json!({ "uri": "x:1", "text": "one", "description": "The first", "ttl": 600 });
    client.create(described).await;
    client.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
    client.create(json!({ "uri": "x:2", "text": "other" })).await;
    let moving = json!({ "uri": "x:1", "move_to": "x:3", "name": "Moved" });
    let moved = client.call("update_resource", moving).await.result();
    let text = moved["content"][1]["text"].as_str().expect("a text");
    assert!(text.starts_with("Moved to x:3: "), "{text}");
    assert_eq!(moved["content"][2]["description"], "The first");
    assert_eq!(moved["content"][2]["name"], "Moved");
    assert_eq!(client.read("x:3").await["text"], "two");
    let gone = json!({ "uri": "x:1", "move_to": "x:9" });
    assert!(client.call("update_resource", gone).await.failure().contains("x:1"));

    for (wrong, expected) in [
        (json!({ "uri": "x:3", "move_to": "x:2" }), "x:2 is in use"),
        (json!({ "uri": "x:3", "move_to": "x:3" }), "x:3 is in use"),
        (json!({ "uri": "x:3", "move_to": "x:9", "text": "new" }), "without text"),
        (json!({ "uri": "x:3", "move_to": "x:9", "revision": 1 }), "without text"),
        (json!({ "uri": "x:3", "move_to": "x:9", "ttl": 0 }), "ttl must be positive"),
        (json!({ "uri": "x:3", "move_to": "no uri" }), "no uri"),
        (json!({ "uri": "docs://welcome", "move_to": "x:9" }), "part of this server"),
    ] {
        let refused = client.call("update_resource", wrong.clone()).await.failure();
        assert!(refused.contains(expected), "{wrong}: {refused}");
    }
    let listed = client.list("resources/list", "resources").await;
    let left: Vec<_> = listed.iter().filter_map(|r| r["uri"].as_str()).collect();
    assert!(left.contains(&"x:2") && left.contains(&"x:3"), "{left:?}");
    assert!(!left.contains(&"x:1") && !left.contains(&"x:9"), "{left:?}");
}

#[tokio::test]
async fn static_resources_cannot_be_changed() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for uri in ["docs://welcome", "logs://web/today"] {
        let refused =
            client.call("update_resource", json!({ "uri": uri, "text": "x" })).await.failure();
        assert!(refused.contains("part of this server"), "{refused}");
        let refused = client.call("delete_resource", json!({ "uri": uri })).await.failure();
        assert!(refused.contains("part of this server"), "{refused}");
    }
    assert_eq!(client.read("docs://welcome").await["text"], "Welcome.");
}

#[tokio::test]
async fn static_resources_and_templates_are_read_like_dynamic_ones() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let binary = client.read("docs://binary").await;
    assert_eq!((&binary["blob"], &binary["text"]), (&json!("AP8Q"), &Value::Null));
    assert_eq!(client.read("logs://web%20app/today").await["text"], "web app on today");
    for uri in
        ["logs://..%2fetc/passwd", "logs://a/..", "logs://a/b%00", "logs://a/b/c", "logs://a/"]
    {
        let missing = client.send("resources/read", json!({ "uri": uri })).await;
        assert_eq!(
            (&missing.error()["code"], &missing.error()["data"]["uri"]),
            (&json!(-32602), &json!(uri))
        );
    }
    let text = client.call("read_resource", json!({ "uri": "docs://welcome" })).await.text();
    assert!(text.ends_with("\n\nWelcome."), "{text}");
}

#[tokio::test]
async fn a_resource_is_described_without_being_read() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client
        .create(json!({ "uri": "x:1", "text": "a\nb\nc", "description": "letters", "ttl": 60 }))
        .await;
    let text = client.call("describe_resource", json!({ "uri": "x:1" })).await.text();
    for said in [
        "x:1",
        "letters",
        "5 bytes",
        "3 lines",
        "text/plain",
        "2026-01-01T00:01:00Z",
        "read_resource {",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[tokio::test]
async fn one_of_many_concurrent_writes_wins_as_a_whole() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let writers: Vec<_> = (0..50)
        .map(|n| {
            let client = client.clone();
            let text = format!("{n} ").repeat(2000);
            let arguments = json!({ "uri": "x:1", "text": text, "description": format!("by {n}") });
            tokio::spawn(async move { client.create(arguments).await })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let read = client.read("x:1").await;
    let text = read["text"].as_str().unwrap();
    let winner = text.split(' ').next().unwrap();
    assert_eq!(text, format!("{winner} ").repeat(2000));
    let listed = client.list("resources/list", "resources").await;
    let mine = listed.iter().find(|r| r["uri"] == "x:1").unwrap();
    assert_eq!(mine["description"], format!("by {winner}"));
}

#[tokio::test]
async fn a_write_over_the_quota_is_refused_and_nothing_is_evicted() {
    let server = Server::configured(|setup| {
        setup.config.memory.bytes_per_owner = 10_000;
        setup.config.memory.resources_per_owner = 3;
    })
    .await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "x:1", "text": "a".repeat(6000) })).await;
    let full =
        client.call("create_resource", json!({ "uri": "x:2", "text": "b".repeat(6000) })).await;
    assert!(full.failure().contains("10000 bytes"));
    client.create(json!({ "uri": "x:2", "text": "b" })).await;
    client.create(json!({ "uri": "x:3", "text": "c" })).await;
    let many = client.call("create_resource", json!({ "uri": "x:4", "text": "d" })).await.failure();
    assert!(many.contains('3'), "{many}");
    let read = client.send("resources/read", json!({ "uri": "x:1" })).await.result();
    assert_eq!(read["contents"][0]["text"].as_str().unwrap().len(), 6000);
}

#[tokio::test]
async fn a_full_quota_leaves_the_room_of_others() {
    let callers = Callers::configured(|config| {
        config.memory.bytes_per_owner = 10_000;
        config.memory.resources_per_owner = 2;
    })
    .await;
    let Callers { alice, bob, .. } = &callers;
    alice.create(json!({ "uri": "x:1", "text": "a".repeat(6000) })).await;
    let large = json!({ "uri": "x:2", "text": "a".repeat(6000) });
    let small = json!({ "uri": "x:2", "text": "" });
    alice.call("create_resource", large.clone()).await.failure();
    alice.create(small).await;
    let many = json!({ "uri": "x:3", "text": "" });
    alice.call("create_resource", many.clone()).await.failure();
    for resource in [large, many] {
        bob.create(resource).await;
    }
}

#[tokio::test]
async fn reading_changes_nothing() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:same", "text": "the same" })).await;
    let describe =
        async || client.call("describe_resource", json!({ "uri": "x:same" })).await.text();
    let before = describe().await;
    assert_eq!(client.read("x:same").await, client.read("x:same").await);
    assert_eq!(describe().await, before);
}
