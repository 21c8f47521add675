//! The list of owners.

use std::collections::BTreeSet;

use super::{Caller, Harness, Setup};
use crate::store::{Deleted, Usage};

/// Pages of any size have each owner, with any name, and no owner of an upload's parts.
pub async fn all_owners_are_listed_in_pages(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    assert_eq!(store.owners(None, 2).await.expect("it is listed").owners, []);

    let long = "l".repeat(300);
    let mut names = vec!["", "..", "*", "a", "a/b", "a.b", "a0", "A", "é 🦀\n", "a{b}", &long];
    let many: Vec<String> = (0..20).map(|n| format!("owner-{n}")).collect();
    names.extend(many.iter().map(String::as_str));
    for name in &names {
        Caller::new(&store, name).put("temp://a", *name).await;
    }
    Caller::new(&store, "a uploads").put("upload:1", "a part").await;

    let expected: BTreeSet<_> = names.into_iter().map(str::to_owned).collect();
    for limit in [1, 3, 1000] {
        let mut listed = BTreeSet::new();
        let mut after = None;

        loop {
            let page = store.owners(after.as_deref(), limit).await.expect("it is listed");
            listed.extend(page.owners.iter().map(ToString::to_string));
            after = page.next;
            if after.is_none() {
                break;
            }
        }

        assert_eq!(listed, expected, "in pages of {limit}");
    }
}

/// All resources of an owner are removed, and no others.
pub async fn an_owner_is_purged(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");

    for n in 0..20 {
        alice.put(&format!("temp://{n}"), "alice's").await;
    }
    bob.put("temp://1", "bob's").await;
    let part = Caller::new(&store, "alice uploads");
    part.put("upload:1", "a part").await;

    assert_eq!(store.purge(&alice.owner).await.expect("it is purged"), 20);
    assert_eq!(alice.list("").await, [""; 0]);
    part.assert_missing("upload:1").await;

    let usage = store.usage_of(&alice.owner).await.expect("it is counted");
    assert_eq!(usage, Usage::default());
    assert_eq!(bob.read("temp://1").await, "bob's");

    assert_eq!(store.purge(&alice.owner).await.expect("it is purged"), 0);
}

/// Deletion by prefix removes exactly the URIs that begin with it, some at a time.
pub async fn resources_are_deleted_by_prefix(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");
    for n in 0..20 {
        alice.put(&format!("temp://a/{n}"), "alice's").await;
    }
    for uri in ["temp://b", "temp://A/1", "other:temp://a/"] {
        alice.put(uri, "alice's").await;
    }
    bob.put("temp://a/1", "bob's").await;

    let delete = async |prefix, limit| {
        let deleted = store.delete_prefix(&alice.owner, prefix, limit).await;
        let Deleted { resources, more } = deleted.expect("they are deleted");
        (resources, more)
    };

    assert_eq!(delete("temp://a/", 15).await, (15, true));
    assert_eq!(delete("temp://a/", 15).await, (5, false));
    assert_eq!(delete("temp://a/", 15).await, (0, false));

    assert_eq!(alice.list("").await, ["other:temp://a/", "temp://A/1", "temp://b"]);
    assert_eq!(bob.read("temp://a/1").await, "bob's");
}
