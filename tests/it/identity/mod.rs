//! Identity providers behind Larder's own logins: each against a server with the responses that
//! the provider documents.

mod entra;
mod github;
mod google;
mod oidc;
mod refusals;

use std::sync::Arc;

use larder::{
    auth::Secret,
    clock::{Clock, ManualClock},
    login::{
        Authenticated, AuthorizationRequest, IdentityProvider, ProviderError, ProviderGrant,
        ProviderKind, ProviderOptions, Redemption,
    },
};
use serde_json::{Value, json};

use crate::auth::{
    issuer::{Issuer, Reply},
    signer::Signer,
};

const REDIRECT_URI: &str = "https://mcp.example/callback";
const METADATA: &str = "/.well-known/openid-configuration";

/// A provider, and the server that plays it.
struct World {
    server: Issuer,
    provider: Arc<dyn IdentityProvider>,
    clock: ManualClock,
}

fn options(kind: ProviderKind, server: &Issuer) -> ProviderOptions {
    ProviderOptions {
        kind,
        issuer: Some(server.url.clone()),
        client_id: "larder".into(),
        client_secret: Secret::new("s&cret"),
        scopes: Vec::new(),
        tenant: None,
        hosted_domain: None,
        api_url: None,
        groups_claim: None,
    }
}

impl World {
    /// An OpenID provider.
    async fn start(kind: ProviderKind) -> Self {
        Self::with(kind, |_| {}).await
    }

    async fn with(kind: ProviderKind, change: impl FnOnce(&mut ProviderOptions)) -> Self {
        let server = Issuer::empty().await;
        server.set_keys(&[Signer::Rsa.jwk(), Signer::Ec.jwk()]);
        let mut options = options(kind, &server);
        change(&mut options);
        let clock = ManualClock::new();
        let provider = options.open(Arc::new(clock.clone())).unwrap();
        let world = Self { server, provider, clock };
        world.set_metadata(|_| {});
        world
    }

    fn set_metadata(&self, change: impl FnOnce(&mut Value)) {
        let url = &self.server.url;
        let mut metadata = json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/authorize?audience=x"),
            "token_endpoint": format!("{url}/token"),
            "userinfo_endpoint": format!("{url}/userinfo"),
            "jwks_uri": format!("{url}/jwks"),
            "scopes_supported": ["openid", "profile", "email", "offline_access"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        change(&mut metadata);
        self.server.set_reply(METADATA, Reply::Json(metadata));
    }

    fn now(&self) -> u64 {
        self.clock.now().as_millis() / 1000
    }

    /// The claims of an ID token for alice.
    fn claims(&self) -> Value {
        json!({
            "iss": self.server.url, "aud": "larder", "sub": "alice", "nonce": "the nonce",
            "iat": self.now(), "exp": self.now() + 300,
            "email": "alice@example.com", "email_verified": true, "name": "Alice",
            "groups": ["engineering"],
        })
    }

    /// Gives the tokens, with an ID token that has changed claims.
    fn set_tokens(&self, change: impl FnOnce(&mut Value)) {
        let mut claims = self.claims();
        change(&mut claims);
        self.set_id_token(&id_token(&claims));
    }

    fn set_id_token(&self, id_token: &str) {
        let tokens = json!({
            "access_token": "the access token", "token_type": "Bearer", "expires_in": 300,
            "refresh_token": "the refresh token", "scope": "openid", "id_token": id_token,
        });
        self.server.set_reply("/token", Reply::Json(tokens));
    }

    async fn redeem(&self) -> Result<Authenticated, ProviderError> {
        let redemption = Redemption {
            code: "the code",
            code_verifier: "the verifier",
            nonce: "the nonce",
            redirect_uri: REDIRECT_URI,
        };
        self.provider.redeem(&redemption).await
    }

    async fn refresh(&self) -> Result<Authenticated, ProviderError> {
        self.refresh_with(&refresh_token("the refresh token")).await
    }

    async fn refresh_with(&self, grant: &ProviderGrant) -> Result<Authenticated, ProviderError> {
        let renewed = self.provider.renew(grant).await?;
        let person = self.provider.person(&renewed).await?;
        Ok(Authenticated { person, grant: Some(renewed.grant) })
    }

    /// The query parameters of the provider's page.
    async fn authorization(&self) -> Vec<(String, String)> {
        let request = AuthorizationRequest {
            redirect_uri: REDIRECT_URI,
            state: "the state",
            nonce: Some("the nonce"),
            code_challenge: "the challenge",
        };
        let url = self.provider.authorization_url(&request).await.unwrap();
        assert!(url.as_str().starts_with(&self.server.url), "{url}");
        url.query_pairs().into_owned().collect()
    }
}

fn id_token(claims: &Value) -> String {
    Signer::Rsa.sign(&json!({ "alg": "RS256", "kid": Signer::Rsa.kid() }), claims)
}

fn refresh_token(token: &str) -> ProviderGrant {
    ProviderGrant { access_token: None, refresh_token: Some(token.to_owned()) }
}

fn has(parameters: &[(String, String)], name: &str, value: &str) -> bool {
    let found: Vec<_> = parameters.iter().filter(|(found, _)| found == name).collect();
    found.len() == 1 && found[0].1 == value
}

/// The text of a refusal.
#[track_caller]
fn refusal<T: std::fmt::Debug>(result: Result<T, ProviderError>) -> String {
    match result {
        Err(ProviderError::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// The text of an outage.
#[track_caller]
fn outage<T: std::fmt::Debug>(result: Result<T, ProviderError>) -> String {
    match result {
        Err(ProviderError::Unavailable(text)) => text,
        other => panic!("{other:?}"),
    }
}
