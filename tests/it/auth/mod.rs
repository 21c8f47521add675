//! Authentication and authorization: against an issuer whose responses the tests
//! choose, and against a certified OpenID provider.

mod audit;
mod bad_tokens;
mod binding;
mod challenges;
mod configuration;
mod groups;
mod https;
pub(crate) mod issuer;
mod keys;
mod limits;
mod metadata;
mod opaque;
pub(crate) mod provider;
mod scopes;
pub(crate) mod signer;
mod static_tokens;

mod with_provider;

use larder::config::{AuthMode, Config, IssuerConfig};
use serde_json::{Value, json};

use self::{issuer::Issuer, signer::Signer};
use crate::support::{Answer, Server, Setup, post, request};

/// The audience of valid tokens: the public URL of the server.
const RESOURCE: &str = "http://127.0.0.1:8000/mcp";
const METADATA: &str = "http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp";

/// Accepts tokens of an issuer.
fn accept(config: &mut Config, issuer: &str) {
    config.server.public_url = Some(RESOURCE.into());
    config.auth.mode = AuthMode::OAuth;
    config.auth.issuers = vec![IssuerConfig { issuer: issuer.into(), ..IssuerConfig::default() }];
}

/// An issuer with one key of each kind, and a server that accepts its tokens.
async fn world() -> World {
    world_with(|_| {}).await
}

async fn world_with(change: impl FnOnce(&mut Config)) -> World {
    world_set_up(|setup| change(&mut setup.config)).await
}

pub(crate) async fn world_set_up(change: impl FnOnce(&mut Setup)) -> World {
    let issuer = Issuer::start().await;
    let server = Server::configured(|setup| {
        accept(&mut setup.config, &issuer.url);
        change(setup);
    })
    .await;
    World { issuer, server }
}

/// An issuer, and a server that accepts its tokens.
pub(crate) struct World {
    issuer: Issuer,
    pub(crate) server: Server,
}

impl World {
    /// The claims of a valid token.
    pub(crate) fn claims(&self) -> Value {
        use larder::clock::Clock;

        let now = self.server.clock.now().as_millis() / 1000;
        json!({
            "iss": self.issuer.url,
            "sub": "alice",
            "aud": RESOURCE,
            "iat": now,
            "exp": now + 600,
            "client_id": "app",
            "jti": "1",
            "scope": "mcp:read",
        })
    }

    /// A valid token with changed claims.
    fn token(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = self.claims();
        change(&mut claims);
        Signer::Rsa.token(&claims)
    }

    /// A valid token of a subject, with these scopes.
    pub(crate) fn token_for(&self, subject: &str, scope: &str) -> String {
        self.token(|claims| {
            claims["sub"] = json!(subject);
            claims["scope"] = json!(scope);
        })
    }

    /// The response to a request with this `Authorization` header.
    async fn with_header(&self, authorization: &str) -> Answer {
        let request = ping(&self.server).header("authorization", authorization);
        Answer::of(request).await
    }

    async fn with_token(&self, token: &str) -> Answer {
        self.with_header(&format!("Bearer {token}")).await
    }
}

/// A ping without a token.
fn ping(server: &Server) -> reqwest::RequestBuilder {
    post(&server.url, &request("ping", json!({})))
}

/// The `WWW-Authenticate` challenge of a response, without its scheme.
#[track_caller]
fn challenge(answer: &Answer) -> String {
    let all: Vec<_> = answer.headers.get_all("www-authenticate").iter().collect();
    assert_eq!(all.len(), 1, "{answer:?}");
    let value = all[0].to_str().unwrap();
    value.strip_prefix("Bearer ").unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// Checks that the token is refused: 401, with the challenge `invalid_token`.
#[track_caller]
fn assert_invalid(answer: &Answer) {
    assert_eq!(answer.status, 401, "{answer:?}");
    let challenge = challenge(answer);
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    assert!(challenge.contains(&format!("resource_metadata=\"{METADATA}\"")), "{challenge}");
}
