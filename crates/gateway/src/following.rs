//! Keeps what an upstream announces like what the clients follow: lists, and the resources
//! in [`Subscriptions`].

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::{
    error::UpstreamError,
    exchange::Exchange,
    link::{Era, Link},
    received::Done,
    subscriptions::Subscriptions,
};

/// The longest wait before a subscription that has ended is opened again.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Follows until the upstream ends; then it waits to be dropped.
pub(super) async fn follow(link: &Arc<Link>, subscriptions: &Arc<Subscriptions>) {
    // Announcements between two processes are lost, so followed resources are announced as updated.
    if subscriptions.was_applied() {
        subscriptions.missed();
    }

    link.announce_updates_to(Arc::clone(subscriptions));
    match link.era() {
        Some(Era::Modern) => listen(link, subscriptions).await,
        _ => subscribe(link, subscriptions).await,
    }

    std::future::pending::<()>().await;
}

/// Subscribes to each resource at a legacy upstream.
async fn subscribe(link: &Arc<Link>, subscriptions: &Subscriptions) {
    let mut changes = subscriptions.changes();
    let mut active = HashSet::new();

    loop {
        let change = *changes.borrow_and_update();
        let wanted = subscriptions.wanted();
        let mut refused = HashSet::new();

        if link.capabilities().announces_updates() {
            for uri in active.difference(&wanted) {
                let told = link.request::<Done>("resources/unsubscribe", json!({ "uri": uri }));
                if let Err(error) = told.await {
                    tracing::warn!(%error, "an upstream does not end a subscription");
                }
            }
            for uri in wanted.difference(&active) {
                let told = link.request::<Done>("resources/subscribe", json!({ "uri": uri }));
                let Err(error) = told.await else { continue };
                tracing::warn!(%error, "an upstream refuses a subscription");
                if let UpstreamError::Refused(_) = error {
                    subscriptions.refuse(uri, error.into_fault());
                    refused.insert(uri.clone());
                }
            }
        }

        active = wanted;
        active.retain(|uri| !refused.contains(uri));
        subscriptions.set_applied(change);
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Keeps one subscription open at a modern upstream. A change of it opens another one.
async fn listen(link: &Arc<Link>, subscriptions: &Subscriptions) {
    let mut changes = subscriptions.changes();
    let mut wait = Duration::from_secs(1);
    let mut has_missed = false;
    let mut earlier = None;

    loop {
        let change = *changes.borrow_and_update();
        let Some(filter) = filter(link, &subscriptions.wanted()) else {
            earlier = None;
            subscriptions.set_applied(change);
            if changes.changed().await.is_err() {
                return;
            }
            continue;
        };

        let params = json!({ "notifications": filter });
        let Ok(mut exchange) = Exchange::open(link, "subscriptions/listen", params).await else {
            return;
        };

        let is_open = tokio::select! {
            () = link.acknowledged(exchange.id()) => true,
            () = exchange.ended() => false,
        };

        // Closed only now, so that no change is missed between two subscriptions.
        drop(earlier.take());
        if is_open && std::mem::take(&mut has_missed) {
            link.announce_lists();
            subscriptions.missed();
        }
        subscriptions.set_applied(change);

        if is_open {
            wait = Duration::from_secs(1);
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    earlier = Some(exchange);
                    continue;
                }
                () = exchange.ended() => {}
            }
        }

        has_missed = true;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = changes.changed() => {}
        }
        wait = (wait * 2).min(MAX_BACKOFF);
    }
}

/// The filter of the subscription at the upstream. `None` for nothing to announce.
fn filter(link: &Link, wanted: &HashSet<String>) -> Option<Value> {
    let declared = link.capabilities();
    let mut filter = Map::new();
    for (features, list) in [
        (declared.tools, "toolsListChanged"),
        (declared.prompts, "promptsListChanged"),
        (declared.resources, "resourcesListChanged"),
    ] {
        if features.is_some_and(|features| features.list_changed) {
            filter.insert(list.into(), json!(true));
        }
    }

    if declared.announces_updates() && !wanted.is_empty() {
        let wanted = json!(wanted.iter().collect::<BTreeSet<_>>());
        filter.insert("resourceSubscriptions".into(), wanted);
    }

    (!filter.is_empty()).then_some(Value::Object(filter))
}
