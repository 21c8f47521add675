//! What an earlier version stored. Each `layout_<number>.aof` has the commands that write it,
//! from a server of that version, and is never made anew: only new ones are added.

use super::{on, read, uri};
use crate::{
    auth::Principal,
    store::{Details, Rewrite, StoreError, Usage},
    testing::RedisServer,
};

/// By a version with layout 3: two revisions of a text, a link to it, JSON and bytes. They
/// expire in 2121 and later.
const LAYOUT_3: &[u8] = include_bytes!("layout_3.aof");

#[tokio::test]
async fn what_an_earlier_version_stored_is_read_changed_and_counted() {
    let server = RedisServer::start().await;
    server.load(LAYOUT_3).await;
    let (store, owner) = (on(&server).await, Principal::Local.owner());
    let page = store.list(&owner, "", None, 10).await.expect("it can be listed");
    let names: Vec<_> = page.entries.iter().map(|entry| entry.uri.as_str()).collect();
    let link = "larder://shared/local/6b94f99db683e562e51751fb977416fa";
    assert_eq!(names, [link, "notes://text", "results://bytes", "results://rows"]);
    let usage = store.usage_of(&owner).await.expect("it is counted");
    assert_eq!(usage, Usage { resources: 4, bytes: 8882, reserved: 0 });

    let notes = store.get(&owner, &uri("notes://text")).await.expect("it is there").entry;
    assert_eq!((&*notes.name, notes.description.as_deref()), ("Notes", Some("A description")));
    assert_eq!((notes.revision, notes.lines), (2, 1));
    assert_eq!(notes.expires.to_string(), "2126-11-24T05:39:36Z");
    assert_eq!(read(&store, &owner, "notes://text").await, "second\n");
    let first = store.revision(&owner, &uri("notes://text"), Some(1)).await.expect("it is kept");
    assert_eq!(first.bytes().await.expect("it can be read"), "first\n");
    assert_eq!(read(&store, &owner, "results://bytes").await, [0, 255, 1][..]);
    let rows = store.get(&owner, &uri("results://rows")).await.expect("it is there");
    let rows = rows.bytes().await.expect("it can be read");
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&rows).expect("it is JSON");
    assert_eq!((rows.len(), &rows[99]["name"]), (100, &serde_json::json!("row 99")));

    // This version writes over it.
    let appended = Rewrite { appended: "third\n".into(), ..Rewrite::default() };
    let details = Details::default();
    let written = store.rewrite(&owner, uri("notes://text"), appended, details).await;
    assert_eq!(written.expect("it is written").revision, 3);
    assert_eq!(read(&store, &owner, "notes://text").await, "second\nthird\n");
    for name in &names {
        assert!(store.delete(&owner, &uri(name)).await.expect("it can be deleted"), "{name}");
        let gone = store.get(&owner, &uri(name)).await;
        assert!(matches!(gone, Err(StoreError::NotFound { .. })), "{name}");
    }
    let page = store.list(&owner, "", None, 10).await.expect("it can be listed");
    assert!(page.entries.is_empty(), "{page:?}");
    assert_eq!(store.usage().await.expect("it is counted").resources, 0);
}
