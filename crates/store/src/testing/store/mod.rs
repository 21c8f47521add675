//! The contract suite of the store: the observable behaviour of every backend.
//!
//! Each function checks one rule. [`store_contract!`](crate::store_contract) makes a test of each,
//! given a [`Harness`] that sets up stores over the backend:
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use larder_runtime::clock::ManualClock;
//! use larder_store::{
//!     store::{MemoryLimits, Store},
//!     testing::store::{Harness, Setup},
//! };
//!
//! #[derive(Default)]
//! struct Memory(ManualClock);
//!
//! #[async_trait::async_trait]
//! impl Harness for Memory {
//!     async fn store(&self, setup: Setup) -> Store {
//!         let bytes = setup.total.unwrap_or(u64::MAX);
//!         let limits = MemoryLimits { bytes, per_owner: setup.quota };
//!         Store::memory(Arc::new(self.0.clone()), limits, setup.limits)
//!     }
//!
//!     async fn pass(&self, span: Duration) {
//!         self.0.advance(span);
//!     }
//!
//!     fn tick(&self) -> Duration {
//!         Duration::from_millis(1)
//!     }
//! }
//!
//! larder_store::store_contract!(Memory::default());
//! ```

#![allow(clippy::missing_panics_doc, reason = "panicking is how a check fails")]

mod content;
mod copying;
mod feed;
mod lifetime;
mod listing;
mod owners;
mod quota;
mod records;
mod restoring;
mod revisions;
mod sharing;
mod total;
mod unchanged_content;
mod uploads;
mod writing;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, stream};
use larder_identity::Owner;

use crate::store::{
    BLOCK_BYTES, Content, Details, Entry, OwnerQuota, ResourceUri, Rewrite, Store, StoreError,
    StoreLimits, StoredResource, TotalLimit,
};

/// Sets up stores over a backend, and lets time pass for them.
#[async_trait]
pub trait Harness: Send + Sync {
    /// A new, empty store that shares no data with others. The suite itself runs [`Store::maintain`]
    /// where a check needs it.
    async fn store(&self, setup: Setup) -> Store;

    /// Lets `span` pass for the stores, and hardly more, by advancing their clock or by waiting.
    async fn pass(&self, span: Duration);

    /// The changes that leave the content as it is and write no byte of it again. A store that
    /// promises less than [`Everything`](TakesOver::Everything) says so.
    fn takes_over(&self) -> TakesOver {
        TakesOver::Everything
    }

    /// The unit of time in the suite, at least a millisecond. Times to live are a few ticks. In real
    /// time, a tick must be longer than a few backend calls.
    fn tick(&self) -> Duration;
}

/// The changes for which [`Upload::copy`](crate::store::Upload::copy) takes over stored content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TakesOver {
    /// None: the content is read and written again.
    Nothing,
    /// New revisions of a resource. Copies and moves are written again.
    Revisions,
    /// New revisions, copies and moves of an owner.
    Everything,
}

/// The limits of a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Setup {
    /// The limits of the store itself.
    pub limits: StoreLimits,
    /// The quota of each owner, exact to the byte.
    pub quota: OwnerQuota,
    /// The bytes that all owners may store together; `None` for no limit.
    pub total: Option<u64>,
}

impl Default for Setup {
    /// The default limits. A check that needs lower limits sets them.
    fn default() -> Self {
        Self { limits: StoreLimits::default(), quota: OwnerQuota::default(), total: None }
    }
}

impl Setup {
    /// Limits each owner to `bytes` of content.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.quota.bytes = bytes;
        self
    }

    /// Limits all owners together to `bytes`.
    #[must_use]
    pub fn max_total(mut self, bytes: u64) -> Self {
        self.total = Some(bytes);
        self
    }

    /// Applies the limit of all owners to a store, for backends that have no such limit.
    #[must_use]
    pub fn limit(&self, store: Store) -> Store {
        let limit = self.total.map(|bytes| TotalLimit { bytes, setting: "the total" });
        limit.map_or(store.clone(), |limit| store.limited_to(limit))
    }

    /// Limits each owner to `resources`.
    #[must_use]
    pub fn max_resources(mut self, resources: u64) -> Self {
        self.quota.resources = resources;
        self
    }
}

