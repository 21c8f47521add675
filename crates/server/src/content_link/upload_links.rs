//! Makes and checks links to upload content, and notes their use for all instances.

use std::time::Duration;

use larder_oauth::Owner;
use larder_runtime::clock::Timestamp;
use larder_store::vault::{Slot, VaultError};

use super::{
    Claims, ContentLinks,
    upload::{Receipt, Upload, UploadUse},
};

/// The path of links to upload, before the token.
pub const UPLOAD_PATH: &str = "/content/u";

/// How long it is known what became of a link. The keys of links that instances share live as
/// long at least.
const KNOWN_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// How often a change of the use is tried, if others change it at the same time.
const ATTEMPTS: usize = 8;

/// How long an upload uses a link unless it renews that: after a crash, others may use the link
/// from then on. The clocks of instances have to agree better than that.
const LEASE: Duration = Duration::from_secs(15);

/// How often an upload renews its use of a link.
pub const RENEWAL: Duration = Duration::from_secs(5);

impl ContentLinks {
    /// A URL to upload content. None if the server does not know its URL.
    pub(crate) fn upload_url(&self, claims: &Upload) -> Option<String> {
        let base = self.base()?;
        let token = self.signer.sign(claims, &[base.as_str()]);
        Some(format!("{base}{UPLOAD_PATH}/{token}"))
    }

    /// The permission of a link to upload, if it is one of this server that has not expired.
    pub(crate) fn upload(&self, token: &str) -> Option<Upload> {
        self.open(token, &[])
    }

    /// The ID by which the owner asks what became of the link.
    pub(crate) fn receipt_id(&self, claims: &Upload) -> String {
        let receipt = Receipt {
            id: claims.id.clone(),
            uri: claims.uri.clone(),
            link_expires: claims.expires,
            expires: self.now().saturating_add(KNOWN_FOR),
        };

        self.signer.sign(&receipt, &[claims.owner.as_str()])
    }

    /// The receipt of an ID of that owner, as long as the end of the link is known.
    pub(crate) fn receipt(&self, id: &str, owner: &Owner) -> Option<Receipt> {
        self.signer.open(id, &[owner.as_str()])
    }

    /// How the link of that ID was used.
    ///
    /// # Errors
    /// The store does not respond.
    pub(crate) async fn upload_use(&self, id: &str) -> Result<UploadUse, VaultError> {
        Ok(use_of(&self.used.read(&slot(id)).await?))
    }

    /// Notes that the upload `by` uses the link, for another [`LEASE`]: it extends its claim. Before
    /// it has one, that content arrives.
    ///
    /// # Errors
    /// The store does not respond, or remembers too many links.
    pub(crate) async fn renew(&self, link: &Upload, by: &str) -> Result<(), VaultError> {
        let (now, until) = (self.now(), self.lease());

        self.change_use(link, |used| match used {
            UploadUse::Claimed(other, _) if other == by => {
                UseChange::To(UploadUse::Claimed(other.clone(), until))
            }
            // A recent renewal covers all uploads through the link.
            UploadUse::Receiving(noted) if *noted > now.saturating_add(LEASE / 2) => {
                UseChange::None(true)
            }
            used if used.permits(None, now) => UseChange::To(UploadUse::Receiving(until)),
            _ => UseChange::None(false),
        })
        .await
        .map(drop)
    }

    /// Claims the link for the upload `by`. Returns whether the link is claimed for it: one
    /// upload gets `true`, on all instances together, until it releases the link or its lease
    /// ends.
    ///
    /// # Errors
    /// As [`Self::renew`].
    pub(crate) async fn claim(&self, link: &Upload, by: &str) -> Result<bool, VaultError> {
        let (now, until) = (self.now(), self.lease());

        self.change_use(link, |used| match used {
            UploadUse::Stored(other) => UseChange::None(other == by),
            used if used.permits(Some(by), now) => {
                UseChange::To(UploadUse::Claimed(by.to_owned(), until))
            }
            _ => UseChange::None(false),
        })
        .await
    }

    /// Notes that the upload `by`, which has claimed the link, is stored.
    ///
    /// # Errors
    /// As [`Self::renew`].
    pub(crate) async fn stored(&self, link: &Upload, by: &str) -> Result<bool, VaultError> {
        let stored = UploadUse::Stored(by.to_owned());
        self.change_use(link, |used| {
            if *used == stored { UseChange::None(true) } else { UseChange::To(stored.clone()) }
        })
        .await
    }

    /// Notes that the upload `by` does not use the link any more. Others may use it then, unless
    /// it is stored.
    ///
    /// # Errors
    /// As [`Self::renew`].
    pub(crate) async fn release(&self, link: &Upload, by: &str) -> Result<bool, VaultError> {
        self.change_use(link, |used| match used {
            UploadUse::Claimed(other, _) if other == by => UseChange::To(UploadUse::Unused),
            UploadUse::Receiving(_) => UseChange::To(UploadUse::Unused),
            _ => UseChange::None(false),
        })
        .await
    }

    fn lease(&self) -> Timestamp {
        self.now().saturating_add(LEASE)
    }

