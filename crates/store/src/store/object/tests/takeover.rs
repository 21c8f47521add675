//! Two writers, of which one is stopped at each of its requests, and goes on after the other
//! has taken over.

use std::{
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{FutureExt, TryStreamExt, stream::BoxStream};
use larder_identity::Owner;
use larder_runtime::{clock::ManualClock, hex::hex, random::Random};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    memory::InMemory, path::Path,
};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::task::AbortOnDropHandle;

use super::over;
use crate::{
    store::object::layout,
    store::{
        ChangeKind, Details, ObjectBackend, OwnerQuota, ResourceUri, Rewrite, Store, StoreError,
        StoreLimits,
    },
    testing::store::noise,
};

/// Objects whose n-th request waits until it is released.
#[derive(Debug)]
struct Stopped {
    objects: Arc<InMemory>,
    requests: AtomicUsize,
    folder_listings: AtomicUsize,
    at: usize,
    reached: Notify,
    released: Notify,
}

impl Stopped {
    fn new(objects: &Arc<InMemory>, at: usize) -> Arc<Self> {
        Arc::new(Self {
            objects: Arc::clone(objects),
            requests: AtomicUsize::new(0),
            folder_listings: AtomicUsize::new(0),
            at,
            reached: Notify::new(),
            released: Notify::new(),
        })
    }

    /// Counts a request, and waits if it is the request to stop at.
    async fn step(&self) {
        if self.requests.fetch_add(1, Ordering::Relaxed) == self.at {
            self.reached.notify_one();
            self.released.notified().await;
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects with a stop")
    }
}

#[async_trait]
impl ObjectStore for Stopped {
    async fn put_opts(&self, to: &Path, bytes: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.step().await;
        self.objects.put_opts(to, bytes, how).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(to, how).await
    }

    async fn get_opts(&self, from: &Path, how: GetOptions) -> Result<GetResult> {
        self.step().await;
        self.objects.get_opts(from, how).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(paths)
    }

    fn list(&self, folder: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let is_due = folder.is_some_and(|folder| folder.as_ref().starts_with("=due"));
        self.folder_listings.fetch_add(usize::from(is_due), Ordering::Relaxed);
        self.objects.list(folder)
    }

