//! The records of logins, sealed, in slots that expire: tickets of users who have not decided
//! yet, codes, grants, and what users have allowed.

use std::time::Duration;

use larder_oauth::{Owner, Principal, Scopes, client::RefreshLease};
use larder_runtime::clock::Timestamp;
use larder_store::vault::Vault;
use serde::{Deserialize, Serialize};

use super::{Person, Problem, ProviderGrant};

/// How long a user may take for the provider's page, and again for the question.
pub(super) const LOGIN_TTL: Duration = Duration::from_secs(600);
/// How long a code can be redeemed.
pub(super) const CODE_TTL: Duration = Duration::from_secs(60);
/// How long it is known that a code was redeemed.
const REDEEMED_TTL: Duration = Duration::from_secs(24 * 3600);
/// How long consent is remembered, and a client that a user has allowed.
pub(super) const CONSENT_TTL: Duration = Duration::from_secs(90 * 24 * 3600);
/// How often a change is tried again after another instance's.
const ATTEMPTS: usize = 10;

/// A client's request, checked. Sealed in a cookie while the user is at the provider.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CheckedRequest {
    #[serde(rename = "c")]
    pub(super) client: ClientFacts,
    /// The redirect URI, and whether the request has named it.
    #[serde(rename = "r")]
    pub(super) redirect_uri: String,
    #[serde(rename = "n")]
    pub(super) names_redirect: bool,
    #[serde(rename = "s")]
    pub(super) state: Option<String>,
    /// The PKCE challenge.
    #[serde(rename = "p")]
    pub(super) challenge: String,
    /// The requested scopes that this server knows.
    #[serde(rename = "o")]
    pub(super) scopes: Option<String>,
}

/// The facts of a client that later steps need.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClientFacts {
    #[serde(rename = "k")]
    pub(super) key: String,
    /// The name to show.
    #[serde(rename = "t")]
    pub(super) title: String,
    /// For logs.
    #[serde(rename = "l")]
    pub(super) label: String,
    /// The URL of its metadata document.
    #[serde(rename = "d")]
    pub(super) document: Option<String>,
}

/// A user whom the provider has confirmed.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) person: Person,
    pub(super) grant: Option<ProviderGrant>,
}

impl User {
    pub(super) fn principal(&self) -> Principal {
        principal(&self.person)
    }
}

pub(super) fn principal(person: &Person) -> Principal {
    Principal::User {
        issuer: person.issuer.as_str().into(),
        subject: person.subject.as_str().into(),
    }
}

/// A user who is asked.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ConsentTicket {
    pub(super) request: CheckedRequest,
    pub(super) user: User,
    /// The scopes that the client gets, if the user allows it.
    pub(super) scopes: String,
    /// The value of the browser's cookie.
    pub(super) browser: String,
}

/// An authorization code.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Code {
    Issued(Box<IssuedCode>),
    /// Redeemed, for this grant.
    Redeemed(String),
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct IssuedCode {
    pub(super) request: CheckedRequest,
    pub(super) user: User,
    pub(super) scopes: String,
}

/// The scopes that a user has granted to a client: the family of its tokens.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) client: ClientFacts,
    pub(super) user: User,
    pub(super) scopes: String,
    /// The hash of the refresh token that is valid now.
    pub(super) refresh: String,
    #[serde(default)]
    pub(super) refreshing_until: RefreshLease,
    /// When the user logged in.
    #[serde(default)]
    pub(super) since: Option<Timestamp>,
    /// The refresh tokens before the one that is valid now, the latest one last.
    #[serde(default)]
    pub(super) replaced: Vec<Replaced>,
    /// The access token that was issued with the newest refresh token.
    #[serde(default)]
    pub(super) latest: Option<IssuedToken>,
}

/// A refresh token that another one has replaced.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Replaced {
    pub(super) hash: String,
    /// The salt from which the next secret is made, besides this one.
    pub(super) salt: String,
    pub(super) at: Timestamp,
}

/// An access token.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct IssuedToken {
    pub(super) access: String,
    /// The scopes of the response.
    pub(super) scopes: String,
    pub(super) expires: Timestamp,
}

/// The records, by name.
#[derive(Debug, Clone)]
pub(super) struct Records {
    vault: Vault,
}

/// A record, and the version by which it is replaced.
pub(super) struct Versioned<T> {
    pub(super) value: T,
    pub(super) version: u64,
}

impl Records {
    pub(super) fn new(vault: Vault) -> Self {
        Self { vault }
    }

    /// The names have only hashes and IDs, never what a client has sent.
    pub(super) fn ticket(id: &str) -> String {
        format!("auth/ticket/{id}")
    }

