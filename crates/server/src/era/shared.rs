//! Subscriptions to shared resources, by their link. A reader may lose access after
//! subscribing, so each update is checked with the credentials of the current connection.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream, SelectAll},
};
use larder_oauth::{Identity, Owner};
use larder_protocol::updated_resource;
use larder_store::{
    session::{Deliveries, Delivery},
    store::{
        Change, ChangeKind, Changes, LinkTarget, MissedChanges, ResourceUri, Store, StoreError,
    },
};

/// The number of links that are resolved concurrently.
const MAX_CONCURRENT_LOOKUPS: usize = 16;

/// Removes updates of resources that the caller may no longer read from a session's stream.
pub(super) fn readable_updates(
    deliveries: Deliveries,
    identity: &Identity,
    store: &Store,
) -> Deliveries {
    let identity = identity.clone();
    let store = store.clone();

    let readable = deliveries.filter(move |delivery| {
        let updated = match delivery {
            Ok(Delivery::Event(event)) => updated_resource(&event.data),
            _ => None,
        };

        let uri = updated.and_then(|uri| ResourceUri::parse(&uri).ok());
        let lookup = uri.map(|uri| (identity.clone(), store.clone(), uri));

        async move {
            match lookup {
                Some((identity, store, uri)) => store.may_receive_changes(&identity, &uri).await,
                None => true,
            }
        }
    });

    readable.boxed()
}

/// The links that a subscription watches.
pub(super) struct Links {
    reader: Identity,
    store: Store,
    by_resource: HashMap<(Owner, ResourceUri), Vec<ResourceUri>>,
    changes: SelectAll<BoxStream<'static, OwnerChange>>,
}

/// A change from an owner's feed.
pub(super) type OwnerChange = Result<Arc<Change>, MissedChanges>;

impl Links {
    /// Resolves the names that are links. Returns the links that the reader may read, and
    /// the names of the others.
    ///
    /// # Errors
    /// The store is unavailable.
    pub(super) async fn resolve(
        names: &HashSet<String>,
        reader: &Identity,
        store: &Store,
    ) -> Result<(Self, HashSet<String>), StoreError> {
        let names: Vec<_> = names.iter().filter_map(|name| ResourceUri::parse(name).ok()).collect();
        let lookups = stream::iter(names).map(|link| {
            let reader = reader.clone();
            let store = store.clone();
            async move { (store.link_target(&reader, &link).await, link) }
        });
        let mut lookups = lookups.buffer_unordered(MAX_CONCURRENT_LOOKUPS);

        let mut by_resource: HashMap<_, Vec<_>> = HashMap::new();
        let mut unreadable = HashSet::new();

        while let Some((shared, link)) = lookups.next().await {
            match shared {
                Ok(Some(LinkTarget { owner, uri, .. })) => {
                    by_resource.entry((owner, uri)).or_default().push(link);
                }
                Ok(None) => {}
                Err(error @ StoreError::Unavailable { .. }) => return Err(error),
                Err(_) => {
                    unreadable.insert(link.as_str().to_owned());
                }
            }
        }

        let owners: HashSet<_> = by_resource.keys().map(|(owner, _)| owner).collect();
        let feeds = owners.into_iter().map(|owner| owner_changes(store.feed().subscribe(owner)));
        let changes = stream::select_all(feeds);

        Ok((
            Self { reader: reader.clone(), store: store.clone(), by_resource, changes },
            unreadable,
        ))
    }

    /// The next change of the owners' resources. None while nothing is shared. Safe to
    /// cancel.
    pub(super) async fn next(&mut self) -> Option<OwnerChange> {
        self.changes.next().await
    }

    /// The links that lead to a changed resource and that the reader may read.
    pub(super) async fn updated_links(&mut self, change: OwnerChange) -> Vec<String> {
        let links: Vec<_> = match change {
            Ok(change) if change.kind == ChangeKind::Updated => {
                let resource = (change.owner.clone(), change.uri.clone());
                self.by_resource.get(&resource).into_iter().flatten().collect()
            }
            Ok(_) => return Vec::new(),
            // Changes were missed, so any of the resources may have changed.
            Err(_) => self.by_resource.values().flatten().collect(),
        };

        let mut readable = Vec::new();
        for link in links {
            if self.store.may_receive_changes(&self.reader, link).await {
                readable.push(link.as_str().to_owned());
            }
        }
        readable
    }
}

fn owner_changes(changes: Changes) -> BoxStream<'static, OwnerChange> {
    let stream = stream::unfold(changes, |mut changes| async move {
        let change = changes.next().await.transpose()?;
        Some((change, changes))
    });
    stream.boxed()
}
