//! Objects in parts, listings, and objects whose writer died.

#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use futures_util::FutureExt;
use object_store::{ObjectStoreExt, UpdateVersion};
use parking_lot::Mutex;

use super::*;

/// Values in memory, each with the number of its write. Pages end early.
#[derive(Debug, Default)]
struct Values(Mutex<BTreeMap<String, (Bytes, u64)>>, AtomicU64);

/// The most keys of a page.
const SHORT_PAGE: usize = 300;

#[async_trait]
impl KeyValueStore for Values {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, KeyValueError> {
        Ok(self.0.lock().get(key).map(|(value, _)| value.clone()))
    }

    async fn put(&self, key: &str, value: Bytes, only_new: bool) -> Result<bool, KeyValueError> {
        assert!(value.len() <= PART_BYTES + 1);
        let mut values = self.0.lock();
        if let Some((before, _)) = values.get(key).filter(|_| key.contains('#')) {
            assert_eq!(*before, value, "a reader of {key} would see a mixture");
        }
        let is_written = !only_new || !values.contains_key(key);
        if is_written {
            let number = self.1.fetch_add(1, Ordering::Relaxed);
            values.insert(key.to_owned(), (value, number));
        }
        Ok(is_written)
    }

    async fn delete(&self, key: &str) -> Result<(), KeyValueError> {
        self.0.lock().remove(key);
        Ok(())
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Timestamp)>, KeyValueError> {
        let values = self.0.lock();
        let found = values.iter().filter(|(key, _)| key.starts_with(prefix) && &key[..] > after);
        let page = found.take(limit.min(SHORT_PAGE));
        Ok(page.map(|(key, (_, at))| (key.clone(), Timestamp::from_millis(*at))).collect())
    }
}

fn objects() -> KeyValueObjects<Values> {
    KeyValueObjects::new(Values::default())
}

#[tokio::test]
async fn a_large_object_is_read_by_range_copied_and_removed_with_its_parts() {
    let objects = objects();
    let large: Bytes = crate::testing::store::noise(3 * PART_BYTES + 5).into();
    let path = Path::from("a/large");
    let copied = Path::from("b/copy");
    objects.put(&path, large.clone().into()).await.unwrap();
    objects.copy(&path, &copied).await.unwrap();

    let part = PART_BYTES as u64;
    for path in [&path, &copied] {
        let whole = objects.get(path).await.unwrap().bytes().await.unwrap();
        assert!(whole == large);
        for range in [0..1, part - 1..part + 1, part..2 * part, 5..3 * part + 5] {
            let read = objects.get_range(path, range.clone()).await.unwrap();
            let index = |at| usize::try_from(at).unwrap();
            assert!(read == large[index(range.start)..index(range.end)], "{range:?}");
        }
    }

    let listed: Vec<_> =
        objects.list(None).map_ok(|found| found.location).try_collect().await.unwrap();
    assert_eq!(listed, [path.clone(), copied.clone()]);

    objects.delete(&path).await.unwrap();
    assert!(objects.get(&copied).await.unwrap().bytes().await.unwrap() == large);
    objects.delete(&copied).await.unwrap();
    assert!(objects.0.0.lock().is_empty());
}

#[tokio::test]
async fn an_object_whose_writer_died_is_missing_and_can_be_found_and_removed() {
    let objects = objects();
    let path = Path::from("a/large");
    let mut upload = objects.put_multipart(&path).await.unwrap();
    upload.put_part(vec![1; 2 * PART_BYTES].into()).await.unwrap();
    drop(upload);

    let read = objects.get(&path).await;
    assert!(matches!(read, Err(object_store::Error::NotFound { .. })), "{read:?}");
    let folder = objects.list_with_delimiter(Some(&Path::from("a"))).await.unwrap();
    assert_eq!(folder.objects.len(), 1, "only the head is an object");

    objects.delete(&path).await.unwrap();
    assert!(objects.0.0.lock().is_empty());
}

