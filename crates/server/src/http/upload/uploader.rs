//! The sender of an upload: a caller with a bearer token, or anyone with a link.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use larder_oauth::{Identity, Owner};
use larder_store::{
    store::{PartialUpload, Reserves, Store},
    vault::VaultError,
};

use super::{
    access,
    announced::{Announced, bad},
    parameters::Parameters,
};
use crate::{
    content_link::{ContentLinks, NOT_FOUND, RENEWAL, Upload},
    http::{Endpoint, UPLOADS_PATH, error::Reply, head::Head, problem::Problem},
};

/// The most uploads in parts by one link at a time: a client that lost the response to its first
/// request begins another one.
const MAX_UPLOADS: usize = 2;

/// The sender of an upload.
pub(in crate::http) enum Uploader<'a> {
    /// A caller with a bearer token.
    Caller(&'a Identity),
    /// Anyone with this link.
    Link(UploadLink),
}

/// A valid link.
#[derive(Clone)]
pub(in crate::http) struct UploadLink {
    pub(in crate::http) links: Arc<ContentLinks>,
    pub(in crate::http) claims: Arc<Upload>,
}

impl Uploader<'_> {
    /// The owner of what is stored.
    pub(super) fn owner(&self) -> &Owner {
        match self {
            Self::Caller(identity) => identity.owner(),
            Self::Link(link) => &link.claims.owner,
        }
    }

    /// The bytes that count towards the owner's quota before they arrive. The holder of a link
    /// could announce content that never comes, and nobody else could store anything meanwhile.
    pub(super) fn reserves(&self) -> Reserves {
        match self {
            Self::Caller(_) => Reserves::Announced,
            Self::Link(_) => Reserves::Arrived,
        }
    }

    /// Ends the oldest uploads in parts by a link if there are too many with the one that has
    /// begun, and that one if the link was used meanwhile.
    ///
    /// # Errors
    /// 404 if the link was used.
    pub(super) async fn admit_upload(&self, store: &Store, upload: &PartialUpload) -> Reply<()> {
        let Self::Link(UploadLink { links, claims }) = self else { return Ok(()) };
        let owner = &claims.owner;
        let others = MAX_UPLOADS - 1;
        store.end_uploads(owner, &claims.id, others, Some(upload.id())).await?;

        let used = links.upload_use(&claims.id).await.map_err(|error| unavailable(&error))?;
        if used.permits(None, links.now()) {
            return Ok(());
        }

        upload.cancel().await?;
        Err(Problem::new(StatusCode::NOT_FOUND, NOT_FOUND).into())
    }

    /// Checks that the uploader may store resources. The maker of a link could.
    pub(super) fn authorize(&self, endpoint: &Endpoint) -> Reply<()> {
        match self {
            Self::Caller(identity) => access::authorize(endpoint, identity),
            Self::Link(_) => Ok(()),
        }
    }

    /// The parameters of a request that stores. A link fixes them but for the name, if it has
    /// none.
    pub(super) fn parameters(&self, head: &Head) -> Result<Parameters, Problem> {
        let query = head.query();
        let Self::Link(UploadLink { claims, .. }) = self else { return Parameters::of(query) };

        let mut parameters = Parameters::default();
        for (name, value) in Parameters::pairs(query) {
            if name != "name" {
                return Err(bad("A link takes no parameter but name: it has them itself.".into()));
            }
            parameters.set(name, &value?)?;
        }

        parameters.uri = Some(claims.uri.clone());
        parameters.details.name = claims.name.clone().or(parameters.details.name);
        parameters.details.ttl = claims.ttl;
        Ok(parameters)
    }

    /// Whether the metadata of tus may set this parameter.
    pub(super) fn may_set(&self, name: &str) -> bool {
        matches!(self, Self::Caller(_)) || name == "name"
    }

    /// The announcement of the headers, which the link must not contradict.
    ///
    /// # Errors
    /// 400 if they differ.
    pub(super) fn announced(&self, mut announced: Announced) -> Result<Announced, Problem> {
        let Self::Link(UploadLink { claims, .. }) = self else { return Ok(announced) };

        let sha256 = &mut announced.expected.sha256;
        if let Some(fixed) = &claims.sha256
            && sha256.replace(fixed.clone()).is_some_and(|sent| sent != *fixed)
        {
            return Err(bad(format!("The link is for content of the SHA-256 {fixed} only.")));
        }

        announced.expected.size = self.size(announced.expected.size)?;
        announced.mime_type = claims.mime_type.clone().or(announced.mime_type);
        Ok(announced)
    }

    /// The size of the whole content, if the uploader or the link announces one.
    ///
    /// # Errors
    /// 400 if they differ.
    pub(super) fn size(&self, announced: Option<u64>) -> Result<Option<u64>, Problem> {
        let Self::Link(UploadLink { claims, .. }) = self else { return Ok(announced) };
        match (claims.size, announced) {
            (Some(fixed), Some(size)) if fixed != size => Err(bad(format!(
                "Size is {size}, but the link is for {fixed} bytes: nothing was stored."
            ))),
            (fixed, announced) => Ok(fixed.or(announced)),
        }
    }

    /// The ID of a new upload in parts. A link finds only its own.
    pub(super) fn new_id(&self, endpoint: &Endpoint) -> String {
        let id = endpoint.random.id();
        match self {
            Self::Caller(_) => id,
            Self::Link(link) => format!("{}{id}", link.claims.id),
        }
    }

    /// Whether the upload of that ID may be the uploader's.
    pub(super) fn may_own(&self, id: &str) -> bool {
        match self {
            Self::Caller(_) => true,
            Self::Link(link) => id.starts_with(&*link.claims.id),
        }
    }

    /// The URL of a new upload, relative to the request that begins it.
    pub(super) fn location(&self, head: &Head, id: &str) -> String {
        match self {
            // A proxy may add a prefix to all paths.
            Self::Caller(_) => format!("{}/{id}", UPLOADS_PATH.trim_start_matches('/')),
            Self::Link(_) => {
                let token = head.path().rsplit('/').next().unwrap_or_default();
                format!("{token}/{id}")
            }
        }
    }

    /// The time that an upload in parts has: not longer than its link.
    pub(super) fn ttl(&self, max: Duration) -> Duration {
        match self {
            Self::Caller(_) => max,
            Self::Link(link) => max.min(link.claims.expires.since(link.links.now())),
        }
    }

    /// The use of a link that is claimed before the content of that upload becomes visible.
    pub(super) fn claim(&self, upload: &str) -> Claim {
        Claim(match self {
            Self::Caller(_) => None,
            Self::Link(link) => Some((link.clone(), upload.to_owned())),
        })
    }
}

