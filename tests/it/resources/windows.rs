//! Parts of resources by URI (`?lines=`, `?bytes=`, `?revision=`), for hosts that read
//! resources but do not call tools.

use larder::{
    Context, Registry, Resource, Template, Tool, Variables,
    tools::{self, ToolOptions},
};
use serde_json::{Value, json};

use crate::support::{Legacy, Modern, Server, numbered_lines};

/// The text of a window.
async fn part(client: &Modern, uri: &str) -> String {
    client.read(uri).await["text"].as_str().unwrap().to_owned()
}

/// The message of a refused read.
async fn refused(client: &Modern, uri: &str) -> String {
    let error = client.send("resources/read", json!({ "uri": uri })).await.error();
    assert_eq!(error["code"], -32602, "{error}");
    error["message"].as_str().unwrap().to_owned()
}

/// The window that a message proposes.
fn proposed(said: &str) -> String {
    let at = said.rfind("?lines=").or(said.rfind("?bytes=")).unwrap();
    let start = said[..at].rfind(' ').unwrap() + 1;
    let end = said[at..].find([' ', '.']).map_or(said.len(), |end| at + end);
    said[start..end].to_owned()
}

#[tokio::test]
async fn consecutive_windows_make_up_the_whole() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let whole = numbered_lines(100_000);
    assert!(whole.len() > 8_000_000);
    client.create(json!({ "uri": "x:big", "text": whole })).await;
    let mut by_lines = String::new();
    for first in (1..=100_000).step_by(9_999) {
        let part = part(&client, &format!("x:big?lines={first}-{}", first + 9_998)).await;
        assert!(part.ends_with('\n'), "a line was split");
        by_lines += &part;
    }
    assert_eq!(by_lines, whole);
    // Windows of bytes never split a character.
    let mut by_bytes = String::new();
    for first in (0..whole.len()).step_by(777_777) {
        by_bytes += &part(&client, &format!("x:big?bytes={first}-{}", first + 777_776)).await;
    }
    assert_eq!(by_bytes, whole);
    assert_eq!(part(&client, "x:big?lines=99999-").await.lines().count(), 2);
    assert_eq!(
        part(&client, "x:big?lines=3").await,
        whole.lines().nth(2).unwrap().to_owned() + "\n"
    );
}