/// Makes a test of each rule of the [contract](crate::testing::store). The expression is evaluated
/// for each test; it returns a [`Harness`](crate::testing::store::Harness) and may `.await`. The
/// calling crate needs tokio.
#[macro_export]
macro_rules! store_contract {
    (@checks $each:ident $($harness:expr)?) => {
        $crate::store_contract! {
            @$each ($($harness)?)
            content:
                text_comes_back_as_it_went_in,
                json_comes_back_equal_with_its_media_type,
                bytes_come_back_as_they_went_in,
                empty_content_is_content,
                empty_content_is_replaced_deleted_and_expires,
                long_text_in_pieces_comes_back_whole,
                long_bytes_in_pieces_come_back_whole,
                size_lines_and_digest_are_those_of_the_content,
                windows_reach_every_part_of_long_content,
                compressible_content_takes_less_space,
                details_are_kept_and_have_defaults;
            records:
                the_record_index_is_that_of_each_revision,
                the_record_index_counts;
            lifetime:
                without_a_ttl_the_default_applies,
                a_resource_lives_to_its_expiry_and_no_longer,
                the_ttl_counts_from_the_end_of_the_upload,
                a_ttl_of_zero_is_refused,
                a_ttl_over_the_maximum_is_refused,
                a_listing_omits_expired_resources,
                an_expired_uri_can_be_used_again,
                deleting_an_expired_resource_deletes_nothing;
            writing:
                an_update_changes_only_the_content,
                an_update_keeps_the_expiry,
                an_update_with_a_ttl_moves_the_expiry,
                an_update_of_another_kind_keeps_a_chosen_type_only,
                an_update_needs_a_living_resource,
                a_refused_update_changes_nothing,
                creating_over_a_resource_replaces_it_as_a_whole,
                deleting_twice_is_no_error,
                a_resource_that_changed_since_it_was_read_is_not_deleted,
                a_resource_that_changed_since_it_was_read_is_not_updated,
                an_update_takes_metadata,
                one_of_many_writers_wins_as_a_whole,
                content_that_fails_to_arrive_leaves_nothing,
                text_that_is_not_utf8_leaves_nothing,
                text_that_turns_out_as_bytes_is_stored_as_bytes,
                content_that_differs_from_its_announcement_leaves_nothing,
                a_create_that_is_dropped_leaves_nothing,
                a_started_read_is_whole_or_fails;
            uploads:
                parts_become_one_resource,
                one_of_two_appends_wins,
                an_upload_that_does_not_complete_is_removed,
                an_upload_in_parts_counts_from_its_beginning_and_once,
                an_upload_in_parts_without_a_size_counts_as_it_grows,
                an_upload_can_count_what_has_arrived_only,
                uploads_that_begin_alike_end_together,
                uploads_in_parts_are_limited,
                content_in_transit_is_listed_nowhere_and_removed;
            revisions:
                earlier_revisions_are_kept_and_read,
                a_store_of_one_revision_keeps_the_last,
                all_revisions_expire_together,
                earlier_revisions_count_and_make_room,
                a_rewrite_keeps_what_it_is_not_given,
                an_earlier_revision_is_restored,
                no_concurrent_append_is_lost;
            copying:
                a_copy_is_a_resource_of_its_own,
                a_copy_counts_and_one_that_does_not_fit_leaves_nothing,
                a_moved_resource_keeps_its_content_and_metadata,
                one_of_two_moves_wins,
                a_move_never_loses_a_write;
            unchanged_content:
                unchanged_content_is_not_written_again,
                content_of_any_size_is_changed_copied_and_moved,
                content_that_revisions_share_counts_for_each;
            listing:
                a_prefix_lists_exactly_the_uris_that_begin_with_it,
                pages_neither_overlap_nor_leave_gaps,
                a_listed_resource_can_be_read,
                a_page_continues_after_a_deleted_uri,
                any_uri_can_name_a_resource,
                owners_see_only_their_own,
                no_owner_and_uri_collide_with_others;
            owners:
                all_owners_are_listed_in_pages,
                an_owner_is_purged,
                resources_are_deleted_by_prefix;
            restoring:
                a_restored_resource_equals_the_original,
                a_restored_resource_expires_on_time,
                a_restored_revision_must_have_its_digest,
                a_later_write_is_not_replaced;
            sharing:
                a_link_shares_from_its_revision_on,
                a_link_can_end_before_its_resource;
            total:
                uploads_of_all_owners_are_reserved_in_the_total,
                an_upload_in_parts_that_exceeds_the_total_reserves_nothing_more;
            quota:
                the_byte_quota_is_exact,
                the_resource_quota_is_exact,
                a_quota_holds_for_concurrent_writers,
                the_quota_of_an_owner_does_not_limit_others,
                usage_is_the_sum_of_all_owners,
                metadata_and_each_resource_count,
                metadata_has_a_maximum_length,
                an_upload_in_progress_counts,
                announced_content_that_cannot_fit_is_refused_before_it_arrives,
                announced_content_counts_before_it_arrives_and_once,
                content_that_is_kept_for_readers_makes_room,
                the_quota_error_names_its_reason,
                deleting_makes_room,
                expiry_makes_room;
            feed:
                each_change_is_published_once_and_in_order,
                a_refused_write_publishes_nothing,
                a_subscription_receives_only_its_owner,
                an_expiry_that_many_find_is_published_once,
                a_resource_that_nobody_requests_expires;
        }
    };
    (@tests ($harness:expr) $($group:ident: $($check:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                $crate::testing::store::$check(&$harness).await;
            }
        )+)+
    };
    // Only listed checks are exported, so the compiler warns of an unlisted one.
    (@exports () $($group:ident: $($check:ident),+;)+) => {
        $(pub use self::$group::{$($check),+};)+
    };
    ($harness:expr) => {
        $crate::store_contract!(@checks tests $harness);
    };
}

