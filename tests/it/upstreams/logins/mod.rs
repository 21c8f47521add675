//! Logins at upstreams: Larder in front of a Larder whose tokens come from a certified OpenID
//! provider.

mod commands;
mod documents;
mod states;
mod terminal;
mod trust;

use std::{collections::BTreeMap, path::Path, time::Duration};

use larder::{
    Context, Registry, Resource, Tool,
    clock::{Clock, SystemClock},
    config::{AuthMode, Config, IssuerConfig, TokenConfig},
    upstream::{OAuth, Remote, RemoteAuth, Settings, Status, Upstreams},
};
use reqwest::{Client, Response, Url, redirect};
use serde_json::json;

use super::text;
use crate::{
    auth::provider::Provider,
    support::{Legacy, Modern, RedisServer, Server, eventually, free_port, patiently, sha256},
};

/// Says who calls.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Whoami {}

/// The upstream: it accepts the tokens of a provider.
async fn upstream(issuer: &str) -> Server {
    let issuer = issuer.to_owned();
    let server = Server::configured(|setup| {
        let config = &mut setup.config;
        config.server.public_url = Some(format!("http://{}/mcp", config.server.listen));
        config.auth.mode = AuthMode::OAuth;
        config.auth.issuers = vec![IssuerConfig { issuer, ..IssuerConfig::default() }];
        config.auth.required_scopes = vec!["mcp:read".into()];
        setup.offers = Box::new(|_, _| {
            let whoami = |ctx: Context, _: Whoami| async move { ctx.principal().to_string() };
            let secret = Resource::text("docs://secret", "hush").scope("mcp:write");
            let builder = Registry::builder("crm").tool(Tool::new(whoami));
            let open = Resource::text("docs://open", "open");
            builder.resource(open).resource(secret).build().unwrap()
        });
    })
    .await;
    let now = SystemClock.now().since(server.clock.now());
    server.clock.advance(now);
    server
}

fn crm(url: &str) -> Settings {
    let auth = Some(RemoteAuth::Login(OAuth::default()));
    Settings::new("crm", Remote { url: url.into(), auth, ..Remote::default() })
}

/// Larder in front of an upstream, for the principals alice and bob.
async fn gateway(crm: Settings, change: impl FnOnce(&mut Config)) -> Server {
    gateway_to(&Upstreams::new(vec![crm], Vec::new(), []).unwrap(), change).await
}

async fn gateway_to(upstreams: &Upstreams, change: impl FnOnce(&mut Config)) -> Server {
    let providers = upstreams.providers().into_iter();
    let builder = providers.fold(Registry::builder("gateway"), larder::Builder::provider);
    let registry = builder.build().unwrap();
    Server::configured(|setup| {
        let token = |name: &str| TokenConfig {
            name: name.into(),
            sha256: sha256(name),
            scopes: Vec::new(),
            groups: Vec::new(),
            expires: None,
        };
        setup.config.auth.mode = AuthMode::Static;
        setup.config.auth.tokens = vec![token("alice"), token("bob")];
        setup.offers = Box::new(|_, _| registry);
        change(&mut setup.config);
    })
    .await
}

struct World {
    provider: Provider,
    upstream: Server,
    gateway: Server,
}

impl World {
    async fn new() -> Self {
        let provider = Provider::start().await;
        let upstream = upstream(&provider.issuer).await;
        let gateway = gateway(crm(&upstream.url), |_| {}).await;
        Self { provider, upstream, gateway }
    }

    fn client(&self, name: &str) -> Modern {
        Modern::bearing(&self.gateway, name)
    }
}

/// The link that a call asks to open.
async fn link(client: &Modern, tool: &str) -> Url {
    let refused = client.call(tool, json!({})).await.result();
    assert_eq!(refused["isError"], true, "{refused}");
    let said = text(&refused);
    assert!(said.starts_with("crm needs a login"), "{said}");
    Url::parse(said.split_once(": ").unwrap().1).unwrap()
}

async fn whoami(client: &Modern) -> String {
    let result = client.call("whoami", json!({})).await.result();
    text(&result).to_owned()
}

