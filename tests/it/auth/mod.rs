//! A resource server that gets every case right: against an issuer that says
//! whatever a test wants, and against a certified one.

mod audit;
mod binding;
mod challenges;
mod cli;
mod groups;
mod https;
mod issuer;
mod keys;
mod limits;
mod metadata;
mod opaque;
mod provider;
mod scopes;
mod signer;
mod static_tokens;
mod traps;
mod with_provider;

use larder::config::{AuthMode, Config, IssuerConfig};
use serde_json::{Value, json};

use self::{issuer::Issuer, signer::Signer};
use crate::support::{Answer, Server};

/// What tokens must be for.
const RESOURCE: &str = "http://127.0.0.1:8000/mcp";
const METADATA: &str = "http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp";

/// A configuration that accepts tokens of that issuer.
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
    let issuer = Issuer::start().await;
    let server = Server::configured(|setup| {
        accept(&mut setup.config, &issuer.url);
        change(&mut setup.config);
    })
    .await;
    World { issuer, server }
}

struct World {
    issuer: Issuer,
    server: Server,
}

impl World {
    /// The claims of a good token.
    fn claims(&self) -> Value {
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

    /// A good token with other claims.
    fn token(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = self.claims();
        change(&mut claims);
        Signer::Rsa.token(&claims)
    }

    /// A good token with those scopes.
    fn token_for(&self, subject: &str, scope: &str) -> String {
        self.token(|claims| {
            claims["sub"] = json!(subject);
            claims["scope"] = json!(scope);
        })
    }

    /// What a request with that header is answered.
    async fn with_header(&self, authorization: &str) -> Answer {
        let request = ping(&self.server).header("authorization", authorization);
        Answer::of(request).await
    }

    async fn with_token(&self, token: &str) -> Answer {
        self.with_header(&format!("Bearer {token}")).await
    }
}

/// A request that is answered at once.
fn ping(server: &Server) -> reqwest::RequestBuilder {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let request = crate::support::http().post(&server.url);
    request.header("content-type", "application/json").body(body)
}

/// The challenge of a response, without the scheme.
#[track_caller]
fn challenge(answer: &Answer) -> String {
    let all: Vec<_> = answer.headers.get_all("www-authenticate").iter().collect();
    assert_eq!(all.len(), 1, "{answer:?}");
    let value = all[0].to_str().unwrap();
    value.strip_prefix("Bearer ").unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// The token is not accepted: 401, and why.
#[track_caller]
fn assert_invalid(answer: &Answer) {
    assert_eq!(answer.status, 401, "{answer:?}");
    let challenge = challenge(answer);
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    assert!(challenge.contains(&format!("resource_metadata=\"{METADATA}\"")), "{challenge}");
}
