//! The login at an authorization server: the certified provider in a process of its own.

use std::collections::BTreeMap;

use larder::{
    clock::{Clock, SystemClock},
    config::{AuthMode, Config, ConsoleOidcConfig, IssuerConfig},
};
use reqwest::{Client, Response, Url, redirect};
use serde_json::json;
use tempfile::NamedTempFile;

use super::{Browser, offered, said};
use crate::{
    auth::provider::Provider,
    support::{Answer, Modern, RedisServer, Server, patiently},
};

/// The audience of the tokens that the provider gives to other clients.
const OTHER: &str = "http://127.0.0.1:8000/mcp";

/// A server whose people log in at a provider.
pub(super) struct Site {
    pub(super) server: Server,
    _secret: NamedTempFile,
}

impl Site {
    async fn start() -> Self {
        Self::with(Provider::shared().await, "127.0.0.1", |_| {}).await
    }

    /// A server at a name of this machine.
    pub(super) async fn with(
        provider: &Provider,
        host: &str,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let secret = NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "a secret for tests only\n").unwrap();
        let server = Server::configured(|setup| {
            let config = &mut setup.config;
            let port = config.server.listen.port();
            config.server.public_url = Some(format!("http://{host}:{port}/mcp"));
            config.auth.mode = AuthMode::OAuth;
            config.auth.required_scopes = vec!["mcp:read".into()];
            config.auth.issuers = vec![IssuerConfig {
                issuer: provider.issuer.clone(),
                audiences: vec![OTHER.into()],
                ..IssuerConfig::default()
            }];
            config.console.enabled = true;
            config.console.oidc = Some(ConsoleOidcConfig {
                issuer: provider.issuer.clone(),
                client_id: "console".into(),
                client_secret_file: Some(secret.path().to_owned()),
                ..ConsoleOidcConfig::default()
            });
            change(config);
            setup.offer(offered);
        })
        .await;
        // The clock of the provider is that of the machine.
        server.clock.advance(SystemClock.now().since(server.clock.now()));
        Self { server, _secret: secret }
    }

    fn origin(&self) -> String {
        format!("http://{}", self.server.address)
    }

    fn person(&self, user: &str) -> Person {
        Person::at(self.origin(), user)
    }
}

/// A person with a browser. It sends what browsers send: cookies with `SameSite=Strict` only when a
/// page of the server itself sends it there.
struct Person {
    user: String,
    http: Client,
    origin: String,
    provider: BTreeMap<String, String>,
    login: Option<String>,
    session: Option<String>,
}

impl Person {
    fn at(origin: String, user: &str) -> Self {
        let http = Client::builder().no_proxy().redirect(redirect::Policy::none());
        Self {
            user: user.to_owned(),
            http: http.build().unwrap(),
            origin,
            provider: BTreeMap::new(),
            login: None,
            session: None,
        }
    }

    /// Clicks the button. Returns the page of the provider.
    async fn begin(&mut self) -> Url {
        let request = self.http.post(format!("{}/console/oidc", self.origin));
        let request = request.header("origin", &self.origin);
        let request = match &self.session {
            Some(session) => request.header("cookie", session),
            None => request,
        };
        let answer = Answer::of(request).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.headers["set-cookie"].to_str().unwrap();
        let (pair, attributes) = cookie.split_once("; ").unwrap();
        assert_eq!(attributes, "HttpOnly; SameSite=Lax; Path=/console/callback; Max-Age=600");
        self.login = Some(pair.to_owned());
        let url = answer.json()["url"].as_str().unwrap().parse().unwrap();
        for secret in pair.split(['=', '.']).skip(2) {
            assert!(!Url::as_str(&url).contains(secret), "the key stays in the browser: {url}");
        }
        url
    }

    /// Logs in at the provider. Returns where it sends the browser.
    async fn go_through(&mut self, mut url: Url) -> Url {
        url.query_pairs_mut().append_pair("login_hint", &self.user);
        for _ in 0..12 {
            if url.path() == "/console/callback" {
                return url;
            }
            let cookies = self.provider.iter().map(|(name, value)| format!("{name}={value}"));
            let cookies = cookies.collect::<Vec<_>>().join("; ");
            let request = self.http.get(url.clone()).header("cookie", cookies).send();
            let response = patiently("a page", request).await.unwrap();
            for cookie in response.headers().get_all("set-cookie") {
                let pair = cookie.to_str().unwrap().split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                self.provider.insert(name.to_owned(), value.to_owned());
            }
            let location = response.headers().get("location").cloned();
            let Some(location) = location else { panic!("{}", response.text().await.unwrap()) };
            url = url.join(location.to_str().unwrap()).unwrap();
        }
        panic!("too many redirects: {url}")
    }

