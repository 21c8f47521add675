//! How long clients may cache what they read, and what lists say about resources.

use std::time::Duration;

use larder::{Context, Registry, Resource, Template, Variables};
use rmcp::model::{CacheScope, Icon, Role};
use serde_json::{Value, json};

use crate::support::{Modern, Server};

async fn page(_: Context, variables: Variables) -> String {
    format!("about {}", variables["what"])
}

#[tokio::test]
async fn a_read_says_how_long_and_by_whom_it_may_be_cached() {
    let minute = Duration::from_secs(60);
    let text = |uri| Resource::text(uri, "A text.");
    let registry = Registry::builder("cached")
        .resource(text("docs://public").cache(minute, CacheScope::Public))
        .resource(text("docs://private").cache(minute, CacheScope::Private))
        .resource(text("docs://plain"))
        .template(Template::new("about://{what}", "about", page).cache(minute, CacheScope::Public))
        .with(larder::tools::writing())
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "about://mine", "text": "Mine." })).await;
    for (uri, ttl, scope) in [
        ("docs://public", 60_000, "public"),
        ("docs://private", 60_000, "private"),
        ("docs://plain", 0, "private"),
        ("about://bees", 60_000, "public"),
        // A stored resource belongs to its owner, whatever template matches it.
        ("about://mine", 0, "private"),
    ] {
        let read = client.send("resources/read", json!({ "uri": uri })).await.result();
        assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(ttl), &json!(scope)), "{uri}");
    }
}

#[tokio::test]
async fn what_needs_scopes_is_never_shared() {
    let registry = Registry::builder("cached")
        .resource(
            Resource::text("docs://secret", "A text.")
                .scope("read")
                .cache(Duration::from_secs(60), CacheScope::Public),
        )
        .build()
        .unwrap();
    let rule = registry.cache_rule("docs://secret").unwrap();
    assert_eq!((rule.ttl, rule.scope), (Duration::from_secs(60), CacheScope::Private));
    assert!(registry.cache_rule("docs://none").is_none());
}

#[tokio::test]
async fn resources_and_templates_are_listed_with_all_their_fields() {
    let icon = || {
        let icon = Icon::new("https://example.com/i.png").with_mime_type("image/png");
        icon.with_sizes(vec!["48x48".into()])
    };
    let registry = Registry::builder("fields")
        .resource(
            Resource::text("docs://one", "A text.")
                .name("one")
                .title("One")
                .description("The first.")
                .mime_type("text/markdown")
                .icon(icon())
                .audience([Role::User])
                .priority(0.5)
                .last_modified("2026-01-01T00:00:00Z"),
        )
        .template(
            Template::new("about://{what}", "about", page)
                .title("About")
                .description("About anything.")
                .mime_type("text/plain")
                .icon(icon())
                .audience([Role::User])
                .priority(0.5)
                .last_modified("2026-01-01T00:00:00Z"),
        )
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    let icons = json!([{ "src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"] }]);
    let annotations =
        json!({ "audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z" });
    let listed: Vec<Value> = client.list("resources/list", "resources").await;
    let resource = json!({
        "uri": "docs://one", "name": "one", "title": "One", "description": "The first.",
        "mimeType": "text/markdown", "size": 7, "icons": icons, "annotations": annotations,
    });
    assert_eq!(listed, [resource]);
    let listed = client.list("resources/templates/list", "resourceTemplates").await;
    let template = json!({
        "uriTemplate": "about://{what}", "name": "about", "title": "About",
        "description": "About anything.", "mimeType": "text/plain", "icons": icons,
        "annotations": annotations,
    });
    assert_eq!(listed, [template]);
}
