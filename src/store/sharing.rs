//! Sharing: a link by which others read a resource of somebody else's.
//!
//! A link is a small resource of the sharer's own, `larder://shared/OWNER/ID`,
//! that says which resource is meant and who may read it by the link. So it is
//! counted, listed and deleted as any other, and expires with what it shares;
//! and whoever reads it is led by its name to its owner, without any index. It
//! can never lead to another owner's things, whoever wrote what it says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Content, Details, Entry, Found, ResourceUri, Store, StoreError};
use crate::{
    auth::{Identity, Owner, Scopes},
    clock::Timestamp,
};

const LINKS: &str = "larder://shared/";

const MIME_TYPE: &str = "application/vnd.larder.link+json";

/// What is longer is no link.
const LONGEST: u64 = 8 * 1024;

/// Who may read a resource by its link. All others find nothing there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Audience {
    /// Everyone who may use the server and has the link.
    Everyone,
    /// Those of them whose token has that scope.
    Scope(String),
    /// Those of them who are in that group, by the word of the sharer's own
    /// issuer.
    Group(String),
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// Whose it is.
    pub owner: Owner,
    /// Its own name.
    pub uri: ResourceUri,
    /// When the link expires.
    pub until: Timestamp,
}

/// What a link says.
#[derive(Serialize, Deserialize)]
struct Link {
    uri: ResourceUri,
    /// Of the resource that is meant: another of that name is not.
    created: Timestamp,
    audience: Audience,
    /// Whose groups count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<Arc<str>>,
}

impl Link {
    fn written(&self) -> Content {
        serde_json::to_string(self).expect("it is JSON").into()
    }

    fn admits(&self, reader: &Identity) -> bool {
        match &self.audience {
            Audience::Everyone => true,
            Audience::Scope(scope) => {
                Scopes::required([scope]).is_ok_and(|scope| reader.allows(&scope))
            }
            Audience::Group(group) => {
                reader.principal().issuer() == self.issuer.as_deref() && reader.in_group(group)
            }
        }
    }
}

/// Whether that names a link, be there one or not.
pub(super) fn is_link(uri: &ResourceUri) -> bool {
    uri.as_str().starts_with(LINKS)
}

/// Whose link that is, if it is one.
fn sharer(uri: &ResourceUri) -> Option<Owner> {
    let (owner, id) = uri.as_str().strip_prefix(LINKS)?.split_once('/')?;
    (!owner.is_empty() && !id.is_empty()).then(|| Owner::new(owner))
}

impl Store {
    /// Lets others read one of the sharer's resources, by the link that this
    /// gives; `id` makes it, so it must be one that nobody can guess. The link
    /// expires when the resource would now, and ends when that is deleted or
    /// created anew; updates are seen through it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`], and
    /// [`StoreError::Full`]: a link counts as a resource.
    pub async fn share(
        &self,
        sharer: &Identity,
        uri: &ResourceUri,
        audience: Audience,
        id: &str,
    ) -> Result<Arc<Entry>, StoreError> {
        if is_link(uri) {
            // It would let audiences be mixed.
            return Err(StoreError::NotFound { uri: uri.clone() });
        }
        let owner = sharer.owner();
        let shared = self.get(owner, uri).await?.entry;
        let link = ResourceUri::parse(&format!("{LINKS}{owner}/{id}"))?;
        let details = Details {
            name: Some(format!("Link to {}", shared.name)),
            description: Some(format!("{} is shared by it", shared.uri)),
            ttl: Some(shared.expires.since(self.now())),
            ..Details::default()
        };
        let (created, issuer) = (shared.created, sharer.principal().issuer().map(Arc::from));
        let said = Link { uri: uri.clone(), created, audience, issuer };
        let content = said.written().with_mime_type(MIME_TYPE);
        self.put_new(owner, link, content, details).await
    }

    /// What that reader finds under a name: a resource of their own, or one
    /// that a link shares with them.
    ///
    /// # Errors
    /// Those of [`Store::get`]. A link that is not for them is not there.
    pub async fn read(&self, reader: &Identity, uri: &ResourceUri) -> Result<Found, StoreError> {
        self.read_revision(reader, uri, None).await
    }

