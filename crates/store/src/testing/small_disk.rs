//! A small disk for tests: a file system in memory, which only root can mount.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

/// A mounted disk of a few megabytes; unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// Mounts a disk of `bytes`. If this process cannot, prints the reason and returns `None`.
    ///
    /// # Panics
    /// If there is no temporary directory.
    pub fn mount(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().expect("there is room");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"]).arg(folder.path());

        let reason = match mount.output() {
            Ok(output) if output.status.success() => return Some(Self { folder }),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };

        eprintln!("skipped: cannot mount a small disk: {reason}");
        None
    }

    /// The root of the disk.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The URL of a store in a directory of the disk.
    pub fn url(&self) -> String {
        format!("file://{}", self.path().join("store").display())
    }

    fn other_file(&self) -> PathBuf {
        self.path().join("other")
    }

    /// Fills the disk to the last byte, as another program might.
    ///
    /// # Panics
    /// If the file cannot be created.
    pub fn fill(&self) {
        let mut file =
            File::options().create(true).append(true).open(self.other_file()).expect("it opens");
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    /// Removes the file of [`fill`](Self::fill).
    ///
    /// # Panics
    /// If the disk was not filled.
    pub fn free(&self) {
        std::fs::remove_file(self.other_file()).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount, because the server may still have files open.
        let unmounted = Command::new("umount").arg("-l").arg(self.path()).output();
        if !unmounted.is_ok_and(|output| output.status.success()) {
            eprintln!("cannot unmount {}", self.path().display());
        }
    }
}
