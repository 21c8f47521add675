//! [`LoginServer`]: the authorization server and what it works with.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use larder_oauth::{Grant, Hierarchy, Identity, Principal, Scopes, audit};
use larder_runtime::{
    clock::Clock,
    metric::{self, Label},
    random::Random,
};
use larder_store::vault::Vault;
use serde_json::{Value, json};

use super::{
    ErrorCode, IdentityProvider, OwnConsole, Policy, Problem,
    client::{self, Client, UNUSED_TTL},
    documents::Documents,
    rate::RateLimit,
    records::{ClientFacts, Records},
    redirect::AppSchemes,
    signing::SigningKeys,
};

/// Settings of the authorization server.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// The URL of the endpoint, which is the issuer and the resource.
    pub base_url: String,
    /// The scopes that a client gets that asks for none.
    pub default_scopes: Scopes,
    /// Which scopes imply others.
    pub hierarchy: Hierarchy,

    /// The schemes of redirect URIs to further apps.
    pub redirect_schemes: Vec<String>,
    /// Whether client metadata documents may be at private addresses.
    pub allow_private_documents: bool,

    /// How long a grant lasts that is not refreshed.
    pub refresh_ttl: Duration,
    /// How long a user may stay logged in whose provider cannot be asked again.
    pub reauthenticate: Duration,
    /// Registrations of one address in a minute.
    pub registrations_per_minute: u32,
    /// Logins, and requests for tokens, of one address in a minute.
    pub requests_per_minute: u32,
    /// The console of this server, if people can log in there.
    pub console: Option<OwnConsole>,
}

/// The authorization server.
pub struct LoginServer {
    pub(super) options: LoginOptions,
    pub(super) provider: Arc<dyn IdentityProvider>,
    pub(super) policy: Policy,

    pub(super) vault: Vault,
    pub(super) records: Records,
    pub(super) keys: SigningKeys,

    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Random,

    pub(super) schemes: Arc<AppSchemes>,
    documents: Documents,
    registrations: RateLimit,
    pub(super) requests: RateLimit,
    unknown: audit::UnknownCallers,
}

impl LoginServer {
    /// # Errors
    /// The HTTP client for metadata documents cannot be created.
    pub fn new(
        options: LoginOptions,
        provider: Arc<dyn IdentityProvider>,
        policy: Policy,
        vault: Vault,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Result<Arc<Self>, String> {
        larder_oauth::install_crypto();

        let schemes = Arc::new(AppSchemes::new(&options.redirect_schemes));
        let documents = Documents::new(
            options.allow_private_documents,
            Arc::clone(&schemes),
            Arc::clone(&clock),
        );
        let limit = |per_minute| RateLimit::new(per_minute, Arc::clone(&clock));

        Ok(Arc::new(Self {
            schemes,
            documents: documents.map_err(|error| error.to_string())?,
            registrations: limit(options.registrations_per_minute),
            requests: limit(options.requests_per_minute),
            unknown: audit::UnknownCallers::new(Arc::clone(&clock)),
            records: Records::new(vault.clone()),
            keys: SigningKeys::new(vault.clone(), Arc::clone(&clock), random.clone()),
            options,
            provider,
            policy,
            vault,
            clock,
            random,
        }))
    }

    /// The URL of the endpoint, which is the issuer and the resource.
    pub fn base_url(&self) -> &str {
        &self.options.base_url
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}/login/{path}", self.options.base_url.trim_end_matches('/'))
    }

    /// The URL to which the provider sends browsers back.
    pub fn callback_url(&self) -> String {
        self.url("callback")
    }

    /// Connects to the identity provider, for an operator. Says what was found.
    ///
    /// # Errors
    /// What does not work.
    pub async fn check_provider(&self) -> Result<String, String> {
        self.provider.check().await
    }

    /// The metadata of the authorization server (RFC 8414).
    pub fn metadata(&self) -> Value {
        json!({
            "issuer": self.options.base_url,
            "authorization_endpoint": self.url("authorize"),
            "token_endpoint": self.url("token"),
            "registration_endpoint": self.url("register"),
            "revocation_endpoint": self.url("revoke"),
            "jwks_uri": self.url("keys"),

            "scopes_supported": self.known_scopes().names().collect::<Vec<_>>(),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
        })
    }

