//! Resources of the definition with several contents.

use larder::{
    Contents, Context, Registry, Resource, ResourceError, Template, Variables,
    store::Content,
    tools::{self, ToolOptions},
};
use serde_json::json;

use crate::support::{Legacy, Modern, Server};

async fn chapter(_: Context, variables: Variables) -> Result<Contents, ResourceError> {
    match variables["chapter"].as_str() {
        "missing" => Err(ResourceError::NotFound),
        chapter => Ok(Contents::from(Content::from(format!("{chapter}.")))
            .and(format!("guide://{chapter}/notes"), "Notes.")),
    }
}

async fn guide(_: Context) -> Contents {
    Contents::with_uri("guide://text", "Text.")
        .and("guide://picture", b"\x89PNG".to_vec())
        .and("guide://table", Content::from("a,b").with_mime_type("text/csv"))
}

fn registry() -> Registry {
    Registry::builder("guides")
        .with(tools::reading(ToolOptions::default()))
        .resource(Resource::new("guide://all", guide).mime_type("text/markdown"))
        .template(Template::new("guide://{chapter}", "Chapter", chapter))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_resource_returns_all_its_contents_in_order() {
    let server = Server::of(registry()).await;
    let params = |uri: &str| json!({ "uri": uri });
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let all = json!([
        { "uri": "guide://text", "mimeType": "text/plain", "text": "Text." },
        { "uri": "guide://picture", "mimeType": "application/octet-stream", "blob": "iVBORw==" },
        { "uri": "guide://table", "mimeType": "text/csv", "text": "a,b" },
    ]);
    let install = json!([
        { "uri": "guide://install", "mimeType": "text/plain", "text": "install." },
        { "uri": "guide://install/notes", "mimeType": "text/plain", "text": "Notes." },
    ]);
    for (uri, contents) in [("guide://all", all), ("guide://install", install)] {
        let read = modern.send("resources/read", params(uri)).await.result();
        assert_eq!(read["contents"], contents);
        let read = legacy.send("resources/read", params(uri)).await.result();
        assert_eq!(read["contents"], contents);
    }
    let missing = modern.send("resources/read", params("guide://missing")).await;
    assert!(missing.error()["message"].is_string());
}

#[tokio::test]
async fn a_tool_that_reads_one_content_says_why_it_cannot() {
    let server = Server::of(registry()).await;
    let read = Modern::of(&server).call("read_resource", json!({ "uri": "guide://all" })).await;
    let result = &read.json()["result"];
    assert_eq!(result["isError"], true);
    assert_eq!(
        result["content"][0]["text"],
        "guide://all has 3 contents, which only resources/read returns."
    );
}
