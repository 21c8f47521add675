use std::time::Duration;

use futures_util::future::join_all;
use larder_runtime::random::Random;
use tokio::time::{Instant, timeout};

use super::{
    ChannelEvent, Redis, RedisError, RedisSettings, Script, Subscription, cmd, layout::Layout, pipe,
};
use crate::testing::RedisServer;

const TIMEOUT: Duration = Duration::from_secs(1);

/// The most time of a step in these tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

async fn try_open(server: &RedisServer) -> Result<Redis, RedisError> {
    let settings = RedisSettings { timeout: TIMEOUT, ..RedisSettings::new(server.url()) };
    Redis::open(&settings).await
}

async fn open(server: &RedisServer) -> Redis {
    try_open(server).await.expect("Redis is reachable")
}

async fn set(redis: &Redis, key: &str, value: &str) -> Result<(), RedisError> {
    redis.query(cmd("SET").arg(key).arg(value)).await
}

async fn get(redis: &Redis, key: &str) -> Result<Option<String>, RedisError> {
    redis.query(cmd("GET").arg(key)).await
}

async fn publish(redis: &Redis, channel: &str, message: &'static str) {
    let mut publish = cmd("PUBLISH");
    redis.query::<()>(publish.arg(channel).arg(message)).await.expect("it can be published");
}

async fn next_event(subscription: &mut Subscription) -> ChannelEvent {
    timeout(TEST_TIMEOUT, subscription.next()).await.expect("an event arrives")
}

/// The output of `work`, which must not take much longer than [`TIMEOUT`].
async fn promptly<T>(work: impl Future<Output = T>) -> T {
    let begin = Instant::now();
    let result = work.await;

    assert!(begin.elapsed() < TIMEOUT * 8, "it took {:?}", begin.elapsed());
    result
}

