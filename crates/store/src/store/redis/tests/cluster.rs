//! Resources in a Redis cluster. All keys of one owner are on one node.

use std::time::Duration;

use larder_identity::Owner;

use super::{heard, instance, lasting, maintained, read, uri};
use crate::{
    redis::{Redis, RedisSettings, cmd},
    store::blocks::BLOCK_BYTES,
    store::{ChangeKind, Content, Details, StoreError},
    testing::RedisServer,
    testing::store::Setup,
};

#[tokio::test]
async fn resources_and_their_changes_go_through_a_cluster() {
    let nodes = RedisServer::cluster(Vec::new).await;
    let url =
        format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", nodes[0].port(), nodes[1].port());

    let settings = RedisSettings { timeout: Duration::from_secs(10), ..RedisSettings::new(url) };
    let setup = Setup::default().max_bytes(4 * BLOCK_BYTES as u64 + 4096);
    let a = instance(&settings, &setup).await;
    let b = instance(&settings, &setup).await;
    let _maintained = maintained(&a);
    let large = vec![7; 3 * BLOCK_BYTES + 1];
    // Enough owners for every node.
    for owner in (0..12).map(|n| Owner::new(format!("owner {n}"))) {
        let mut changes = b.feed().subscribe(&owner);
        let content = Content::from(large.clone());
        a.create(&owner, uri("x:1"), content, Details::default()).await.expect("it fits");
        assert!(read(&b, &owner, "x:1").await == large, "the content differs");

        b.update(&owner, uri("x:1"), "small".into(), Details::default())
            .await
            .expect("it is there");
        let page = b.list(&owner, "x:", None, 10).await.expect("it lists");
        assert_eq!(page.entries.len(), 1);

        let full = b.create(&owner, uri("x:3"), large.repeat(2).into(), Details::default()).await;
        assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
        assert!(b.delete(&owner, &uri("x:1")).await.expect("it can be deleted"));

        a.create(&owner, uri("x:2"), "short-lived".into(), lasting(300)).await.expect("it fits");
        for expected in [
            (ChangeKind::Created, "x:1"),
            (ChangeKind::Updated, "x:1"),
            (ChangeKind::Deleted, "x:1"),
            (ChangeKind::Created, "x:2"),
            (ChangeKind::Expired, "x:2"),
        ] {
            assert_eq!(heard(&mut changes).await, (expected.0, expected.1.to_owned()));
        }
    }

    for node in &nodes {
        let handle = Redis::open(&super::settings(node)).await.expect("it is there");
        let keys: Vec<String> = handle.query(cmd("KEYS").arg("*:blob:*")).await.expect("it lists");
        assert!(!keys.is_empty(), "a node is left out");
    }
}
