//! A login from its link to its tokens: the link has a sealed ticket, so nothing is kept until
//! the user confirms; then a cookie ties the login to the browser that confirmed it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use larder_oauth::{
    Identity, Owner,
    client::{
        AuthorizationRequest, AuthorizationResponse, CodeGrant, LoginState, RefreshLease,
        ResponseError, Verifier,
    },
};
use larder_protocol::quote::quoted;
use larder_runtime::clock::Timestamp;
use larder_server::registry::{
    LoginProblem, LoginRedirect, LoginRequest, LoginSite, ProviderLogin,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Login,
    discovery::{self, AuthorizationServer},
    record::{LoginRecord, LoginSlot, Pending},
    tokens::{TokenError, TokenSource},
};

/// How long a link can be opened.
const TICKET_TTL: Duration = Duration::from_secs(3600);
/// How long a login may take.
const LOGIN_TTL: Duration = Duration::from_secs(600);

const NEW_LINK: &str = "Call a tool of it again for a new link";

/// The purpose of a link. Sealed, so that nobody learns or changes it.
#[derive(Serialize, Deserialize)]
struct Ticket {
    owner: Owner,
    principal: String,
    scopes: Vec<String>,
    /// The URL of the resource's metadata.
    metadata: Option<String>,
    expires: Timestamp,
}

/// The sealed cookie that ties a login to its browser.
#[derive(Serialize, Deserialize)]
struct Cookie {
    owner: Owner,
    state: LoginState,
}

impl Login {
    /// The link for a login with these scopes.
    pub(super) fn link_with(
        &self,
        site: &LoginSite,
        identity: &Identity,
        scopes: Vec<String>,
        metadata: Option<String>,
    ) -> String {
        let ticket = Ticket {
            owner: identity.owner().clone(),
            principal: identity.principal().to_string(),
            scopes,
            metadata,
            expires: site.clock.now().saturating_add(TICKET_TTL),
        };

        let ticket = site.vault.sealer().seal_text(&self.context("ticket"), &ticket);
        format!("{}/upstreams/{}/login?ticket={ticket}", site.base_url, self.name)
    }

    fn context(&self, what: &str) -> String {
        format!("{what}/{}", self.name)
    }

    fn ticket(&self, site: &LoginSite, text: &str) -> Result<Ticket, LoginProblem> {
        let ticket = site.vault.sealer().open_text::<Ticket>(&self.context("ticket"), text);
        let ticket = ticket.filter(|ticket| ticket.expires > site.clock.now());
        ticket.ok_or_else(|| {
            LoginProblem::Refused(format!("The link is not valid or too old. {NEW_LINK}."))
        })
    }

    /// The scopes to ask for: those that the settings and the challenge name, or else those that
    /// the resource suggests.
    fn scopes(&self, ticket: &Ticket, server: &AuthorizationServer) -> Vec<String> {
        let mut scopes: Vec<String> = Vec::new();
        for scope in self.settings.scopes.iter().chain(&ticket.scopes) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }

        if scopes.is_empty() {
            scopes.clone_from(&server.scopes);
        }

        let offline = "offline_access".to_owned();
        if server.metadata.document.scopes_supported.contains(&offline)
            && !scopes.contains(&offline)
        {
            scopes.push(offline);
        }
        scopes
    }

    /// The URL of the authorization server's page.
    fn authorization_url(
        &self,
        site: &LoginSite,
        server: &AuthorizationServer,
        pending: &Pending,
    ) -> String {
        let request = AuthorizationRequest {
            redirect_uri: &self.redirect_uri(site),
            state: pending.state.as_str(),
            nonce: None,
            code_challenge: &pending.verifier.challenge(),
        };

        let source = &pending.source;
        let endpoint = server.metadata.authorization_endpoint.clone();
        let mut url = request.url(endpoint, &source.client.id, &source.scopes.join(" "));
        url.query_pairs_mut().append_pair("resource", &server.resource);

        if source.scopes.iter().any(|scope| scope == "offline_access") {
            // OpenID Connect Core, section 11, requires this prompt for offline access.
            url.query_pairs_mut().append_pair("prompt", "consent");
        }

        url.into()
    }
}

#[async_trait]
impl ProviderLogin for Login {
    fn name(&self) -> &str {
        &self.name
    }

    fn base_url(&self) -> &str {
        self.site.get().map_or("", |site| &site.base_url)
    }

    fn link(&self, identity: &Identity) -> String {
        let site = self.site.get();
        site.map(|site| self.link_with(site, identity, Vec::new(), None)).unwrap_or_default()
    }

    async fn is_logged_in(&self, owner: &Owner) -> Result<bool, LoginProblem> {
        let slot = LoginSlot::new(self.site()?, &self.name, owner);
        Ok(slot.read().await?.0.tokens.is_some())
    }

    fn request(&self, ticket: &str) -> Result<LoginRequest, LoginProblem> {
        let ticket = self.ticket(self.site()?, ticket)?;
        Ok(LoginRequest {
            provider: self.name.to_string(),
            // The path and the query may contain a key, so only the origin is shown.
            server: self.url.origin().ascii_serialization(),
            principal: ticket.principal,
        })
    }