    /// The same of a revision.
    ///
    /// # Errors
    /// Those of [`Store::revision`].
    pub async fn read_revision(
        &self,
        reader: &Identity,
        uri: &ResourceUri,
        revision: Option<u64>,
    ) -> Result<Found, StoreError> {
        let Some(owner) = sharer(uri) else {
            return self.revision(reader.owner(), uri, revision).await;
        };
        let shared = self.behind(reader, &owner, uri).await?.uri;
        let found = self.revision(&owner, &shared, revision).await;
        found.map(|found| found.under(uri)).map_err(|error| renamed(error, uri))
    }

    /// The revisions that are kept of what that reader finds there, as
    /// [`Store::revisions`] gives them.
    ///
    /// # Errors
    /// Those of [`Store::get`].
    pub async fn read_revisions(
        &self,
        reader: &Identity,
        uri: &ResourceUri,
    ) -> Result<Vec<Found>, StoreError> {
        let Some(owner) = sharer(uri) else { return self.revisions(reader.owner(), uri).await };
        let shared = self.behind(reader, &owner, uri).await?.uri;
        let found = self.revisions(&owner, &shared).await.map_err(|error| renamed(error, uri))?;
        Ok(found.into_iter().map(|found| found.under(uri)).collect())
    }

    /// What a link leads that reader to; nothing where the name is none of a
    /// link.
    ///
    /// # Errors
    /// Those of [`Store::get`]. A link that is not for them is not there.
    pub async fn leads_to(
        &self,
        reader: &Identity,
        uri: &ResourceUri,
    ) -> Result<Option<Shared>, StoreError> {
        match sharer(uri) {
            Some(owner) => self.behind(reader, &owner, uri).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether that reader may be told what happens under a name: to their own
    /// always, to others' as long as they may read it. Where that cannot be
    /// found out, they may not.
    pub async fn may_hear(&self, reader: &Identity, uri: &ResourceUri) -> bool {
        match sharer(uri).filter(|owner| owner != reader.owner()) {
            Some(owner) => self.behind(reader, &owner, uri).await.is_ok(),
            None => true,
        }
    }

    async fn behind(
        &self,
        reader: &Identity,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Shared, StoreError> {
        let nothing = || StoreError::NotFound { uri: uri.clone() };
        let link = match self.get(owner, uri).await {
            // That there was one is between those whom it was for.
            Err(error) if error.is_not_found() && reader.owner() != owner => return Err(nothing()),
            link => link?,
        };
        if link.entry.mime_type != MIME_TYPE || link.entry.size > LONGEST {
            return Err(nothing());
        }
        let said = link.bytes().await.map_err(|error| renamed(error, uri))?;
        let Ok(said) = serde_json::from_slice::<Link>(&said) else { return Err(nothing()) };
        if reader.owner() != owner && !said.admits(reader) {
            return Err(nothing());
        }
        let shared = self.get(owner, &said.uri).await.map_err(|error| renamed(error, uri))?;
        if shared.entry.created != said.created {
            return Err(nothing());
        }
        Ok(Shared { owner: owner.clone(), uri: said.uri, until: link.entry.expires })
    }
}

impl Found {
    fn under(self, uri: &ResourceUri) -> Self {
        let entry = Entry { uri: uri.clone(), ..Entry::clone(&self.entry) };
        Self { entry: Arc::new(entry), ..self }
    }
}

/// What readers are told names the link, not what it leads to.
fn renamed(error: StoreError, uri: &ResourceUri) -> StoreError {
    let uri = uri.clone();
    match error {
        StoreError::NotFound { .. } | StoreError::Expired { .. } => StoreError::NotFound { uri },
        StoreError::NoRevision { revision, kept, .. } => {
            StoreError::NoRevision { uri, revision, kept }
        }
        StoreError::Corrupt { source, .. } => StoreError::Corrupt { uri, source },
        error => error,
    }
}