store_contract!(@checks exports);

/// Calls a store for one owner. Methods without `try_` fail the check on an error.
#[derive(Clone)]
struct Caller {
    store: Store,
    owner: Owner,
}

impl Caller {
    fn new(store: &Store, owner: &str) -> Self {
        Self { store: store.clone(), owner: Owner::new(owner) }
    }

    /// The only caller of a new store.
    async fn alone(harness: &dyn Harness) -> Self {
        Self::new(&harness.store(Setup::default()).await, "alice")
    }

    async fn try_create(
        &self,
        uri: &str,
        content: impl Into<Content>,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        self.store.create(&self.owner, resource_uri(uri), content.into(), details).await
    }

    async fn create(&self, uri: &str, content: impl Into<Content>, details: Details) -> Arc<Entry> {
        self.try_create(uri, content, details).await.expect("it can be created")
    }

    /// Creates a resource without details.
    async fn put(&self, uri: &str, content: impl Into<Content>) -> Arc<Entry> {
        self.create(uri, content, Details::default()).await
    }

    async fn try_update(
        &self,
        uri: &str,
        content: impl Into<Content>,
        ttl: Option<Duration>,
    ) -> Result<Arc<Entry>, StoreError> {
        let details = Details { ttl, ..Details::default() };
        self.store.update(&self.owner, resource_uri(uri), content.into(), details).await
    }

    async fn update(&self, uri: &str, content: impl Into<Content>) -> Arc<Entry> {
        self.try_update(uri, content, None).await.expect("it can be updated")
    }

