//! The contract suite: what every backend does, told by what a caller can
//! observe. Backends differ in speed and durability, never in this.
//!
//! Each function is one rule. [`store_contract!`](crate::store_contract)
//! makes a test of each; it needs a [`Harness`] that sets up stores over the
//! backend in question:
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use larder::{
//!     clock::ManualClock,
//!     store::{MemoryLimits, Store, contract::{Harness, Setup}},
//! };
//!
//! #[derive(Default)]
//! struct Memory(ManualClock);
//!
//! #[async_trait::async_trait]
//! impl Harness for Memory {
//!     async fn store(&self, setup: Setup) -> Store {
//!         let limits = MemoryLimits { bytes: u64::MAX, per_owner: setup.quota };
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
//! larder::store_contract!(Memory::default());
//! ```

#![allow(clippy::missing_panics_doc, reason = "panicking is how a check fails")]

mod content;
mod feed;
mod lifetime;
mod listing;
mod quota;
mod revisions;
mod writing;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, stream};

use crate::{
    auth::Owner,
    store::{
        BLOCK_BYTES, Content, Details, Entry, Found, OwnerQuota, ResourceUri, Store, StoreError,
        StoreLimits,
    },
};

/// How the suite gets stores over a backend, and how it lets time pass.
#[async_trait]
pub trait Harness: Send + Sync {
    /// A store that is empty and shares nothing with any other. The suite
    /// itself runs [`Store::maintain`] where a check needs it.
    async fn store(&self, setup: Setup) -> Store;

    /// Lets that much time pass for the stores, and hardly more: by the hands
    /// of a clock, or by waiting.
    async fn pass(&self, span: Duration);

    /// The unit of the times to live in the suite, at least a millisecond;
    /// they are a few ticks long. Where time is real, long enough for a few
    /// calls to the backend to take less.
    fn tick(&self) -> Duration;
}

/// What a store must keep to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Setup {
    /// Of the store itself.
    pub limits: StoreLimits,
    /// The quota of each owner, exact to the byte.
    pub quota: OwnerQuota,
}

impl Default for Setup {
    /// The default limits: a check that needs lower ones sets them.
    fn default() -> Self {
        Self { limits: StoreLimits::default(), quota: OwnerQuota::default() }
    }
}

impl Setup {
    /// The same with at most `bytes` of content for each owner.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.quota.bytes = bytes;
        self
    }

    /// The same with at most `resources` for each owner.
    #[must_use]
    pub fn max_resources(mut self, resources: u64) -> Self {
        self.quota.resources = resources;
        self
    }
}

