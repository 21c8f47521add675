//! [`ObjectLocation`]: a location for objects, opened by its URL and checked.

use std::{error::Error, fs, io, path::PathBuf, sync::Arc, time::Duration};

use larder_runtime::{environment, random::Random};
use object_store::{ObjectStore, local::LocalFileSystem, path::Path, prefix::PrefixStore};

use super::{
    KeyValueStore, bucket::StorageService, disk::Disk, key_values::KeyValueObjects, layout,
    local_files::LocalFiles, objects::Objects,
};
use crate::store::{DiskSpace, StoreError};

const FILE: &str = "file://";

/// How old an incomplete file must be to be removed. Another process may still write a younger
/// file.
const ABANDONED_AGE: Duration = Duration::from_secs(60 * 60);

/// A location for objects: `file:///directory` or `s3://bucket/prefix`, with the
/// feature `gcs` also `gs://bucket/prefix`, and with `azure` also
/// `az://container/prefix`.
#[derive(Debug, Clone)]
pub struct ObjectLocation {
    pub(super) objects: Objects,
    pub(super) url: String,
}

/// Why a location cannot be used. Has no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocationError {
    /// The URL or an environment variable is wrong.
    #[error("{0}")]
    Setting(String),
    /// The directory or bucket is not reachable, or lacks a required feature.
    #[error("{location} cannot be used: {problem}")]
    Unusable {
        /// The URL.
        location: String,
        /// The cause.
        problem: String,
    },
}

impl ObjectLocation {
    pub(in crate::store) fn objects(&self) -> Objects {
        self.objects.clone()
    }

    /// A location over an object store of one's own: any type that implements
    /// [`ObjectStore`]. `name` is the name of the backend in errors and metrics.
    ///
    /// The object store must refuse to create an object that exists
    /// ([`PutMode::Create`](object_store::PutMode::Create)), and show an object to all readers once
    /// it is written. The [contract suite](crate::testing::store) checks both. It copies no object
    /// without [`copying_up_to`](Self::copying_up_to).
    pub fn over(name: &'static str, store: Arc<dyn ObjectStore>) -> Self {
        let objects = Objects {
            store,
            name,
            lists_in_order: false,
            drops_dots: false,
            max_copy_bytes: 0,
            disk: None,
            files: None,
        };
        Self { objects, url: format!("{name}:") }
    }

    /// A location over a store of values by key, which must list keys in their order.
    pub fn of_values(name: &'static str, values: impl KeyValueStore) -> Self {
        let objects = Arc::new(KeyValueObjects::new(values));
        Self::over(name, objects).listing_in_order().copying_up_to(u64::MAX)
    }

    /// Copies objects of at most `bytes` by `copy` of the object store, rather than read and write
    /// them. The copy must be complete when the object store answers, and within its timeout.
    #[must_use]
    pub fn copying_up_to(mut self, bytes: u64) -> Self {
        self.objects.max_copy_bytes = bytes;
        self
    }

    /// Lists pages by [`ObjectStore::list_with_offset`], which must list in the order of paths,
    /// rather than folder by folder. Faster where the object store has an index of its paths.
    #[must_use]
    pub fn listing_in_order(mut self) -> Self {
        self.objects.lists_in_order = true;
        self
    }

    /// Whether the URL's scheme belongs to a location, even if this build lacks the cargo
    /// feature for it.
    pub fn is_for(url: &str) -> bool {
        url.starts_with(FILE) || StorageService::from_url(url).is_some()
    }

    /// Checks a URL without connecting.
    ///
    /// # Errors
    /// [`LocationError::Setting`].
    pub fn check(url: &str) -> Result<(), LocationError> {
        let setting = |problem: &str| Err(LocationError::Setting(problem.to_owned()));

        if let Some(directory) = url.strip_prefix(FILE) {
            if !directory.starts_with('/') {
                return setting("a directory must be absolute: file:///directory");
            }
        } else if let Some((service, rest)) = StorageService::from_url(url) {
            if let Some(feature) = service.missing_feature() {
                let scheme = service.scheme();
                return setting(&format!(
                    "this server is built without {scheme}://; build it with `--features {feature}`"
                ));
            }

            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() || bucket.contains(['@', ':', '?', '#']) {
                return setting(&format!("the URL must be {}", service.url_format()));
            }

            if Path::parse(prefix.trim_end_matches('/')).is_err() {
                return setting(
                    "the prefix after the bucket has a part that is empty, `.` or `..`",
                );
            }
            if prefix.len() > layout::MAX_PREFIX {
                return setting("the prefix after the bucket is longer than 128 bytes");
            }
        } else {
            return setting(
                "the URL must be file:///directory, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
            );
        }

        Ok(())
    }

    /// Opens a location with the default reserve; see
    /// [`open_with_reserve`](Self::open_with_reserve).
    ///
    /// # Errors
    /// [`LocationError`], with the reason.
    pub async fn open(url: &str, random: &Random) -> Result<Self, LocationError> {
        Self::open_with_reserve(url, DiskSpace::DEFAULT_RESERVE_BYTES, random).await
    }

