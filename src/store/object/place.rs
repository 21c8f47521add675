//! From an address to a place for objects that works.

use std::{error::Error, ffi::OsString, fs, io, path::PathBuf, sync::Arc, time::Duration};

use object_store::{ObjectStore, local::LocalFileSystem, path::Path, prefix::PrefixStore};

use super::{bucket::Provider, layout, objects::Objects};
use crate::{random::Random, store::StoreError};

const FILE: &str = "file://";

/// How old a file must be that an upload has left half-written.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// A place for objects, by its URL: `file:///directory` or `s3://bucket/prefix`;
/// with the crate's feature `gcs` also `gs://bucket/prefix`, with `azure` also
/// `az://container/prefix`.
#[derive(Debug, Clone)]
pub struct ObjectPlace {
    pub(super) objects: Objects,
    pub(super) url: String,
}

/// Why there is no such place. Says nothing secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The URL, or the environment variables that go with it, cannot be used.
    #[error("{0}")]
    Setting(String),
    /// It does not do what it must.
    #[error("{place} cannot be used: {problem}")]
    Unusable {
        /// Where.
        place: String,
        /// What it said.
        problem: String,
    },
}

impl ObjectPlace {
    /// What lies there.
    pub(in crate::store) fn objects(&self) -> Objects {
        self.objects.clone()
    }

    /// Whether that URL is for such a place, be it built in or not.
    pub fn is_for(url: &str) -> bool {
        url.starts_with(FILE) || Provider::of(url).is_some()
    }

    /// What is wrong with a URL, as far as that can be told from it alone.
    ///
    /// # Errors
    /// [`PlaceError::Setting`].
    pub fn check(url: &str) -> Result<(), PlaceError> {
        let setting = |problem: &str| Err(PlaceError::Setting(problem.to_owned()));
        if let Some(directory) = url.strip_prefix(FILE) {
            if !directory.starts_with('/') {
                return setting("it is not file:///an/absolute/directory");
            }
        } else if let Some((provider, rest)) = Provider::of(url) {
            if let Some(feature) = provider.missing_feature() {
                let scheme = provider.scheme();
                return setting(&format!(
                    "this server is built without {scheme}://; build it with cargo's --features {feature}"
                ));
            }
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() || bucket.contains(['@', ':', '?', '#']) {
                return setting(&format!("it is not {}", provider.usage()));
            }
            if Path::parse(prefix.trim_end_matches('/')).is_err() {
                return setting("the prefix after the bucket has an empty part, or dots for one");
            }
            if prefix.len() > layout::MOST_PREFIX {
                return setting("the prefix after the bucket is longer than 128 bytes");
            }
        } else {
            return setting(
                "it is none of file:///directory, s3://bucket/prefix, gs://bucket/prefix and az://container/prefix",
            );
        }
        Ok(())
    }

    /// Makes the directory, or finds the bucket (what opens it is in the
    /// environment, under the names that its keeper has for that), and sees that it works as it
    /// must: whatever is created there once is not created a second time.
    ///
    /// # Errors
    /// Says why not.
    pub async fn open(url: &str, random: &Random) -> Result<Self, PlaceError> {
        // What is not UTF-8 is none of ours.
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: Vec<_> = std::env::vars_os().filter_map(text).collect();
        Self::open_in(url, environment.into_iter(), random).await
    }

    /// With what is in the environment, as an argument.
    pub(super) async fn open_in(
        url: &str,
        environment: impl Iterator<Item = (String, String)>,
        random: &Random,
    ) -> Result<Self, PlaceError> {
        Self::check(url)?;
        let unusable = |problem: String| PlaceError::Unusable { place: url.to_owned(), problem };
        let place = match Provider::of(url) {
            None => {
                let directory = url.strip_prefix(FILE).unwrap_or(url);
                let directory = PathBuf::from(directory);
                let opened = tokio::task::spawn_blocking(move || {
                    fs::create_dir_all(&directory)?;
                    tidy(&directory);
                    LocalFileSystem::new_with_prefix(&directory).map_err(io::Error::other)
                });
                let opened = opened.await.map_err(|error| unusable(error.to_string()))?;
                let files = opened.map_err(|error| unusable(error.to_string()))?;
                let store = Arc::new(files.with_automatic_cleanup(true));
                let objects = Objects { store, name: "file", in_order: false, drops_dots: false };
                Self { objects, url: url.to_owned() }
            }
            Some((provider, rest)) => Self::bucket(url, provider, rest, environment)?,
        };
        place.probe(&random.id()).await.map_err(unusable)?;
        Ok(place)
    }

    fn bucket(
        url: &str,
        provider: Provider,
        rest: &str,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, PlaceError> {
        let setting = |error: &dyn Error| PlaceError::Setting(error.to_string());
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let bucket = provider.open(bucket, environment).map_err(|error| setting(&error))?;
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|error| setting(&error))?;
        let store: Arc<dyn ObjectStore> = if prefix.as_ref().is_empty() {
            bucket
        } else {
            Arc::new(PrefixStore::new(bucket, prefix))
        };
        let (in_order, drops_dots) = (provider.in_order(), provider.drops_dots());
        let objects = Objects { store, name: provider.scheme(), in_order, drops_dots };
        Ok(Self { objects, url: url.to_owned() })
    }

    async fn probe(&self, id: &str) -> Result<(), String> {
        let path = Path::from(format!("=probe/{id}"));
        let first = self.objects.create(&path, "larder").await;
        let second = self.objects.create(&path, "larder").await;
        // Whatever the answers were.
        let _ = self.objects.remove(&path).await;
        let reason = |error: StoreError| match error.source() {
            Some(source) => source.to_string(),
            None => error.to_string(),
        };
        first.map_err(reason)?;
        if second.map_err(reason)? {
            return Err("it ignores conditions (to create only what is not there), so that servers would overwrite each other's changes".into());
        }
        Ok(())
    }
}

/// Removes what uploads have left that were killed in the middle.
fn tidy(directory: &std::path::Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            tidy(&path);
            continue;
        }
        let name = entry.file_name();
        let half =
            name.to_str().and_then(|name| name.rsplit_once('#')).is_some_and(|(_, number)| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            });
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
        if half
            && age.is_some_and(|age| age > ABANDONED)
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::warn!(%error, ?path, "it was left by an upload that never ended");
        }
    }
}
