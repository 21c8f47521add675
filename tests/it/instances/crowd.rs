//! One owner's updates while many others write as fast as they can.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, interval};

use crate::support::{
    Events, Legacy, Modern, RedisServer, TextFile, eventually,
    process::{Process, larder},
    sha256,
};

const OWNERS: usize = 50;
const WRITERS: usize = 8;
/// Of the owner who writes once a second.
const UPDATES: usize = 20;
const URI: &str = "x:own";

fn token(owner: usize) -> String {
    format!("token-{owner}")
}

/// Two instances of the binary on one Redis, and all owners.
async fn instances(redis: &RedisServer) -> ([Process; 2], TextFile) {
    let tokens = (0..OWNERS).map(|owner| {
        let hash = sha256(&token(owner));
        format!("[[auth.tokens]]\nname = \"owner {owner}\"\nsha256 = \"{hash}\"\n")
    });
    let tokens: String = tokens.collect();
    let config = format!(
        "[redis]\nmigrate = true\n[limits]\nrequests_per_window = 0\n[auth]\nmode = \"static\"\n{tokens}"
    );
    let file = TextFile::new(&config);
    let url = redis.url();
    let start = || Process::start(larder(&["serve", "--config", file.path(), "--store", &url]));
    let processes = [start().await, start().await];
    (processes, file)
}

fn client(instance: &Process, owner: usize) -> Modern {
    Modern::at(&instance.url).with_token(&token(owner))
}

/// Counts the updates that a listener hears, until it is dropped.
fn count(mut events: Events) -> Arc<AtomicUsize> {
    let heard = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            // A priming event has no data, and the list may have changed before.
            if event.data.contains("notifications/resources/updated") {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    heard
}

async fn update(client: &Modern, text: &str) {
    client.call("update_resource", json!({ "uri": URI, "text": text })).await.text();
}

/// `cargo test --release --test it -- --ignored while_others_write --nocapture` prints figures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute and all cores"]
async fn every_update_of_an_owner_is_heard_while_others_write_as_fast_as_they_can() {
    let redis = RedisServer::start().await;
    let (instances, _file) = instances(&redis).await;
    let instances = Arc::new(instances);
    let mut heard = Vec::new();
    for owner in 0..OWNERS {
        let first = client(&instances[0], owner);
        first.create(json!({ "uri": URI, "text": "" })).await;
        let listener = client(&instances[1], owner);
        heard.push(count(listener.listen(1, json!({ "resourceSubscriptions": [URI] })).await));
        // A session of one instance whose stream is on the other.
        let session = Legacy::bearing_at(&instances[0].url, &token(owner)).await;
        session.send("resources/subscribe", json!({ "uri": URI })).await.result();
        heard.push(count(session.at(&instances[1].url).listen().await));
    }
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers = (0..WRITERS).map(|writer| {
        let (stop, written) = (Arc::clone(&stop), Arc::clone(&written));
        let instances = Arc::clone(&instances);
        tokio::spawn(async move {
            // All owners but the first, who writes once a second.
            let mine = (1..OWNERS).filter(|owner| owner % WRITERS == writer);
            let mine: Vec<_> = mine.map(|owner| client(&instances[owner % 2], owner)).collect();
            while !stop.load(Ordering::Relaxed) {
                for client in &mine {
                    update(client, "fast").await;
                    written.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let (slow, begun) = (client(&instances[0], 0), Instant::now());
    let mut second = interval(Duration::from_secs(1));
    for number in 1..=UPDATES {
        second.tick().await;
        update(&slow, &number.to_string()).await;
        for listener in &heard[..2] {
            let is_heard = async || listener.load(Ordering::Relaxed) >= number;
            eventually("an update to be heard", is_heard).await;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    join_all(writers).await;
    let written = written.load(Ordering::Relaxed);
    let others: usize = heard[2..].iter().map(|heard| heard.load(Ordering::Relaxed)).sum();
    println!(
        "{written} writes in {seconds:.1} s; their listeners heard {others} of {}",
        written * 2
    );
    for listener in &heard[..2] {
        assert_eq!(listener.load(Ordering::Relaxed), UPDATES);
    }
}
