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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use async_trait::async_trait;
    use larder_oauth::{
        Hierarchy, Scopes,
        client::{ResponseIssuer, challenge},
    };
    use larder_runtime::{clock::ManualClock, random::Random};
    use larder_store::vault::{MemorySlots, Sealer, Vault};

    use super::*;
    use crate::{
        Authenticated, IdentityProvider, LoginOptions, Person, Policy, ProviderError,
        ProviderGrant, Redemption, Renewed,
        client::{hash, key},
        records::{CheckedRequest, ClientFacts, Code, IssuedCode, User},
    };

    const REDIRECT: &str = "http://127.0.0.1/console/callback";
    const SESSION: Duration = Duration::from_secs(8 * 3600);
    const REFRESH_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

    /// A provider that nobody needs: the users of these tests have logged in before.
    #[derive(Debug)]
    struct Unasked;

    #[async_trait]
    impl IdentityProvider for Unasked {
        async fn authorization_url(
            &self,
            _: &AuthorizationRequest<'_>,
        ) -> Result<Url, ProviderError> {
            unreachable!()
        }

        async fn redeem(&self, _: &Redemption<'_>) -> Result<Authenticated, ProviderError> {
            unreachable!()
        }

        async fn renew(&self, _: &ProviderGrant) -> Result<Renewed, ProviderError> {
            unreachable!()
        }

        async fn person(&self, _: &Renewed) -> Result<Person, ProviderError> {
            unreachable!()
        }

        async fn issuer(&self) -> Result<ResponseIssuer, ProviderError> {
            unreachable!()
        }
    }

    fn login_server(clock: &ManualClock) -> Arc<LoginServer> {
        let slots = Arc::new(MemorySlots::new(Arc::new(clock.clone()), 100));
        let console = OwnConsole {
            redirect_uri: REDIRECT.to_owned(),
            session: SESSION,
            provider: "a provider".to_owned(),
        };
        let options = LoginOptions {
            base_url: "http://127.0.0.1/mcp".to_owned(),
            default_scopes: Scopes::default(),
            hierarchy: Hierarchy::default(),
            redirect_schemes: Vec::new(),
            allow_private_documents: false,
            refresh_ttl: REFRESH_TTL,
            reauthenticate: REFRESH_TTL,
            registrations_per_minute: 100,
            requests_per_minute: 100,
            console: Some(console),
        };

        LoginServer::new(
            options,
            Arc::new(Unasked),
            Policy::default(),
            Vault::new(slots, Sealer::new(b"key")),
            Arc::new(clock.clone()),
            Random::system(),
        )
        .unwrap()
    }

    /// The access token of a person who has logged in for the console.
    async fn console_login(server: &Arc<LoginServer>) -> String {
        let verifier = "v".repeat(43);
        let client = ClientFacts {
            key: key(ID),
            title: "The console".to_owned(),
            label: "The console".to_owned(),
            document: None,
        };
        let person = Person {
            issuer: "https://provider".to_owned(),
            subject: "alice".to_owned(),
            email: None,
            email_verified: false,
            name: None,
            groups: Vec::new(),
            organization: None,
        };
        let request = CheckedRequest {
            client,
            redirect_uri: REDIRECT.to_owned(),
            names_redirect: true,
            state: None,
            challenge: challenge(&verifier),
            scopes: None,
        };
        let user = User { person, grant: None };
        let code = Code::Issued(Box::new(IssuedCode { request, user, scopes: String::new() }));

        let name = Records::code(&hash("the code"));
        assert!(server.records.create(&name, &code, Duration::from_secs(60)).await.unwrap());
        server.console_token("the code", &verifier, REDIRECT, None).await.unwrap()
    }

    /// Whether the grant of a token exists.
    async fn has_grant(server: &LoginServer, id: &str) -> bool {
        server.records.read::<Grant>(&Records::grant(id)).await.unwrap().is_some()
    }

    #[tokio::test]
    async fn a_grant_of_the_console_ends_with_its_session() {
        let clock = ManualClock::new();
        let server = login_server(&clock);
        let token = console_login(&server).await;
        let id = server.session_of(&token).await.unwrap().unwrap();

        clock.advance(SESSION.saturating_sub(Duration::from_secs(1)));
        assert!(has_grant(&server, &id).await);
        clock.advance(Duration::from_secs(2));
        assert!(!has_grant(&server, &id).await);
    }

    #[tokio::test]
    async fn a_logout_ends_the_grant_of_the_console() {
        let server = login_server(&ManualClock::new());
        let token = console_login(&server).await;
        let id = server.session_of(&token).await.unwrap().unwrap();

        assert!(has_grant(&server, &id).await);
        server.end_console_login(&token).await.unwrap();
        assert!(!has_grant(&server, &id).await);
    }
}