    async fn list_with_delimiter(&self, folder: Option<&Path>) -> Result<ListResult> {
        self.step().await;
        self.objects.list_with_delimiter(folder).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.step().await;
        self.objects.copy_opts(from, to, how).await
    }
}

fn instance(objects: Arc<dyn ObjectStore>, clock: &ManualClock) -> Store {
    let location = over(objects, false);
    let clock = Arc::new(clock.clone());
    let quota = OwnerQuota::default();

    let backend = ObjectBackend::new(location, clock.clone(), Random::system(), quota);
    Store::new(Arc::new(backend), clock, StoreLimits::default())
}

fn name(name: &str) -> ResourceUri {
    ResourceUri::parse(name).expect("it is a URI")
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Put(&'static str),
    Delete,
    /// A new description of `x://a`.
    Describe,
    /// A copy of `x://a` at `x://b`.
    Copy,
}

async fn change(store: &Store, change: Change) -> std::result::Result<(), StoreError> {
    let alice = Owner::new("alice");
    let uri = name("x://a");

    match change {
        Change::Put(text) => {
            let put = store.create(&alice, uri, text.into(), Details::default()).await;
            put.map(drop)
        }
        Change::Delete => store.delete(&alice, &uri).await.map(drop),
        Change::Describe => {
            let details = Details { description: Some("new".into()), ..Details::default() };
            store.rewrite(&alice, uri, Rewrite::default(), details).await.map(drop)
        }
        Change::Copy => {
            let source = store.get(&alice, &uri).await?;
            store.copy(&source, &alice, name("x://b"), Details::default()).await.map(drop)
        }
    }
}

/// The content that a new instance finds, both by URI and in the listing.
async fn found(objects: &Arc<InMemory>, clock: &ManualClock) -> Option<String> {
    let store = instance(Arc::clone(objects) as _, clock);
    let alice = Owner::new("alice");

    let listed = store.list(&alice, "", None, 10).await.expect("it can be listed").entries;
    let found = match store.get(&alice, &name("x://a")).await {
        Ok(found) => Some(found),
        Err(error) if error.is_not_found() => None,
        Err(error) => panic!("{error:?}"),
    };

    assert_eq!(listed.len(), found.iter().count(), "the listing differs");
    let usage = store.usage().await.expect("it is known");
    assert_eq!(usage.resources, listed.len() as u64, "the count differs");

    match found {
        Some(found) => {
            let bytes = found.bytes().await.expect("it can be read");
            Some(String::from_utf8(bytes.to_vec()).expect("it is text"))
        }
        None => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_stops_at_any_step_overwrites_nothing_when_it_goes_on() {
    let first = Change::Put("first");
    let second = Change::Put("second");
    let cases = [
        (first, Change::Delete, None),
        (first, second, Some("second")),
        (Change::Delete, second, Some("second")),
        (Change::Delete, Change::Delete, None),
    ];

    for before in [None, Some(Change::Put("before"))] {
        for (ours, theirs, last) in cases {
            for at in 0.. {
                let case = format!("{before:?}, {ours:?} stopped at {at}, {theirs:?}");
                let objects = Arc::new(InMemory::new());
                let clock = ManualClock::new();
                let other = instance(Arc::clone(&objects) as _, &clock);
                if let Some(before) = before {
                    change(&other, before).await.expect("it is stored");
                }

                let stopped = Stopped::new(&objects, at);
                let store = instance(Arc::clone(&stopped) as _, &clock);

                let ours_last = match ours {
                    Change::Put(text) => Some(text),
                    Change::Delete | Change::Describe | Change::Copy => None,
                };

                let writing = tokio::spawn(async move { change(&store, ours).await });
                let mut writing = std::pin::pin!(writing);
                let made_it = tokio::select! {
                    done = &mut writing => {
                        done.expect("it does not panic").expect("it is made");
                        true
                    }
                    () = stopped.reached.notified() => false,
                };
                if made_it {
                    assert!(at > 3 || ours_last.is_none(), "{case}: it was never stopped");
                    break;
                }

                change(&other, theirs).await.unwrap_or_else(|error| panic!("{case}: {error:?}"));
                let meanwhile = found(&objects, &clock).await;
                assert_eq!(meanwhile.as_deref(), last, "{case}");

                stopped.released.notify_one();
                let acknowledged = writing.await.expect("it does not panic").is_ok();
                let end = found(&objects, &clock).await;
                // Our change came before their change, or was made after it as a whole.
                let is_ours = end.as_deref() == ours_last;
                assert!(end.as_deref() == last || acknowledged && is_ours, "{case}: {end:?}");
            }
        }
    }
}

/// Begins a change, and stops before a request to the location; `None` if the change is made before
/// that request comes.
async fn until(
    objects: &Arc<InMemory>,
    clock: &ManualClock,
    operation: usize,
    ours: Change,
) -> Option<(Arc<Stopped>, JoinHandle<std::result::Result<(), StoreError>>)> {
    let stopped = Stopped::new(objects, operation);
    let store = instance(Arc::clone(&stopped) as _, clock);
    let mut making = tokio::spawn(async move { change(&store, ours).await });

    tokio::select! {
        done = &mut making => {
            done.expect("it does not panic").expect("it is made");
            None
        }
        () = stopped.reached.notified() => Some((stopped, making)),
    }
}

/// Text that is stored in an object of its own, and whose upload reserves its size.
fn large() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| hex(&noise(1 << 20)));
    &TEXT
}

#[tokio::test(start_paused = true)]
async fn a_description_that_stops_at_any_step_has_the_content_or_is_not_made() {
    for (theirs, last) in [(Change::Put("second"), Some("second")), (Change::Delete, None)] {
        for at in 0.. {
            let case = format!("stopped at {at}, {theirs:?}");
            let objects = Arc::new(InMemory::new());
            let clock = ManualClock::new();
            let other = instance(Arc::clone(&objects) as _, &clock);
            change(&other, Change::Put(large())).await.expect("it is stored");
            let Some((stopped, ours)) = until(&objects, &clock, at, Change::Describe).await else {
                assert!(at > 3, "{case}: it was never stopped");
                break;
            };

            change(&other, theirs).await.unwrap_or_else(|error| panic!("{case}: {error:?}"));
            stopped.released.notify_one();

            if let Err(error) = ours.await.expect("it does not panic") {
                assert!(error.is_not_found() && last.is_none(), "{case}: {error:?}");
            }
            assert_eq!(found(&objects, &clock).await.as_deref(), last, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_stops_at_any_step_has_the_content_or_leaves_nothing() {
    let alice = Owner::new("alice");
    let source = layout::resource(&alice, &name("x://a"));
    let mut failed = 0;

    for at in 0.. {
        let objects = Arc::new(InMemory::new());
        let clock = ManualClock::new();
        let other = instance(Arc::clone(&objects) as _, &clock);
        change(&other, Change::Put(large())).await.expect("it is stored");
        let Some((stopped, ours)) = until(&objects, &clock, at, Change::Copy).await else {
            assert!(at > 3, "it was never stopped");
            break;
        };

        // The source is deleted, and so is its content, which readers had for the grace period.
        change(&other, Change::Delete).await.expect("it can be deleted");
        let contents: Vec<_> =
            objects.list(Some(&source)).try_collect().await.expect("it is listed");
        for file in contents.iter().filter(|file| layout::content_id(&file.location).is_some()) {
            objects.delete(&file.location).await.expect("it can be removed");
        }

        stopped.released.notify_one();
        let ours = ours.await.expect("it does not panic");
        let copied = other.get(&alice, &name("x://b")).await;
        match (ours, copied) {
            (Ok(()), Ok(copied)) => {
                let bytes = copied.bytes().await.expect("it can be read");
                assert!(bytes == large().as_bytes(), "stopped at {at}");
            }
            (Err(error), Err(_)) => {
                failed += 1;
                let StoreError::NotFound { uri } = &error else { panic!("{at}: {error:?}") };
                assert_eq!(uri.as_str(), "x://a", "stopped at {at}");
                nothing_is_used(&objects, &clock).await;
            }
            (ours, copied) => panic!("stopped at {at}: {ours:?}, {}", copied.is_ok()),
        }
    }

    assert!(failed > 0, "the content was never missed");
}

/// Waits until a new instance counts no resource and no upload.
async fn nothing_is_used(objects: &Arc<InMemory>, clock: &ManualClock) {
    for _ in 0..100 {
        let store = instance(Arc::clone(objects) as _, clock);
        let usage = store.usage().await.expect("it is known");
        assert_eq!((usage.resources, usage.bytes), (0, 0));
        if usage.reserved == 0 {
            return;
        }
        // An upload that was refused ends its reservation in the background.
        tokio::task::yield_now().await;
    }
    panic!("a failed copy stays reserved");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_resource_stays_deleted_although_its_entry_is_written_late() {
    let objects = Arc::new(InMemory::new());
    let clock = ManualClock::new();

    // Some stop comes between the record of the ledger and the entry.
    for at in 0.. {
        let Some((stopped, ours)) = until(&objects, &clock, at, Change::Put("late")).await else {
            return;
        };

        let other = instance(Arc::clone(&objects) as _, &clock);
        let alice = Owner::new("alice");
        let deleted = other.delete(&alice, &name("x://a")).await.expect("it can be deleted");

        stopped.released.notify_one();
        let late = ours.await.expect("it does not panic");
        let after = found(&objects, &clock).await;
        // A deletion that found the resource has deleted the late put.
        assert!(!deleted || after.is_none(), "stopped at {at}: it is back ({late:?})");

        change(&other, Change::Delete).await.expect("it can be deleted");
    }
}

#[tokio::test]
async fn expiries_at_different_times_need_no_listing_each() {
    let objects = Arc::new(InMemory::new());
    let clock = ManualClock::new();
    let counted = Stopped::new(&objects, usize::MAX);
    let store = instance(Arc::clone(&counted) as _, &clock);
    let alice = Owner::new("alice");

    let sweeping = store.clone();
    let _maintained =
        AbortOnDropHandle::new(tokio::spawn(async move { sweeping.maintain().await }));

    let mut changes = store.feed().subscribe(&alice);
    for n in 0..100 {
        let ttl = Some(Duration::from_millis(100 * (n + 1)));
        let details = Details { ttl, ..Details::default() };
        let created = store.create(&alice, name(&format!("x://{n}")), "text".into(), details).await;
        created.expect("it fits");
    }

    let mut expired = 0;
    while expired < 100 {
        if let Some(Ok(Some(change))) = changes.next().now_or_never() {
            expired += usize::from(change.kind == ChangeKind::Expired);
        } else {
            clock.advance(Duration::from_millis(10));
            tokio::task::yield_now().await;
        }
    }

    let listings = counted.folder_listings.load(Ordering::Relaxed);
    assert!(listings < 20, "{listings} listings");
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_was_suspended_does_not_append_to_a_removed_tail() {
    for at in 0.. {
        let objects = Arc::new(InMemory::new());
        let clock = ManualClock::new();
        let other = instance(Arc::clone(&objects) as _, &clock);
        change(&other, Change::Put("before")).await.expect("it is stored");

        let Some((stopped, ours)) = until(&objects, &clock, at, Change::Put("ours")).await else {
            return;
        };

        let ledger = Path::from("=ledger/alice");
        let records = async || -> Vec<_> {
            objects.list(Some(&ledger)).try_collect().await.expect("it can be listed")
        };

        // The first record is of the other writer.
        let is_appended = records().await.len() > 1;
        for text in ["one", "two", "three"] {
            change(&other, Change::Put(text)).await.expect("it is stored");
        }

        // Removes the records that are minutes old, as an append of the other writer would.
        tokio::time::advance(Duration::from_secs(180)).await;
        let mut records = records().await;
        records.sort_by_key(|record| layout::number(&record.location));
        records.pop();
        for record in records {
            objects.delete(&record.location).await.expect("it is there");
        }

        stopped.released.notify_one();
        let acknowledged = ours.await.expect("it does not panic").is_ok();

        let end = found(&objects, &clock).await;
        let is_last = end.as_deref() == Some("ours");
        assert!(is_last || is_appended || !acknowledged, "stopped at {at}: {end:?}");
    }
}
