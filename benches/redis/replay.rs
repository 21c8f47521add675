//! Replay of a stream compared with one XRANGE of all its entries.

use crate::{RedisServer, median, raw, redis_on, seconds};
use bytes::Bytes;
use futures_util::StreamExt;
use larder::{
    auth::Principal,
    protocol::{ClientFacts, ProtocolVersion, RequestId},
    random::Random,
    redis::Instance,
    session::{RedisSessions, Retention, SessionLimits, Sessions},
};

const EVENTS: usize = 10_000;
const ROUNDS: usize = 31;

pub(crate) async fn measure() {
    let server = RedisServer::start().await;
    let instance = Instance::join(redis_on(&server).await, &Random::system());
    let sessions = RedisSessions::new(instance, Random::system(), SessionLimits::default());
    let version = ProtocolVersion::LATEST_LEGACY;
    let session = sessions.create(Principal::Local, version, ClientFacts::default()).await;
    let session = session.expect("it begins");
    let mut writer = sessions.open(&session, &RequestId::Number(1)).await.expect("it opens");
    let message = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"token","progress":1,"total":10000}}"#;
    let message = Bytes::from_static(message.as_bytes());
    for _ in 1..EVENTS {
        writer.append(message.clone()).await.expect("it is written");
    }
    let start = writer.start();
    writer.finish(message.into(), Retention::Kept).await.expect("it is written");
    let mut raw = raw(&server).await;
    let mut keys = ::redis::cmd("KEYS");
    let keys: Vec<String> = keys.arg("*:stream:*").query_async(&mut raw).await.expect("it lists");

    let (mut ranges, mut replays) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ranges.push(
            seconds(async {
                let mut range = ::redis::cmd("XRANGE");
                range.arg(&keys[0]).arg("-").arg("+");
                let all: Vec<(String, Vec<Vec<u8>>)> =
                    range.query_async(&mut raw).await.expect("it answers");
                assert_eq!(all.len(), EVENTS);
            })
            .await,
        );
        replays.push(
            seconds(async {
                let deliveries = sessions.follow(&session, &start).await.expect("it exists");
                assert_eq!(
                    deliveries.map(|event| event.expect("it is stored")).count().await,
                    EVENTS
                );
            })
            .await,
        );
    }
    let (range, replay) = (median(ranges), median(replays));
    println!(
        "replay of {EVENTS} events: {:.1} ms, XRANGE {:.1} ms: {:.2} of its speed",
        replay * 1e3,
        range * 1e3,
        range / replay
    );
}
