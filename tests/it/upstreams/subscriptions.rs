//! Subscriptions to an upstream's resources, in both protocol eras on both sides.

use serde_json::json;

use super::{
    http::{remote, upstream},
    in_front_of, odd, text,
};
use crate::support::{Events, Legacy, Modern};

/// The URI of the next resource that is updated. Its creation may be announced before.
pub(super) async fn updated(events: &mut Events) -> String {
    loop {
        let message = events.message().await;
        if message["method"] != "notifications/resources/list_changed" {
            assert_eq!(message["method"], "notifications/resources/updated", "{message}");
            return message["params"]["uri"].as_str().unwrap().to_owned();
        }
    }
}

#[tokio::test]
async fn only_subscribers_hear_of_an_update_under_the_offered_uri() {
    for version in ["2025-11-25", "2026-07-28"] {
        let far = upstream(version).await;
        // Beside another one, so that URIs have a prefix.
        let server = in_front_of(vec![remote("far", &far.url), odd("near", &[])]).await;
        let (client, other) = (Legacy::of(&server).await, Legacy::of(&server).await);
        let create = async |content: &str| {
            let created = client.call("far__create_resource", json!({ "text": content })).await;
            text(&created.result()).to_owned()
        };
        let (first, second) = (create("one").await, create("one").await);
        let offered = |own: &str| format!("far+{own}");
        let mut streams = Vec::new();
        for (client, own) in [(&client, &first), (&other, &second)] {
            let uri = offered(own);
            client.send("resources/subscribe", json!({ "uri": uri })).await.result();
            let mut events = client.listen().await;
            // The first event of a stream that can be resumed is empty.
            assert_eq!(events.next().await.unwrap().data, "");
            streams.push(events);
        }
        let modern = Modern::of(&server);
        let filter = json!({ "resourceSubscriptions": [offered(&second)] });
        let mut listening = modern.listen("it", filter).await;

        let update = async |own: &str| {
            let arguments = json!({ "uri": own, "text": "two" });
            client.call("far__update_resource", arguments).await.result();
        };
        update(&first).await;
        assert_eq!(updated(&mut streams[0]).await, offered(&first), "{version}");
        // The others were not told before.
        update(&second).await;
        assert_eq!(updated(&mut streams[1]).await, offered(&second), "{version}");
        assert_eq!(updated(&mut listening).await, offered(&second), "{version}");

        // After its end, the next update that the first one hears is of what it still follows.
        let uri = offered(&first);
        client.send("resources/unsubscribe", json!({ "uri": uri })).await.result();
        client.send("resources/subscribe", json!({ "uri": offered(&second) })).await.result();
        update(&first).await;
        update(&second).await;
        assert_eq!(updated(&mut streams[0]).await, offered(&second), "{version}");
    }
}
