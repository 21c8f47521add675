//! Listing: keys are in the order of names, so a page begins where it must and
//! reads as many entries as it has.

use std::{error::Error, pin::pin, sync::Arc};

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use object_store::path::Path;

use super::{Inner, layout};
use crate::{
    auth::Owner,
    store::{Found, ResourceUri, StoreError},
};

/// How many entries are read at once.
const READERS: usize = 16;

/// Where a resource lies, and the number of its newest entry.
type Place = (Path, u64);

impl Inner {
    pub(super) async fn page(
        self: &Arc<Self>,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let now = self.clock.now();
        let wanted = move |uri: &ResourceUri| {
            uri.as_str().starts_with(prefix) && after.is_none_or(|after| uri.as_str() > after)
        };
        let names = self.names(owner, layout::before(owner, prefix, after));
        // The first that lies behind all that begin like that ends them.
        let names = names.try_take_while(|(uri, _)| {
            let goes_on = uri.as_str().starts_with(prefix) || uri.as_str() < prefix;
            async move { Ok(goes_on) }
        });
        let names = names.try_filter(|(uri, _)| std::future::ready(wanted(uri)));
        let entries = names.map(|name| async move {
            let (_, (resource, number)) = name?;
            self.record(&resource, number, owner, None).await
        });
        let mut entries = pin!(entries.buffered(READERS.min(limit.max(1))));
        let mut page = Vec::new();
        while page.len() < limit {
            match entries.next().await.transpose()? {
                None => break,
                // It has gone, or was replaced since.
                Some(None) => {}
                Some(Some(Ok(record))) if record.entry.is_expired(now) => {}
                Some(Some(Ok(record))) => page.push(self.found(record)),
                // One that cannot be read is missing from the list, and the rest is there.
                Some(Some(Err(error))) => {
                    tracing::error!(%error, source = error.source(), "left out of a listing");
                }
            }
        }
        Ok(page)
    }

    /// The owner's names after a key, in order.
    fn names(
        &self,
        owner: &Owner,
        after: Path,
    ) -> impl Stream<Item = Result<(ResourceUri, Place), StoreError>> + Send {
        let places = self.places(owner, after).peekable();
        let names = stream::try_unfold(Box::pin(places), move |mut places| async move {
            let Some(first) = places.next().await.transpose()? else {
                return Ok::<_, StoreError>(None);
            };
            if let Some(uri) = layout::uri(owner, &first.0) {
                return Ok(Some((vec![(uri, first)], places)));
            }
            // Too long for a path: the names stand in the entries, and say the order.
            let stem = layout::stem(&first.0).map(str::to_owned);
            let mut alike = vec![first];
            let is_alike = |next: &Result<Place, StoreError>| {
                next.as_ref().is_ok_and(|next| layout::stem(&next.0) == stem.as_deref())
            };
            while let Some(next) = places.as_mut().next_if(is_alike).await.transpose()? {
                alike.push(next);
            }
            let mut names = Vec::new();
            for (resource, number) in alike {
                match self.record(&resource, number, owner, None).await? {
                    Some(Ok(record)) => names.push((record.entry.uri, (resource, number))),
                    Some(Err(error)) => {
                        tracing::error!(%error, source = error.source(), "left out of a listing");
                    }
                    None => {}
                }
            }
            names.sort_unstable();
            Ok(Some((names, places)))
        });
        names.map_ok(|names| stream::iter(names).map(Ok)).try_flatten()
    }

    /// Where the owner's resources lie after a key, in the order of keys.
    fn places(
        &self,
        owner: &Owner,
        after: Path,
    ) -> impl Stream<Item = Result<Place, StoreError>> + Send {
        let files = self.objects.after(&layout::of_owner(owner), after);
        let entries = files.try_filter_map(|file| {
            let place = layout::number(&file).zip(layout::folder(&file));
            async move { Ok(place.map(|(number, resource)| (resource, number))) }
        });
        stream::try_unfold(Box::pin(entries.peekable()), |mut entries| async move {
            let Some((resource, mut newest)) = entries.next().await.transpose()? else {
                return Ok(None);
            };
            let same = |next: &Result<Place, StoreError>| {
                next.as_ref().is_ok_and(|next| next.0 == resource)
            };
            while let Some((_, number)) = entries.as_mut().next_if(same).await.transpose()? {
                newest = newest.max(number);
            }
            Ok(Some(((resource, newest), entries)))
        })
    }
}