/// Makes a test of each rule of the [contract](crate::testing::store). The
/// expression makes a [`Harness`](crate::testing::store::Harness), anew for
/// each test; it may `.await`. The crate that calls it needs tokio.
#[macro_export]
macro_rules! store_contract {
    (@checks $each:ident $($harness:expr)?) => {
        $crate::store_contract! {
            @$each ($($harness)?)
            content:
                text_comes_back_as_it_went_in,
                json_comes_back_equal_and_says_what_it_is,
                bytes_come_back_as_they_went_in,
                empty_content_is_content,
                empty_content_can_go_again,
                long_text_in_pieces_comes_back_whole,
                long_bytes_in_pieces_come_back_whole,
                size_lines_and_digest_are_those_of_the_content,
                windows_reach_every_part_of_long_content,
                what_can_be_compressed_takes_less,
                details_are_kept_and_have_defaults;
            lifetime:
                without_a_ttl_the_default_applies,
                a_resource_lives_to_its_expiry_and_no_longer,
                the_ttl_counts_from_when_the_content_is_in,
                a_ttl_of_nothing_is_refused,
                a_ttl_over_the_maximum_is_refused,
                a_listing_omits_what_has_expired,
                an_expired_name_can_be_used_anew,
                deleting_what_has_expired_deletes_nothing;
            writing:
                an_update_changes_only_the_content,
                an_update_keeps_the_expiry,
                an_update_with_a_ttl_moves_the_expiry,
                an_update_of_another_kind_keeps_a_chosen_type_only,
                an_update_needs_a_living_resource,
                a_refused_update_leaves_what_was_there,
                creating_over_a_resource_replaces_it_as_a_whole,
                deleting_twice_is_no_error,
                one_of_many_writers_wins_as_a_whole,
                content_that_fails_to_arrive_leaves_nothing,
                text_that_is_not_utf8_leaves_nothing,
                a_create_that_is_dropped_leaves_nothing,
                a_started_read_is_whole_or_fails;
            revisions:
                earlier_revisions_are_kept_and_read,
                one_revision_is_no_history,
                all_revisions_expire_together,
                the_past_counts_and_gives_way;
            listing:
                a_prefix_lists_exactly_what_begins_with_it,
                pages_neither_overlap_nor_leave_gaps,
                what_is_listed_can_be_read,
                a_page_goes_on_after_a_name_that_is_gone,
                odd_names_are_names_like_any_other,
                owners_see_only_their_own,
                owner_and_name_do_not_run_into_each_other;
            quota:
                an_owner_may_have_so_many_bytes_and_no_more,
                an_owner_may_have_so_many_resources_and_no_more,
                a_quota_holds_against_many_at_once,
                one_owners_quota_is_not_anothers,
                usage_is_what_all_owners_have,
                deleting_makes_room,
                expiry_makes_room;
            feed:
                each_change_is_heard_once_and_in_order,
                what_is_refused_is_not_heard,
                an_owner_hears_only_their_own,
                many_readers_make_one_expiry,
                what_nobody_asks_for_expires_all_the_same;
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
    // So that a check that is not in the list is a warning: nothing exports it.
    (@exports () $($group:ident: $($check:ident),+;)+) => {
        $(pub use self::$group::{$($check),+};)+
    };
    ($harness:expr) => {
        $crate::store_contract!(@checks tests $harness);
    };
}

store_contract!(@checks exports);

/// One owner's view of a store, short to write; a refusal where none is
/// expected fails the check.
#[derive(Clone)]
struct Caller {
    store: Store,
    owner: Owner,
}

impl Caller {
    fn new(store: &Store, owner: &str) -> Self {
        Self { store: store.clone(), owner: Owner::new(owner) }
    }

    /// The only one of a store of their own.
    async fn alone(harness: &dyn Harness) -> Self {
        Self::new(&harness.store(Setup::default()).await, "alice")
    }

    async fn try_create(
        &self,
        uri: &str,
        content: impl Into<Content>,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        self.store.create(&self.owner, name(uri), content.into(), details).await
    }

    async fn create(&self, uri: &str, content: impl Into<Content>, details: Details) -> Arc<Entry> {
        self.try_create(uri, content, details).await.expect("it can be created")
    }

    /// Without details.
    async fn put(&self, uri: &str, content: impl Into<Content>) -> Arc<Entry> {
        self.create(uri, content, Details::default()).await
    }

    async fn try_update(
        &self,
        uri: &str,
        content: impl Into<Content>,
        ttl: Option<Duration>,
    ) -> Result<Arc<Entry>, StoreError> {
        self.store.update(&self.owner, name(uri), content.into(), ttl).await
    }

    async fn update(&self, uri: &str, content: impl Into<Content>) -> Arc<Entry> {
        self.try_update(uri, content, None).await.expect("it can be updated")
    }

    async fn delete(&self, uri: &str) -> bool {
        self.store.delete(&self.owner, &name(uri)).await.expect("it can be deleted")
    }

    async fn try_get(&self, uri: &str) -> Result<Found, StoreError> {
        self.store.get(&self.owner, &name(uri)).await
    }

    async fn get(&self, uri: &str) -> Found {
        self.try_get(uri).await.expect("it is there")
    }

    async fn read(&self, uri: &str) -> Bytes {
        self.get(uri).await.bytes().await.expect("it can be read")
    }

    /// The names in the listing, a few a page.
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

    async fn sees_nothing_at(&self, uri: &str) {
        let refused = refused(self.try_get(uri).await);
        assert!(refused.is_not_found(), "{uri} is not gone but {refused:?}");
        assert!(!self.list("").await.contains(&uri.to_owned()), "{uri} is gone but listed");
    }
}

fn name(uri: &str) -> ResourceUri {
    ResourceUri::parse(uri).expect("it is a URI")
}

fn lasting(ttl: Duration) -> Details {
    Details { ttl: Some(ttl), ..Details::default() }
}

#[track_caller]
fn refused<T>(result: Result<T, StoreError>) -> StoreError {
    match result {
        Ok(_) => panic!("it is not refused"),
        Err(refused) => refused,
    }
}

/// Text of several blocks: first one long line whose characters stand across
/// the borders of blocks, then many lines, the last without a line feed.
fn long_text() -> String {
    let mut text = "€".repeat(BLOCK_BYTES / 2);
    assert!(!text.is_char_boundary(BLOCK_BYTES), "a character stands across the border");
    for line in 0.. {
        text.extend(["\n", &line.to_string(), &"é".repeat(line % 100)]);
        if text.len() > 4 * BLOCK_BYTES {
            break;
        }
    }
    text
}

/// Cut where no one would.
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

/// Bytes that no compression makes less, the same each time.
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