/// Repeats the attempt until it succeeds.
async fn eventually<T, E>(attempt: impl AsyncFn() -> Result<T, E>) -> T {
    let attempts = async {
        loop {
            if let Ok(done) = attempt().await {
                return done;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TEST_TIMEOUT, attempts).await.expect("it succeeds eventually")
}

#[tokio::test]
async fn commands_pipelines_and_scripts_are_answered() {
    let server = RedisServer::start().await;
    let redis = open(&server).await;
    set(&redis, "a", "1").await.expect("it can be set");

    let mut commands = pipe();
    commands.get("a").incr("b", 41).incr("b", 1);
    let replies: (String, i64, i64) =
        redis.pipeline(&commands).await.expect("all commands succeed");
    assert_eq!(replies, ("1".into(), 41, 42));

    let script = Script::new("return redis.call('GET', KEYS[1]) .. ARGV[1]");
    for _ in 0..2 {
        let answer: String = redis.call(&script.on(&["a"]).arg("x")).await.expect("it runs");
        assert_eq!(answer, "1x");
    }

    let refused = redis.query::<()>(cmd("INCR").arg("a").arg("x")).await;
    assert!(matches!(refused, Err(RedisError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn opening_fails_promptly_where_no_redis_runs() {
    let mut server = RedisServer::start().await;
    server.kill();
    let refused = promptly(try_open(&server)).await.expect_err("no server is running");
    assert!(matches!(refused, RedisError::Unreachable(_)), "{refused:?}");
}

#[tokio::test]
async fn a_killed_redis_fails_commands_promptly_and_is_found_again() {
    let mut server = RedisServer::durable().await;
    let redis = open(&server).await;
    let script = Script::new("return redis.call('GET', KEYS[1])");
    set(&redis, "a", "1").await.expect("it can be set");
    redis.call::<String>(&script.on(&["a"])).await.expect("it runs");

    server.kill();
    for _ in 0..5 {
        let down = promptly(get(&redis, "a")).await;
        assert!(matches!(down, Err(RedisError::Unreachable(_))), "{down:?}");
    }

    server.restart().await;
    assert_eq!(eventually(async || get(&redis, "a").await).await.as_deref(), Some("1"));

    let again: String = redis.call(&script.on(&["a"])).await.expect("it is loaded again");
    assert_eq!(again, "1");
}

#[tokio::test]
async fn a_restart_between_two_commands_fails_neither() {
    let mut server = RedisServer::durable().await;
    let redis = open(&server).await;
    set(&redis, "a", "1").await.expect("it can be set");
    server.restart().await;
    assert_eq!(get(&redis, "a").await.expect("it is found again").as_deref(), Some("1"));
}

#[tokio::test]
async fn commands_to_a_paused_redis_time_out() {
    let server = RedisServer::start().await;
    let redis = open(&server).await;
    set(&redis, "a", "1").await.expect("it can be set");

    server.pause();
    let attempts = (0..50).map(|_| promptly(get(&redis, "a")));
    for slow in join_all(attempts).await {
        assert!(matches!(slow, Err(RedisError::Timeout(_))), "{slow:?}");
    }

    let slow = promptly(get(&redis, "a")).await;
    assert!(matches!(slow, Err(RedisError::Timeout(_))), "{slow:?}");

    server.resume();
    assert_eq!(eventually(async || get(&redis, "a").await).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn subscriptions_share_a_connection_and_receive_their_channel() {
    let server = RedisServer::start().await;
    let redis = open(&server).await;
    let mut one = redis.subscribe("one").await.expect("the subscription succeeds");
    let mut again = redis.subscribe("one").await.expect("the subscription succeeds");
    let mut two = redis.subscribe("two").await.expect("the subscription succeeds");

    for channel in ["one", "none", "two"] {
        publish(&redis, channel, "a message").await;
    }

    for subscription in [&mut one, &mut again, &mut two] {
        assert_eq!(next_event(subscription).await, ChannelEvent::Message("a message".into()));
    }

    let clients: String = redis.query(cmd("CLIENT").arg("LIST")).await.expect("it lists them");
    assert_eq!(clients.lines().count(), 2, "{clients}");

    drop((one, two));
    let listened = async || {
        let mut channels = cmd("PUBSUB");
        let channels = channels.arg("CHANNELS");
        let channels: Vec<String> = redis.query(channels).await.expect("it lists them");
        (channels == ["one"]).then_some(()).ok_or(())
    };

    eventually(listened).await;
    publish(&redis, "one", "another").await;
    assert_eq!(next_event(&mut again).await, ChannelEvent::Message("another".into()));
}

#[tokio::test]
async fn a_lost_connection_is_reported_as_a_gap() {
    let mut server = RedisServer::start().await;
    let redis = open(&server).await;
    let mut subscription = redis.subscribe("channel").await.expect("the subscription succeeds");

    server.kill();
    let refused = promptly(redis.subscribe("other")).await;
    assert!(refused.is_err(), "no server is running");

    server.restart().await;
    assert_eq!(next_event(&mut subscription).await, ChannelEvent::Gap);

    publish(&redis, "channel", "after it").await;
    assert_eq!(next_event(&mut subscription).await, ChannelEvent::Message("after it".into()));
}

#[tokio::test]
async fn a_slow_subscriber_receives_a_gap() {
    let server = RedisServer::start().await;
    let redis = open(&server).await;
    let mut slow = redis.subscribe("channel").await.expect("the subscription succeeds");
    let mut quick = redis.subscribe("channel").await.expect("the subscription succeeds");

    for _ in 0..1000 {
        publish(&redis, "channel", "a message").await;
        assert_eq!(next_event(&mut quick).await, ChannelEvent::Message("a message".into()));
    }

    assert_eq!(next_event(&mut slow).await, ChannelEvent::Gap);
    for _ in 0..super::subscriptions::BACKLOG {
        assert_eq!(next_event(&mut slow).await, ChannelEvent::Message("a message".into()));
    }

    publish(&redis, "channel", "the last").await;
    assert_eq!(next_event(&mut slow).await, ChannelEvent::Message("the last".into()));
}

#[tokio::test]
async fn one_of_ten_concurrent_migrations_runs() {
    let server = RedisServer::start().await;
    let redis = open(&server).await;
    let layout = Layout::current();
    let unmigrated = layout.check(&redis).await.expect_err("there is no layout").to_string();
    // No URL, which would lack its password, so that the hint works wherever the settings are.
    assert!(unmigrated.ends_with(" Run: larder migrate"), "{unmigrated}");

    let instances = join_all((0..10).map(|_| open(&server))).await;
    let random = Random::system();
    let migrating = instances.iter().map(|instance| layout.migrate(instance, &random));
    let done: Vec<_> = join_all(migrating).await;
    let done = done.into_iter().map(|done| done.expect("it migrates"));
    let did: Vec<_> = done.filter(|did| !did.is_empty()).collect();
    assert_eq!(did.len(), 1, "{did:?}");

    let names: Vec<String> = did[0].iter().map(ToString::to_string).collect();
    assert_eq!(names, ["0001_resources", "0002_compressed_blocks", "0003_usage", "0004_parts"]);

    layout.check(&redis).await.expect("it is there now");

    let lock: bool = redis.query(cmd("EXISTS").arg("larder:migrating")).await.expect("it answers");
    assert!(!lock, "the lock remains");
}

#[tokio::test]
async fn a_lock_whose_holder_died_expires() {
    let server = RedisServer::start().await;
    let redis = open(&server).await;
    let mut held = cmd("SET");
    held.arg("larder:migrating").arg("a dead holder").arg("PX").arg(300);
    redis.query::<()>(&held).await.expect("it is held");

    let done = Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
    assert_eq!(done.len(), Layout::current().version() as usize);
}

#[tokio::test]
async fn a_later_migration_runs_once_per_shard_and_the_older_version_is_refused() {
    const LATER: &str = "redis.call('RENAME', shard .. 'thing', shard .. 'renamed')\nredis.call('APPEND', shard .. 'renamed', ' twice')";
    let server = RedisServer::start().await;
    let redis = open(&server).await;
    let random = Random::system();
    let older = Layout::current();

    let number = older.version() + 1;
    let folder = tempfile::tempdir().expect("there is room");
    let present = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
    for file in std::fs::read_dir(present).expect("there are some") {
        let file = file.expect("Redis is reachable");
        std::fs::copy(file.path(), folder.path().join(file.file_name())).expect("it is copied");
    }

    let later = format!("{number:04}_rename");
    let path = folder.path().join(&later).with_extension("lua");
    std::fs::write(path, LATER).expect("it can be written");

    let newer = Layout::in_folder(folder.path());

    older.migrate(&redis, &random).await.expect("it migrates");
    for shard in redis.keys().shards() {
        set(&redis, &shard.single("thing"), "once,").await.expect("it can be set");
    }
    let old = newer.check(&redis).await.expect_err("it is too old").to_string();
    let found = format!("layout {}", older.version());
    let needed = format!("needs {number}");
    assert!(old.contains(&found) && old.contains(&needed), "{old}");

    // The state after an interruption: one shard is already migrated.
    let ahead = redis.keys().shards().next().expect("there are shards");
    redis
        .query::<()>(cmd("RENAME").arg(ahead.single("thing")).arg(ahead.single("renamed")))
        .await
        .expect("it can be renamed");
    set(&redis, &super::layout::key(&ahead), &number.to_string()).await.expect("it can be set");

    let did = newer.migrate(&redis, &random).await.expect("it migrates");
    assert_eq!(did.iter().map(ToString::to_string).collect::<Vec<_>>(), [later]);
    assert!(newer.migrate(&redis, &random).await.expect("nothing is to be done").is_empty());
    for shard in redis.keys().shards() {
        let expected = if shard == ahead { "once," } else { "once, twice" };
        let renamed = get(&redis, &shard.single("renamed")).await.expect("it answers");
        assert_eq!(renamed.as_deref(), Some(expected));
        assert_eq!(get(&redis, &shard.single("thing")).await.expect("it answers"), None);
    }

    for refused in [older.check(&redis).await, older.migrate(&redis, &random).await.map(|_| ())] {
        let refused = refused.expect_err("it is newer").to_string();
        assert!(refused.contains("newer"), "{refused}");
    }
}