    async fn delete(&self, uri: &str) -> bool {
        self.store.delete(&self.owner, &resource_uri(uri)).await.expect("it can be deleted")
    }

    async fn try_get(&self, uri: &str) -> Result<StoredResource, StoreError> {
        self.store.get(&self.owner, &resource_uri(uri)).await
    }

    async fn get(&self, uri: &str) -> StoredResource {
        self.try_get(uri).await.expect("it exists")
    }

    async fn read(&self, uri: &str) -> Bytes {
        self.get(uri).await.bytes().await.expect("it can be read")
    }

    /// The URIs of a listing that is read in small pages.
    async fn list(&self, prefix: &str) -> Vec<String> {
        self.list_in_pages(prefix, 7).await
    }

    async fn list_in_pages(&self, prefix: &str, limit: usize) -> Vec<String> {
        let mut uris: Vec<String> = Vec::new();

        loop {
            let after = uris.last().map(String::as_str);
            let page = self.store.list(&self.owner, prefix, after, limit).await;
            let page = page.expect("it can be listed");
            let length = page.entries.len();
            assert!(length == limit || length < limit && !page.more, "a page of {length}");

            uris.extend(page.entries.iter().map(|entry| entry.uri.to_string()));
            assert!(uris.is_sorted_by(|one, next| one < next), "out of order: {uris:?}");

            if !page.more {
                return uris;
            }
        }
    }

    async fn assert_missing(&self, uri: &str) {
        let refused = refused(self.try_get(uri).await);
        assert!(refused.is_not_found(), "{uri}: {refused:?}");
        assert!(!self.list("").await.contains(&uri.to_owned()), "{uri} is missing but listed");
    }
}

fn resource_uri(uri: &str) -> ResourceUri {
    ResourceUri::parse(uri).expect("it is a URI")
}

/// The bytes that binary content at a URI like `temp://a`, without details, counts beside its length.
async fn overhead(harness: &dyn Harness) -> u64 {
    Caller::alone(harness).await.put("temp://a", Vec::new()).await.counted_bytes()
}

/// Repeats an attempt until it succeeds. Fails the check after a minute.
async fn patiently<T>(attempt: impl AsyncFn() -> Option<T>) -> T {
    let attempts = async {
        loop {
            if let Some(result) = attempt().await {
                return result;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };

    let result = tokio::time::timeout(Duration::from_secs(60), attempts).await;
    result.expect("it succeeds within a minute")
}

fn with_ttl(ttl: Duration) -> Details {
    Details { ttl: Some(ttl), ..Details::default() }
}

#[track_caller]
fn refused<T>(result: Result<T, StoreError>) -> StoreError {
    match result {
        Ok(_) => panic!("no error is returned"),
        Err(refused) => refused,
    }
}

/// Text of several blocks: first one long line whose characters cross the block boundaries, then
/// many lines, of which the last has no line feed.
fn long_text() -> String {
    let mut text = "€".repeat(BLOCK_BYTES / 2);
    assert!(!text.is_char_boundary(BLOCK_BYTES), "a character crosses the block boundary");

    for line in 0.. {
        text.extend(["\n", &line.to_string(), &"é".repeat(line % 100)]);
        if text.len() > 4 * BLOCK_BYTES {
            break;
        }
    }
    text
}

/// Cuts content into pieces of unusual sizes.
fn in_pieces(content: impl Into<Bytes>) -> impl Stream<Item = std::io::Result<Bytes>> {
    let mut rest: Bytes = content.into();
    let mut pieces = Vec::new();

    for size in [1, 7, 65_537, 0, 3, 300_001, 4096].into_iter().cycle() {
        if rest.is_empty() {
            break;
        }
        pieces.push(Ok(rest.split_to(size.min(rest.len()))));
    }
    stream::iter(pieces)
}

/// Incompressible bytes. Each call returns equal bytes.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;

    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(len).collect()
}