/// A browser, which keeps cookies.
struct Browser {
    http: Client,
    cookies: BTreeMap<String, String>,
    /// The origin of the gateway as its links have it, and the one where it listens.
    gateway: Option<(&'static str, String)>,
}

impl Browser {
    fn new() -> Self {
        let http = Client::builder().no_proxy().redirect(redirect::Policy::none());
        Self { http: http.build().unwrap(), cookies: BTreeMap::new(), gateway: None }
    }

    /// A browser that reaches the gateway at its public origin.
    fn reaching(gateway: &Server, origin: &'static str) -> Self {
        let listens = format!("http://{}", gateway.address);
        Self { gateway: Some((origin, listens)), ..Self::new() }
    }

    /// Where a page is.
    fn address(&self, url: &Url) -> Url {
        let moved = self.gateway.as_ref().and_then(|(origin, listens)| {
            let rest = url.as_str().strip_prefix(origin)?;
            Url::parse(&format!("{listens}{rest}")).ok()
        });
        moved.unwrap_or_else(|| url.clone())
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> Response {
        let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        let request = request.header("cookie", cookies.collect::<Vec<_>>().join("; "));
        let response = patiently("a page", request.send()).await.unwrap();
        for cookie in response.headers().get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = cookie.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        response
    }

    async fn get(&mut self, url: Url) -> Response {
        let request = self.http.get(self.address(&url));
        self.send(request).await
    }

    /// Confirms the login of a link. Returns where the browser is sent.
    async fn confirm(&mut self, link: &Url) -> Response {
        let page = self.get(link.clone()).await;
        assert_eq!(page.status(), 200);
        assert_eq!(page.headers()["cache-control"], "no-store");
        let ticket = link.query_pairs().next().unwrap().1.into_owned();
        let mut action = link.clone();
        action.set_query(None);
        let form = self
            .http
            .post(self.address(&action))
            .header("origin", link.origin().ascii_serialization());
        self.send(form.body(format!("ticket={ticket}"))).await
    }

    /// Logs in as a user of the provider. Returns the URL of the callback.
    async fn authorize(&mut self, link: &Url, user: &str) -> Url {
        let response = self.confirm(link).await;
        assert_eq!(response.status(), 303, "{}", response.text().await.unwrap());
        let mut url = location(&response, link);
        for (name, value) in [("code_challenge_method", "S256"), ("response_type", "code")] {
            assert!(url.query_pairs().any(|pair| pair == (name.into(), value.into())), "{url}");
        }
        url.query_pairs_mut().append_pair("login_hint", user);
        for _ in 0..10 {
            if url.path().ends_with("/callback") {
                return url;
            }
            let response = self.get(url.clone()).await;
            assert!(response.status().is_redirection(), "{}", response.text().await.unwrap());
            url = location(&response, &url);
        }
        panic!("too many redirects: {url}")
    }

    /// The whole login.
    async fn log_in(&mut self, link: &Url, user: &str) {
        let callback = self.authorize(link, user).await;
        let page = self.get(callback).await;
        assert_eq!(page.status(), 200, "{}", page.text().await.unwrap());
    }
}

fn location(response: &Response, base: &Url) -> Url {
    base.join(response.headers()["location"].to_str().unwrap()).unwrap()
}

#[tokio::test]
async fn each_principal_logs_in_and_has_tokens_of_its_own() {
    let world = World::new().await;
    let (alice, bob) = (world.client("alice"), world.client("bob"));
    let listed = alice.list("tools/list", "tools").await;
    assert_eq!(listed[0]["name"], "crm__login", "{listed:?}");
    Browser::new().log_in(&link(&alice, "whoami").await, "anna").await;
    assert!(whoami(&alice).await.contains("\"anna\""));
    assert_eq!(alice.list("tools/list", "tools").await[0]["name"], "whoami");
    // The other one has neither the tokens nor the list.
    assert_eq!(bob.list("tools/list", "tools").await[0]["name"], "crm__login");
    Browser::new().log_in(&link(&bob, "whoami").await, "bert").await;
    assert!(whoami(&bob).await.contains("\"bert\""));
    assert!(whoami(&alice).await.contains("\"anna\""));
    // A session is the same principal.
    let legacy = Legacy::bearing(&world.gateway, "bob").await;
    let said = legacy.call("whoami", json!({})).await.result();
    assert!(text(&said).contains("\"bert\""), "{said}");
    // Resources and prompts ask, too.
    let other = gateway(crm(&world.upstream.url), |_| {}).await;
    let refused = Modern::bearing(&other, "alice");
    let refused = refused.send("prompts/get", json!({ "name": "x" })).await.error();
    assert_eq!(refused["code"], -32603);
    assert!(refused["message"].as_str().unwrap().starts_with("crm needs a login: http"));
}

#[tokio::test]
async fn a_token_is_refreshed_once_for_many_callers() {
    let world = World::new().await;
    let alice = world.client("alice");
    Browser::new().log_in(&link(&alice, "whoami").await, "anna").await;
    assert!(whoami(&alice).await.contains("\"anna\""));
    let before = world.provider.fetches("/token").await;
    world.gateway.clock.advance(Duration::from_secs(590));
    let calls = futures_util::future::join_all((0..20).map(|_| whoami(&alice))).await;
    assert!(calls.iter().all(|said| said.contains("\"anna\"")), "{calls:?}");
    assert_eq!(world.provider.fetches("/token").await, before + 1);
}

#[tokio::test]
async fn a_login_that_cannot_be_refreshed_is_no_failure_of_the_upstream() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider.issuer).await;
    let upstreams = Upstreams::new(vec![crm(&upstream.url)], Vec::new(), []).unwrap();
    let server = gateway_to(&upstreams, |_| {}).await;
    let alice = Modern::bearing(&server, "alice");
    Browser::new().log_in(&link(&alice, "whoami").await, "anna").await;
    assert!(whoami(&alice).await.contains("\"anna\""));
    provider.token_endpoint("down").await;
    server.clock.advance(Duration::from_secs(590));
    // In the process that runs, and in one that starts for a client with other capabilities.
    let other = Modern::bearing(&server, "alice").with(json!({ "sampling": {} }));
    for client in [&alice, &other] {
        let said = whoami(client).await;
        assert!(said.contains("crm cannot be used: its login cannot be used now"), "{said}");
    }
    let Status { failures, last_error, era, .. } = upstreams.statuses().remove(0);
    assert_eq!((failures, last_error, era.as_deref()), (0, None, Some("modern")));
}

