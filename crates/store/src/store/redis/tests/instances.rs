//! Several instances on one Redis act as one store.

use std::time::Duration;

use futures_util::{StreamExt, future::join_all};
use larder_identity::Owner;

use super::{expired, heard, instance, lasting, maintained, on, patiently, read, settings, uri};
use crate::{
    store::blocks::BLOCK_BYTES,
    store::redis::scripts::BATCH,
    store::{ChangeKind, Content, Details, Store, StoreError},
    testing::RedisServer,
    testing::store::Setup,
};

#[tokio::test]
async fn instances_read_list_update_and_delete_the_resources_of_each_other() {
    let server = RedisServer::start().await;
    let a = on(&server).await;
    let b = on(&server).await;
    let owner = Owner::new("alice");

    let details = Details { title: Some("Title".into()), ..Details::default() };
    let created = a.create(&owner, uri("x:1"), "one\ntwo".into(), details).await.expect("it fits");

    assert_eq!(b.get(&owner, &uri("x:1")).await.expect("it is there").entry, created);
    assert_eq!(read(&b, &owner, "x:1").await, "one\ntwo");
    assert_eq!(b.list(&owner, "x:", None, 10).await.expect("it lists").entries, [created]);

    b.update(&owner, uri("x:1"), "three".into(), Details::default()).await.expect("it is there");
    assert_eq!(read(&a, &owner, "x:1").await, "three");

    assert!(b.delete(&owner, &uri("x:1")).await.expect("it can be deleted"));
    assert!(a.get(&owner, &uri("x:1")).await.is_err_and(|gone| gone.is_not_found()));
}

#[tokio::test]
async fn all_instances_receive_each_change_once_and_in_order() {
    let server = RedisServer::start().await;
    let stores = [on(&server).await, on(&server).await];
    let owner = Owner::new("alice");

    let mut changes = stores.each_ref().map(|store| store.feed().subscribe(&owner));
    let _maintained = stores.each_ref().map(maintained);
    let [a, b] = &stores;

    a.create(&owner, uri("x:1"), "1".into(), Details::default()).await.expect("it fits");
    b.update(&owner, uri("x:1"), "2".into(), Details::default()).await.expect("it is there");
    a.delete(&owner, &uri("x:1")).await.expect("it can be deleted");

    for n in 0..20 {
        b.create(&owner, uri(&format!("x:{n}")), "1".into(), lasting(3000)).await.expect("it fits");
    }

    for changes in &mut changes {
        for kind in [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted] {
            assert_eq!(heard(changes).await, (kind, "x:1".into()));
        }
        for n in 0..20 {
            assert_eq!(heard(changes).await, (ChangeKind::Created, format!("x:{n}")));
        }
    }

    let expired: Vec<_> = (0..20).map(|n| (ChangeKind::Expired, format!("x:{n}"))).collect();
    for changes in &mut changes {
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.push(heard(changes).await);
        }
        seen.sort_by_key(|(_, name)| name[2..].parse::<u32>().expect("it is a number"));
        assert_eq!(seen, expired);
    }

    a.create(&owner, uri("x:next"), "1".into(), Details::default()).await.expect("it fits");
    for changes in &mut changes {
        assert_eq!(heard(changes).await, (ChangeKind::Created, "x:next".into()));
    }
}

