//! [`DueQueue`]: files that say what to do, and when.
//!
//! A due file is written before what it is about, so that nothing is forgotten if an instance dies.
//! The files of an hour have a folder, so a search for due files lists only hours that have begun.
//! Any instance may process a file, and removes it afterwards, so what a file asks for can be done
//! twice.

use futures_util::{
    StreamExt, TryStreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use larder_runtime::clock::Timestamp;
use object_store::path::Path;
use serde::{Serialize, de::DeserializeOwned};

use super::objects::Objects;
use crate::store::StoreError;

/// How many due files are processed concurrently.
const CONCURRENCY: usize = 8;

/// An hour in milliseconds.
const HOUR: u64 = 60 * 60 * 1000;

/// The due files in one folder of a location.
#[derive(Clone)]
pub(in crate::store) struct DueQueue {
    objects: Objects,
    folder: Path,
    names: DueNames,
}

/// The names of the due files in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum DueNames {
    /// `<hour>/<millisecond>-<key>.json`: the file is due at that time. Names are in the order of
    /// times.
    Millisecond,
    /// `<hour>/<key>`: the file is due when its hour ends, so a key has one file for an hour.
    Hour,
}

/// The path of a due file, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct DueFile {
    pub(in crate::store) at: Timestamp,
    pub(in crate::store) path: Path,
    /// The name of what to check or remove.
    pub(in crate::store) key: String,
}

impl DueQueue {
    /// The queue in the folder with this path.
    pub(in crate::store) fn new(objects: Objects, folder: &str, names: DueNames) -> Self {
        let folder = Path::parse(folder).expect("no part is empty or dots");
        Self { objects, folder, names }
    }

    /// Writes a due file. The same time and key give the same file.
    pub(in crate::store) async fn put(
        &self,
        at: Timestamp,
        key: &str,
        content: &impl Serialize,
    ) -> Result<DueFile, StoreError> {
        let content = serde_json::to_vec(content).expect("it is JSON");
        self.write(at, key, content).await
    }

    /// Writes a due file without content, whose key says everything.
    pub(in crate::store) async fn put_key(
        &self,
        at: Timestamp,
        key: &str,
    ) -> Result<DueFile, StoreError> {
        self.write(at, key, Vec::new()).await
    }

    async fn write(
        &self,
        at: Timestamp,
        key: &str,
        content: Vec<u8>,
    ) -> Result<DueFile, StoreError> {
        let path = self.path(at, key);
        self.objects.put(&path, content).await?;
        Ok(DueFile { at, path, key: key.to_owned() })
    }

    /// The content of a due file. `None` if another instance has processed the file already, or if
    /// the file was damaged, which removes it.
    pub(in crate::store) async fn read<T: DeserializeOwned>(
        &self,
        file: &DueFile,
    ) -> Result<Option<T>, StoreError> {
        let path = &file.path;
        let Some(content) = self.objects.get(path).await? else { return Ok(None) };

        match serde_json::from_slice(&content) {
            Ok(content) => Ok(Some(content)),
            Err(error) => {
                tracing::error!(%error, file = %path, "removed a damaged due file");
                self.remove(file).await?;
                Ok(None)
            }
        }
    }

    /// Removes a file that has been processed.
    pub(in crate::store) async fn remove(&self, file: &DueFile) -> Result<(), StoreError> {
        self.objects.remove(&file.path).await
    }

    /// The files that are due at `by`, hour by hour.
    pub(in crate::store) async fn due_at(
        &self,
        by: Timestamp,
    ) -> Result<BoxStream<'_, Result<DueFile, StoreError>>, StoreError> {
        let mut hours = self.objects.folders(&self.folder).await?;
        hours.retain(|hour| self.first_in(hour).is_some_and(|first| first <= by));

        let is_due = move |file: &Option<DueFile>| file.as_ref().is_none_or(|file| file.at <= by);
        let due = stream::iter(hours).flat_map(move |hour| {
            // Files come in the order of their times, so the listing ends at the first later file.
            self.objects
                .list_after(&hour, hour.clone())
                .map_ok(|path| self.parse(path))
                .try_take_while(move |file| ready(Ok(is_due(file))))
        });