    /// The provider's page sends the browser back.
    async fn come_back(&mut self, url: &Url) -> (u16, String) {
        let path =
            url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let request = self.http.get(format!("{}{path}", self.origin));
        let host = url.authority();
        let request = request.header("host", host).header("sec-fetch-site", "cross-site");
        let request = match &self.login {
            Some(login) => request.header("cookie", login),
            None => request,
        };
        let response = patiently("the callback", request.send()).await.unwrap();
        self.keep(&response);
        let status = response.status().as_u16();
        (status, patiently("the page", response.text()).await.unwrap())
    }

    fn keep(&mut self, response: &Response) {
        for cookie in response.headers().get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            let pair = cookie.split(';').next().unwrap();
            if let Some(value) = pair.strip_prefix("larder-console=") {
                assert!(cookie.contains("; HttpOnly; SameSite=Strict; Path=/console;"), "{cookie}");
                assert!(!value.is_empty(), "{cookie}");
                self.session = Some(pair.to_owned());
                assert_eq!(response.headers()["refresh"], "0; url=/console/");
            }
        }
    }

    async fn log_in(&mut self) -> Browser {
        let page = self.begin().await;
        let back = self.go_through(page).await;
        let (status, page) = self.come_back(&back).await;
        assert_eq!(status, 200, "{page}");
        self.browser()
    }

    fn browser(&self) -> Browser {
        Browser { origin: self.origin.clone(), cookie: self.session.clone() }
    }
}

