//! [`LoginRecord`]: what is kept of one principal's login at one upstream.

use larder_oauth::{
    Owner,
    client::{LoginState, RefreshLease, ResponseIssuer, Verifier},
};
use larder_runtime::clock::Timestamp;
use larder_server::registry::{LoginProblem, LoginSite};
use serde::{Deserialize, Serialize};

use super::{
    client::unavailable,
    tokens::{TokenSource, Tokens},
};

/// How often a change is tried again after another instance's.
const ATTEMPTS: usize = 10;

/// The record of one principal's login.
#[derive(Default, Clone, Serialize, Deserialize)]
pub(super) struct LoginRecord {
    pub(super) tokens: Option<Tokens>,
    /// The login that was begun last.
    pub(super) pending: Option<Pending>,
    #[serde(default)]
    pub(super) refreshing_until: RefreshLease,
}

/// A login that was begun.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Pending {
    pub(super) state: LoginState,
    pub(super) verifier: Verifier,
    pub(super) issuer: String,
    /// Whether the response must name the issuer (RFC 9207).
    pub(super) sends_issuer: bool,
    pub(super) source: TokenSource,
    pub(super) expires: Timestamp,
}

impl Pending {
    /// The issuer that the response must name.
    pub(super) fn response_issuer(&self) -> ResponseIssuer {
        ResponseIssuer { issuer: Some(self.issuer.clone()), is_required: self.sends_issuer }
    }
}

/// One principal's record.
#[derive(Clone)]
pub(super) struct LoginSlot {
    site: LoginSite,
    name: String,
}

impl LoginSlot {
    pub(super) fn new(site: &LoginSite, upstream: &str, owner: &Owner) -> Self {
        Self { site: site.clone(), name: format!("login/{upstream}/{owner}") }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.site.clock.now()
    }

    /// The record, and its version.
    pub(super) async fn read(&self) -> Result<(LoginRecord, u64), LoginProblem> {
        let (record, version) =
            self.site.vault.read::<LoginRecord>(&self.name).await.map_err(unavailable)?;
        Ok((record.unwrap_or_default(), version))
    }

    /// Replaces the record if it has not changed since. Returns whether it did.
    pub(super) async fn replace(
        &self,
        version: u64,
        record: &LoginRecord,
    ) -> Result<bool, LoginProblem> {
        let is_empty = record.tokens.is_none() && record.pending.is_none();
        let record = (!is_empty).then_some(record);
        self.site.vault.replace(&self.name, version, record).await.map_err(unavailable)
    }

    /// Changes the record, whatever it is now. `change` returns `None` to leave it. Returns what
    /// it was before.
    pub(super) async fn change(
        &self,
        change: impl Fn(LoginRecord) -> Option<LoginRecord> + Send,
    ) -> Result<LoginRecord, LoginProblem> {
        for _ in 0..ATTEMPTS {
            let (before, version) = self.read().await?;
            let Some(after) = change(before.clone()) else { return Ok(before) };
            if self.replace(version, &after).await? {
                return Ok(before);
            }
        }
        Err(LoginProblem::Unavailable("the login changes all the time".to_owned()))
    }
}