/// The only use of a link, by an upload. Callers need none.
#[derive(Clone)]
pub(super) struct Claim(Option<(UploadLink, String)>);

impl Claim {
    /// Claims the link.
    ///
    /// # Errors
    /// 404 if another upload has.
    pub(super) async fn acquire(&self) -> Result<(), Problem> {
        let Some((UploadLink { links, claims }, upload)) = &self.0 else { return Ok(()) };
        match links.claim(claims, upload).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Problem::new(StatusCode::NOT_FOUND, NOT_FOUND)),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Runs the upload, and notes meanwhile that it uses the link.
    pub(super) async fn during<T>(&self, upload: impl Future<Output = T>) -> T {
        let Some((UploadLink { links, claims }, by)) = &self.0 else { return upload.await };

        let renewing = async {
            loop {
                noted(links.renew(claims, by).await);
                tokio::time::sleep(RENEWAL).await;
            }
        };

        tokio::select! {
            biased;
            () = renewing => unreachable!("it has no end"),
            uploaded = upload => uploaded,
        }
    }

    /// Notes that the content is stored. All other uploads by the link end, because a used link
    /// counts nothing towards the quota of its maker.
    pub(super) async fn stored(&self, store: &Store) {
        let Some((UploadLink { links, claims }, upload)) = &self.0 else { return };
        noted(links.stored(claims, upload).await);

        if let Err(error) = store.end_uploads(&claims.owner, &claims.id, 0, None).await {
            tracing::warn!(%error, "other uploads by a used link remain until they expire");
        }
    }

    /// Lets another upload use the link.
    pub(super) async fn release(&self) {
        let Some((UploadLink { links, claims }, upload)) = &self.0 else { return };
        noted(links.release(claims, upload).await);
    }
}

/// The response where the use of a link cannot be read or noted.
fn unavailable(error: &VaultError) -> Problem {
    tracing::error!(%error, "the use of a link cannot be checked or noted");
    let detail = "The store is not available now; try again shortly.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

/// Others may use the link when the lease ends, if that cannot be noted.
fn noted<T>(noted: Result<T, VaultError>) {
    if let Err(error) = noted {
        tracing::error!(%error, "the use of a link cannot be noted");
    }
}
