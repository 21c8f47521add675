//! The free space of the disk with a directory, and a reserve on that disk.
//!
//! Removing a resource writes a few small files before it frees any space. For this to
//! work on a full disk, the [`Reserve`] is removed first. From then on, content is refused
//! until there is space for the reserve again.

mod reserve;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use larder_runtime::random::Random;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::reserve::{FILES, Reserve};
use crate::store::DiskSpace;

/// How long a measurement of the free space is used.
const MEASUREMENT_TTL: Duration = Duration::from_secs(1);

/// The disk that has the store's directory.
#[derive(Debug)]
pub(super) struct Disk {
    directory: PathBuf,
    reserve: Reserve,
    measured: Mutex<Option<(DiskSpace, Instant)>>,
    /// Held during a measurement, so that concurrent callers use its result.
    measuring: tokio::sync::Mutex<()>,
}

impl Disk {
    /// The disk that has this directory, with a reserve of `reserve_bytes`. `None` where free
    /// space cannot be measured.
    pub(super) fn open(
        directory: PathBuf,
        reserve_bytes: u64,
        random: &Random,
    ) -> Option<Arc<Self>> {
        let reserve = Reserve::new(directory.join("=reserve"), reserve_bytes, random.clone());
        let disk = Self {
            directory,
            reserve,
            measured: Mutex::default(),
            measuring: tokio::sync::Mutex::default(),
        };

        let space = disk
            .measure()
            .inspect_err(|error| {
                tracing::warn!(%error, "cannot measure the free space of the disk of the store");
            })
            .ok()?;

        if let Err(problem) = space.check() {
            tracing::warn!(%problem, free_bytes = space.free_bytes);
        }

        Some(Arc::new(disk))
    }

    /// The free space, at most a second old. `None` if it cannot be measured now.
    pub(super) async fn space(self: &Arc<Self>) -> Option<DiskSpace> {
        if let Some(space) = self.recent() {
            return Some(space);
        }

        let _measuring = self.measuring.lock().await;
        if let Some(space) = self.recent() {
            return Some(space);
        }

        let disk = Arc::clone(self);
        let measured = tokio::task::spawn_blocking(move || disk.measure()).await.ok()?;
        let space = measured
            .inspect_err(|error| tracing::debug!(%error, "cannot measure the free space"))
            .ok()?;

        *self.measured.lock() = Some((space, Instant::now()));
        Some(space)
    }

    /// The last measurement, if it may still be used.
    fn recent(&self) -> Option<DiskSpace> {
        let measured = *self.measured.lock();
        let (space, at) = measured?;
        (at.elapsed() < MEASUREMENT_TTL).then_some(space)
    }

    /// Removes the reserve, so that the files that remove resources can be written.
    pub(super) async fn give_up_reserve(self: &Arc<Self>) {
        let disk = Arc::clone(self);
        let given_up = tokio::task::spawn_blocking(move || disk.reserve.remove()).await;

        if given_up.is_ok_and(|removed| removed) {
            tracing::warn!(
                "the disk of the store is full: its reserve is used to remove resources"
            );
        }

        *self.measured.lock() = None;
    }

    /// Measures the free space, and makes the reserve if there is space for it.
    fn measure(&self) -> io::Result<DiskSpace> {
        let bytes = self.reserve.bytes();
        let mut free = free_space(&self.directory)?;
        if bytes == 0 {
            self.reserve.remove();
            return Ok(DiskSpace { free_bytes: free.bytes, reserve_bytes: 0, is_low: false });
        }

        // Twice the reserve, so that the disk is not low again at once.
        if !self.reserve.is_whole() && free.is_at_least(2 * bytes, 2 * FILES) {
            match self.reserve.make() {
                Ok(()) => tracing::info!(bytes, "made the reserve on the disk of the store"),
                Err(error) => tracing::warn!(%error, "cannot make the reserve on the disk"),
            }
            free = free_space(&self.directory)?;
        }

        let is_low = !self.reserve.is_whole() || !free.is_at_least(bytes, FILES);
        Ok(DiskSpace { free_bytes: free.bytes, reserve_bytes: bytes, is_low })
    }
}

/// The free space of a file system.
struct FreeSpace {
    bytes: u64,
    /// How many files can be created; `None` where the file system has no such limit.
    files: Option<u64>,
}

impl FreeSpace {
    fn is_at_least(&self, bytes: u64, files: u64) -> bool {
        self.bytes >= bytes && self.files.is_none_or(|free| free >= files)
    }
}

#[cfg(unix)]
fn free_space(directory: &std::path::Path) -> io::Result<FreeSpace> {
    let space = rustix::fs::statvfs(directory)?;
    let files = (space.f_files > 0).then_some(space.f_favail);
    Ok(FreeSpace { bytes: space.f_bavail.saturating_mul(space.f_frsize), files })
}

#[cfg(not(unix))]
fn free_space(_: &std::path::Path) -> io::Result<FreeSpace> {
    Err(io::ErrorKind::Unsupported.into())
}
