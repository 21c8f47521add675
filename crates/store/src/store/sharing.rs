//! Sharing: links through which other callers read an owner's resource.
//!
//! A link is a small resource of the sharer, `larder://shared/OWNER/ID`, that names the shared
//! resource and its audience. It is counted, listed and deleted as any other resource, and
//! expires with the resource that it shares. Its URI names its owner, so no index is needed. A
//! link can only lead to resources of its own owner, whoever wrote its content.

use std::{sync::Arc, time::Duration};

use larder_identity::{Identity, Owner, Scopes};
use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Content, Details, Entry, ResourceUri, Store, StoreError, StoredResource,
    facade::select_revision,
};

const LINK_PREFIX: &str = "larder://shared/";

const MIME_TYPE: &str = "application/vnd.larder.link+json";

/// The maximum size of a link; a larger resource is no link.
const MAX_LINK_BYTES: u64 = 8 * 1024;

/// The callers who may read a resource by its link. All others get "not found".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Audience {
    /// Everyone who may use the server and has the link.
    Everyone,
    /// Callers with the link whose token has this scope, from the same issuer as the
    /// sharer's token.
    Scope(String),
    /// Callers with the link who are in this group, from the same issuer as the sharer.
    Group(String),
}

/// The terms on which a resource is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The callers who may read the resource by the link.
    pub audience: Audience,
    /// The life of the link, if shorter than the life of the resource.
    pub ttl: Option<Duration>,
    /// Whether readers see the revisions from before the link.
    pub earlier_revisions: bool,
}

/// A share until the resource expires, from its present revision on.
impl From<Audience> for Share {
    fn from(audience: Audience) -> Self {
        Self { audience, ttl: None, earlier_revisions: false }
    }
}

/// The resource that a link shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTarget {
    /// The resource's owner.
    pub owner: Owner,
    /// The resource's own URI.
    pub uri: ResourceUri,
    /// When the link expires.
    pub until: Timestamp,
}

/// The content of a link.
#[derive(Serialize, Deserialize)]
struct StoredLink {
    uri: ResourceUri,
    /// When the shared resource was created. A later resource of the same URI is not
    /// shared.
    created: Timestamp,
    /// The first revision that is shared. Links of earlier versions of Larder lack this field,
    /// and share only the current revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    audience: Audience,
    /// The issuer whose scopes and groups count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<Arc<str>>,
}

impl StoredLink {
    fn to_content(&self) -> Content {
        serde_json::to_string(self).expect("it is JSON").into()
    }

    /// Whether the reader belongs to the audience.
    fn admits(&self, reader: &Identity) -> bool {
        // Two issuers may use the same name for different scopes or groups.
        let same_issuer = reader.principal().issuer() == self.issuer.as_deref();
        match &self.audience {
            Audience::Everyone => true,
            Audience::Scope(scope) => {
                let scope = Scopes::required([scope]);
                same_issuer && scope.is_ok_and(|scope| reader.allows(&scope))
            }
            Audience::Group(group) => same_issuer && reader.in_group(group),
        }
    }

    /// The shared revisions among all revisions of a resource, oldest first and the current
    /// revision last.
    fn shared(&self, mut revisions: Vec<StoredResource>) -> Vec<StoredResource> {
        let Some(current) = revisions.last().map(|current| Arc::clone(&current.entry)) else {
            return revisions;
        };
        if current.created != self.created {
            return Vec::new();
        }

        let first = self.from.unwrap_or(current.revision).min(current.revision);
        revisions.retain(|found| found.entry.revision >= first);
        revisions
    }
}

/// The reader of a link.
#[derive(Clone, Copy)]
enum LinkReader<'a> {
    Caller(&'a Identity),
    /// A reader with a permission that the sharer, or a reader of the link, has given.
    Admitted,
}

impl LinkReader<'_> {
    fn is(self, owner: &Owner) -> bool {
        matches!(self, Self::Caller(caller) if caller.owner() == owner)
    }

    fn is_admitted(self, link: &StoredLink, sharer: &Owner) -> bool {
        match self {
            Self::Caller(caller) => caller.owner() == sharer || link.admits(caller),
            Self::Admitted => true,
        }
    }
}

