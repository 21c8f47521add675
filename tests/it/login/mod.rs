//! `[auth] mode = "login"`, with the certified provider as the identity provider: clients that it
//! does not know, and everything that must not work.

mod browser;
mod console;
mod documents;
mod instances;
mod operations;
mod outages;
mod proxies;
mod refusals;
mod rust_client;
mod tokens;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use larder::{
    clock::{Clock, SystemClock},
    config::{AuthMode, Config, LoginAllowConfig, LoginConfig},
};
use reqwest::{Response, StatusCode, Url};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use self::browser::Browser;
use crate::{
    auth::provider::Provider,
    support::{Modern, Server, http, patiently},
};

const REDIRECT: &str = "http://127.0.0.1:3000/callback";
const VERIFIER: &str = "a verifier of at least forty-three characters";
/// What the provider knows Larder by.
const SECRET: &str = "a secret for tests only";

/// The settings of a server with this provider.
fn configure(config: &mut Config, issuer: &str, secret: &NamedTempFile) {
    std::fs::write(secret.path(), SECRET).unwrap();
    let listen = config.server.listen;
    config.server.public_url = Some(format!("http://{listen}/mcp"));
    config.auth.mode = AuthMode::Login;
    config.auth.required_scopes = vec!["mcp:read".into()];
    config.auth.scopes.insert("create_resource".into(), vec!["mcp:write".into()]);
    config.auth.login = Some(LoginConfig {
        issuer: Some(issuer.to_owned()),
        client_id: "larder".into(),
        client_secret_file: Some(secret.path().to_owned()),
        allow: LoginAllowConfig {
            domains: vec!["example.com".into()],
            ..LoginAllowConfig::default()
        },
        grants: [
            ("mcp:read".to_owned(), vec!["*".to_owned()]),
            ("mcp:write".to_owned(), vec!["group:analysts".to_owned()]),
        ]
        .into(),
        ..LoginConfig::default()
    });
}

/// A server in mode `login`.
struct Site {
    server: Server,
    _secret: NamedTempFile,
}

impl Site {
    async fn start() -> Self {
        Self::with(Provider::shared().await, |_| {}).await
    }

    async fn with(provider: &Provider, change: impl FnOnce(&mut LoginConfig)) -> Self {
        Self::configured(provider, |config| change(config.auth.login.as_mut().unwrap())).await
    }

    async fn configured(provider: &Provider, change: impl FnOnce(&mut Config)) -> Self {
        let secret = NamedTempFile::new().unwrap();
        let server = Server::configured(|setup| {
            configure(&mut setup.config, &provider.issuer, &secret);
            change(&mut setup.config);
        })
        .await;
        // The clock of the provider is that of the machine.
        server.clock.advance(SystemClock.now().since(server.clock.now()));
        Self { server, _secret: secret }
    }

    fn client(&self) -> Client {
        Client::of(&self.server.url)
    }
}

/// An MCP client's requests to the authorization server.
struct Client {
    resource: String,
}

impl Client {
    fn of(resource: &str) -> Self {
        Self { resource: resource.to_owned() }
    }

    fn url(&self, path: &str) -> String {
        format!("{}/login/{path}", self.resource)
    }

    async fn try_register(&self, registration: &Value) -> Response {
        let request = http()
            .post(self.url("register"))
            .header("content-type", "application/json")
            .body(registration.to_string());
        patiently("a registration", request.send()).await.unwrap()
    }

    /// The ID of a new client.
    async fn register(&self) -> String {
        let registration = json!({
            "client_name": "The <Client>", "redirect_uris": [REDIRECT], "scope": "mcp:read",
        });
        let response = self.try_register(&registration).await;
        assert_eq!(response.status(), 201);
        let registered = body(response).await;
        registered["client_id"].as_str().unwrap().to_owned()
    }

    /// The parameters of a request.
    fn request(&self, client: &str) -> Vec<(&'static str, String)> {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        vec![
            ("response_type", "code".to_owned()),
            ("client_id", client.to_owned()),
            ("redirect_uri", REDIRECT.to_owned()),
            ("scope", "mcp:read".to_owned()),
            ("state", "the state".to_owned()),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256".to_owned()),
            ("resource", self.resource.clone()),
        ]
    }

    fn authorize_url(&self, parameters: &[(&'static str, String)]) -> Url {
        let mut url = Url::parse(&self.url("authorize")).unwrap();
        url.query_pairs_mut().extend_pairs(parameters);
        url
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = http()
            .post(self.url(path))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        patiently("an answer", request.send()).await.unwrap()
    }

    async fn redeem(&self, client: &str, code: &str) -> Response {
        self.redeem_with(client, code, VERIFIER, REDIRECT).await
    }

    async fn redeem_with(
        &self,
        client: &str,
        code: &str,
        verifier: &str,
        redirect: &str,
    ) -> Response {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", redirect),
            ("resource", &self.resource),
        ];
        self.post("token", &form).await
    }

    async fn refresh(&self, client: &str, tokens: &Value) -> Response {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
        ];
        self.post("token", &form).await
    }

    /// The code of a login, which the user allows.
    async fn code(&self, browser: &mut Browser, client: &str) -> String {
        let back = browser.log_in(self.authorize_url(&self.request(client)), "allow").await;
        assert!(back.as_str().starts_with(REDIRECT), "{back}");
        assert_eq!(parameter(&back, "state").as_deref(), Some("the state"));
        assert_eq!(parameter(&back, "iss").as_deref(), Some(self.resource.as_str()));
        parameter(&back, "code").unwrap_or_else(|| panic!("{back}"))
    }

    /// The tokens of a login.
    async fn tokens(&self, user: &str, client: &str) -> Value {
        let code = self.code(&mut Browser::of(user), client).await;
        let response = self.redeem(client, &code).await;
        assert_eq!(response.status(), 200);
        body(response).await
    }

    /// The status of a call with an access token.
    async fn status(&self, tokens: &Value) -> StatusCode {
        let token = tokens["access_token"].as_str().unwrap();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "a", "version": "1" },
        }});
        let request = http()
            .post(&self.resource)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.to_string());
        patiently("an answer", request.send()).await.unwrap().status()
    }
}

