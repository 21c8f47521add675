//! `subscriptions/listen` (2026-07-28, patterns: Subscriptions).

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use rmcp::model::SubscriptionFilter;
use serde::Deserialize;
use serde_json::json;
use std::collections::{HashSet, VecDeque};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    announce::{announcements, every_list},
    shared::Links,
};
use crate::{
    auth::Identity,
    dispatch::Dispatcher,
    protocol::{Announcement, Fault, Method, Params, RequestId, SUBSCRIPTION_ID},
    store::Changes,
};

/// How many resources one subscription may watch.
const MOST_WATCHED: usize = 1_000;

/// One subscription: what it asked for, and where changes come from.
pub struct Listen {
    id: RequestId,
    lists: HashSet<Announcement>,
    watched: HashSet<String>,
    changes: Changes,
    links: Links,
    edits: broadcast::Receiver<Announcement>,
    waiting: VecDeque<Bytes>,
    closing: CancellationToken,
    over: bool,
}

impl Listen {
    /// Begins a subscription of that caller; it ends, with a result, when
    /// `closing` is cancelled.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`], [`Fault::InsufficientScope`]; and when it
    /// cannot be found out what is shared with the caller.
    pub async fn new(
        id: RequestId,
        params: &Params,
        identity: &Identity,
        dispatcher: &Dispatcher,
        closing: CancellationToken,
    ) -> Result<Self, Fault> {
        #[derive(Deserialize)]
        struct ListenParams {
            notifications: SubscriptionFilter,
        }
        dispatcher.authorize(Method::Listen, params, identity)?;
        let ListenParams { notifications: asked } = params.parse()?;
        let mut watched: HashSet<String> =
            asked.resource_subscriptions.clone().unwrap_or_default().into_iter().collect();
        if watched.len() > MOST_WATCHED {
            return Err(Fault::invalid_params(format!(
                "resourceSubscriptions names {} resources; one subscription watches at most {MOST_WATCHED}.",
                watched.len()
            )));
        }
        // What is not shared with the caller is watched no more than what is not there.
        let (links, nowhere) = Links::among(&watched, identity, dispatcher.store()).await?;
        watched.retain(|uri| !nowhere.contains(uri));
        // Listen before acknowledging, so that nothing falls in between.
        let changes = dispatcher.store().feed().listen(identity.owner());
        let edits = dispatcher.registry().listen();
        // What the server does not have, it does not declare to change.
        let catalog = dispatcher.registry().catalog();
        let mut honoured = asked;
        honoured.tools_list_changed = honoured.tools_list_changed.filter(|_| catalog.has_tools());
        honoured.prompts_list_changed =
            honoured.prompts_list_changed.filter(|_| catalog.has_prompts());
        if let Some(uris) = &mut honoured.resource_subscriptions {
            uris.retain(|uri| !nowhere.contains(uri));
        }
        let wanted = [
            (honoured.tools_list_changed, Announcement::ToolListChanged),
            (honoured.prompts_list_changed, Announcement::PromptListChanged),
            (honoured.resources_list_changed, Announcement::ResourceListChanged),
        ];
        let lists = wanted.into_iter().filter(|(wanted, _)| *wanted == Some(true));
        let lists = lists.map(|(_, announcement)| announcement).collect();
        let acknowledged = json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": { SUBSCRIPTION_ID: id }, "notifications": honoured },
        });
        let waiting = VecDeque::from([acknowledged.to_string().into()]);
        Ok(Self { id, lists, watched, changes, links, edits, waiting, closing, over: false })
    }

    /// The messages: first the acknowledgement, then changes as they happen.
    pub fn messages(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, |mut listen| async move {
            let message = listen.next().await?;
            Some((message, listen))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            if self.over {
                return None;
            }
            let change = tokio::select! {
                biased;
                () = self.closing.cancelled() => {
                    self.over = true;
                    return Some(self.result());
                }
                edit = self.edits.recv() => {
                    match edit {
                        Ok(announcement) => self.push(&announcement),
                        Err(broadcast::error::RecvError::Lagged(_)) => {
                            for list in every_list() {
                                self.push(&list);
                            }
                        }
                        Err(broadcast::error::RecvError::Closed) => self.over = true,
                    }
                    continue;
                }
                change = self.changes.next() => change,
                Some(heard) = self.links.next() => {
                    for uri in self.links.audible(heard).await {
                        self.push(&Announcement::ResourceUpdated { uri });
                    }
                    continue;
                }
            };
            match change {
                Ok(Some(change)) => {
                    for announcement in announcements(&change) {
                        self.push(&announcement);
                    }
                }
                Ok(None) => self.over = true,
                // Some were missed: any of what is watched may have changed.
                Err(_) => {
                    self.push(&Announcement::ResourceListChanged);
                    for uri in self.watched.clone() {
                        self.push(&Announcement::ResourceUpdated { uri });
                    }
                }
            }
        }
    }

    fn push(&mut self, announcement: &Announcement) {
        let wanted = match announcement {
            Announcement::ResourceUpdated { uri } => self.watched.contains(uri),
            list => self.lists.contains(list),
        };
        if wanted {
            self.waiting.push_back(announcement.encode(Some(&self.id)));
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