#[tokio::test]
async fn a_registration_that_the_authorization_server_forgot_is_made_anew() {
    let world = World::new().await;
    let alice = world.client("alice");
    Browser::new().log_in(&link(&alice, "whoami").await, "anna").await;
    assert!(whoami(&alice).await.contains("\"anna\""));
    world.provider.forget_clients().await;
    world.gateway.clock.advance(Duration::from_secs(590));
    // The token cannot be refreshed. The next login does not use the old registration.
    Browser::new().log_in(&link(&alice, "whoami").await, "anna").await;
    assert!(whoami(&alice).await.contains("\"anna\""));
    assert_eq!(world.provider.fetches("/reg").await, 2);
}

#[tokio::test]
async fn a_logout_forgets_and_revokes() {
    let world = World::new().await;
    let (alice, bob) = (world.client("alice"), world.client("bob"));
    for (client, user) in [(&alice, "anna"), (&bob, "bert")] {
        Browser::new().log_in(&link(client, "whoami").await, user).await;
        assert!(whoami(client).await.contains(user));
    }
    let account = format!("{}/upstreams/crm/account", world.gateway.url);
    let http = Client::builder().no_proxy().build().unwrap();
    let status = http.get(&account).send().await.unwrap().status();
    assert_eq!(status, 401);
    let logged_in = async |name: &str| {
        let answer = http.get(&account).bearer_auth(name).send().await.unwrap();
        answer.text().await.unwrap().contains("true")
    };
    assert!(logged_in("alice").await);
    let done = http.delete(&account).bearer_auth("alice").send().await.unwrap();
    assert_eq!(done.status(), 200);
    assert!(world.provider.fetches("/token/revocation").await >= 1);
    assert!(!logged_in("alice").await && logged_in("bob").await);
    link(&alice, "whoami").await;
    assert!(whoami(&bob).await.contains("bert"));
}