    /// Changes the use as `change` says of the present one.
    async fn change_use(
        &self,
        link: &Upload,
        change: impl Fn(&UploadUse) -> UseChange,
    ) -> Result<bool, VaultError> {
        let slot = slot(&link.id);

        for _ in 0..ATTEMPTS {
            let found = self.used.read(&slot).await?;
            let next = match change(&use_of(&found)) {
                UseChange::None(is_right) => return Ok(is_right),
                UseChange::To(next) => next,
            };

            // Serialization never fails for strings and numbers.
            let content = serde_json::to_vec(&next).unwrap_or_default();
            let ttl = KNOWN_FOR.max(link.expires().since(self.now()));
            if self.used.replace(&slot, found.version, content, Some(ttl)).await? {
                return Ok(true);
            }
        }

        Ok(false)
    }
}

/// The new state of a link's use.
enum UseChange {
    /// The use changes to this one.
    To(UploadUse),
    /// The use stays; the value says whether it is as it should be.
    None(bool),
}

fn use_of(slot: &Slot) -> UploadUse {
    if slot.content.is_empty() {
        return UploadUse::Unused;
    }

    // Unreadable content was written by another version, so nobody may use the link.
    serde_json::from_slice(&slot.content).unwrap_or_else(|_| UploadUse::Stored(String::new()))
}

/// The slot that says how the link of that ID was used.
fn slot(id: &str) -> String {
    format!("upload:{id}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use super::*;
    use larder_runtime::{clock::ManualClock, key_ring::KeyRing};
    use larder_store::{store::ResourceUri, vault::MemorySlots};

    use crate::content_link::BaseUrl;

    fn links(clock: &ManualClock) -> ContentLinks {
        let clock: Arc<ManualClock> = Arc::new(clock.clone());
        let used = Arc::new(MemorySlots::new(clock.clone(), 100));
        let links = ContentLinks::new(KeyRing::new(*b"key"), clock, used, KNOWN_FOR);
        links.reachable_at(BaseUrl::of_endpoint("https://a.example/mcp", "/mcp"));
        links
    }

    fn upload(links: &ContentLinks) -> Upload {
        Upload {
            owner: Owner::new("ann"),
            uri: ResourceUri::parse("x:1").unwrap(),
            name: Some("a.txt".into()),
            mime_type: None,
            size: Some(3),
            sha256: None,
            ttl: Some(Duration::from_millis(1500)),
            expires: links.now().saturating_add(Duration::from_secs(60)),
            id: "1".into(),
        }
    }

    #[test]
    fn a_link_has_its_claims_until_it_expires_and_is_none_of_another_kind() {
        let clock = ManualClock::new();
        let links = links(&clock);
        let claims = upload(&links);

        let url = links.upload_url(&claims).unwrap();
        let token = url.strip_prefix("https://a.example/content/u/").unwrap();
        assert_eq!(links.upload(token), Some(claims.clone()));
        assert_eq!((links.once(token), links.download(token, "")), (None, None));

        let id = links.receipt_id(&claims);
        assert_eq!(links.upload(&id), None);
        assert_eq!(links.receipt(token, &claims.owner), None);
        assert_eq!(links.receipt(&id, &Owner::new("ben")), None);

        clock.advance(Duration::from_secs(60));
        assert_eq!(links.upload(token), None);
        let receipt = links.receipt(&id, &claims.owner).unwrap();
        assert_eq!((receipt.id, receipt.link_expires), (claims.id, claims.expires));

        clock.advance(KNOWN_FOR);
        assert_eq!(links.receipt(&id, &claims.owner), None);
    }

    #[tokio::test]
    async fn one_upload_claims_a_link_until_it_releases_it() {
        let links = links(&ManualClock::new());
        let link = upload(&links);

        assert!(links.claim(&link, "a").await.unwrap());
        assert!(links.claim(&link, "a").await.unwrap(), "it may be asked again");
        assert!(!links.claim(&link, "b").await.unwrap());
        assert!(!links.release(&link, "b").await.unwrap());

        let now = links.now();
        let used = links.upload_use("1").await.unwrap();
        assert!(used.permits(Some("a"), now) && !used.permits(Some("b"), now));
        assert!(!used.permits(None, now) && used.is_receiving(now));

        assert!(links.release(&link, "a").await.unwrap());
        assert!(links.upload_use("1").await.unwrap().permits(None, now));

        assert!(links.claim(&link, "b").await.unwrap());
        assert!(links.stored(&link, "b").await.unwrap());
        assert!(!links.release(&link, "b").await.unwrap());
        assert!(!links.claim(&link, "a").await.unwrap());
        assert!(links.claim(&link, "b").await.unwrap());
        assert_eq!(links.upload_use("1").await.unwrap(), UploadUse::Stored("b".into()));
    }

    #[tokio::test]
    async fn a_claim_ends_unless_it_is_renewed() {
        let clock = ManualClock::new();
        let links = links(&clock);
        let link = upload(&links);

        links.renew(&link, "a").await.unwrap();
        let used = links.upload_use("1").await.unwrap();
        assert!(used.is_receiving(links.now()) && used.permits(None, links.now()));

        assert!(links.claim(&link, "a").await.unwrap());
        clock.advance(LEASE / 2);
        links.renew(&link, "a").await.unwrap();
        // Another upload does not extend the claim.
        links.renew(&link, "b").await.unwrap();

        clock.advance(LEASE / 2);
        assert!(!links.claim(&link, "b").await.unwrap(), "it was renewed");

        clock.advance(LEASE / 2);
        assert!(!links.upload_use("1").await.unwrap().is_receiving(links.now()));
        assert!(links.claim(&link, "b").await.unwrap());
        assert!(!links.claim(&link, "a").await.unwrap());
    }
}
