//! Lists an owner's resources. Paths sort as URIs do, so a page starts at its first
//! resource and reads only the entries that it returns.

use std::{error::Error, pin::pin, sync::Arc};

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use larder_identity::Owner;
use object_store::path::Path;

use super::{ObjectState, layout};
use crate::store::{ResourceUri, StoreError, StoredResource};

/// How many entries are read concurrently.
const CONCURRENCY: usize = 16;

/// The folder of a resource, and the change number of its newest entry.
type NewestEntry = (Path, u64);

impl ObjectState {
    /// Up to `limit` resources whose URIs begin with `prefix` and come after `after`.
    pub(super) async fn page(
        self: &Arc<Self>,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredResource>, StoreError> {
        let now = self.clock.now();
        let matches = move |uri: &ResourceUri| {
            uri.as_str().starts_with(prefix) && after.is_none_or(|after| uri.as_str() > after)
        };

        // The listing ends at the first URI that sorts after all URIs with the prefix.
        let uris = self
            .uris(owner, layout::list_start(owner, prefix, after))
            .try_take_while(|(uri, _)| {
                let goes_on = uri.as_str().starts_with(prefix) || uri.as_str() < prefix;
                async move { Ok(goes_on) }
            })
            .try_filter(|(uri, _)| std::future::ready(matches(uri)));

        let entries = uris
            .map(|uri| async move {
                let (_, (resource, number)) = uri?;
                self.read_entry(&resource, number, owner, None).await
            })
            .buffered(CONCURRENCY.min(limit.max(1)));
        let mut entries = pin!(entries);

        let mut page = Vec::new();
        while page.len() < limit {
            match entries.next().await.transpose()? {
                None => break,
                // The entry was removed since the listing.
                Some(None) => {}
                Some(Some(Ok(stored))) if stored.entry.is_expired(now) => {}
                Some(Some(Ok(stored))) => page.push(self.found(stored)),
                // A damaged entry does not fail the listing.
                Some(Some(Err(error))) => {
                    tracing::error!(%error, source = error.source(), "a listing skipped a damaged entry");
                }
            }
        }

        Ok(page)
    }

    /// The owner's URIs after a path, in order.
    fn uris(
        &self,
        owner: &Owner,
        after: Path,
    ) -> impl Stream<Item = Result<(ResourceUri, NewestEntry), StoreError>> + Send {
        let newest = self.newest_entries(owner, after).peekable();
        let uris = stream::try_unfold(Box::pin(newest), move |mut newest| async move {
            let Some(first) = newest.next().await.transpose()? else {
                return Ok::<_, StoreError>(None);
            };

            if let Some(uri) = layout::uri(owner, &first.0) {
                return Ok(Some((vec![(uri, first)], newest)));
            }

            // The path has a digest, so the URIs are read from the entries and sorted here.
            let stem = layout::stem(&first.0).map(str::to_owned);
            let mut same_stem = vec![first];
            let has_stem = |next: &Result<NewestEntry, StoreError>| {
                next.as_ref().is_ok_and(|next| layout::stem(&next.0) == stem.as_deref())
            };

            while let Some(next) = newest.as_mut().next_if(has_stem).await.transpose()? {
                same_stem.push(next);
            }

            let mut uris = Vec::new();
            for (resource, number) in same_stem {
                match self.read_entry(&resource, number, owner, None).await? {
                    Some(Ok(stored)) => uris.push((stored.entry.uri, (resource, number))),
                    Some(Err(error)) => {
                        tracing::error!(%error, source = error.source(), "a listing skipped a damaged entry");
                    }
                    None => {}
                }
            }

            uris.sort_unstable();
            Ok(Some((uris, newest)))
        });

        uris.map_ok(|uris| stream::iter(uris).map(Ok)).try_flatten()
    }

    /// The newest entries of the owner's resources after a path, in order of paths.
    fn newest_entries(
        &self,
        owner: &Owner,
        after: Path,
    ) -> impl Stream<Item = Result<NewestEntry, StoreError>> + Send {
        let files = self.objects.list_after(&layout::owner_folder(owner), after);

        // Each resource with the number of its entry or tombstone.
        let entries = files.try_filter_map(|file| {
            let numbers = (layout::number(&file), layout::tombstone_number(&file));
            let resource = layout::folder(&file).filter(|_| numbers != (None, None));
            async move { Ok(resource.map(|resource| (resource, numbers))) }
        });

        let newest = stream::try_unfold(Box::pin(entries.peekable()), |mut entries| async move {
            let Some((resource, mut newest)) = entries.next().await.transpose()? else {
                return Ok::<_, StoreError>(None);
            };

            let is_same = |next: &Result<(Path, _), StoreError>| {
                next.as_ref().is_ok_and(|next| next.0 == resource)
            };

            while let Some((_, next)) = entries.as_mut().next_if(is_same).await.transpose()? {
                newest = (newest.0.max(next.0), newest.1.max(next.1));
            }

            Ok(Some(((resource, newest), entries)))
        });

        newest.try_filter_map(|(resource, (entry, tombstone))| async move {
            Ok(entry.filter(|entry| tombstone < Some(*entry)).map(|entry| (resource, entry)))
        })
    }
}