    /// Opens a location: creates the directory, or connects to the bucket with the
    /// service's usual environment variables. Then checks that it supports
    /// conditional creation.
    ///
    /// On the disk of a directory, `reserve_bytes` are kept for the files that remove resources
    /// while the disk is full; 0 for none.
    ///
    /// # Errors
    /// [`LocationError`], with the reason.
    pub async fn open_with_reserve(
        url: &str,
        reserve_bytes: u64,
        random: &Random,
    ) -> Result<Self, LocationError> {
        // Services' variables are UTF-8; others are of no interest.
        let environment: Vec<_> = environment::variables().collect();
        Self::open_in(url, environment.into_iter(), reserve_bytes, random).await
    }

    /// Opens a location with the environment variables as an argument.
    pub(super) async fn open_in(
        url: &str,
        environment: impl Iterator<Item = (String, String)>,
        reserve_bytes: u64,
        random: &Random,
    ) -> Result<Self, LocationError> {
        Self::check(url)?;
        let unusable =
            |problem: String| LocationError::Unusable { location: url.to_owned(), problem };

        let mut location = match StorageService::from_url(url) {
            None => {
                let directory = PathBuf::from(url.strip_prefix(FILE).unwrap_or(url));
                let random = random.clone();

                let opening = tokio::task::spawn_blocking(move || {
                    open_directory(directory, reserve_bytes, &random)
                });
                let opened = opening.await.map_err(|error| unusable(error.to_string()))?;
                let objects = opened.map_err(|error| unusable(error.to_string()))?;
                Self { objects, url: url.to_owned() }
            }
            Some((service, rest)) => Self::open_bucket(url, service, rest, environment)?,
        };

        match location.probe(&random.id()).await {
            Ok(()) => {}
            // Resources can be read until there is space again.
            Err(StoreError::Full(problem)) => tracing::warn!(%problem, "the location is full"),
            Err(error) => {
                let source = error.source().map(ToString::to_string);
                return Err(unusable(source.unwrap_or_else(|| error.to_string())));
            }
        }

        Ok(location)
    }

    fn open_bucket(
        url: &str,
        service: StorageService,
        rest: &str,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, LocationError> {
        let setting = |error: &dyn Error| LocationError::Setting(error.to_string());

        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let bucket = service.open(bucket, environment).map_err(|error| setting(&error))?;
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|error| setting(&error))?;
        let store: Arc<dyn ObjectStore> = if prefix.as_ref().is_empty() {
            bucket
        } else {
            Arc::new(PrefixStore::new(bucket, prefix))
        };

        let objects = Objects {
            store,
            name: service.scheme(),
            lists_in_order: service.lists_in_order(),
            drops_dots: service.drops_dots(),
            max_copy_bytes: service.max_copy_bytes(),
            disk: None,
            files: None,
        };
        Ok(Self { objects, url: url.to_owned() })
    }

    /// Creates an object twice. The second time must fail. Then copies it; a location that refuses
    /// this copies nothing by itself.
    pub(super) async fn probe(&mut self, id: &str) -> Result<(), StoreError> {
        let path = Path::from(format!("=probe/{id}"));
        let copy = Path::from(format!("=probe/{id}.copy"));
        let first = self.objects.create(&path, "larder").await;
        let second = self.objects.create(&path, "larder").await;
        let copied = if self.objects.copies(1) && first.is_ok() {
            self.objects.copy_content(&path, &copy).await.map(drop)
        } else {
            Ok(())
        };

        // Even a failed request may have created the object.
        let _ = self.objects.remove(&path).await;
        let _ = self.objects.remove(&copy).await;

        if let Err(error) = copied {
            tracing::info!(%error, "the location copies no objects; copies are read and written");
            self.objects.max_copy_bytes = 0;
        }
        first?;
        if second? {
            return Err(self.objects.failed("it ignores conditional writes (If-None-Match), so that instances would overwrite each other's changes"));
        }
        Ok(())
    }
}

fn open_directory(directory: PathBuf, reserve_bytes: u64, random: &Random) -> io::Result<Objects> {
    create_private(&directory)?;
    remove_incomplete_files(&directory);

    let files = LocalFileSystem::new_with_prefix(&directory).map_err(io::Error::other)?;
    let store = Arc::new(files.with_automatic_cleanup(true));
    let files = Some(LocalFiles::new(Arc::clone(&store)));

    let disk = Disk::open(directory, reserve_bytes, random);
    Ok(Objects {
        store,
        name: "file",
        lists_in_order: false,
        drops_dots: false,
        max_copy_bytes: u64::MAX,
        disk,
        files,
    })
}

/// Creates a directory that only this user can enter. An existing directory stays as it is.
fn create_private(directory: &std::path::Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)
}

/// Removes files that killed processes left incomplete. `LocalFileSystem` writes
/// to `<name>#<number>` and renames when complete.
fn remove_incomplete_files(directory: &std::path::Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };

    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            remove_incomplete_files(&path);
            continue;
        }

        let name = entry.file_name();
        let is_incomplete =
            name.to_str().and_then(|name| name.rsplit_once('#')).is_some_and(|(_, number)| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            });

        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());

        if is_incomplete
            && age.is_some_and(|age| age > ABANDONED_AGE)
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::warn!(%error, ?path, "cannot remove an incomplete file");
        }
    }
}
