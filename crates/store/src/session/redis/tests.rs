//! Tests beyond the contract: keys and their expiry, and failures of Redis and of instances.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder_identity::Principal;
use larder_protocol::{Announcement, ClientFacts, ProtocolVersion, RequestId};
use larder_runtime::random::Random;

use super::RedisSessions;
use crate::{
    redis::{cmd, pipe},
    session::{Delivery, Retention, Session, SessionLimits, Sessions},
    testing::session::{self as contract, Harness},
    testing::{Installations, RedisServer},
};

struct OnRedis(Installations);

impl OnRedis {
    async fn new() -> Self {
        Self::on(RedisServer::start().await)
    }

    fn on(server: RedisServer) -> Self {
        Self(Installations::on(server))
    }

    async fn instance(&self, installation: u32, limits: SessionLimits) -> RedisSessions {
        RedisSessions::new(self.0.instance(installation).await, Random::system(), limits)
    }
}

#[async_trait]
impl Harness for OnRedis {
    async fn processes(&self, limits: SessionLimits) -> [Arc<dyn Sessions>; 2] {
        let installation = self.0.unused();
        [
            Arc::new(self.instance(installation, limits.clone()).await),
            Arc::new(self.instance(installation, limits).await),
        ]
    }

    async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(500)
    }
}

crate::session_contract!(OnRedis::new().await);

