//! The states of an upstream whose callers log in there.

use larder::upstream::{State, Upstreams};
use serde_json::{Value, json};

use super::{Browser, crm, gateway_to, link, upstream, whoami};
use crate::{auth::provider::Provider, support::Modern};

#[tokio::test]
async fn an_upstream_says_that_it_waits_for_a_login_until_a_caller_has_logged_in() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider.issuer).await;
    let upstreams = Upstreams::new(vec![crm(&upstream.url)], Vec::new(), []).unwrap();
    let server = gateway_to(&upstreams, |_| {}).await;
    let alice = Modern::bearing(&server, "alice");
    let trouble = async || {
        let listed = alice.send("tools/list", json!({})).await.result();
        listed["_meta"]["larder/upstreams"].clone()
    };

    assert_eq!(trouble().await, json!([{ "name": "crm", "state": "needs_login" }]));
    let status = upstreams.statuses().remove(0);
    assert_eq!((status.state, status.is_failing), (State::NeedsLogin, false));
    assert_eq!(status.waits_for.as_deref(), Some("the login of a caller"));

    Browser::new().log_in(&link(&alice, "whoami").await, "anna").await;
    assert!(whoami(&alice).await.contains("\"anna\""));
    assert_eq!(trouble().await, Value::Null);
    assert_eq!(upstreams.statuses().remove(0).state, State::Up);
}
