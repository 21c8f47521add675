//! `subscriptions/listen` (2026-07-28, patterns: Subscriptions).

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, future::BoxFuture, stream};
use larder_oauth::Identity;
use larder_protocol::{
    Announcement, ClientFacts, Fault, Method, Params, RequestId, SUBSCRIPTION_ID,
};
use larder_store::store::Changes;
use rmcp::model::SubscriptionFilter;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    Era,
    announce::{all_lists_changed, announcements},
    encode::encode_error,
    shared::Links,
};
use crate::{
    dispatch::Dispatcher,
    registry::{Followed, Subscribed, Subscriber},
};

/// The maximum number of resources that one subscription watches.
const MAX_WATCHED: usize = 1_000;

/// One subscription and its sources of changes.
pub struct Subscription {
    id: RequestId,
    lists: HashSet<Announcement>,
    watched: HashSet<String>,

    changes: Changes,
    links: Links,
    edits: broadcast::Receiver<Announcement>,
    /// The resources of the registry's providers.
    _followed: Vec<Followed>,

    pending: VecDeque<Bytes>,
    closing: CancellationToken,
    /// Resolves when the caller's token expires.
    expired: BoxFuture<'static, ()>,
    ended: bool,
}

impl Subscription {
    /// Opens a subscription for a caller. It ends with a result when `closing` is
    /// cancelled, and with an error when the caller's token expires.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`], [`Fault::InsufficientScope`], or the store cannot resolve
    /// the links.
    pub async fn new(
        id: RequestId,
        params: &Params,
        identity: &Identity,
        client: &Arc<ClientFacts>,
        dispatcher: &Dispatcher,
        closing: CancellationToken,
    ) -> Result<Self, Fault> {
        #[derive(Deserialize)]
        struct ListenParams {
            notifications: SubscriptionFilter,
        }

        dispatcher.authorize(Method::Listen, params, identity)?;
        let ListenParams { notifications: requested } = params.parse()?;

        let mut watched = watched_by(&requested)?;

        // A link that the caller may not read is treated like a resource that does not
        // exist.
        let (links, unreadable) = Links::resolve(&watched, identity, dispatcher.store()).await?;
        watched.retain(|uri| !unreadable.contains(uri));

        // Subscribes before the acknowledgement, so that no change is missed.
        let changes = dispatcher.store().feed().subscribe(identity.owner());
        let edits = dispatcher.registry().listen();
        let subscriber = Subscriber {
            identity: identity.clone(),
            client: Arc::clone(client),
            session: None,
            feed: dispatcher.store().feed().clone(),
        };

        let followed = follow(&mut watched, &subscriber, dispatcher).await;

        let mut accepted = requested;
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| watched.contains(uri));
        }
        let lists = accept_lists(&mut accepted, dispatcher);

        let acknowledged = json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": { SUBSCRIPTION_ID: id }, "notifications": accepted },
        });
        let pending = VecDeque::from([acknowledged.to_string().into()]);

        Ok(Self {
            id,
            lists,
            watched,
            changes,
            links,
            edits,
            _followed: followed,
            pending,
            closing,
            expired: identity.invalidated(),
            ended: false,
        })
    }

    /// The messages: the acknowledgement, then notifications of changes.
    pub fn messages(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, |mut subscription| async move {
            let message = subscription.next().await?;
            Some((message, subscription))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = self.pending.pop_front() {
                return Some(message);
            }
            if self.ended {
                return None;
            }

            let change = tokio::select! {
                biased;
                () = self.closing.cancelled() => {
                    self.ended = true;
                    return Some(self.result());
                }
                () = &mut self.expired => {
                    self.ended = true;
                    return Some(encode_error(Some(&self.id), &Fault::TokenExpired, Era::Modern));
                }
                edit = self.edits.recv() => {
                    match edit {
                        Ok(announcement) => self.notify(&announcement),
                        Err(broadcast::error::RecvError::Lagged(_)) => {
                            for list in all_lists_changed() {
                                self.notify(&list);
                            }
                        }
                        Err(broadcast::error::RecvError::Closed) => self.ended = true,
                    }
                    continue;
                }
                change = self.changes.next() => change,
                Some(change) = self.links.next() => {
                    for uri in self.links.updated_links(change).await {
                        self.notify(&Announcement::ResourceUpdated { uri });
                    }
                    continue;
                }
            };

            match change {
                Ok(Some(change)) => {
                    for announcement in announcements(&change) {
                        self.notify(&announcement);
                    }
                }
                Ok(None) => self.ended = true,
                // Changes were missed, so any watched resource may have changed.
                Err(_) => {
                    self.notify(&Announcement::ResourceListChanged);
                    for uri in self.watched.clone() {
                        self.notify(&Announcement::ResourceUpdated { uri });
                    }
                }
            }
        }
    }

    fn notify(&mut self, announcement: &Announcement) {
        let subscribed = match announcement {
            Announcement::ResourceUpdated { uri } => self.watched.contains(uri),
            list => self.lists.contains(list),
        };

        if subscribed {
            self.pending.push_back(announcement.encode(Some(&self.id)));
        }
    }

    fn result(&self) -> Bytes {
        let result = json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "result": { "resultType": "complete", "_meta": { SUBSCRIPTION_ID: self.id } },
        });

        result.to_string().into()
    }
}

/// Follows resources of the registry's providers. Those that a provider's server refuses, and that
/// nobody else has, are not watched.
async fn follow(
    watched: &mut HashSet<String>,
    subscriber: &Subscriber,
    dispatcher: &Dispatcher,
) -> Vec<Followed> {
    let uris: Vec<_> = watched.iter().map(String::as_str).collect();
    let Subscribed { followed, refused } = dispatcher.registry().subscribe(&uris, subscriber).await;

    for (uri, refusal) in refused {
        if !dispatcher.has_own_resource(subscriber.identity.owner(), &uri).await {
            tracing::debug!(%refusal, "a resource cannot be followed");
            watched.remove(&uri);
        }
    }
    followed
}

/// The URIs of a subscription.
fn watched_by(requested: &SubscriptionFilter) -> Result<HashSet<String>, Fault> {
    let watched: HashSet<String> =
        requested.resource_subscriptions.iter().flatten().cloned().collect();

    if watched.len() > MAX_WATCHED {
        let problem = format!(
            "resourceSubscriptions names {} resources; one subscription watches at most {MAX_WATCHED}.",
            watched.len()
        );
        return Err(Fault::invalid_params(problem));
    }
    Ok(watched)
}

/// The lists whose changes are announced. The server announces no changes of lists that it does
/// not have, so the filter loses these.
fn accept_lists(filter: &mut SubscriptionFilter, dispatcher: &Dispatcher) -> HashSet<Announcement> {
    let announces = |list| dispatcher.registry().announces(&list);
    filter.tools_list_changed =
        filter.tools_list_changed.filter(|_| announces(Announcement::ToolListChanged));
    filter.prompts_list_changed =
        filter.prompts_list_changed.filter(|_| announces(Announcement::PromptListChanged));

    let lists = [
        (filter.tools_list_changed, Announcement::ToolListChanged),
        (filter.prompts_list_changed, Announcement::PromptListChanged),
        (filter.resources_list_changed, Announcement::ResourceListChanged),
    ];
    let accepted = lists.into_iter().filter(|(enabled, _)| *enabled == Some(true));
    accepted.map(|(_, announcement)| announcement).collect()
}