        Ok(due.try_filter_map(|file| ready(Ok(file))).boxed())
    }

    /// The files that are due by the end of the hour of `by`.
    pub(in crate::store) async fn of_hours_until(
        &self,
        by: Timestamp,
    ) -> Result<BoxStream<'_, Result<DueFile, StoreError>>, StoreError> {
        self.due_at(end_of_hour(by)).await
    }

    /// Processes all files that are due at `by`.
    pub(in crate::store) async fn sweep<E, F>(
        &self,
        by: Timestamp,
        process: impl Fn(DueFile) -> F + Send,
    ) -> Result<(), E>
    where
        E: From<StoreError> + Send,
        F: Future<Output = Result<(), E>> + Send,
    {
        let due: Vec<_> = self.due_at(by).await?.try_collect().await?;
        process_all(due, process).await
    }

    fn path(&self, at: Timestamp, key: &str) -> Path {
        let millis = at.as_millis();
        let hour = millis / HOUR;

        let name = match self.names {
            DueNames::Millisecond => format!("{hour:010}/{millis:016}-{key}.json"),
            DueNames::Hour => format!("{hour}/{key}"),
        };
        Path::parse(format!("{}/{name}", self.folder)).expect("no part is empty or dots")
    }

    /// The inverse of [`path`](Self::path). `None` for a file that is not named as a due file.
    fn parse(&self, path: Path) -> Option<DueFile> {
        let name = path.filename()?;

        let (at, key) = match self.names {
            DueNames::Millisecond => {
                let (millis, key) = name.strip_suffix(".json")?.split_once('-')?;
                (Timestamp::from_millis(millis.parse().ok()?), key.to_owned())
            }
            DueNames::Hour => {
                let hour = Path::parse(path.as_ref().rsplit_once('/')?.0).ok()?;
                (self.first_in(&hour)?, name.to_owned())
            }
        };
        Some(DueFile { at, path, key })
    }

    /// The earliest time at which a file in the folder of an hour may be due.
    fn first_in(&self, hour: &Path) -> Option<Timestamp> {
        let hour: u64 = hour.filename()?.parse().ok()?;
        let begin = Timestamp::from_millis(hour.saturating_mul(HOUR));

        Some(match self.names {
            DueNames::Millisecond => begin,
            DueNames::Hour => end_of_hour(begin),
        })
    }
}

/// The first millisecond after the hour of a time.
fn end_of_hour(at: Timestamp) -> Timestamp {
    let next = at.as_millis() / HOUR + 1;
    Timestamp::from_millis(next.saturating_mul(HOUR))
}

