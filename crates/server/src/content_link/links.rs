//! The links of a server: its keys, its URL, and its limit on their lifetime.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use larder_runtime::{
    clock::{Clock, Timestamp},
    key_ring::KeyRing,
};
use larder_store::vault::{Slots, VaultError};

use super::{BaseUrl, Claims, Download, LinkSigner, Once, encode_segment};

/// The path of links to download, before the token and the file name.
pub const DOWNLOAD_PATH: &str = "/content/d";

/// The path of links that work once, before the token.
pub const ONCE_PATH: &str = "/content/o";

/// The lifetime of the link that a link gives that works once.
const CONSUMED_EXPIRES: Duration = Duration::from_secs(60);

/// How much longer than the link its use is remembered: the clocks of instances differ.
const CLOCK_MARGIN: Duration = Duration::from_secs(300);

/// Makes and checks the links of a server.
#[derive(Debug)]
pub struct ContentLinks {
    pub(super) signer: LinkSigner,
    /// Known once the server listens, if it has no public URL.
    base: OnceLock<BaseUrl>,
    /// The slots that note the use of links that work once, for all instances.
    pub(super) used: Arc<dyn Slots>,
    /// The longest lifetime of a link.
    pub(crate) max_expires: Duration,
}

impl ContentLinks {
    /// Links signed by `keys` that work for at most `max_expires`; `used` holds those that work once.
    pub fn new(
        keys: KeyRing,
        clock: Arc<dyn Clock>,
        used: Arc<dyn Slots>,
        max_expires: Duration,
    ) -> Self {
        Self { signer: LinkSigner::new(keys, clock), base: OnceLock::new(), used, max_expires }
    }

    /// Sets the URL under which links are reachable, unless it is known.
    pub fn reachable_at(&self, base: BaseUrl) {
        let _ = self.base.set(base);
    }

    /// The URL under which links are reachable, if it is known.
    pub(crate) fn base(&self) -> Option<&BaseUrl> {
        self.base.get()
    }

    /// The time by which links expire.
    pub(crate) fn now(&self) -> Timestamp {
        self.signer.now()
    }

    /// A URL to download content under a file name. None if the server does not know its URL.
    pub(crate) fn download_url(&self, claims: &Download, file_name: &str) -> Option<String> {
        let base = self.base()?;
        let token = self.signer.sign(claims, &[base.as_str(), file_name]);
        Some(format!("{base}{DOWNLOAD_PATH}/{token}/{}", encode_segment(file_name)))
    }

    /// The permission of a link to download, if it is one of this server that has not expired.
    pub(crate) fn download(&self, token: &str, file_name: &str) -> Option<Download> {
        self.open(token, &[file_name])
    }

    /// The URL of a page that gives the content once. None if the server does not know its URL.
    pub(crate) fn once_url(&self, claims: &Once) -> Option<String> {
        let base = self.base()?;
        let token = self.signer.sign(claims, &[base.as_str()]);
        Some(format!("{base}{ONCE_PATH}/{token}"))
    }

    /// The permission of a link that works once, if it is one of this server that has not expired.
    pub(crate) fn once(&self, token: &str) -> Option<Once> {
        self.open(token, &[])
    }

    /// Whether a link that works once is used.
    ///
    /// # Errors
    /// The store does not respond.
    pub(crate) async fn is_used(&self, once: &Once) -> Result<bool, VaultError> {
        Ok(self.used.read(&slot(once)).await?.version > 0)
    }

    /// Uses a link that works once. Returns whether it was unused: one caller gets `true`, on all
    /// instances together.
    ///
    /// # Errors
    /// The store does not respond, or remembers too many links.
    pub(crate) async fn consume(&self, once: &Once) -> Result<bool, VaultError> {
        let ttl = once.expires().since(self.now()) + CLOCK_MARGIN;
        self.used.replace(&slot(once), 0, b"used".to_vec(), Some(ttl)).await
    }

    /// The URL to download what a used link permits, for a minute.
    pub(crate) fn consumed_url(&self, once: &Once) -> Option<String> {
        let expires = self.now().saturating_add(CONSUMED_EXPIRES);
        let download = Download { expires, ..once.download.clone() };
        self.download_url(&download, &once.file_name)
    }

    pub(super) fn open<C: Claims>(&self, token: &str, bound: &[&str]) -> Option<C> {
        let base = [self.base()?.as_str()];
        self.signer.open(token, &[&base, bound].concat())
    }
}

/// The slot that says whether a link is used.
fn slot(once: &Once) -> String {
    format!("once:{}", once.download.nonce)
}