#[tokio::test]
async fn a_folder_is_listed_without_what_is_deeper() {
    let objects = objects();
    for n in 0..2 * PAGE {
        objects.put(&Path::from(format!("a/b/{n:05}")), "deep".into()).await.unwrap();
    }
    for path in ["a/1", "a/b0", "a/c/d", "ab"] {
        objects.put(&Path::from(path), "here".into()).await.unwrap();
    }

    let paths = |paths: &[Path]| paths.iter().map(Path::to_string).collect::<Vec<_>>();
    let folder = objects.list_with_delimiter(Some(&Path::from("a"))).await.unwrap();
    let here: Vec<_> = folder.objects.into_iter().map(|found| found.location).collect();
    assert_eq!(paths(&here), ["a/1", "a/b0"]);
    assert_eq!(paths(&folder.common_prefixes), ["a/b", "a/c"]);

    let root = objects.list_with_delimiter(None).await.unwrap();
    assert_eq!(paths(&root.common_prefixes), ["a"]);
    let after = Path::from("a/b/01998");
    let listed = objects.list_with_offset(Some(&Path::from("a")), &after);
    let listed: Vec<_> = listed.map_ok(|found| found.location).try_collect().await.unwrap();
    assert_eq!(paths(&listed), ["a/b/01999", "a/b0", "a/c/d"]);
    assert_eq!(objects.list(None).count().await, 2 * PAGE + 4);
}

#[tokio::test]
async fn an_object_is_created_once_and_an_empty_one_is_an_object() {
    let objects = objects();
    let path = Path::from("a");
    let create = || objects.put_opts(&path, "".into(), PutMode::Create.into());
    create().await.unwrap();
    let again = create().await;
    assert!(matches!(again, Err(object_store::Error::AlreadyExists { .. })), "{again:?}");
    assert_eq!(objects.get(&path).await.unwrap().bytes().await.unwrap(), "");
}

fn large() -> Bytes {
    crate::testing::store::noise(3 * PART_BYTES + 5).into()
}

async fn read(objects: &KeyValueObjects<Values>, path: &Path) -> Bytes {
    objects.get(path).await.expect("it exists").bytes().await.expect("it is whole")
}

async fn listed(objects: &KeyValueObjects<Values>) -> Vec<Path> {
    let listed = objects.list(None).map_ok(|found| found.location);
    listed.try_collect().await.expect("it is listed")
}

#[tokio::test]
async fn an_object_that_is_written_again_is_complete_all_the_while() {
    let path = Path::from("a/entry");
    let whole = large();

    // The second write of the object ends after so many steps.
    for steps in 0..6 {
        let objects = objects();
        objects.put(&path, whole.clone().into()).await.unwrap();

        let paused = KeyValueObjects::new(Paused { values: objects.0.clone(), left: steps.into() });
        let cut = paused.put(&path, whole.clone().into()).now_or_never();
        assert!(cut.is_none(), "{steps}");
        assert!(read(&objects, &path).await == whole, "{steps}");
    }
}

/// Values whose writes never end once there were so many.
#[derive(Debug)]
struct Paused {
    values: Arc<Values>,
    left: AtomicU64,
}

#[async_trait]
impl KeyValueStore for Paused {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, KeyValueError> {
        self.values.get(key).await
    }