async fn body(response: Response) -> Value {
    let text = patiently("a body", response.text()).await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

async fn get(url: &str) -> Response {
    patiently("an answer", http().get(url).send()).await.unwrap()
}

/// The status and the error code of a refusal.
async fn refusal(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    (status, body(response).await["error"].as_str().unwrap_or_default().to_owned())
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

#[tokio::test]
async fn a_client_that_the_provider_does_not_know_logs_in_from_the_bare_url() {
    let site = Site::start().await;
    let client = site.client();
    // 401, the resource's metadata, the server's metadata.
    let unauthorized = patiently("an answer", http().post(&client.resource).send()).await.unwrap();
    assert_eq!(unauthorized.status(), 401);
    let challenge = unauthorized.headers()["www-authenticate"].to_str().unwrap().to_owned();
    let metadata = challenge.split("resource_metadata=\"").nth(1).unwrap();
    let resource = body(get(metadata.split('"').next().unwrap()).await).await;
    assert_eq!(resource["resource"], client.resource);
    let issuer = resource["authorization_servers"][0].as_str().unwrap();
    let url = issuer.replacen("/mcp", "/.well-known/oauth-authorization-server/mcp", 1);
    let metadata = body(get(&url).await).await;
    assert_eq!(metadata["issuer"], issuer);
    assert_eq!(metadata["registration_endpoint"], client.url("register"));
    assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));
    let scopes = json!(["mcp:read", "mcp:write", "offline_access"]);
    assert_eq!(metadata["scopes_supported"], scopes);
    // A resource server names no such scope, only those that each request needs.
    assert_eq!(resource["scopes_supported"], json!(["mcp:read"]));
    let openid = format!("{issuer}/.well-known/openid-configuration");
    assert_eq!(get(&openid).await.status(), 404);
    let keys = body(get(metadata["jwks_uri"].as_str().unwrap()).await).await;
    assert_eq!((&keys["keys"][0]["crv"], keys["keys"][0].get("d")), (&json!("P-256"), None));

    let id = client.register().await;
    let tokens = client.tokens("alice", &id).await;
    assert_eq!((&tokens["expires_in"], &tokens["scope"]), (&json!(600), &json!("mcp:read")));
    assert_eq!(client.status(&tokens).await, 200);
    let alice = Modern::bearing(&site.server, tokens["access_token"].as_str().unwrap());
    assert_eq!(alice.call("create_resource", json!({ "text": "x" })).await.status, 403);
    // Not after ten minutes.
    site.server.clock.advance(std::time::Duration::from_secs(631));
    assert_eq!(client.status(&tokens).await, 401);
}

#[tokio::test]
async fn consent_is_remembered_for_the_scopes_and_asked_again_for_more() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let mut browser = Browser::of("bob");
    client.code(&mut browser, &id).await;
    let page = browser.pages.pop().unwrap();
    assert!(page.contains("The &lt;Client&gt;") && page.contains("127.0.0.1"), "{page}");
    assert!(page.contains("<code>mcp:read</code>") && page.contains("bob@example.com"), "{page}");
    assert!(!page.contains("<script"), "{page}");
    client.code(&mut browser, &id).await;
    assert!(browser.pages.is_empty(), "asked again");
    // What was registered is no ceiling.
    let mut request = client.request(&id);
    request[3].1 = "mcp:read mcp:write".to_owned();
    let back = browser.log_in(client.authorize_url(&request), "allow").await;
    assert!(browser.pages.pop().unwrap().contains("<code>mcp:write</code>"));
    let tokens = body(client.redeem(&id, &parameter(&back, "code").unwrap()).await).await;
    assert_eq!(tokens["scope"], "mcp:read mcp:write");
    let bob = Modern::bearing(&site.server, tokens["access_token"].as_str().unwrap());
    bob.create(json!({ "uri": "a://1", "text": "bob's" })).await;
    // Another client is another question, and so is another user.
    client.code(&mut browser, &client.register().await).await;
    assert!(browser.pages.pop().is_some());
    let mut carol = Browser::of("carol");
    client.code(&mut carol, &id).await;
    assert!(carol.pages.pop().is_some());
}

#[tokio::test]
async fn who_denies_or_may_not_use_the_server_gets_no_code() {
    let site = Site::start().await;
    let client = site.client();
    let id = client.register().await;
    let url = client.authorize_url(&client.request(&id));
    let back = Browser::of("alice").log_in(url.clone(), "deny").await;
    assert_eq!(parameter(&back, "error").as_deref(), Some("access_denied"));
    assert_eq!(parameter(&back, "code"), None);
    // Not in the domain.
    let (status, page) = Browser::of("mallory").page(url).await;
    assert_eq!(status, 403);
    assert!(
        page.contains("mallory@evil.example") && page.contains("error=access_denied"),
        "{page}"
    );
    // May not have the scope.
    let mut request = client.request(&id);
    request[3].1 = "mcp:write".to_owned();
    let back = Browser::of("alice").log_in(client.authorize_url(&request), "allow").await;
    assert_eq!(parameter(&back, "error").as_deref(), Some("invalid_scope"));
}
