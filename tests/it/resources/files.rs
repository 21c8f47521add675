//! Resources and templates from files and directories.

use std::fs;

use larder::{
    Context, DirectoryResource, FileResource, Json, Registry, Resource, Template, Variables,
};
use rmcp::model::Role;
use serde_json::{Value, json};

use crate::support::{Modern, Server};

/// Checks that a resource does not exist.
async fn assert_missing(client: &Modern, uri: &str) {
    let error = client.send("resources/read", json!({ "uri": uri })).await.error();
    assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32602), &json!(uri)), "{error}");
}

#[tokio::test]
async fn files_are_text_or_binary_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // Larger than one chunk, with a character across the border between two.
    let long = format!("{}ä{}", "x".repeat((64 << 10) - 1), "y".repeat(100_000));
    fs::write(at("long.md"), &long).unwrap();
    fs::write(at("data.json"), "{}").unwrap();
    fs::write(at("no_extension"), b"\x00\xff").unwrap();
    fs::write(at("latin.txt"), b"caf\xe9 au lait").unwrap();
    let file = |name: &str| FileResource::new(at(name)).at(format!("file:///{name}"));
    let registry = Registry::builder("files")
        .resource(file("long.md"))
        .resource(file("data.json"))
        .resource(file("no_extension"))
        .resource(file("latin.txt"))
        .resource(FileResource::new(at("data.json")).is_binary(true).mime_type("a/b").at("x:bytes"))
        .resource(file("not_there"))
        .resource(DirectoryResource::new(folder.path()).at("file:///"))
        .resource(Resource::new("x:json", |_: Context| async { Json(vec![1]) }))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);

    let read = client.read("file:///long.md").await;
    assert_eq!((&read["mimeType"], &read["text"]), (&json!("text/markdown"), &json!(long)));
    let read = client.read("file:///data.json").await;
    assert_eq!((&read["mimeType"], &read["text"]), (&json!("application/json"), &json!("{}")));
    assert_eq!(client.read("file:///no_extension").await["blob"], "AP8=");
    assert!(
        client.read("file:///latin.txt").await["blob"].is_string(),
        "text that is not UTF-8 must be sent as a blob"
    );
    let read = client.read("x:bytes").await;
    assert_eq!((&read["mimeType"], &read["blob"]), (&json!("a/b"), &json!("e30=")));
    let read = client.read("x:json").await;
    assert_eq!((&read["mimeType"], &read["text"]), (&json!("application/json"), &json!("[\n1\n]")));
    assert_missing(&client, "file:///not_there").await;

    let read = client.read("file:///").await;
    let entries: Vec<Value> = serde_json::from_str(read["text"].as_str().unwrap()).unwrap();
    let names: Vec<_> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["data.json", "latin.txt", "long.md", "no_extension"]);
    assert_eq!(
        (&entries[0]["size"], &entries[0]["mimeType"]),
        (&json!(2), &json!("application/json"))
    );

    // The listing has the current size.
    fs::write(at("data.json"), "[1, 2]").unwrap();
    let listed = client.list("resources/list", "resources").await;
    assert_eq!((&listed[1]["name"], &listed[1]["size"]), (&json!("data.json"), &json!(6)));
    assert!(listed[1]["annotations"]["lastModified"].is_string());
    assert!(listed[5].get("size").is_none());
}

#[tokio::test]
async fn files_outside_of_the_folder_cannot_be_read() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("inside");
    fs::create_dir_all(folder.join("deeper")).unwrap();
    fs::write(outer.path().join("secret.txt"), "secret").unwrap();
    fs::write(folder.join("deeper/fine.txt"), "fine").unwrap();
    std::os::unix::fs::symlink(outer.path(), folder.join("way_out")).unwrap();
    std::os::unix::fs::symlink(outer.path().join("secret.txt"), folder.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(folder.join("deeper/fine.txt"), folder.join("good.txt")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let root = folder.clone();
    let registry = Registry::builder("folder")
        .template(Template::new("file:///{+path}", "files", move |_: Context, v: Variables| {
            std::future::ready(FileResource::within(&root, &v["path"]))
        }))
        .resource(FileResource::within(&folder, "../secret.txt").at("x:up"))
        .resource(FileResource::within(&folder, "/etc/passwd").at("x:absolute"))
        .resource(DirectoryResource::new(&folder).at("x:list"))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    assert_eq!(client.read("file:///deeper/fine.txt").await["text"], "fine");
    assert_eq!(client.read("file:///good.txt").await["text"], "fine");
    for elsewhere in [
        "file:///way_out/secret.txt",
        "file:///link.txt",
        "file:///pipe",
        "file:///deeper",
        "file:///../secret.txt",
        "file:///deeper/%2e%2e/%2e%2e/secret.txt",
        "x:up",
        "x:absolute",
    ] {
        assert_missing(&client, elsewhere).await;
    }
    let list = client.read("x:list").await["text"].as_str().unwrap().to_owned();
    assert!(list.contains("deeper") && !list.contains("link") && !list.contains("pipe"), "{list}");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    book: String,
    page: u32,
}

#[tokio::test]
async fn variables_have_types() {
    let page =
        Template::typed("books://{book}/{page}", "page", |_: Context, at: Page| async move {
            format!("{} {}", at.book, at.page + 1)
        });
    let registry = Registry::builder("books")
        .template(
            page.audience([Role::Assistant]).priority(1.0).last_modified("2026-01-01T00:00:00Z"),
        )
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    assert_eq!(client.read("books://a%20b/41").await["text"], "a b 42");
    assert_eq!(client.read("books://7/1").await["text"], "7 2", "digits are not read as text");
    for wrong in ["books://a/x", "books://a/-1", "books://a/1.5"] {
        assert_missing(&client, wrong).await;
    }
    let listed = client.list("resources/templates/list", "resourceTemplates").await;
    assert_eq!(
        listed[0]["annotations"],
        json!({ "audience": ["assistant"], "priority": 1.0, "lastModified": "2026-01-01T00:00:00Z" })
    );
}

#[test]
fn invalid_definitions_are_reported_when_the_server_is_built() {
    let text = |uri: &str| Resource::text(uri, "");
    let typed = |template: &str| {
        Template::typed(template, "t", |_: Context, at: Page| async move { at.book })
    };
    let problems = Registry::builder("faulty")
        .resource(text("x:high").priority(1.5))
        .resource(text("x:nan").priority(f32::NAN))
        .resource(text("x:time").last_modified("yesterday"))
        .resource(text("not a uri"))
        .template(typed("books://{book}"))
        .template(typed("books://{book}/{page}/{line}"))
        .build()
        .unwrap_err()
        .problems;
    for named in ["x:high", "x:nan", "x:time", "not a uri", "field page", "variable line"] {
        assert!(problems.iter().any(|fault| fault.contains(named)), "{named}: {problems:#?}");
    }
    assert_eq!(problems.len(), 6, "{problems:#?}");
}