#[tokio::test]
async fn a_person_has_what_the_same_person_has_with_a_bearer_token() {
    let site = Site::start().await;
    let nobody = Browser::of(&site.server);
    assert_eq!(nobody.session().await, json!({ "login": true, "oidc": "127.0.0.1" }));
    let tokens = Provider::shared().await.login("rs256", "bob", "mcp:read").await;
    let client = Modern::bearing(&site.server, tokens["access_token"].as_str().unwrap());
    client.call("create_resource", json!({ "uri": "x:of-bob", "text": "b" })).await.result();

    let bob = site.person("bob").log_in().await;
    let session = bob.session().await;
    assert!(session["user"].as_str().unwrap().contains("bob"), "{session}");
    assert!(session["expires"].is_string(), "{session}");
    assert_eq!(bob.listed().await, ["x:of-bob"]);
    let alice = site.person("alice").log_in().await;
    assert_eq!(alice.listed().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_callback_that_another_browser_began_logs_nobody_in() {
    let site = Site::start().await;
    let (mut attacker, mut victim) = (site.person("bob"), site.person("alice"));
    let page = attacker.begin().await;
    let of_attacker = attacker.go_through(page).await;
    // A browser that has begun nothing, and one that has begun its own login.
    for has_begun in [false, true] {
        let own = if has_begun { Some(victim.begin().await) } else { None };
        let (status, page) = victim.come_back(&of_attacker).await;
        assert_eq!(status, 400, "{page}");
        assert!(page.contains("not begun in this browser"), "{page}");
        assert!(victim.session.is_none());
        if let Some(own) = own {
            // The victim's own login has lost nothing.
            let back = victim.go_through(own).await;
            let (status, page) = victim.come_back(&back).await;
            assert_eq!(status, 200, "{page}");
            let session = victim.browser().session().await;
            assert!(session["user"].as_str().unwrap().contains("alice"), "{session}");
        }
    }
    // The callback works once, in the browser that began.
    assert_eq!(attacker.come_back(&of_attacker).await.0, 200);
    assert_eq!(attacker.come_back(&of_attacker).await.0, 400);
}

#[tokio::test]
async fn a_logout_and_another_login_end_the_session_on_the_server() {
    let site = Site::start().await;
    let mut person = site.person("alice");
    let first = person.log_in().await;
    let second = person.log_in().await;
    assert!(first.session().await["user"].is_null(), "replaced");
    let copy = Browser { origin: second.origin.clone(), cookie: second.cookie.clone() };
    assert_eq!(second.log_out().await.status, 204);
    assert!(copy.session().await["user"].is_null());
    assert_eq!(copy.call("list_resources", json!({})).await.status, 401);
}

#[tokio::test]
async fn a_login_that_one_instance_began_ends_at_another() {
    let redis = RedisServer::start().await;
    let provider = Provider::shared().await;
    let in_redis = |config: &mut Config| {
        config.store.url = redis.url();
        config.redis.migrate = true;
    };
    let one = Site::with(provider, "127.0.0.1", in_redis).await;
    let public_url = one.server.url.clone();
    let other = Site::with(provider, "127.0.0.1", |config| {
        in_redis(config);
        config.server.public_url = Some(public_url);
    })
    .await;
    let mut person = one.person("alice");
    let page = person.begin().await;
    let back = person.go_through(page).await;
    person.origin = other.origin();
    let (status, page) = person.come_back(&back).await;
    assert_eq!(status, 200, "{page}");
    for origin in [one.origin(), other.origin()] {
        person.origin = origin;
        assert!(person.browser().session().await["user"].is_string());
    }
}

#[tokio::test]
async fn only_the_own_page_at_the_public_url_begins_a_login() {
    let site = Site::with(Provider::shared().await, "127.0.0.1", |config| {
        let port = config.server.listen.port();
        config.server.allowed_hosts = vec![format!("localhost:{port}")];
    })
    .await;
    let port = site.server.address.port();
    let begin = async |host: &str, origin: &str| {
        let url = format!("{}/console/oidc", site.origin());
        let request = Client::builder().no_proxy().build().unwrap().post(url);
        Answer::of(request.header("host", host).header("origin", origin)).await
    };
    let host = site.server.address.to_string();
    for origin in ["https://evil.example", "null"] {
        assert_eq!(begin(&host, origin).await.status, 403, "{origin}");
    }
    let local = format!("localhost:{port}");
    let answer = begin(&local, &format!("http://{local}")).await;
    assert_eq!(answer.status, 403);
    assert!(said(&answer).contains(&format!("Open the console at http://{host}/console/")));
}

#[tokio::test]
async fn what_the_provider_refuses_is_said_on_a_page() {
    let provider = Provider::start().await;
    let site = Site::with(&provider, "127.0.0.1", |_| {}).await;
    let mut person = site.person("alice");
    let page = person.begin().await;
    let state = page.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let mut back = Url::parse(&format!("{}/console/callback", site.origin())).unwrap();
    let issuer = provider.issuer.clone();
    back.query_pairs_mut()
        .append_pair("error", "access_denied")
        .append_pair("state", &state)
        .append_pair("iss", &issuer);
    let (status, page) = person.come_back(&back).await;
    assert_eq!(status, 403);
    assert!(page.contains("access_denied") && page.contains("Back to the console"), "{page}");

    // The response of another authorization server.
    let url = person.begin().await;
    let back = person.go_through(url).await;
    let other =
        back.as_str().replace(&provider.issuer.replace(':', "%3A").replace('/', "%2F"), "x");
    assert_ne!(other, back.as_str());
    let (status, page) = person.come_back(&other.parse().unwrap()).await;
    assert_eq!(status, 400, "{page}");
    assert!(page.contains("another authorization server"), "{page}");

    // While the token endpoint fails, nobody is refused for good.
    let url = person.begin().await;
    let back = person.go_through(url).await;
    provider.token_endpoint("down").await;
    let (status, page) = person.come_back(&back).await;
    assert_eq!(status, 503, "{page}");
    assert!(page.contains("Try again"), "{page}");
    assert!(person.session.is_none());
    provider.token_endpoint("up").await;
    assert!(person.log_in().await.session().await["user"].is_string());
}

#[tokio::test]
async fn an_access_token_that_is_no_credential_here_begins_no_session() {
    // Without introspection, opaque tokens are not accepted.
    let site = Site::with(Provider::shared().await, "127.0.0.1", |config| {
        config.console.oidc.as_mut().unwrap().client_id = "console-opaque".into();
    })
    .await;
    let mut person = site.person("alice");
    let page = person.begin().await;
    let back = person.go_through(page).await;
    let (status, page) = person.come_back(&back).await;
    assert_eq!(status, 403, "{page}");
    assert!(page.contains("does not accept the access token"), "{page}");
    assert!(page.contains("auth.issuers"), "{page}");
    assert!(person.session.is_none());
}

#[tokio::test]
async fn one_address_begins_a_bounded_number_of_logins() {
    let site = Site::start().await;
    let begin = async || {
        let request = crate::support::http().post(format!("{}/console/oidc", site.origin()));
        Answer::of(request.header("origin", site.origin())).await
    };
    let mut refused = None;
    for _ in 0..130 {
        let answer = begin().await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("the limit of one address");
    assert_eq!(refused.status, 429);
    assert!(refused.headers.contains_key("retry-after"));
}
