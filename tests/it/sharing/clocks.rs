//! Servers on Redis whose own clock is wrong.

use std::{sync::Arc, time::Duration};

use larder::clock::{Clock, ManualClock, SystemClock};
use serde_json::json;

use super::links::share;
use crate::support::{Legacy, Modern, RedisServer, Server, eventually};

#[tokio::test]
async fn a_server_with_a_wrong_clock_shares_expires_and_has_sessions() {
    // Five seconds behind, and five seconds ahead.
    for offset in [0, 10] {
        let clock = ManualClock::new();
        let behind = SystemClock.now().since(clock.now()).saturating_sub(Duration::from_secs(5));
        clock.advance(behind + Duration::from_secs(offset));
        let redis = RedisServer::start().await;
        let url = redis.url();
        let server = Server::configured(|setup| {
            setup.config.store.url = url;
            setup.config.redis.migrate = true;
            setup.clock = Arc::new(clock);
        })
        .await;
        let (client, session) = (Modern::of(&server), Legacy::of(&server).await);
        client.create(json!({ "uri": "x:short", "text": "text", "ttl": 600 })).await;
        let link = share(&client, "x:short", "everyone", None).await;
        assert_eq!(client.read(&link).await["text"], "text");
        let read = session.call("read_resource", json!({ "uri": link })).await;
        assert!(read.text().ends_with("text"), "{read:?}");

        // However slow the machine is, nothing above waits for an expiry.
        let soon = json!({ "uri": "x:short", "ttl": 1 });
        let updated = client.call("update_resource", soon).await.result();
        let expires = updated["structuredContent"]["expires"].as_str().unwrap().to_owned();
        let read = async || client.call("read_resource", json!({ "uri": "x:short" })).await;
        // Between the sweep and its message to the instance, the error cannot tell the time yet.
        let removed = format!("was removed at {expires}");
        let has_expired = async || {
            let result = read().await.result();
            result["isError"] == true && result.to_string().contains(&removed)
        };
        eventually("the resource to expire", has_expired).await;
        let gone = session.call("read_resource", json!({ "uri": link })).await;
        assert!(gone.failure().contains("Resource"), "{gone:?}");
        session.create(json!({ "uri": "x:next", "text": "next" })).await;
        assert_eq!(client.read("x:next").await["text"], "next");
    }
}