    async fn put(&self, key: &str, value: Bytes, only_new: bool) -> Result<bool, KeyValueError> {
        if self.left.load(Ordering::Relaxed) == 0 {
            std::future::pending::<()>().await;
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        self.values.put(key, value, only_new).await
    }

    async fn delete(&self, key: &str) -> Result<(), KeyValueError> {
        self.values.delete(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Timestamp)>, KeyValueError> {
        self.values.list(prefix, after, limit).await
    }
}

#[tokio::test]
async fn each_part_of_a_slow_upload_makes_the_object_young() {
    let objects = objects();
    let path = Path::from("a/large");
    let mut upload = objects.put_multipart(&path).await.unwrap();

    let mut last = None;
    for _ in 0..3 {
        upload.put_part(vec![1; PART_BYTES].into()).await.unwrap();
        let found: Vec<_> = objects.list(None).try_collect().await.unwrap();
        let written = found[0].last_modified;
        assert_eq!(found.len(), 1);
        assert!(last < Some(written), "{last:?} {written}");
        last = Some(written);
    }

    upload.complete().await.unwrap();
    assert_eq!(read(&objects, &path).await.len(), 3 * PART_BYTES);
}

#[tokio::test]
async fn an_upload_whose_object_was_removed_fails() {
    let path = Path::from("a/large");

    for sends_more in [false, true] {
        let objects = objects();
        let mut upload = objects.put_multipart(&path).await.unwrap();
        upload.put_part(vec![1; PART_BYTES].into()).await.unwrap();
        objects.delete(&path).await.unwrap();

        if sends_more {
            let sent = upload.put_part(vec![1; PART_BYTES].into()).await;
            assert!(sent.expect_err("it was removed").to_string().contains("eight mebibytes"));
        }
        let completed = upload.complete().await;
        assert!(completed.expect_err("it was removed").to_string().contains("removed"));
        let read = objects.get(&path).await;
        assert!(matches!(read, Err(object_store::Error::NotFound { .. })), "{read:?}");

        // The part that came late is found by a listing, and removed.
        let left = if sends_more { vec![path.clone()] } else { Vec::new() };
        assert_eq!(listed(&objects).await, left);
        upload.abort().await.unwrap();
        assert!(objects.0.0.lock().is_empty());
    }
}

#[tokio::test]
async fn parts_without_a_head_are_one_object() {
    let objects = objects();
    let path = Path::from("a/large");
    for part in 0..2 * SHORT_PAGE as u64 {
        objects.put_part(&path, part, "part".into()).await.unwrap();
    }
    objects.put(&Path::from("a/last"), "last".into()).await.unwrap();

    let both = [path.clone(), Path::from("a/last")];
    assert_eq!(listed(&objects).await, both);
    let folder = objects.list_with_delimiter(Some(&Path::from("a"))).await.unwrap();
    let here: Vec<_> = folder.objects.into_iter().map(|found| found.location).collect();
    assert_eq!(here, both);
    let after = objects.list_with_offset(None, &path).map_ok(|found| found.location);
    assert_eq!(after.try_collect::<Vec<_>>().await.unwrap(), both[1..]);

    objects.delete(&path).await.unwrap();
    assert_eq!(objects.0.0.lock().len(), 1);
}

#[tokio::test]
async fn a_copy_has_only_its_own_parts_and_creates_only_what_is_new() {
    let objects = objects();
    let [one, three, begun] = ["a/1", "a/3", "a/begun"].map(Path::from);
    objects.put(&one, "one".into()).await.unwrap();
    objects.put(&three, large().into()).await.unwrap();
    drop(objects.put_multipart(&begun).await.unwrap());

    let incomplete = objects.copy(&begun, &Path::from("b")).await;
    assert!(matches!(incomplete, Err(object_store::Error::NotFound { .. })), "{incomplete:?}");
    for (from, to) in [(&one, &three), (&three, &one), (&one, &one)] {
        let again = objects.copy_if_not_exists(from, to).await;
        assert!(matches!(again, Err(object_store::Error::AlreadyExists { .. })), "{again:?}");
    }
    assert!(read(&objects, &three).await == large());

    objects.copy(&three, &three).await.unwrap();
    assert!(read(&objects, &three).await == large());
    objects.copy(&one, &three).await.unwrap();
    assert_eq!(read(&objects, &three).await, "one");
    for path in [one, three, begun] {
        objects.delete(&path).await.unwrap();
    }
    assert!(objects.0.0.lock().is_empty());
}

#[tokio::test]
async fn an_update_of_a_version_is_refused() {
    let objects = objects();
    let path = Path::from("a");
    objects.put(&path, "one".into()).await.unwrap();

    let version = UpdateVersion { e_tag: None, version: None };
    let updated = objects.put_opts(&path, "two".into(), PutMode::Update(version).into()).await;
    assert!(matches!(updated, Err(object_store::Error::NotImplemented { .. })), "{updated:?}");
    assert_eq!(read(&objects, &path).await, "one");
}

/// Values that list the same page for ever.
#[derive(Debug)]
struct Stuck;

#[async_trait]
impl KeyValueStore for Stuck {
    async fn get(&self, _: &str) -> Result<Option<Bytes>, KeyValueError> {
        Ok(None)
    }

    async fn put(&self, _: &str, _: Bytes, _: bool) -> Result<bool, KeyValueError> {
        Ok(true)
    }

    async fn delete(&self, _: &str) -> Result<(), KeyValueError> {
        Ok(())
    }

    async fn list(
        &self,
        _: &str,
        _: &str,
        _: usize,
    ) -> Result<Vec<(String, Timestamp)>, KeyValueError> {
        Ok(vec![("a".into(), Timestamp::from_millis(1))])
    }
}

#[tokio::test]
async fn a_listing_that_does_not_advance_is_an_error() {
    let objects = KeyValueObjects::new(Stuck);
    let listed: Result<Vec<_>> = objects.list(None).try_collect().await;
    assert!(listed.expect_err("it never ends").to_string().contains("a is listed after a"));
    assert!(objects.list_with_delimiter(Some(&Path::from("b"))).await.is_err());
}
