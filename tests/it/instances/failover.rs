//! A failover to another Redis: no write is lost that was acknowledged and replicated.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::{counting, query, session, start_in};
use crate::support::{
    Certificates, LOGIN, Legacy, RedisServer, TRUSTED, admit, encrypted, eventually, free_port,
    messages, patiently,
};

/// Waits until the follower has all writes so far.
async fn replicated(primary: &RedisServer) {
    let client = ::redis::Client::open(primary.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    connection.set_response_timeout(Duration::from_secs(20));
    // WAIT covers the writes of its own connection, and with them all earlier ones.
    let mut both = ::redis::pipe();
    both.cmd("SET").arg("mark").arg(1).ignore().cmd("WAIT").arg(1).arg(10_000);
    let (reached,): (u32,) = both.query_async(&mut connection).await.unwrap();
    assert_eq!(reached, 1, "no follower has it");
}

/// Waits until the response of a Redis contains `expected`. A Redis that is being promoted
/// closes its connections, so that errors are ignored.
async fn responds(redis: &RedisServer, command: &[&str], expected: &str) {
    let is_expected = async || {
        let response = query::<String>(redis, command).await;
        response.is_ok_and(|text| text.contains(expected))
    };
    eventually(expected, is_expected).await;
}

/// A task that creates resources one after another, and those that were acknowledged.
struct Writing {
    acknowledged: Arc<Mutex<BTreeMap<u32, String>>>,
    _task: AbortOnDropHandle<()>,
}

impl Writing {
    fn by(client: &Legacy) -> Self {
        let acknowledged = Arc::new(Mutex::new(BTreeMap::new()));
        let (client, seen) = (client.clone(), Arc::clone(&acknowledged));
        let task = tokio::spawn(async move {
            for n in 0.. {
                let text = format!("content {n}");
                let arguments = json!({ "uri": format!("x:{n}"), "text": text });
                let answer = client.call("create_resource", arguments).await;
                if answer.status == 200 && answer.result()["isError"] != true {
                    seen.lock().unwrap().insert(n, text);
                }
            }
        });
        Self { acknowledged, _task: AbortOnDropHandle::new(task) }
    }

    fn acknowledged(&self) -> BTreeMap<u32, String> {
        self.acknowledged.lock().unwrap().clone()
    }

    /// Waits until 20 more are acknowledged.
    async fn goes_on(&self) {
        let until = self.acknowledged().len() + 20;
        let goes_on = async || self.acknowledged().len() >= until;
        eventually("writes to be acknowledged", goes_on).await;
    }
}

/// Two instances on the Redis at `url` go on after a failover: a session is used before and
/// after it, a running call continues without a gap or fails and says to send it again, and
/// each resource exists that was acknowledged and replicated.
async fn nothing_is_lost(
    url: &str,
    environment: &[(&str, &str)],
    mut primary: RedisServer,
    failover: impl AsyncFnOnce(&mut RedisServer),
) {
    // The call takes five seconds, so that it runs during the failover.
    const TO: u32 = 250;
    let a = start_in(url, environment).await;
    let b = start_in(url, environment).await;
    let on_a = session(&a).await;
    let on_b = on_a.at(&b.url);
    let writing = Writing::by(&on_a);
    let (events, start) = counting(&on_a, "x", TO, 20).await;
    drop(events);
    writing.goes_on().await;
    let safe = writing.acknowledged();
    replicated(&primary).await;
    failover(&mut primary).await;
    writing.goes_on().await;

    for (n, text) in &safe {
        let read = on_b.send("resources/read", json!({ "uri": format!("x:{n}") })).await.result();
        assert_eq!(read["contents"][0]["text"], *text);
    }
    let heard = messages(&on_b.resume(&start).await.rest().await);
    let (last, progress) = heard.split_last().unwrap();
    let counted = progress.iter().map(|message| message["params"]["progress"].as_f64().unwrap());
    let expected = (1..).map(f64::from).take(progress.len());
    assert!(counted.eq(expected), "something is missing: {progress:?}");
    assert_eq!(last["id"], "x", "{last}");
    if last.get("error").is_some() {
        assert!(last["error"]["message"].as_str().unwrap().contains("again"), "{last}");
    } else {
        assert_eq!(progress.len(), TO as usize);
    }
    // Subscriptions use the new primary as well.
    let mut own = on_b.listen().await;
    assert_eq!(own.next().await.unwrap().data, "", "a priming event");
    on_b.create(json!({ "uri": "y:1", "text": "1" })).await;
    on_b.send("resources/subscribe", json!({ "uri": "y:1" })).await.result();
    on_a.call("update_resource", json!({ "uri": "y:1", "text": "2" })).await.text();
    let updated = async { while own.message().await["params"]["uri"] != "y:1" {} };
    patiently("the update", updated).await;
}

/// A Redis and a follower that is in sync with it.
async fn pair() -> (RedisServer, RedisServer) {
    pair_with(Vec::new).await
}

/// The same with options for both.
async fn pair_with(options: impl Fn() -> Vec<String>) -> (RedisServer, RedisServer) {
    // A primary waits five seconds for more followers by default.
    let at_once = ["--save", "", "--repl-diskless-sync-delay", "0"];
    let primary = RedisServer::start_also_with(&at_once, &options()).await;
    let follower = RedisServer::replica_of(&primary, &options()).await;
    responds(&follower, &["INFO", "replication"], "master_link_status:up").await;
    (primary, follower)
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_promote_a_follower_and_no_replicated_write_is_lost() {
    let (primary, follower) = pair().await;
    let sentinel = RedisServer::sentinel("main", &primary, &[]).await;
    responds(&sentinel, &["INFO", "sentinel"], "slaves=1").await;
    // Nothing listens at the first address of the URL.
    let (gone, there) = (free_port(), sentinel.port());
    let url = format!("redis+sentinel://127.0.0.1:{gone},127.0.0.1:{there}/main");
    nothing_is_lost(&url, &[], primary, async |primary| {
        primary.kill();
        responds(&follower, &["INFO", "replication"], "role:master").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_with_tls_and_users_promote_a_follower() {
    let certificates = Certificates::new();
    let (primary, follower) = pair_with(|| encrypted(&certificates)).await;
    let sentinel = RedisServer::sentinel("main", &primary, &encrypted(&certificates)).await;
    responds(&sentinel, &["INFO", "sentinel"], "slaves=1").await;
    for server in [&primary, &follower] {
        admit(server).await;
    }
    sentinel.command(&["ACL", "SETUSER", "watch", "on", ">s/cret", "+@all"]).await;
    sentinel.command(&["ACL", "SETUSER", "default", "off"]).await;
    let port = sentinel.option("--tls-port").unwrap();
    let watch = "sentinel_username=watch&sentinel_password=s%2Fcret";
    let url = format!("rediss+sentinel://{LOGIN}127.0.0.1:{port}/main?{watch}");
    let authority = certificates.authority();
    let trusted = [(TRUSTED, authority.to_str().unwrap())];
    nothing_is_lost(&url, &trusted, primary, async |primary| {
        primary.kill();
        responds(&follower, &["INFO", "replication"], "role:master").await;
    })
    .await;
}

/// An address that forwards to a Redis, which can be exchanged, as a DNS name can.
struct Address {
    port: u16,
    target: Arc<AtomicU16>,
    _task: AbortOnDropHandle<()>,
}

impl Address {
    async fn of(redis: &RedisServer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Arc::new(AtomicU16::new(redis.port()));
        let now = Arc::clone(&target);
        let task = tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let port = now.load(Ordering::Relaxed);
                tokio::spawn(async move {
                    // If nothing listens there, the connection of the client is closed.
                    if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Self { port, target, _task: AbortOnDropHandle::new(task) }
    }

    fn forward_to(&self, redis: &RedisServer) {
        self.target.store(redis.port(), Ordering::Relaxed);
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_moves_to_the_promoted_follower_is_looked_up_again() {
    let (primary, follower) = pair().await;
    let address = Address::of(&primary).await;
    nothing_is_lost(&address.url(), &[], primary, async |primary| {
        primary.kill();
        follower.command(&["REPLICAOF", "NO", "ONE"]).await;
        address.forward_to(&follower);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_is_demoted_is_left_for_the_new_one() {
    let (primary, follower) = pair().await;
    let address = Address::of(&primary).await;
    nothing_is_lost(&address.url(), &[], primary, async |primary| {
        address.forward_to(&follower);
        follower.command(&["REPLICAOF", "NO", "ONE"]).await;
        // As Sentinels do: all clients are disconnected, so that they look for the primary.
        let client = ::redis::Client::open(primary.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut demote = ::redis::pipe();
        demote.atomic().cmd("REPLICAOF").arg("127.0.0.1").arg(follower.port());
        for kind in ["normal", "pubsub"] {
            demote.cmd("CLIENT").arg("KILL").arg("TYPE").arg(kind).arg("SKIPME").arg("yes");
        }
        demote.query_async::<()>(&mut connection).await.unwrap();
    })
    .await;
}
