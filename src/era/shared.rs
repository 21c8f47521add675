//! Watching what others share: by its link, and only as long as one may read
//! it. Who asks to hear of it may no longer be let in when there is something
//! to hear, so that is seen anew each time, by the credentials of whoever
//! listens then.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream, SelectAll},
};

use crate::{
    auth::{Identity, Owner},
    protocol::updated_resource,
    session::{Deliveries, Delivery},
    store::{Change, ChangeKind, Changes, Missed, ResourceUri, Shared, Store, StoreError},
};

/// How many links are looked up together.
const TOGETHER: usize = 16;

/// Leaves out what a session's stream says of resources that this caller may
/// not read any more.
pub(super) fn audible(deliveries: Deliveries, identity: &Identity, store: &Store) -> Deliveries {
    let (identity, store) = (identity.clone(), store.clone());
    let audible = deliveries.filter(move |delivery| {
        let updated = match delivery {
            Ok(Delivery::Event(event)) => updated_resource(&event.data),
            _ => None,
        };
        let uri = updated.and_then(|uri| ResourceUri::parse(&uri).ok());
        let asked = uri.map(|uri| (identity.clone(), store.clone(), uri));
        async move {
            match asked {
                Some((identity, store, uri)) => store.may_hear(&identity, &uri).await,
                None => true,
            }
        }
    });
    audible.boxed()
}

/// The links that one subscription watches.
pub(super) struct Links {
    reader: Identity,
    store: Store,
    by_resource: HashMap<(Owner, ResourceUri), Vec<ResourceUri>>,
    changes: SelectAll<BoxStream<'static, Heard>>,
}

/// What a sharer's feed says.
pub(super) type Heard = Result<Arc<Change>, Missed>;

impl Links {
    /// Those of the names that are links, as far as they lead that reader
    /// anywhere; and those that do not.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub(super) async fn among(
        names: &HashSet<String>,
        reader: &Identity,
        store: &Store,
    ) -> Result<(Self, HashSet<String>), StoreError> {
        let names: Vec<_> = names.iter().filter_map(|name| ResourceUri::parse(name).ok()).collect();
        let looked = stream::iter(names).map(|link| {
            let (reader, store) = (reader.clone(), store.clone());
            async move { (store.leads_to(&reader, &link).await, link) }
        });
        let mut looked = looked.buffer_unordered(TOGETHER);
        let mut by_resource: HashMap<_, Vec<_>> = HashMap::new();
        let mut nowhere = HashSet::new();
        while let Some((shared, link)) = looked.next().await {
            match shared {
                Ok(Some(Shared { owner, uri, .. })) => {
                    by_resource.entry((owner, uri)).or_default().push(link);
                }
                Ok(None) => {}
                Err(down @ StoreError::Unavailable { .. }) => return Err(down),
                Err(_) => {
                    nowhere.insert(link.as_str().to_owned());
                }
            }
        }
        let sharers: HashSet<_> = by_resource.keys().map(|(owner, _)| owner).collect();
        let feeds = sharers.into_iter().map(|owner| heard(store.feed().listen(owner)));
        let changes = stream::select_all(feeds);
        Ok((Self { reader: reader.clone(), store: store.clone(), by_resource, changes }, nowhere))
    }

    /// What happens to resources of those who share; nothing while nobody
    /// does. May be given up at any time.
    pub(super) async fn next(&mut self) -> Option<Heard> {
        self.changes.next().await
    }

    /// The links by which this reader may hear of that.
    pub(super) async fn audible(&mut self, heard: Heard) -> Vec<String> {
        let links: Vec<_> = match heard {
            Ok(change) if change.kind == ChangeKind::Updated => {
                let resource = (change.owner.clone(), change.uri.clone());
                self.by_resource.get(&resource).into_iter().flatten().collect()
            }
            Ok(_) => return Vec::new(),
            // Some were missed: any of them may have changed.
            Err(_) => self.by_resource.values().flatten().collect(),
        };
        let mut audible = Vec::new();
        for link in links {
            if self.store.may_hear(&self.reader, link).await {
                audible.push(link.as_str().to_owned());
            }
        }
        audible
    }
}

fn heard(changes: Changes) -> BoxStream<'static, Heard> {
    let heard = stream::unfold(changes, |mut changes| async move {
        let heard = changes.next().await.transpose()?;
        Some((heard, changes))
    });
    heard.boxed()
}
