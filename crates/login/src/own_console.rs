//! The console of this server as a client of its authorization server. It runs in the same process,
//! so it needs no registration and no request, and its tokens never leave the server.

use std::{net::IpAddr, sync::Arc, time::Duration};

use url::Url;

use super::{
    AuthorizationRequest, LoginServer, Problem, client,
    records::{Grant, Records},
    server::audit,
    tokens::TokenRoute,
};

/// The identifier of the console. No registration has it, because those are sealed.
const ID: &str = "larder-console";

/// The console as a client of the authorization server.
#[derive(Debug, Clone)]
pub struct OwnConsole {
    /// The URL to which browsers come back.
    pub redirect_uri: String,
    /// How long a login lasts: its access token, and what is kept of it.
    pub session: Duration,
    /// The provider at which people log in, for people.
    pub provider: String,
}

impl LoginServer {
    /// The provider at which people log in, for people, if the console can log in here.
    pub fn console_provider(&self) -> Option<&str> {
        self.options.console.as_ref().map(|console| &*console.provider)
    }

    /// The page at which a person logs in for the console.
    ///
    /// # Errors
    /// The URL of this server cannot be parsed.
    pub fn console_url(&self, request: &AuthorizationRequest<'_>) -> Result<Url, Problem> {
        let endpoint = Url::parse(&self.url("authorize"));
        let endpoint = endpoint.map_err(|error| Problem::unavailable("its URL", &error))?;

        let mut url = request.url(endpoint, ID, "");
        url.query_pairs_mut().append_pair("resource", self.base_url());
        Ok(url)
    }

    /// The access token for the code of a login that [`LoginServer::console_url`] began.
    ///
    /// # Errors
    /// The code is not valid, or the store does not respond.
    pub async fn console_token(
        self: &Arc<Self>,
        code: &str,
        code_verifier: &str,
        redirect_uri: &str,
        peer: Option<IpAddr>,
    ) -> Result<String, Problem> {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("client_id", ID)
            .append_pair("code", code)
            .append_pair("code_verifier", code_verifier)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("resource", self.base_url())
            .finish();

        let tokens = self.token_by(TokenRoute::Console, form.into_bytes(), false, peer).await?;
        let access = tokens.get("access_token").and_then(serde_json::Value::as_str);
        access.map(str::to_owned).ok_or_else(|| Problem::grant("There is no access token."))
    }

    /// The console, if that is the client of an identifier.
    pub(super) fn console_client(&self, id: &str) -> Option<client::Client> {
        let console = self.options.console.as_ref().filter(|_| id == ID)?;
        Some(client::Client::own(ID, "The console of this server", &console.redirect_uri))
    }

    /// How long an access token of a client is valid.
    pub(super) fn access_ttl(&self, client: &str, others: Duration) -> Duration {
        match &self.options.console {
            Some(console) if client == ID => console.session,
            _ => others,
        }
    }

    /// Ends the login of an access token whose session at the console has ended.
    ///
    /// # Errors
    /// The store does not respond.
    pub async fn end_console_login(&self, access_token: &str) -> Result<(), Problem> {
        let Some(id) = self.session_of(access_token).await? else { return Ok(()) };
        let Some(found) = self.records.read::<Grant>(&Records::grant(&id)).await? else {
            return Ok(());
        };

        let grant = found.value;
        if self.is_console_key(&grant.client.key) {
            self.records.revoke(&id).await?;
            audit(grant.user.principal(), &grant.client, "revocation");
        }
        Ok(())
    }

    /// How long a grant is kept at most. The console never refreshes its tokens, so its grant is of
    /// no use after the session.
    pub(super) fn grant_ttl(&self, grant: &Grant) -> Duration {
        let ttl = self.options.refresh_ttl;
        match &self.options.console {
            Some(console) if self.is_console_key(&grant.client.key) => ttl.min(console.session),
            _ => ttl,
        }
    }

    /// Whether a client is the console, by its key.
    pub(super) fn is_console_key(&self, client_key: &str) -> bool {
        self.options.console.is_some() && client_key == client::key(ID)
    }

    /// Whether a request is of the console. The person has begun it at the console, so the consent
    /// page would ask what they have just done. The redirect URI is compared exactly: at another port
    /// of this machine any process may listen.
    pub(super) fn is_of_console(&self, client_key: &str, redirect_uri: &str) -> bool {
        self.options.console.as_ref().is_some_and(|console| {
            client_key == client::key(ID) && console.redirect_uri == redirect_uri
        })
    }
}
