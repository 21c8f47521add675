//! When results of an upstream's tools are stored, and for how long.

use std::time::Duration;

use chrono::DateTime;
use larder::registry::Spill;
use serde_json::json;

use super::{in_front_of, odd, uri_in};
use crate::support::Modern;

#[tokio::test]
async fn results_are_stored_by_the_policies_of_the_upstream() {
    let mut odd = odd("odd", &[]);
    let always = [("*", Spill::Always), ("echo", Spill::Auto), ("huge", Spill::Never)];
    odd.spill = always.map(|(tool, spill)| (tool.to_owned(), spill)).into();
    let seconds = [("*", 60), ("lo*", 3600)];
    odd.ttl = seconds.map(|(tool, ttl)| (tool.to_owned(), Duration::from_secs(ttl))).into();
    let server = in_front_of(vec![odd]).await;
    let client = Modern::of(&server);

    assert_eq!(client.call("echo", json!({ "a": 1 })).await.text(), "{\"a\":1}");
    assert_eq!(client.call("huge", json!({ "bytes": 100_000 })).await.text().len(), 100_000);
    for (tool, ttl) in [("slow", 60), ("log", 3600)] {
        let preview = client.call(tool, json!({})).await.text();
        let uri = uri_in(&preview);
        let facts = client.call("describe_resource", json!({ "uri": uri })).await.text();
        let time = |label: &str| {
            let line = facts.lines().find_map(|line| line.strip_prefix(label));
            DateTime::parse_from_rfc3339(line.unwrap_or_else(|| panic!("{facts}"))).unwrap()
        };
        assert_eq!((time("expires: ") - time("created: ")).num_seconds(), ttl, "{facts}");
    }
}