async fn begin(sessions: &RedisSessions) -> Arc<Session> {
    let version = ProtocolVersion::LATEST_LEGACY;
    let begun = sessions.create(Principal::Local, version, ClientFacts::default()).await;
    begun.expect("a session begins")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_holds_in_a_cluster() {
    let harness = OnRedis(Installations::in_a_cluster().await);
    contract::a_follower_receives_existing_and_new_messages(&harness).await;
    contract::a_trimmed_cursor_is_an_error_and_never_a_gap(&harness).await;
    contract::a_new_follower_cuts_the_old_one_off(&harness).await;
    contract::running_streams_are_limited_and_finished_ones_make_room(&harness).await;
    contract::a_connection_without_a_cursor_continues_where_the_last_one_stopped(&harness).await;
    contract::a_change_is_announced_once_by_several_processes(&harness).await;
    contract::an_announcement_to_all_reaches_every_session(&harness).await;
    contract::deleting_a_session_ends_its_streams(&harness).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_leaves_no_keys() {
    let harness = OnRedis::new().await;
    let idle = Duration::from_millis(500);
    let limits = SessionLimits { idle, replay: Duration::ZERO, ..SessionLimits::default() };
    let sessions = harness.instance(0, limits).await;

    let session = begin(&sessions).await;
    sessions.subscribe(&session, "a:1").await.expect("it can be subscribed to");

    let owner = Principal::Local.owner();

    sessions.announce(&owner, &Announcement::ResourceListChanged, &[]).await;

    let mut writer = sessions.open(&session, &RequestId::Number(1)).await.expect("it opens");
    writer.append("1".into()).await.expect("it is appended");
    drop(sessions.standalone(&session).await.expect("it can be followed"));
    writer.finish(Bytes::from("2").into(), Retention::Kept).await.expect("it is appended");
    drop((writer, sessions));

    let redis = harness.0.redis(0).await;
    // Announcements expire after a minute, streams after the linger time.
    let left = async {
        loop {
            let keys: Vec<String> = redis.query(cmd("KEYS").arg("*")).await.expect("it lists");
            if keys.iter().all(|key| key.contains(":announced:")) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let announced: Vec<String> = redis.query(cmd("KEYS").arg("*")).await.expect("it lists");
        for key in announced {
            let life: i64 = redis.query(cmd("PTTL").arg(key)).await.expect("it says");
            assert!(life > 0, "the key has no expiry");
        }
    };
    tokio::time::timeout(Duration::from_secs(30), left).await.expect("all keys expire");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_has_lost_messages_ends_with_an_error() {
    let harness = OnRedis::new().await;

    let sessions = harness.instance(0, SessionLimits::default()).await;
    let session = begin(&sessions).await;
    let mut writer = sessions.open(&session, &RequestId::Number(7)).await.expect("it opens");
    let start = writer.start();
    for message in ["1", "2"] {
        writer.append(message.into()).await.expect("it is appended");
    }

    // The state after a failover to a server that never received the second message.
    let redis = harness.0.redis(0).await;
    let keys = sessions.inner.keys(&session);
    let log = keys.log(&start.stream);
    let entries = keys.entries(&start.stream);

    let mut rollback = pipe();
    rollback.cmd("HSET").arg(log).arg("last").arg(1);
    rollback.cmd("DEL").arg(&entries);
    rollback.cmd("XADD").arg(&entries).arg("0-1").arg("m").arg("1").arg("t").arg(0);
    redis.pipeline::<()>(&rollback).await.expect("the rollback succeeds");

    let follower = sessions.follow(&session, &start).await.expect("it is there");
    assert!(writer.append("3".into()).await.is_err(), "the stream would have a gap");
    drop(writer);

    let deliveries =
        tokio::time::timeout(Duration::from_secs(10), follower.collect::<Vec<_>>()).await;
    let last = deliveries.expect("the stream ends").pop().expect("it ends with an error");
    let Ok(Delivery::Event(last)) = last else { panic!("{last:?}") };
    let text = String::from_utf8_lossy(&last.data);
    assert!(text.contains("\"id\":7") && text.contains("Send the request again"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_uses_no_memory_of_the_instance() {
    let harness = OnRedis::new().await;

    let sessions = harness.instance(0, SessionLimits::default()).await;
    let beginning = stream::iter(0..2000).map(|_| begin(&sessions)).buffer_unordered(64);
    let begun: Vec<_> = beginning.collect().await;

    for session in &begun[..100] {
        sessions.get(&session.id, &Principal::Local).await.expect("it is there");
    }
    drop(sessions.standalone(&begun[0]).await.expect("it can be followed"));

    let released = async {
        while sessions.inner.cache.len() + sessions.inner.leases.len() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), released).await.expect("all is released");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_announced_once_by_instances_that_coalesce_differently() {
    let harness = OnRedis::new().await;
    let one = harness.instance(0, SessionLimits::default()).await;
    let other = harness.instance(0, SessionLimits::default()).await;
    let session = begin(&one).await;
    one.subscribe(&session, "a:1").await.expect("it can be subscribed to");
    let owner = Principal::Local.owner();
    let (_, mut events) = other.standalone(&session).await.expect("it can be followed");
    let updated = Announcement::ResourceUpdated { uri: "a:1".into() };
    let ids: [Arc<str>; 4] = ["1", "2", "3", "4"].map(Into::into);

    let mut hears = async |announced: &Announcement| {
        let Some(Ok(Delivery::Event(event))) = events.next().await else { panic!("an event") };
        assert_eq!(event.data, announced.encode(None));
    };

    one.announce(&owner, &updated, &ids[..1]).await;
    hears(&updated).await;
    one.announce(&owner, &updated, &ids[..3]).await;
    hears(&updated).await;

    // The other instance announces only known changes, and then a new one.
    other.announce(&owner, &updated, &ids[..2]).await;
    other.announce(&owner, &updated, &ids[2..3]).await;
    other.announce(&owner, &Announcement::ToolListChanged, &[]).await;
    hears(&Announcement::ToolListChanged).await;

    other.announce(&owner, &updated, &ids[2..]).await;
    hears(&updated).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_concerns_only_the_sessions_that_subscribe_to_the_resource() {
    let harness = OnRedis::new().await;
    let sessions = harness.instance(0, SessionLimits::default()).await;
    let redis = harness.0.redis(0).await;
    let first = begin(&sessions).await;
    let second = begin(&sessions).await;

    let owner = Principal::Local.owner();
    let keys = sessions.inner.keys(&first);
    let subscribers = async |uri: &str| -> Vec<String> {
        let mut range = cmd("ZRANGE");
        range.arg(keys.subscribers(uri)).arg(0).arg(-1);
        redis.query(&range).await.expect("it lists")
    };

    let updated = |uri: &str| Announcement::ResourceUpdated { uri: uri.into() };
    sessions.subscribe(&first, "a:1").await.expect("it can be subscribed to");
    sessions.subscribe(&second, "a:2").await.expect("it can be subscribed to");
    assert_eq!(subscribers("a:1").await, [&*first.id]);
    assert_eq!(subscribers("a:2").await, [&*second.id]);

    // An announcement writes nothing for a resource without subscribers.
    sessions.announce(&owner, &updated("a:3"), &["1".into()]).await;
    let written: Vec<String> = redis.query(cmd("KEYS").arg("*announce*")).await.expect("it lists");
    assert!(written.is_empty(), "{written:?}");

    sessions.unsubscribe(&first, "a:1").await.expect("it is there");
    assert!(subscribers("a:1").await.is_empty());
    sessions.delete(&second.id, &Principal::Local).await.expect("it is there");
    assert!(subscribers("a:2").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_lasts_as_long_as_its_session_is_used() {
    let harness = OnRedis::new().await;
    let sessions = harness.instance(0, SessionLimits::default()).await;
    let session = begin(&sessions).await;
    sessions.subscribe(&session, "a:1").await.expect("it can be subscribed to");

    // The state after the time for which the session is in the set of subscribers.
    let redis = harness.0.redis(0).await;
    let keys = sessions.inner.keys(&session);

    let mut passed = pipe();
    passed.cmd("HSET").arg(keys.record()).arg("subscribed").arg(1);
    passed.cmd("DEL").arg(keys.subscribers("a:1"));
    redis.pipeline::<()>(&passed).await.expect("it is written");

    sessions.get(&session.id, &Principal::Local).await.expect("it is used");
    let owner = Principal::Local.owner();
    let updated = Announcement::ResourceUpdated { uri: "a:1".into() };
    sessions.announce(&owner, &updated, &[]).await;

    let (_, mut events) = sessions.standalone(&session).await.expect("it can be followed");
    let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
    let Ok(Some(Ok(Delivery::Event(event)))) = event else { panic!("{event:?}") };
    assert_eq!(event.data, updated.encode(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_thousands_of_sessions_once_from_two_instances() {
    let harness = OnRedis::new().await;
    let one = harness.instance(0, SessionLimits::default()).await;
    let other = harness.instance(0, SessionLimits::default()).await;
    let beginning = stream::iter(0..2100).map(|_| begin(&one)).buffer_unordered(64);

    let begun: Vec<_> = beginning.collect().await;
    let owner = Principal::Local.owner();

    for change in ["first", "second"] {
        let announcement = if change == "first" {
            Announcement::ToolListChanged
        } else {
            Announcement::PromptListChanged
        };
        let changes = [change.into()];
        tokio::join!(
            one.announce(&owner, &announcement, &changes),
            other.announce(&owner, &announcement, &changes),
        );
    }

    for session in &begun {
        let (start, events) = other.standalone(session).await.expect("it can be followed");
        assert_eq!(start.position, 0);
        let two: Vec<_> = events.take(2).collect().await;
        assert!(two.iter().all(Result::is_ok), "{two:?}");
        let ahead = crate::session::EventId { position: 3, ..start };
        assert!(one.follow(session, &ahead).await.is_err(), "it received more than two messages");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_to_all_reaches_many_owners_although_other_shards_fail() {
    let harness = OnRedis::new().await;
    let sessions = harness.instance(0, SessionLimits::default()).await;
    let session = begin(&sessions).await;

    let redis = harness.0.redis(0).await;
    let own = redis.keys().shard_of(Principal::Local.owner().as_str()).single("owners");
    let shards = redis.keys().shards().map(|shard| shard.single("owners"));

    let mut damage = pipe();
    for owners in shards {
        if owners == own {
            // More owners than one step of the scan returns.
            for n in 0..1500 {
                damage.cmd("ZADD").arg(&owners).arg(n).arg(format!("another-{n}"));
            }
        } else {
            damage.cmd("SET").arg(owners).arg("not a set");
        }
    }
    redis.pipeline::<()>(&damage).await.expect("Redis does as it is told");

    sessions.announce_to_all(&Announcement::ToolListChanged).await;
    let (_, mut events) = sessions.standalone(&session).await.expect("it can be followed");
    let next = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
    let Ok(Some(Ok(Delivery::Event(event)))) = next else { panic!("{next:?}") };
    assert!(String::from_utf8_lossy(&event.data).contains("tools/list_changed"), "{event:?}");
}