/// The error for a URI without a resource.
async fn get_error(store: &Store, name: &str) -> StoreError {
    match store.get(&Owner::new("alice"), &uri(name)).await {
        Ok(_) => panic!("{name} is there"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn an_expired_resource_is_distinguished_from_one_that_never_existed() {
    let server = RedisServer::start().await;
    let a = on(&server).await;
    let b = on(&server).await;
    let owner = Owner::new("alice");

    let entry = a.create(&owner, uri("x:1"), "1".into(), lasting(200)).await.expect("it fits");
    expired(&b, &owner, "x:1").await;
    let assert_expired = |error: StoreError| match error {
        StoreError::Expired { at, .. } => assert_eq!(at, entry.expires),
        other => panic!("{other:?}"),
    };

    // The expiry is known before any instance has swept, and after both have received it.
    assert_expired(get_error(&b, "x:1").await);
    let mut changes = b.feed().subscribe(&owner);
    let maintained = maintained(&a);
    assert_eq!(heard(&mut changes).await, (ChangeKind::Expired, "x:1".into()));
    drop(maintained);

    assert_expired(get_error(&a, "x:1").await);
    assert_expired(get_error(&b, "x:1").await);
    let updated = b.update(&owner, uri("x:1"), "2".into(), Details::default()).await;
    assert_expired(updated.expect_err("it is gone"));
    assert!(matches!(get_error(&b, "x:2").await, StoreError::NotFound { .. }));

    // A URI that was used again is no longer known as expired.
    a.create(&owner, uri("x:1"), "2".into(), Details::default()).await.expect("it fits");
    a.delete(&owner, &uri("x:1")).await.expect("it can be deleted");
    while heard(&mut changes).await != (ChangeKind::Deleted, "x:1".into()) {}
    assert!(matches!(get_error(&b, "x:1").await, StoreError::NotFound { .. }));
}

#[tokio::test]
async fn an_expiry_while_no_instance_ran_is_published_by_the_next() {
    let server = RedisServer::start().await;
    let owner = Owner::new("alice");

    let before = on(&server).await;
    before.create(&owner, uri("x:1"), "1".into(), lasting(200)).await.expect("it fits");
    expired(&before, &owner, "x:1").await;
    drop(before);

    let store = on(&server).await;
    let mut changes = store.feed().subscribe(&owner);
    let _maintained = maintained(&store);
    assert_eq!(heard(&mut changes).await, (ChangeKind::Expired, "x:1".into()));
}

#[tokio::test]
async fn more_than_a_batch_expires_at_once() {
    let server = RedisServer::start().await;
    let store = on(&server).await;
    let owner = Owner::new("alice");
    let setup = Setup::default().max_resources(10 * BATCH as u64);
    let roomy = instance(&settings(&server), &setup).await;

    let many = 2 * BATCH + 1;
    let names: Vec<String> = (0..many).map(|n| format!("x:{n}")).collect();
    join_all(names.iter().map(|name| roomy.create(&owner, uri(name), "1".into(), lasting(3000))))
        .await
        .into_iter()
        .for_each(|created| _ = created.expect("it fits"));

    for name in &names {
        expired(&roomy, &owner, name).await;
    }

    // No instance sweeps, but the writer needs the quota.
    let full = Setup::default().max_resources(1);
    let narrow = instance(&settings(&server), &full).await;
    let mut changes = store.feed().subscribe_all();
    narrow.create(&owner, uri("x:new"), "1".into(), Details::default()).await.expect("it fits");

    // The feed's backlog is limited, so changes may be missed.
    let mut last = None;
    while last != Some((ChangeKind::Created, "x:new".to_owned())) {
        last = match patiently(changes.next()).await {
            Ok(change) => change.map(|change| (change.kind, change.uri.to_string())),
            Err(_) => None,
        };
    }

    let page = store.list(&owner, "", None, 10).await.expect("it lists");
    assert_eq!(page.entries.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_commits_at_once_on_two_instances() {
    const EACH: usize = 500;
    let server = RedisServer::start().await;
    let elsewhere = RedisServer::start().await;

    let example = on(&elsewhere).await;
    let bob = Owner::new("b");
    let empty = Vec::new().into();
    let example = example.create(&bob, uri("x:0/000"), empty, Details::default()).await;
    let counted = example.expect("it fits").counted_bytes();

    let setup = Setup::default().max_bytes(2 * EACH as u64 * (10 + counted));
    let owner = Owner::new("alice");

    let mut writing = Vec::new();
    let mut stores = Vec::new();
    for instance_number in 0..2 {
        let store = instance(&settings(&server), &setup).await;
        for n in 0..EACH {
            let store = store.clone();
            let owner = owner.clone();
            let name = uri(&format!("x:{instance_number}/{n:03}"));
            writing.push(tokio::spawn(async move {
                store.create(&owner, name, vec![1; 10].into(), Details::default()).await
            }));
        }
        stores.push(store);
    }

    for written in join_all(writing).await {
        written.expect("no task panics").expect("it fits");
    }

    let page = stores[0].list(&owner, "", None, 2000).await.expect("it lists");
    assert_eq!(page.entries.len(), 2 * EACH);
    let full = stores[1].create(&owner, uri("x:more"), vec![1].into(), Details::default()).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "the quota is counted exactly: {full:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_updates_are_all_counted_and_none_is_mixed_with_another() {
    const WRITERS: usize = 50;
    let server = RedisServer::start().await;
    let a = on(&server).await;
    let b = on(&server).await;
    let owner = Owner::new("alice");
    let created = a.create(&owner, uri("x:1"), "0".into(), Details::default()).await;
    let created = created.expect("it fits");

    let updates = (0..WRITERS).map(|n| {
        let store = if n % 2 == 0 { &a } else { &b }.clone();
        let owner = owner.clone();
        tokio::spawn(async move {
            store.update(&owner, uri("x:1"), n.to_string().into(), Details::default()).await
        })
    });

    for updated in join_all(updates).await {
        updated.expect("no task panics").expect("it is there");
    }

    let entry = a.get(&owner, &uri("x:1")).await.expect("it is there").entry;
    assert_eq!(entry.revision, 1 + WRITERS as u64);
    assert_eq!((entry.created, entry.expires), (created.created, created.expires));
    assert_eq!(read(&b, &owner, "x:1").await.len() as u64, entry.size);
}

#[tokio::test]
async fn a_read_that_has_begun_finishes_while_another_instance_replaces() {
    let server = RedisServer::start().await;
    let a = on(&server).await;
    let b = on(&server).await;
    let owner = Owner::new("alice");
    let old = vec![b'o'; 3 * BLOCK_BYTES];
    for way in ["replace", "delete"] {
        let content = Content::from(old.clone());
        a.create(&owner, uri("x:1"), content, Details::default()).await.expect("it fits");
        let found = a.get(&owner, &uri("x:1")).await.expect("it is there");
        let mut blocks = std::pin::pin!(found.stream());
        let mut content = blocks.next().await.expect("it has blocks").expect("it is read").to_vec();

        if way == "replace" {
            b.create(&owner, uri("x:1"), "new".into(), Details::default()).await.expect("it fits");
        } else {
            b.delete(&owner, &uri("x:1")).await.expect("it can be deleted");
        }

        while let Some(block) = blocks.next().await {
            content.extend_from_slice(&block.expect("it is still there"));
        }
        assert!(content == old, "{way}: the content differs");
    }
}

#[tokio::test]
async fn a_reservation_counts_on_all_instances() {
    let server = RedisServer::start().await;
    let setup = Setup::default().max_bytes(1 << 20);
    let a = instance(&settings(&server), &setup).await;
    let b = instance(&settings(&server), &setup).await;
    let owner = Owner::new("alice");
    let ttl = Duration::from_secs(2);
    let name = uri("x:1");

    a.backend.reserve(&owner, &name, "1", 700_000, ttl).await.expect("it fits");
    let full = b.backend.reserve(&owner, &name, "2", 700_000, ttl).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");

    // Another instance may enlarge the reservation.
    b.backend.reserve(&owner, &name, "1", 800_000, ttl).await.expect("it fits");
    let full = a.backend.reserve(&owner, &name, "2", 300_000, ttl).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");

    a.backend.release(&owner, "1", 0).await.expect("it ends");
    a.backend.reserve(&owner, &name, "2", 700_000, ttl).await.expect("it fits");

    // A reservation that nobody releases ends by itself, as after a crash.
    patiently(async {
        while b.backend.reserve(&owner, &name, "3", 700_000, ttl).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_reservation_counts_on_all_instances_in_the_total_of_all_owners() {
    let server = RedisServer::start().await;
    let setup = Setup::default().max_total(1 << 20);
    let a = instance(&settings(&server), &setup).await;
    let b = instance(&settings(&server), &setup).await;
    let name = uri("x:1");
    let ttl = Duration::from_secs(2);
    let reserve = async |on: &Store, owner: &str, bytes| {
        on.backend.reserve(&Owner::new(owner), &name, "1", bytes, ttl).await
    };

    // Both instances have counted the total before.
    for (store, owner) in [(&a, "ana"), (&b, "bea")] {
        store
            .create(&Owner::new(owner), name.clone(), "".into(), lasting(60_000))
            .await
            .expect("it fits");
    }

    assert_eq!(reserve(&a, "alice", 700_000).await.expect("it fits"), 0);
    for owner in ["bob", "carol", "dave"] {
        let full = reserve(&b, owner, 700_000).await;
        assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    }

    assert_eq!(reserve(&b, "bob", 200_000).await.expect("it fits"), 0);
    let full = reserve(&b, "bob", 700_000).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");

    assert_eq!(a.usage().await.expect("it is known").reserved, 900_000);
    a.backend.release(&Owner::new("alice"), "1", 0).await.expect("it ends");
    assert_eq!(reserve(&b, "bob", 700_000).await.expect("it fits"), 200_000);

    // A reservation that nobody releases ends by itself, as after a crash.
    patiently(async {
        while reserve(&a, "carol", 700_000).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}
