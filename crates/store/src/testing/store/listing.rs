//! URIs, prefixes, pages and owners.

use super::{Caller, Harness, Setup, refused};

/// A prefix matches the first bytes of the URI and has no wildcards. Listings are in byte order.
pub async fn a_prefix_lists_exactly_the_uris_that_begin_with_it(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let mut uris = [
        "results://a",
        "results://a*b",
        "results://a/",
        "results://a/b",
        "results://a/b/c",
        "results://a0",
        "results://ab",
        "results://a%5B",
        "results://A",
        "results://_",
        "results://b/a",
        "result://a",
        "results2://a",
        "urn:results:a",
    ];

    for uri in uris {
        alice.put(uri, uri).await;
    }
    uris.sort_unstable();

    let prefixes = [
        "",
        "r",
        "result",
        "results:",
        "results://",
        "results://a",
        "results://a/",
        "results://a/b/",
        "results://a*",
        "results://*",
        "results://a%",
        "results://?",
        "results://[a-z]",
        "*",
        "u",
        "urn:",
        "RESULTS",
        "results://a/b/c/d",
        "zzz",
        "ä",
    ];

    for prefix in prefixes {
        let expected: Vec<&str> = uris.into_iter().filter(|uri| uri.starts_with(prefix)).collect();
        assert_eq!(alice.list(prefix).await, expected, "prefix {prefix:?}");
    }
}

/// Pages of any length together are the listing: each entry once, and only the last page is marked as
/// the last.
pub async fn pages_neither_overlap_nor_leave_gaps(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let expected: Vec<String> = (0..25).map(|n| format!("results://many/{n:02}")).collect();
    for uri in expected.iter().rev() {
        alice.put(uri, "text").await;
    }

    for other in ["results://manx", "results://many", "results://many0", "a:a", "z:z"] {
        alice.put(other, "text").await;
    }

    for limit in [1, 2, 7, 24, 25, 26, 1000] {
        let seen = alice.list_in_pages("results://many/", limit).await;
        assert_eq!(seen, expected, "in pages of {limit}");
    }
}

/// Listed resources are read as they were when listed, even if they are replaced in the meantime.
pub async fn a_listed_resource_can_be_read(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let long = super::long_text();
    for (uri, text) in [("temp://a", "text"), ("temp://b", long.as_str()), ("temp://c", "")] {
        alice.put(uri, text).await;
    }

    let (listed, more) = alice
        .store
        .list_with_content(&alice.owner, "temp://", None, 2)
        .await
        .expect("it can be listed");
    assert!(more);

    alice.update("temp://a", "another").await;
    for (found, text) in listed.iter().zip(["text", long.as_str()]) {
        let read = found.bytes().await.expect("it can be read");
        assert_eq!((found.entry.size, &*read), (text.len() as u64, text.as_bytes()));
    }

    let (listed, more) = alice
        .store
        .list_with_content(&alice.owner, "", Some("temp://b"), 2)
        .await
        .expect("it can be listed");
    assert!(!more && listed.len() == 1);
    assert!(listed[0].bytes().await.expect("it can be read").is_empty());
}

/// The URI that a page continues after may have been deleted, or never have existed.
pub async fn a_page_continues_after_a_deleted_uri(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    for uri in ["temp://a", "temp://b", "temp://c"] {
        alice.put(uri, "text").await;
    }
    alice.delete("temp://b").await;

    for (after, expected) in [
        ("temp://b", &["temp://c"][..]),
        ("temp://a", &["temp://c"]),
        ("temp://a/", &["temp://c"]),
        ("temp://c", &[]),
        ("zzz", &[]),
        ("aaa", &["temp://a", "temp://c"]),
    ] {
        let page = alice.store.list(&alice.owner, "temp://", Some(after), 10).await;
        let entries = page.expect("it can be listed").entries;
        let uris: Vec<&str> = entries.iter().map(|entry| entry.uri.as_str()).collect();
        assert_eq!(uris, expected, "after {after}");
    }
}

