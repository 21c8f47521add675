//! Objects in parts, listings, and objects whose writer died.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use object_store::ObjectStoreExt;
use parking_lot::Mutex;

use super::*;

/// Values in memory.
#[derive(Debug, Default)]
struct Values(Mutex<BTreeMap<String, Bytes>>);

#[async_trait]
impl KeyValueStore for Values {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, KeyValueError> {
        Ok(self.0.lock().get(key).cloned())
    }

    async fn put(&self, key: &str, value: Bytes, only_new: bool) -> Result<bool, KeyValueError> {
        assert!(value.len() <= PART_BYTES + 1);
        let mut values = self.0.lock();
        let is_written = !only_new || !values.contains_key(key);
        if is_written {
            values.insert(key.to_owned(), value);
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
        let keys = values.keys().filter(|key| key.starts_with(prefix) && &key[..] > after);
        Ok(keys.take(limit).map(|key| (key.clone(), Timestamp::from_millis(1))).collect())
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