/// Processes due files concurrently. A failure does not stop the others; the first is returned.
pub(super) async fn process_all<E, F>(
    files: Vec<DueFile>,
    process: impl Fn(DueFile) -> F + Send,
) -> Result<(), E>
where
    E: Send,
    F: Future<Output = Result<(), E>> + Send,
{
    let processing = stream::iter(files).map(process).buffer_unordered(CONCURRENCY);
    let processed: Vec<_> = processing.collect().await;
    processed.into_iter().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};

    use larder_runtime::random::Random;
    use parking_lot::Mutex;

    use super::*;
    use crate::store::ObjectLocation;

    async fn queue(names: DueNames) -> (DueQueue, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().display());
        let location = ObjectLocation::open(&url, &Random::system()).await.unwrap();
        (DueQueue::new(location.objects(), "=queue/a", names), directory)
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + millis)
    }

    /// The keys that are due, in order.
    async fn due(queue: &DueQueue, by: Timestamp) -> Vec<String> {
        let files: Vec<_> = queue.due_at(by).await.unwrap().try_collect().await.unwrap();
        files.into_iter().map(|file| file.key).collect()
    }

    #[tokio::test]
    async fn the_names_of_due_files_never_change() {
        let (queue, _directory) = queue(DueNames::Millisecond).await;
        let path = queue.path(at(123), "key-1");
        assert_eq!(path.as_ref(), "=queue/a/0000490896/0001767225600123-key-1.json");

        let hourly = DueQueue { names: DueNames::Hour, ..queue };
        assert_eq!(hourly.path(at(123), "key-1").as_ref(), "=queue/a/490896/key-1");
    }

    #[tokio::test]
    async fn a_file_is_due_at_its_millisecond() {
        let (queue, _directory) = queue(DueNames::Millisecond).await;
        for millis in [0, 5, HOUR - 1, HOUR, 30 * HOUR] {
            queue.put(at(millis), &millis.to_string(), &"content").await.unwrap();
        }

        assert!(due(&queue, Timestamp::from_millis(at(0).as_millis() - 1)).await.is_empty());
        assert_eq!(due(&queue, at(0)).await, ["0"]);
        assert_eq!(due(&queue, at(5)).await, ["0", "5"]);
        assert_eq!(due(&queue, at(HOUR)).await, ["0", "5", "3599999", "3600000"]);

        let of_hours: Vec<_> =
            queue.of_hours_until(at(1)).await.unwrap().try_collect().await.unwrap();
        let keys: Vec<_> = of_hours.iter().map(|file| file.key.as_str()).collect();
        assert_eq!(keys, ["0", "5", "3599999", "3600000"]);
    }

    #[tokio::test]
    async fn a_file_that_is_named_by_its_hour_is_due_when_the_hour_ends() {
        let (queue, _directory) = queue(DueNames::Hour).await;
        queue.put_key(at(5), "a").await.unwrap();
        queue.put_key(at(7), "a").await.unwrap();
        queue.put_key(at(HOUR), "a").await.unwrap();

        assert!(due(&queue, at(HOUR - 1)).await.is_empty());
        assert_eq!(due(&queue, at(HOUR)).await, ["a"]);
        assert_eq!(due(&queue, at(2 * HOUR)).await, ["a", "a"]);
    }

    #[tokio::test]
    async fn files_with_other_names_are_left_alone() {
        let (queue, _directory) = queue(DueNames::Millisecond).await;
        let names =
            ["x/1-a.json", "99999999999999999999/1-a.json", "0/a.json", "0/1-a", "0/x-a.json"];
        for name in names {
            let path = Path::parse(format!("=queue/a/{name}")).unwrap();
            queue.objects.put(&path, "").await.unwrap();
        }
        queue.put(at(0), "a", &()).await.unwrap();

        assert_eq!(due(&queue, at(0)).await, ["a"]);
    }

    #[tokio::test]
    async fn a_failure_does_not_stop_the_sweep_and_its_file_stays() {
        let (queue, _directory) = queue(DueNames::Millisecond).await;
        for key in 0..20_u64 {
            queue.put(at(key), &format!("{key:02}"), &key).await.unwrap();
        }

        let processed = Arc::new(Mutex::new(Vec::new()));
        let swept: Result<(), StoreError> = queue
            .sweep(at(9), |file| {
                let queue = queue.clone();
                let processed = Arc::clone(&processed);
                async move {
                    let content: Option<u64> = queue.read(&file).await?;
                    processed.lock().extend(content);
                    if file.key == "03" {
                        return Err(StoreError::Full("03".to_owned()));
                    }
                    queue.remove(&file).await
                }
            })
            .await;

        assert!(matches!(swept, Err(StoreError::Full(key)) if key == "03"));
        processed.lock().sort_unstable();
        assert_eq!(*processed.lock(), (0..10).collect::<Vec<_>>());
        assert_eq!(due(&queue, at(9)).await, ["03"]);
        assert_eq!(due(&queue, at(99)).await.len(), 11);
    }

    #[tokio::test]
    async fn a_damaged_file_is_removed() {
        let (queue, _directory) = queue(DueNames::Millisecond).await;
        let file = queue.put(at(0), "a", &"text").await.unwrap();

        assert_eq!(queue.read::<u64>(&file).await.unwrap(), None);
        assert!(due(&queue, at(0)).await.is_empty());
    }

    #[tokio::test]
    async fn few_files_are_processed_at_once() {
        let (queue, _directory) = queue(DueNames::Hour).await;
        for key in 0..30 {
            queue.put_key(at(0), &key.to_string()).await.unwrap();
        }

        let running = &AtomicUsize::new(0);
        let most = &AtomicUsize::new(0);
        let swept: Result<(), StoreError> = queue
            .sweep(at(HOUR), |_| async {
                let now = running.fetch_add(1, Ordering::Relaxed) + 1;
                most.fetch_max(now, Ordering::Relaxed);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::Relaxed);
                Ok(())
            })
            .await;

        swept.unwrap();
        assert_eq!(most.load(Ordering::Relaxed), CONCURRENCY);
    }
}