    pub(super) fn code(hash: &str) -> String {
        format!("auth/code/{hash}")
    }

    pub(super) fn grant(id: &str) -> String {
        format!("auth/grant/{id}")
    }

    fn consent_of(owner: &Owner, client: &str) -> String {
        format!("auth/consent/{owner}/{client}")
    }

    fn used(client: &str) -> String {
        format!("auth/used/{client}")
    }

    /// Creates a record under a name that nobody else has.
    pub(super) async fn create<T: Serialize>(
        &self,
        name: &str,
        value: &T,
        ttl: Duration,
    ) -> Result<bool, Problem> {
        Ok(self.vault.replace_for(name, 0, Some(value), Some(ttl)).await?)
    }

    pub(super) async fn read<T: for<'a> Deserialize<'a>>(
        &self,
        name: &str,
    ) -> Result<Option<Versioned<T>>, Problem> {
        let (value, version) = self.vault.read(name).await?;
        Ok(value.map(|value| Versioned { value, version }))
    }

    pub(super) async fn replace<T: Serialize>(
        &self,
        name: &str,
        version: u64,
        value: &T,
        ttl: Duration,
    ) -> Result<bool, Problem> {
        Ok(self.vault.replace_for(name, version, Some(value), Some(ttl)).await?)
    }

    /// Stores a changed record, unless another instance has changed it meanwhile. Says whether it
    /// did.
    pub(super) async fn update<T: Serialize>(
        &self,
        name: &str,
        record: &mut Versioned<T>,
        ttl: Duration,
    ) -> Result<bool, Problem> {
        let is_stored = self.replace(name, record.version, &record.value, ttl).await?;
        record.version += u64::from(is_stored);
        Ok(is_stored)
    }

    /// Removes a record that still has this version. Of several callers, one removes it.
    pub(super) async fn take(&self, name: &str, version: u64) -> Result<bool, Problem> {
        let gone: Option<&()> = None;
        Ok(self.vault.replace_for(name, version, gone, Some(REDEEMED_TTL)).await?)
    }

    /// Marks a code as redeemed. Of several callers, one does.
    pub(super) async fn redeem(
        &self,
        name: &str,
        version: u64,
        grant: &str,
    ) -> Result<bool, Problem> {
        self.replace(name, version, &Code::Redeemed(grant.to_owned()), REDEEMED_TTL).await
    }

    /// Ends a grant, and those who come later cannot create it.
    pub(super) async fn revoke(&self, id: &str) -> Result<Option<Grant>, Problem> {
        let name = Self::grant(id);
        for _ in 0..ATTEMPTS {
            let (grant, version) = self.vault.read::<Grant>(&name).await?;
            if self.take(&name, version).await? {
                return Ok(grant);
            }
        }

        Err(Problem::unavailable("revocation", &"the grant changes all the time"))
    }

    /// The scopes that a user has allowed a client.
    pub(super) async fn consented(
        &self,
        owner: &Owner,
        client: &str,
    ) -> Result<Option<String>, Problem> {
        Ok(self.vault.read(&Self::consent_of(owner, client)).await?.0)
    }

    /// Remembers what a user allows a client.
    pub(super) async fn remember_consent(
        &self,
        owner: &Owner,
        client: &str,
        scopes: &str,
    ) -> Result<(), Problem> {
        let name = Self::consent_of(owner, client);
        let (before, version) = self.vault.read::<String>(&name).await?;
        let before = Scopes::granted(&before.unwrap_or_default());
        let scopes = before.union(&Scopes::granted(scopes)).to_string();

        // A concurrent consent may win: the next request then asks the user again.
        self.vault.replace_for(&name, version, Some(&scopes), Some(CONSENT_TTL)).await?;
        Ok(())
    }

    /// Whether a user has ever allowed this client.
    pub(super) async fn is_used(&self, client: &str) -> Result<bool, Problem> {
        Ok(self.vault.read::<Timestamp>(&Self::used(client)).await?.0.is_some())
    }

    /// Remembers that a client is in use, once a day.
    pub(super) async fn mark_used(&self, client: &str, now: Timestamp) -> Result<(), Problem> {
        let name = Self::used(client);
        let (marked, version) = self.vault.read::<Timestamp>(&name).await?;
        let day = Duration::from_secs(24 * 3600);

        if marked.is_none_or(|marked| now.since(marked) >= day) {
            self.vault.replace_for(&name, version, Some(&now), Some(CONSENT_TTL)).await?;
        }
        Ok(())
    }
}
