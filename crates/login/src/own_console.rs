//! The console of this server as a client of its authorization server. It runs in the same process,
//! so it needs no registration and no request, and its tokens never leave the server.

use std::{net::IpAddr, sync::Arc, time::Duration};

use url::Url;

use super::{AuthorizationRequest, LoginServer, Problem, client, redirect};

/// The identifier of the console. No registration has it, because those are sealed.
const ID: &str = "larder-console";

/// What the authorization server knows of the console.
#[derive(Debug, Clone)]
pub struct OwnConsole {
    /// Where browsers come back to.
    pub redirect_uri: String,
    /// How long a token is valid. It can be revoked, as every token of this server.
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

        let tokens = self.token(form.into_bytes(), false, peer).await?;
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

    /// Whether a request is of the console. The person has begun it at the console, so the consent
    /// page would ask what they have just done.
    pub(super) fn is_of_console(&self, client_key: &str, redirect_uri: &str) -> bool {
        self.options.console.as_ref().is_some_and(|console| {
            client_key == client::key(ID) && redirect::fits(&console.redirect_uri, redirect_uri)
        })
    }
}