/// URIs that a backend might confuse with each other, or with names and paths of its own.
const UNUSUAL_URIS: [&str; 40] = [
    // Equal paths under other schemes, and schemes that differ in case.
    "results://file.json",
    "output://file.json",
    "temp://file.json",
    "x-own+1.0://file.json",
    "RESULTS://file.json",
    "file:///file.json",
    "urn:file.json",
    "x:",
    "results:/file.json",
    // Prefixes of others, or nearly equal to others.
    "results://a",
    "results://a/",
    "results://a/b",
    "results://a//b",
    "results://A",
    "results://a#b",
    "results://a?b",
    "results://a%2Fb",
    "results://a%2fb",
    "results://a:80",
    "results:a:b",
    "results://a+b",
    "results://a%20b",
    // Names that a backend might use itself, or interpret as a path.
    "results://a.meta",
    "results://a/b.meta",
    "results://.meta",
    "results://a.tmp",
    "results://~",
    "results://..",
    "results://../../etc/passwd",
    "results://a/../b",
    "results://./a",
    "file:///etc/passwd",
    "results://%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "results://%00",
    "results://con",
    "results://*",
    "results://%F0%9F%A6%80",
    "results://[::1]:80/",
    "results://a'b",
    "results://$(a);!&b=c",
];

/// Any URI can name a resource. No URI conflicts with another, and each is listed as it was given.
pub async fn any_uri_can_name_a_resource(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let long = format!("results://{}", "a".repeat(2000));
    let deep = format!("results://{}", "a/".repeat(500));
    let mut uris = UNUSUAL_URIS.to_vec();
    uris.extend([long.as_str(), &deep]);

    for uri in &uris {
        alice.put(uri, *uri).await;
    }

    uris.sort_unstable();
    assert_eq!(alice.list("").await, uris);
    for uri in &uris {
        assert_eq!(alice.read(uri).await, *uri);
    }

    let (deleted, left): (Vec<_>, Vec<_>) =
        uris.iter().enumerate().partition(|(index, _)| index % 2 == 0);

    for (_, uri) in deleted {
        assert!(alice.delete(uri).await, "{uri} existed");
    }

    let left: Vec<&str> = left.into_iter().map(|(_, uri)| *uri).collect();
    assert_eq!(alice.list("").await, left);
    for uri in left {
        assert_eq!(alice.read(uri).await, uri);
    }
}

/// Other owners' resources do not exist for any call.
pub async fn owners_see_only_their_own(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");
    alice.put("temp://hers", "alice's").await;
    alice.put("temp://both", "alice's").await;
    bob.put("temp://both", "bob's").await;

    bob.assert_missing("temp://hers").await;
    let refused = refused(bob.try_update("temp://hers", "bob's", None).await);
    assert!(refused.is_not_found(), "{refused:?}");
    assert!(!bob.delete("temp://hers").await, "it did not exist for bob");
    assert_eq!(bob.list("").await, ["temp://both"]);
    assert_eq!(alice.list("").await, ["temp://both", "temp://hers"]);

    let entry = bob.update("temp://both", "bob's own").await;
    assert_eq!((&entry.owner, entry.revision), (&bob.owner, 2));
    assert_eq!(alice.read("temp://both").await, "alice's");
    assert!(bob.delete("temp://both").await, "bob had it");
    assert_eq!(alice.read("temp://both").await, "alice's");
    assert_eq!(alice.read("temp://hers").await, "alice's");
}

/// Authorization servers choose the names of owners, so no name combined with a URI may address the
/// resource of another owner.
pub async fn no_owner_and_uri_collide_with_others(harness: &dyn Harness) {
    let store = harness.store(Setup::default()).await;
    let pairs = [
        ("a", "b:c:d"),
        ("a:b", "c:d"),
        ("a:b:c", "d:"),
        ("a/b", "c:d"),
        ("a*", "c:d"),
        ("A", "c:d"),
        ("a ", "c:d"),
        ("", "c:d"),
        ("..", "c:d"),
        ("a{b}", "c:d"),
        ("é 🦀\n", "c:d"),
        ("https://issuer.example|subject|client", "c:d"),
    ];

    for (owner, uri) in pairs {
        Caller::new(&store, owner).put(uri, owner).await;
    }

    for (owner, uri) in pairs {
        let caller = Caller::new(&store, owner);
        assert_eq!(caller.list("").await, [uri], "owner {owner:?}");
        assert_eq!(caller.read(uri).await, owner, "owner {owner:?}");
    }
}