/// Whether a URI has the form of a link's URI, whether or not the link exists.
pub(super) fn is_link(uri: &ResourceUri) -> bool {
    uri.as_str().starts_with(LINK_PREFIX)
}

/// The owner of the link, if the URI has the form of a link's URI.
fn sharer(uri: &ResourceUri) -> Option<Owner> {
    let (owner, id) = uri.as_str().strip_prefix(LINK_PREFIX)?.split_once('/')?;
    (!owner.is_empty() && !id.is_empty()).then(|| Owner::new(owner))
}

impl Store {
    /// Creates a link through which others can read one of the sharer's resources.
    /// `id` becomes part of its URI and must be unguessable. The link expires at
    /// the resource's present expiry or earlier, and stops working when the resource
    /// is deleted or created again. Updates are visible through the link; revisions from
    /// before the link only if `share` includes them.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`], [`StoreError::InvalidTtl`],
    /// and [`StoreError::Full`]: a link counts as a resource.
    pub async fn share(
        &self,
        sharer: &Identity,
        uri: &ResourceUri,
        share: impl Into<Share>,
        id: &str,
    ) -> Result<Arc<Entry>, StoreError> {
        let Share { audience, ttl, earlier_revisions } = share.into();
        if is_link(uri) {
            // A link to a link would combine two audiences.
            return Err(StoreError::NotFound { uri: uri.clone() });
        }

        let owner = sharer.owner();
        let shared = self.get(owner, uri).await?.entry;
        let remaining = shared.expires.since(self.now()).max(Duration::from_millis(1));
        let link = ResourceUri::parse(&format!("{LINK_PREFIX}{owner}/{id}"))?;

        let details = Details {
            name: Some(format!("Link to {}", shared.name)),
            description: Some(format!("Shares {}", shared.uri)),
            ttl: Some(ttl.map_or(remaining, |ttl| ttl.min(remaining))),
            ..Details::default()
        };

        let content = StoredLink {
            uri: uri.clone(),
            created: shared.created,
            from: Some(if earlier_revisions { 1 } else { shared.revision }),
            audience,
            issuer: sharer.principal().issuer().map(Arc::from),
        };
        let content = content.to_content().with_mime_type(MIME_TYPE);
        self.create_any(owner, link, content, details.shortened()).await
    }

    /// Looks up a resource of the reader, or a resource that a link shares with the reader.
    ///
    /// # Errors
    /// The errors of [`Store::get`]. A link for other readers is not found.
    pub async fn read(
        &self,
        reader: &Identity,
        uri: &ResourceUri,
    ) -> Result<StoredResource, StoreError> {
        self.read_revision(reader, uri, None).await
    }

    /// Looks up a resource as [`read`](Self::read) does, by a name that may be no URI.
    ///
    /// # Errors
    /// The errors of [`Store::read`]; [`StoreError::InvalidUri`] for a name that no stored resource
    /// can have.
    pub async fn read_named(
        &self,
        reader: &Identity,
        name: &str,
    ) -> Result<StoredResource, StoreError> {
        self.read(reader, &ResourceUri::parse(name)?).await
    }

    /// Looks up one revision, as [`read`](Self::read) does.
    ///
    /// # Errors
    /// The errors of [`Store::revision`].
    pub async fn read_revision(
        &self,
        reader: &Identity,
        uri: &ResourceUri,
        revision: Option<u64>,
    ) -> Result<StoredResource, StoreError> {
        let Some(owner) = sharer(uri) else {
            return self.revision(reader.owner(), uri, revision).await;
        };
        let Some(revision) = revision else {
            // Returns the resource that was checked, because another may have the URI by now.
            let (_, _, shared) = self.resolve(LinkReader::Caller(reader), &owner, uri).await?;
            return Ok(shared.with_uri(uri));
        };

        let revisions = self.shared_revisions(LinkReader::Caller(reader), &owner, uri).await?;
        select_revision(revisions, uri, revision)
    }

    /// Looks up a revision for a reader with a permission that its owner, or a reader of the link
    /// that the URI names, has given. Does not check the audience of the link.
    ///
    /// # Errors
    /// The errors of [`Store::revision`].
    pub async fn granted_revision(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        revision: u64,
    ) -> Result<StoredResource, StoreError> {
        let Some(sharer) = sharer(uri) else {
            return self.revision(owner, uri, Some(revision)).await;
        };

        let revisions = self.shared_revisions(LinkReader::Admitted, &sharer, uri).await?;
        select_revision(revisions, uri, revision)
    }