#[tokio::test]
async fn callbacks_work_once_and_in_the_browser_that_confirmed() {
    let world = World::new().await;
    let (alice, bob) = (world.client("alice"), world.client("bob"));
    let (mut one, mut other) = (Browser::new(), Browser::new());
    let callback = one.authorize(&link(&alice, "whoami").await, "anna").await;
    // Somebody else opens it, without a login of their own and in the middle of one.
    let stolen = other.get(callback.clone()).await;
    assert_eq!(stolen.status(), 400);
    let theirs = other.authorize(&link(&bob, "whoami").await, "bert").await;
    assert_eq!(other.get(callback.clone()).await.status(), 400);
    link(&bob, "whoami").await;
    // The refused callback has taken the other's cookie away; a new login works.
    assert_eq!(other.get(theirs).await.status(), 400);
    // Twice, and as if the first answer had not come.
    let cookies = one.cookies.clone();
    assert_eq!(one.get(callback.clone()).await.status(), 200);
    one.cookies = cookies;
    let again = one.get(callback).await;
    assert_eq!(again.status(), 400);
    assert!(again.text().await.unwrap().contains("is over"));
    assert!(whoami(&alice).await.contains("\"anna\""));
    other.log_in(&link(&bob, "whoami").await, "bert").await;
    assert!(whoami(&bob).await.contains("\"bert\""));
}