    /// The public keys (RFC 7517).
    ///
    /// # Errors
    /// The store does not respond.
    pub async fn jwk_set(&self) -> Result<Value, Problem> {
        Ok(self.keys.public().await?)
    }

    /// Registers a client (RFC 7591). Returns the response.
    ///
    /// # Errors
    /// There were too many from this address, or it is not valid.
    pub fn register(&self, body: &[u8], peer: Option<IpAddr>) -> Result<Value, Problem> {
        self.registrations.check(peer)?;
        let registered =
            Client::register(body, &self.schemes, self.vault.sealer(), self.clock.now());
        let (client, response) =
            registered.inspect_err(|problem| self.audit_unknown("registration", problem))?;

        count("registered");
        tracing::info!(target: "audit", who = "unknown", client = client.label(), "registered");
        Ok(response)
    }

    /// The key of the client in codes and grants. A metadata document need not be read for it,
    /// so tokens are refreshed while the document's server is away.
    pub(super) async fn client_key(&self, id: &str) -> Result<String, Problem> {
        if Documents::is_url(id) {
            return Ok(client::key(id));
        }
        Ok(self.registered(id).await?.key())
    }

    /// The client of an identifier, for a request from this address.
    pub(super) async fn client(
        &self,
        id: &str,
        peer: Option<IpAddr>,
    ) -> Result<Arc<Client>, Problem> {
        if Documents::is_url(id) {
            return self.documents.client(id, peer).await;
        }
        self.registered(id).await.map(Arc::new)
    }

    async fn registered(&self, id: &str) -> Result<Client, Problem> {
        if let Some(console) = self.console_client(id) {
            return Ok(console);
        }

        let unknown = || {
            let text = "This client is not registered here, or its registration has expired. \
                        Register it again.";
            Problem::refused(ErrorCode::InvalidClient, text)
        };

        let client = Client::registered(id, self.vault.sealer()).ok_or_else(unknown)?;
        let is_new = client
            .registered
            .is_some_and(|registered| registered.saturating_add(UNUSED_TTL) > self.clock.now());

        if is_new || self.records.is_used(&client.key()).await? {
            Ok(client)
        } else {
            Err(unknown())
        }
    }

    /// Logs that somebody is refused whom nobody knows yet.
    pub(super) fn audit_unknown(&self, what: &str, problem: &Problem) {
        if let Problem::Refused(_, why) = problem {
            self.unknown.refused(&what, why);
            count("refused");
        }
    }
}

/// Logs a decision about a user.
pub(super) fn audit(principal: Principal, client: &ClientFacts, what: &str) {
    audit::allowed(&identity(principal, client), &what);
    count_what(what);
}

/// Logs that a known user is refused.
pub(super) fn audit_refused(principal: Principal, client: &ClientFacts, what: &str, why: &str) {
    audit::refused(&identity(principal, client), &what, &why);
    count("refused");
}

fn identity(principal: Principal, client: &ClientFacts) -> Identity {
    let grant = Grant::from(Scopes::default());
    Identity::new(principal, grant, None).with_token(Some(&client.label), None)
}

pub(super) fn facts(client: &Client) -> ClientFacts {
    let document = client.registered.is_none().then(|| client.id.clone());
    ClientFacts { key: client.key(), title: client.title(), label: client.label(), document }
}

/// Counts what has happened. The label is one of a few words.
fn count(event: &'static str) {
    metric::counter("larder_logins_total", [("event", Label::fixed(event))]).increment(1);
}

fn count_what(what: &str) {
    const EVENTS: [&str; 5] = ["login", "consent", "token", "refresh", "revocation"];

    if let Some(event) = EVENTS.iter().find(|event| **event == what) {
        count(event);
    }
}

/// Shows no secret.
impl fmt::Debug for LoginServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginServer").field("options", &self.options).finish_non_exhaustive()
    }
}