    async fn begin(&self, ticket: &str) -> Result<LoginRedirect, LoginProblem> {
        let site = self.site()?;
        let ticket = self.ticket(site, ticket)?;

        let server = discovery::discover(self, ticket.metadata.as_deref()).await;
        let server = server.map_err(|problem| {
            tracing::warn!(upstream = %self.name, problem, "a login cannot begin");
            LoginProblem::Unavailable(format!("{} cannot be logged in to: {problem}.", self.name))
        })?;

        let client = self.client(site, &server.metadata).await.inspect_err(|problem| {
            tracing::warn!(upstream = %self.name, %problem, "a login cannot begin");
        })?;

        let metadata = &server.metadata;
        let state = LoginState::new(&site.random);
        let pending = Pending {
            state: state.clone(),
            verifier: Verifier::new(&site.random),
            issuer: metadata.document.issuer.clone(),
            sends_issuer: metadata.document.names_issuer,
            source: TokenSource {
                client,
                issuer: metadata.document.issuer.clone(),
                token_endpoint: metadata.token_endpoint.clone(),
                revocation_endpoint: metadata.revocation_endpoint.clone(),
                resource: server.resource.clone(),
                scopes: self.scopes(&ticket, &server),
            },
            expires: site.clock.now().saturating_add(LOGIN_TTL),
        };

        let url = self.authorization_url(site, &server, &pending);
        let slot = LoginSlot::new(site, &self.name, &ticket.owner);
        slot.change(|record| Some(LoginRecord { pending: Some(pending.clone()), ..record }))
            .await?;

        let cookie = Cookie { owner: ticket.owner, state };
        let cookie = site.vault.sealer().seal_text(&self.context("cookie"), &cookie);
        Ok(LoginRedirect { url, cookie })
    }

    async fn finish(
        &self,
        parameters: Vec<(String, String)>,
        cookie: Option<&str>,
    ) -> Result<(), LoginProblem> {
        let site = self.site()?;
        let parameter = |name: &str| {
            let mut values = parameters.iter().filter(|(key, _)| key == name);
            // A parameter that comes twice counts as none (RFC 6749, 3.1).
            let first = values.next().map(|(_, value)| value.as_str());
            first.filter(|_| values.next().is_none())
        };

        let opened = |text: &str| site.vault.sealer().open_text(&self.context("cookie"), text);
        let cookie: Cookie = cookie.and_then(opened).ok_or_else(unknown)?;
        if !cookie.state.is(parameter("state")) {
            return Err(unknown());
        }

        let slot = LoginSlot::new(site, &self.name, &cookie.owner);
        let pending = take_pending(&slot, &cookie.state).await?.ok_or_else(unknown)?;

        let response = AuthorizationResponse::read(parameter);
        let code = response.code(&pending.response_issuer()).map_err(|error| match error {
            ResponseError::OtherIssuer => LoginProblem::Refused(error.to_string()),
            ResponseError::Refused { error, .. } => {
                let name = &self.name;
                let problem = format!("The login at {name} was refused ({}).", quoted(error));
                LoginProblem::Refused(problem)
            }
            ResponseError::NoCode => unknown(),
        })?;

        let Pending { verifier, source, issuer, .. } = pending;
        let grant = CodeGrant {
            code,
            code_verifier: verifier.reveal(),
            redirect_uri: &self.redirect_uri(site),
        };

        let client = source.client.clone();
        let fetcher = self.fetcher(&issuer);
        let redeemed = source.redeem(fetcher, &grant, slot.now()).await;

        if let Err(TokenError::UnknownClient) = &redeemed {
            self.forget_client(site, &issuer, &client).await;
        }
        let tokens = redeemed.map_err(LoginProblem::from).inspect_err(|problem| {
            tracing::warn!(upstream = %self.name, %problem, "a login has failed");
        })?;

        slot.change(|record| {
            let refreshing_until = RefreshLease::default();
            Some(LoginRecord { tokens: Some(tokens.clone()), refreshing_until, ..record })
        })
        .await?;

        tracing::info!(upstream = %self.name, owner = %cookie.owner, "logged in");
        self.changed.send_modify(|generation| *generation += 1);
        Ok(())
    }

    async fn log_out(&self, owner: &Owner) -> Result<(), LoginProblem> {
        let slot = LoginSlot::new(self.site()?, &self.name, owner);
        let before = slot.change(|record| {
            let is_empty = record.tokens.is_none() && record.pending.is_none();
            (!is_empty).then(LoginRecord::default)
        });
        let before = before.await?;

        self.changed.send_modify(|generation| *generation += 1);
        let Some(tokens) = before.tokens else { return Ok(()) };
        tracing::info!(upstream = %self.name, %owner, "logged out");

        let fetcher = self.fetcher(&tokens.source.issuer);
        tokens.revoke(fetcher).await.map_err(|problem| {
            tracing::warn!(upstream = %self.name, problem, "tokens cannot be revoked");
            LoginProblem::Unavailable(format!(
                "The tokens of {} are forgotten, but could not be revoked: {problem}",
                self.name
            ))
        })
    }

    fn client_document(&self) -> Value {
        self.site.get().map(|site| self.document(site)).unwrap_or_default()
    }
}

/// Takes the login with this state that was begun and is not over. It is removed while it is read,
/// so that only one of two callbacks finds it.
async fn take_pending(
    slot: &LoginSlot,
    state: &LoginState,
) -> Result<Option<Pending>, LoginProblem> {
    let is_this = |pending: &Pending| pending.state == *state;
    let before = slot.change(|record| {
        let begun = record.pending.as_ref().is_some_and(is_this);
        begun.then_some(LoginRecord { pending: None, ..record })
    });

    let pending = before.await?.pending.filter(is_this);
    Ok(pending.filter(|pending| pending.expires > slot.now()))
}

fn unknown() -> LoginProblem {
    LoginProblem::Unknown(format!(
        "This login was not begun in this browser, is over, or took too long. {NEW_LINK}."
    ))
}

/// The login of an upstream as the registry sees it.
pub(crate) fn provided(login: &Arc<Login>) -> Option<Arc<dyn ProviderLogin>> {
    login.site.get()?;
    Some(Arc::clone(login) as Arc<dyn ProviderLogin>)
}