#[tokio::test]
async fn a_read_over_the_limit_proposes_a_window_within_it() {
    let server = Server::configured(|setup| setup.config.limits.read_bytes = 10_000).await;
    let client = Modern::of(&server);
    let whole = numbered_lines(1_000);
    client.create(json!({ "uri": "x:big", "text": whole })).await;
    let said = refused(&client, "x:big").await;
    assert!(said.contains("one response has at most 10000"), "{said}");
    assert!(said.contains(r#"read_resource {"uri":"x:big","offset":0,"limit":200}"#), "{said}");
    assert_eq!(proposed(&said), "x:big?lines=1-200");
    let said = refused(&client, "x:big?lines=1-200").await;
    assert!(said.starts_with("lines 1-200 of x:big are more than the 10,000 bytes"), "{said}");
    let part = part(&client, &proposed(&said)).await;
    assert!(whole.starts_with(&part) && part.len() > 9_000, "{}", part.len());
    let said = refused(&client, "x:big?bytes=5-").await;
    assert_eq!(proposed(&said), "x:big?bytes=5-10004");
    assert_eq!(self::part(&client, "x:big?bytes=5-10004").await.len(), 10_000);
    // A line over the limit is read by bytes.
    client.create(json!({ "uri": "x:line", "text": "é".repeat(20_000) })).await;
    let said = refused(&client, "x:line?lines=1").await;
    assert_eq!(proposed(&said), "x:line?bytes=0-9999");
    client.create(json!({ "uri": "x:bytes", "blob": "A".repeat(40_000) })).await;
    assert_eq!(proposed(&refused(&client, "x:bytes").await), "x:bytes?bytes=0-65535");
}

#[tokio::test]
async fn an_invalid_window_is_refused_with_a_valid_one() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:a", "text": numbered_lines(500) })).await;
    for window in ["lines=0-5", "lines=5-4", "lines=x", "lines=", "bytes=-5", "lines=1-2&bytes=3-4"]
    {
        let said = refused(&client, &format!("x:a?{window}")).await;
        assert!(
            said.contains("1-200") || said.contains("0-65535") || said.contains("not both"),
            "{said}"
        );
    }
    let said = refused(&client, "x:a?lines=501-600").await;
    assert_eq!(
        said,
        "x:a has 500 lines: the range starts after the end. The last ones are x:a?lines=301-500."
    );
    assert_eq!(part(&client, "x:a?lines=301-500").await.lines().count(), 200);
    assert!(refused(&client, "x:a?bytes=9999999").await.contains("starts after the end"));
    // A missing resource, a window of a window, and an unknown parameter.
    for uri in ["x:b?lines=1-2", "x:a?lines=1-2?lines=1-2", "x:a?other=1"] {
        assert_eq!(refused(&client, uri).await.find("Resource not found"), Some(0), "{uri}");
    }
    client.create(json!({ "uri": "x:bin", "blob": "AAEC" })).await;
    assert_eq!(
        refused(&client, "x:bin?lines=1-2").await,
        "x:bin is binary and has no lines: read x:bin?bytes=0-65535."
    );
    assert_eq!(client.read("x:bin?bytes=1-2").await["blob"], "AQI=");
    client.create(json!({ "uri": "x:empty", "text": "" })).await;
    assert_eq!(part(&client, "x:empty?lines=1-2").await, "");
}

#[tokio::test]
async fn all_resources_have_windows_and_an_exact_uri_comes_first() {
    let server = Server::offering(|builder| {
        builder
            .resource(Resource::text("docs://static", "1\n2\n3\n").mime_type("text/markdown"))
            .template(Template::new("docs://made/{n}", "made", |_: Context<_>, v: Variables| async move {
                numbered_lines(v["n"].parse().unwrap())
            }))
            .with(tools::reading(ToolOptions::default()))
            .with(tools::writing())
    })
    .await;
    let client = Modern::of(&server);
    let read = client.read("docs://static?lines=2-3").await;
    assert_eq!((&read["text"], &read["mimeType"]), (&json!("2\n3\n"), &json!("text/markdown")));
    assert_eq!(read["uri"], "docs://static?lines=2-3");
    assert_eq!(part(&client, "docs://made/9?lines=9").await.find("00000008"), Some(0));
    // A URI with a query of its own, and a resource whose URI looks like a window.
    client.create(json!({ "uri": "x://a?b=c", "text": "1\n2\n" })).await;
    assert_eq!(part(&client, "x://a?b=c&lines=2").await, "2\n");
    assert_eq!(part(&client, "x://a?b=c?lines=2").await, "2\n");
    client.create(json!({ "uri": "x://a?b=c&lines=2", "text": "its own" })).await;
    assert_eq!(part(&client, "x://a?b=c&lines=2").await, "its own");
}

#[tokio::test]
async fn the_template_is_listed_and_its_uris_are_completed() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:one", "text": "1\n2\n" })).await;
    client.create(json!({ "uri": "y:two", "text": "1" })).await;
    let templates = client.list("resources/templates/list", "resourceTemplates").await;
    let windows =
        templates.iter().find(|t| t["uriTemplate"] == "{+uri}{?lines,bytes,revision}").unwrap();
    assert!(windows["description"].as_str().unwrap().contains("URI?lines=1-200"));
    let complete = |value: &str| {
        json!({
            "ref": { "type": "ref/resource", "uri": "{+uri}{?lines,bytes,revision}" },
            "argument": { "name": "uri", "value": value },
        })
    };
    let values = async |typed: &str| -> Value {
        client.send("completion/complete", complete(typed)).await.result()["completion"]["values"]
            .take()
    };
    assert_eq!(values("").await, json!(["x:one", "y:two"]));
    assert_eq!(values("y").await, json!(["y:two"]));

    let legacy = Legacy::of(&server).await;
    let read = legacy.send("resources/read", json!({ "uri": "x:one?lines=2-" })).await.result();
    assert_eq!(read["contents"][0]["text"], "2\n");
    let error = legacy.send("resources/read", json!({ "uri": "x:one?lines=9" })).await.error();
    assert_eq!(error["code"], -32602);
}

