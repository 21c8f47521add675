//! Reloads the configuration while the server runs: on SIGHUP, where there are such signals, and
//! when the configuration file or a certificate file changes.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::ServeArgs;
use crate::{
    app::{Live, Reloaded},
    watch::WatchedFiles,
};

pub(super) struct Reload {
    args: ServeArgs,
    live: Arc<Live>,
    files: WatchedFiles,
    hangup: Hangup,
}

impl Reload {
    /// Starts watching: changes from now on are noticed.
    pub(super) async fn new(args: ServeArgs, live: Arc<Live>) -> io::Result<Self> {
        let files = WatchedFiles::new(files(&args, &live)).await;
        Ok(Self { args, live, files, hangup: Hangup::new()? })
    }

    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => {
                    // The reload below includes these changes.
                    self.files.check().await;
                }
                () = self.files.changed() => {}
            }

            match self.args.configure().and_then(|config| self.live.apply(&config)) {
                Ok(Reloaded { changed, need_restart }) => {
                    // The new configuration may name other files.
                    self.files.watch(files(&self.args, &self.live)).await;
                    tracing::info!(
                        changed = changed.join(", "),
                        "the configuration was read again"
                    );

                    if !need_restart.is_empty() {
                        let settings = need_restart.join(", ");
                        tracing::warn!(
                            settings,
                            "these settings take effect only at the next start"
                        );
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the configuration cannot be used; it stays as it was");
                }
            }
        }
    }
}

/// The configuration file, and the files that it names and whose content is reloaded.
fn files(args: &ServeArgs, live: &Live) -> Vec<PathBuf> {
    args.file().map(Path::to_owned).into_iter().chain(live.files()).collect()
}

/// SIGHUP. On other systems than Unix it never comes.
struct Hangup(#[cfg(unix)] tokio::signal::unix::Signal);

#[cfg(unix)]
impl Hangup {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        signal(SignalKind::hangup()).map(Self)
    }

    async fn recv(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

#[cfg(not(unix))]
impl Hangup {
    fn new() -> io::Result<Self> {
        Ok(Self())
    }

    async fn recv(&mut self) -> Option<()> {
        std::future::pending().await
    }
}