#[tokio::test]
async fn a_refused_login_and_a_mixed_up_server_leave_no_tokens() {
    let world = World::new().await;
    let alice = world.client("alice");
    for (change, said) in [
        ("error=access_denied", "access_denied"),
        ("iss=https%3A%2F%2Fevil.example&code=x", "another authorization server"),
        ("code=wrong", "invalid_grant"),
    ] {
        let mut browser = Browser::new();
        let mut callback = browser.authorize(&link(&alice, "whoami").await, "anna").await;
        let query: BTreeMap<String, String> = callback.query_pairs().into_owned().collect();
        let issuer = if change.starts_with("iss") { "" } else { &world.provider.issuer };
        let issuer = if issuer.is_empty() { String::new() } else { format!("&iss={issuer}") };
        callback.set_query(Some(&format!("state={}&{change}{issuer}", query["state"])));
        let page = browser.get(callback).await;
        assert_eq!(page.status(), 400, "{change}");
        let page = page.text().await.unwrap();
        assert!(page.contains(said), "{page}");
    }
    link(&alice, "whoami").await;
    // A form of another page, a changed ticket.
    let link = link(&alice, "whoami").await;
    let mut changed = link.clone();
    changed.set_query(Some(&format!("{}x", link.query().unwrap())));
    assert_eq!(Browser::new().get(changed).await.status(), 400);
    let form = Client::builder().no_proxy().build().unwrap().post(link.clone());
    let form = form.header("origin", "https://evil.example").body(link.query().unwrap().to_owned());
    assert_eq!(form.send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn an_operation_that_needs_another_scope_asks_for_it() {
    let world = World::new().await;
    let alice = world.client("alice");
    let mut browser = Browser::new();
    browser.log_in(&link(&alice, "whoami").await, "anna").await;
    assert!(whoami(&alice).await.contains("\"anna\""));
    let uri = json!({ "uri": "docs://secret" });
    let refused = alice.send("resources/read", uri.clone()).await.error();
    assert_eq!(refused["code"], -32603);
    let said = refused["message"].as_str().unwrap();
    let link =
        said.strip_prefix("crm needs a login with the scopes mcp:read mcp:write: ").expect(said);
    browser.log_in(&link.parse().unwrap(), "anna").await;
    assert_eq!(alice.read("docs://secret").await["text"], "hush");
    assert!(whoami(&alice).await.contains("\"anna\""));
}

#[tokio::test]
async fn clients_that_can_open_urls_are_asked_to() {
    let world = World::new().await;
    let able = json!({ "elicitation": { "url": {} } });
    let alice = world.client("alice").with(able.clone());
    let mut asked = alice.call("whoami", json!({})).await.result();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = asked["inputRequests"]["login_crm"].take();
    assert_eq!(question["params"]["mode"], "url", "{question}");
    let url: Url = question["params"]["url"].as_str().unwrap().parse().unwrap();
    Browser::new().log_in(&url, "anna").await;
    let params = json!({
        "name": "whoami",
        "arguments": {},
        "requestState": asked["requestState"],
        "inputResponses": { "login_crm": { "action": "accept" } },
    });
    let done = alice.send("tools/call", params).await.result();
    assert!(text(&done).contains("\"anna\""), "{done}");
}

/// The file with the key that seals the tokens.
fn key_file(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("key");
    std::fs::write(&file, "a secret of at least 32 bytes, for tests").unwrap();
    file
}

/// Logs in, and goes on with another server on the same store.
async fn tokens_survive_in(store: &str) {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::start().await;
    let upstream = upstream(&provider.issuer).await;
    let server = async || {
        gateway(crm(&upstream.url), |config| {
            store.clone_into(&mut config.store.url);
            config.redis.migrate = true;
            config.server.state_key_file = Some(key_file(folder.path()));
        })
        .await
    };
    let first = server().await;
    let alice = Modern::bearing(&first, "alice");
    Browser::new().log_in(&link(&alice, "whoami").await, "anna").await;
    assert!(whoami(&alice).await.contains("\"anna\""));
    // Another instance at the same time, and one after a restart.
    let second = server().await;
    assert!(whoami(&Modern::bearing(&second, "alice")).await.contains("\"anna\""));
    first.stop().finished().await;
    second.stop().finished().await;
    let third = server().await;
    assert!(whoami(&Modern::bearing(&third, "alice")).await.contains("\"anna\""));
    link(&Modern::bearing(&third, "bob"), "whoami").await;
}

#[tokio::test]
async fn logins_survive_a_restart_with_redis() {
    let redis = RedisServer::start().await;
    tokens_survive_in(&redis.url()).await;
}

#[tokio::test]
async fn logins_survive_a_restart_with_files() {
    let folder = tempfile::tempdir().unwrap();
    tokens_survive_in(&format!("file://{}", folder.path().display())).await;
    // The tokens are JWTs. They are sealed.
    let files = crate::support::files_below(folder.path());
    assert!(!files.is_empty());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        assert!(bytes.windows(3).all(|part| part != b"eyJ"), "{}", file.display());
    }
}

#[tokio::test]
async fn an_authorization_server_that_is_down_or_says_too_much_is_reported() {
    use axum::{Router, routing};
    let provider = Provider::start().await;
    let upstream = upstream(&provider.issuer).await;
    let gateway_of = |url: &str| gateway(crm(url), |_| {});
    let server = gateway_of(&upstream.url).await;
    let url = link(&Modern::bearing(&server, "alice"), "whoami").await;
    provider.kill();
    let page = Browser::new().confirm(&url).await;
    assert_eq!(page.status(), 503);
    assert!(page.text().await.unwrap().contains("cannot be reached"));
    // One that sends megabytes of metadata.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let challenge = [("www-authenticate", "Bearer scope=\"a\"")];
    let router = Router::new()
        .route("/mcp", routing::post(async move || (reqwest::StatusCode::UNAUTHORIZED, challenge)))
        .fallback(async || "x".repeat(2 << 20));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let server = gateway_of(&format!("http://{address}/mcp")).await;
    let url = link(&Modern::bearing(&server, "alice"), "whoami").await;
    let page = Browser::new().confirm(&url).await;
    assert_eq!(page.status(), 503);
    assert!(page.text().await.unwrap().contains("larger than"));
    // One that nobody can reach needs no login, but says why.
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let server = gateway_of(&url).await;
    let alice = Modern::bearing(&server, "alice");
    eventually("the reason", async || {
        text(&alice.call("whoami", json!({})).await.result()).contains("Connection refused")
    })
    .await;
}