#[tokio::test]
async fn windows_do_not_need_the_tools() {
    let noop = Tool::new(|_: Context, _: Nothing| async { "nothing" });
    let registry =
        Registry::builder("plain").tool(noop).resource(Resource::text("docs://a", "1\n2\n"));
    let server = Server::of(registry.with(tools::windows()).build().unwrap()).await;
    assert_eq!(part(&Modern::of(&server), "docs://a?lines=1").await, "1\n");
}

/// Does nothing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing;

#[tokio::test]
async fn revisions_are_listed_and_read_by_tool_and_by_uri() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:a", "text": "one\nfirst\n", "name": "a" })).await;
    for text in ["two\nsecond\n", "three\nthird\n"] {
        client.call("update_resource", json!({ "uri": "x:a", "text": text })).await.text();
    }
    let described = client.call("describe_resource", json!({ "uri": "x:a" })).await.text();
    let kept = described.lines().find(|line| line.starts_with("revision: ")).unwrap();
    for part in ["3; kept: 1 (10 bytes", "2 (11 bytes", "3 (12 bytes"] {
        assert!(kept.contains(part), "{kept}");
    }
    for (revision, text) in [(1, "one\nfirst\n"), (2, "two\nsecond\n"), (3, "three\nthird\n")] {
        assert_eq!(part(&client, &format!("x:a?revision={revision}")).await, text);
        let second = part(&client, &format!("x:a?lines=2&revision={revision}")).await;
        assert_eq!(second, text.split_inclusive('\n').nth(1).unwrap());
        let arguments = json!({ "uri": "x:a", "revision": revision });
        let read = client.call("read_resource", arguments.clone()).await.text();
        assert!(read.starts_with(&format!("All of x:a (revision {revision}): 2 lines")), "{read}");
        assert!(read.ends_with(text), "{read}");
        let described = client.call("describe_resource", arguments).await.text();
        assert!(described.contains(&format!("\nsize: {} bytes", text.len())), "{described}");
    }
    assert_eq!(part(&client, "x:a").await, "three\nthird\n");
    let search = json!({ "uri": "x:a", "query": "first", "revision": 1 });
    assert!(client.call("search_resource", search).await.text().contains("2: first"));
    let search = json!({ "uri": "x:a", "query": "first" });
    assert!(client.call("search_resource", search).await.text().starts_with("No line"));

    // The next call continues in the same revision.
    let read = json!({ "uri": "x:a", "revision": 1, "limit": 1 });
    let read = client.call("read_resource", read).await.text();
    let next = r#"read_resource {"uri":"x:a","offset":1,"limit":1,"revision":1}"#;
    assert!(read.contains(next), "{read}");

    // The oldest revision is deleted, and the error names the others.
    client.call("update_resource", json!({ "uri": "x:a", "text": "four" })).await.text();
    assert!(refused(&client, "x:a?revision=1").await.contains("Available revisions: 2, 3, 4."));
    let read = json!({ "uri": "x:a", "revision": 1 });
    let gone = client.call("read_resource", read).await.failure();
    assert!(gone.contains("x:a has no revision 1. Available revisions: 2, 3, 4."), "{gone}");
    assert!(refused(&client, "x:a?revision=0").await.contains("numbered from 1"));
    assert!(refused(&client, "x:b?revision=1").await.contains("not found"));
}