    /// The stored revisions of a resource of the reader, or of a resource that a link
    /// shares with the reader, as [`Store::revisions`] returns them.
    ///
    /// # Errors
    /// The errors of [`Store::get`].
    pub async fn read_revisions(
        &self,
        reader: &Identity,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        let Some(owner) = sharer(uri) else { return self.revisions(reader.owner(), uri).await };
        self.shared_revisions(LinkReader::Caller(reader), &owner, uri).await
    }

    /// The revisions that a link shares, with the URI of the link.
    async fn shared_revisions(
        &self,
        reader: LinkReader<'_>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Vec<StoredResource>, StoreError> {
        let (link, target, _) = self.resolve(reader, owner, uri).await?;
        let found = self.revisions(owner, &target.uri).await;
        let shared = link.shared(found.map_err(|error| with_uri(error, uri))?);

        if shared.is_empty() {
            return Err(StoreError::NotFound { uri: uri.clone() });
        }
        Ok(shared.into_iter().map(|found| found.with_uri(uri)).collect())
    }

    /// The resource that a link shares with the reader; `None` where the URI is not the URI of
    /// a link.
    ///
    /// # Errors
    /// The errors of [`Store::get`]. A link for other readers is not found.
    pub async fn link_target(
        &self,
        reader: &Identity,
        uri: &ResourceUri,
    ) -> Result<Option<LinkTarget>, StoreError> {
        match sharer(uri) {
            Some(owner) => {
                let (_, target, _) = self.resolve(LinkReader::Caller(reader), &owner, uri).await?;
                Ok(Some(target))
            }
            None => Ok(None),
        }
    }

    /// Whether the reader may be notified of changes of a URI: always of their own
    /// resources, of shared resources while they may read them. `false` where the backend
    /// cannot tell.
    pub async fn may_receive_changes(&self, reader: &Identity, uri: &ResourceUri) -> bool {
        match sharer(uri).filter(|owner| owner != reader.owner()) {
            Some(owner) => self.resolve(LinkReader::Caller(reader), &owner, uri).await.is_ok(),
            None => true,
        }
    }

    /// The link, its target, and the current revision of the target.
    async fn resolve(
        &self,
        reader: LinkReader<'_>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<(StoredLink, LinkTarget, StoredResource), StoreError> {
        let not_found = || StoreError::NotFound { uri: uri.clone() };
        let link = match self.get(owner, uri).await {
            // Only the owner of a link learns that it has expired.
            Err(error) if error.is_not_found() && !reader.is(owner) => {
                return Err(not_found());
            }
            link => link?,
        };

        if link.entry.mime_type != MIME_TYPE || link.entry.size > MAX_LINK_BYTES {
            return Err(not_found());
        }

        let content = link.bytes().await.map_err(|error| with_uri(error, uri))?;
        let until = link.entry.expires;
        let Ok(link) = serde_json::from_slice::<StoredLink>(&content) else {
            return Err(not_found());
        };

        if !reader.is_admitted(&link, owner) {
            return Err(not_found());
        }

        let shared = self.get(owner, &link.uri).await.map_err(|error| with_uri(error, uri))?;
        if shared.entry.created != link.created {
            return Err(not_found());
        }

        let target = LinkTarget { owner: owner.clone(), uri: link.uri.clone(), until };
        Ok((link, target, shared))
    }
}

impl StoredResource {
    fn with_uri(self, uri: &ResourceUri) -> Self {
        let entry = Entry { uri: uri.clone(), ..Entry::clone(&self.entry) };
        Self { entry: Arc::new(entry), ..self }
    }
}

/// Replaces the URI in an error: readers see the URI of the link, not the URI of the
/// shared resource.
fn with_uri(error: StoreError, uri: &ResourceUri) -> StoreError {
    let uri = uri.clone();
    match error {
        StoreError::NotFound { .. } | StoreError::Expired { .. } => StoreError::NotFound { uri },
        StoreError::NoRevision { revision, available, .. } => {
            StoreError::NoRevision { uri, revision, available }
        }
        StoreError::Corrupt { source, .. } => StoreError::Corrupt { uri, source },
        error => error,
    }
}
