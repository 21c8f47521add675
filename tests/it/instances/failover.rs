//! Another Redis takes over: what was acknowledged and had reached it is there.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

use super::{Replica, counting, session, try_ask};
use crate::support::{
    Certificates, LOGIN, Legacy, RedisServer, TRUSTED, admit, encrypted, free_port, messages,
    patiently,
};

async fn tell(redis: &RedisServer, words: &[&str]) {
    try_ask::<()>(redis, words).await.unwrap();
}

/// Until all that was written so far has reached a follower.
async fn replicated(primary: &RedisServer) {
    let client = ::redis::Client::open(primary.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    connection.set_response_timeout(Duration::from_secs(20));
    // WAIT is about what its own connection wrote, and all writes are in one order.
    let mut both = ::redis::pipe();
    both.cmd("SET").arg("mark").arg(1).ignore().cmd("WAIT").arg(1).arg(10_000);
    let (reached,): (u32,) = both.query_async(&mut connection).await.unwrap();
    assert_eq!(reached, 1, "nothing follows");
}

/// Until a Redis says that of itself.
async fn says(redis: &RedisServer, words: &[&str], said: &str) {
    let saying = async {
        // One that is being promoted hangs up on everybody.
        while !try_ask::<String>(redis, words).await.is_ok_and(|answer| answer.contains(said)) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    patiently(said, saying).await;
}

/// Resources that are created one after another, whatever happens meanwhile,
/// and how often each of them was acknowledged.
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

    fn so_far(&self) -> BTreeMap<u32, String> {
        self.acknowledged.lock().unwrap().clone()
    }

    /// Until so many more are acknowledged.
    async fn goes_on(&self) {
        let until = self.so_far().len() + 20;
        let going_on = async {
            while self.so_far().len() < until {
                sleep(Duration::from_millis(20)).await;
            }
        };
        patiently("what is written to be acknowledged", going_on).await;
    }
}

/// Two replicas at that URL, in that environment, live through the failover: a session that began
/// before it is used after it, a call that was under way goes on without a gap
/// or says that it has to be sent again, and each resource that was
/// acknowledged, and had reached the follower, is there.
async fn nothing_is_lost(
    url: &str,
    environment: &[(&str, &str)],
    mut primary: RedisServer,
    failover: impl AsyncFnOnce(&mut RedisServer),
) {
    const TO: u32 = 400;
    let a = Replica::start_at(url, environment).await;
    let b = Replica::start_at(url, environment).await;
    let on_a = session(&a).await;
    let on_b = on_a.at(&b.url);
    let writing = Writing::by(&on_a);
    let (events, start) = counting(&on_a, "x", TO, 20).await;
    drop(events);
    writing.goes_on().await;
    let safe = writing.so_far();
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
    // Subscriptions go over the new one as well.
    let mut own = on_b.listen().await;
    assert_eq!(own.next().await.unwrap().data, "", "a priming event");
    on_b.create(json!({ "uri": "y:1", "text": "1" })).await;
    on_b.send("resources/subscribe", json!({ "uri": "y:1" })).await.result();
    on_a.call("update_resource", json!({ "uri": "y:1", "text": "2" })).await.text();
    let told = async { while own.message().await["params"]["uri"] != "y:1" {} };
    patiently("the update", told).await;
}

/// A Redis and one that follows it.
async fn pair() -> (RedisServer, RedisServer) {
    pair_with(Vec::new).await
}

/// The same with options for each.
async fn pair_with(options: impl Fn() -> Vec<String>) -> (RedisServer, RedisServer) {
    let primary = RedisServer::start_also_with(&["--save", ""], &options()).await;
    let follower = RedisServer::following(&primary, &options()).await;
    says(&follower, &["INFO", "replication"], "master_link_status:up").await;
    (primary, follower)
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_promote_a_follower_and_nothing_that_reached_it_is_lost() {
    let (primary, follower) = pair().await;
    let sentinel = RedisServer::sentinel("main", &primary, &[]).await;
    says(&sentinel, &["INFO", "sentinel"], "slaves=1").await;
    // One of the Sentinels is gone for good.
    let (gone, there) = (free_port(), sentinel.port());
    let url = format!("redis+sentinel://127.0.0.1:{gone},127.0.0.1:{there}/main");
    nothing_is_lost(&url, &[], primary, async |primary| {
        primary.kill();
        says(&follower, &["INFO", "replication"], "role:master").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_and_servers_with_tls_and_users_are_no_different() {
    let certificates = Certificates::new();
    let (primary, follower) = pair_with(|| encrypted(&certificates)).await;
    let sentinel = RedisServer::sentinel("main", &primary, &encrypted(&certificates)).await;
    says(&sentinel, &["INFO", "sentinel"], "slaves=1").await;
    for server in [&primary, &follower] {
        admit(server).await;
    }
    tell(&sentinel, &["ACL", "SETUSER", "watch", "on", ">s/cret", "+@all"]).await;
    tell(&sentinel, &["ACL", "SETUSER", "default", "off"]).await;
    let port = sentinel.option("--tls-port").unwrap();
    let watch = "sentinel_username=watch&sentinel_password=s%2Fcret";
    let url = format!("rediss+sentinel://{LOGIN}127.0.0.1:{port}/main?{watch}");
    let authority = certificates.authority();
    let trusted = [(TRUSTED, authority.to_str().unwrap())];
    nothing_is_lost(&url, &trusted, primary, async |primary| {
        primary.kill();
        says(&follower, &["INFO", "replication"], "role:master").await;
    })
    .await;
}

/// An address behind which another server can be put, as a name is that moves.
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
                    // Where nobody listens, the client is hung up on.
                    if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Self { port, target, _task: AbortOnDropHandle::new(task) }
    }

    fn move_to(&self, redis: &RedisServer) {
        self.target.store(redis.port(), Ordering::Relaxed);
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_leads_to_the_promoted_follower_is_followed() {
    let (primary, follower) = pair().await;
    let address = Address::of(&primary).await;
    nothing_is_lost(&address.url(), &[], primary, async |primary| {
        primary.kill();
        tell(&follower, &["REPLICAOF", "NO", "ONE"]).await;
        address.move_to(&follower);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_becomes_a_follower_is_left_for_the_new_one() {
    let (primary, follower) = pair().await;
    let address = Address::of(&primary).await;
    nothing_is_lost(&address.url(), &[], primary, async |primary| {
        address.move_to(&follower);
        tell(&follower, &["REPLICAOF", "NO", "ONE"]).await;
        // As Sentinels do it: whoever is connected has to look again.
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
