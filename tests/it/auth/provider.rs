//! The certified OpenID provider in a process of its own (tests/oidc), and clients that
//! get tokens from it.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::{Client, Response, Url, redirect};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::{
    sync::{OnceCell, oneshot},
    time::timeout,
};

use super::RESOURCE;
use crate::support::{http, patiently};

const SECRET: &str = "a secret for tests only";
const CALLBACK: &str = "http://127.0.0.1/callback";

/// How often node is started, because it hangs at its start at times.
const START_ATTEMPTS: usize = 3;
const START_TIMEOUT: Duration = Duration::from_secs(20);

type FirstLine = oneshot::Receiver<Option<io::Result<String>>>;

pub(crate) struct Provider {
    pub(crate) issuer: String,
    http: Client,
    process: Mutex<Child>,
    /// The process ends when it is closed.
    _stdin: ChildStdin,
}

impl Provider {
    /// The provider that all tests share which do not change it: it takes a second to start.
    pub(crate) async fn shared() -> &'static Self {
        static SHARED: OnceCell<Provider> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    pub(crate) async fn start() -> Self {
        Self::spawn(http().clone(), &[]).await
    }

    /// A provider that serves HTTPS, with this key and certificate.
    pub(crate) async fn encrypted(http: Client, key: &Path, cert: &Path) -> Self {
        Self::spawn(http, &[("TLS_KEY", key), ("TLS_CERT", cert)]).await
    }

    async fn spawn(http: Client, environment: &[(&str, &Path)]) -> Self {
        for _ in 0..START_ATTEMPTS {
            let (mut process, stdin, line) = Self::start_node(environment);
            let Ok(line) = timeout(START_TIMEOUT, line).await else {
                let _ = process.kill();
                let _ = process.wait();
                continue;
            };
            let line = line.unwrap();
            let line = line.expect("a provider: run `npm ci` in tests/oidc, as `make test` does");
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let issuer = line["issuer"].as_str().unwrap().to_owned();
            return Self { issuer, http, process: Mutex::new(process), _stdin: stdin };
        }
        panic!("the provider does not start");
    }

    /// Starts the process. Its first line has the address.
    fn start_node(environment: &[(&str, &Path)]) -> (Child, ChildStdin, FirstLine) {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oidc");
        let mut command = Command::new("node");
        command.arg("provider.mjs").current_dir(folder);
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("node, which runs the provider");
        let (stdout, stdin) = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
        let (sender, line) = oneshot::channel();
        // No thread of the runtime, whose end would wait for it if node hangs at its start.
        std::thread::spawn(move || sender.send(BufReader::new(stdout).lines().next()));
        (process, stdin, line)
    }

    fn post(&self, path: &str, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let body = form.iter().map(|(name, value)| format!("{name}={}", encode(value)));
        self.http
            .post(format!("{}{path}", self.issuer))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.collect::<Vec<_>>().join("&"))
    }

    async fn token(&self, form: &[(&str, &str)], machine: Option<&str>) -> Value {
        let request = self.post("/token", form);
        let request = match machine {
            Some(client) => request.header("authorization", basic(client)),
            None => request,
        };
        let response = patiently("a token", request.send()).await.unwrap();
        let status = response.status();
        let text = patiently("a token", response.text()).await.unwrap();
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The token of a machine (client credentials), of a kind such as `es256` or `opaque`.
    pub(crate) async fn machine(&self, kind: &str, scope: &str) -> String {
        self.machine_for(kind, scope, RESOURCE).await
    }

    pub(crate) async fn machine_for(&self, kind: &str, scope: &str, resource: &str) -> String {
        let form = [("grant_type", "client_credentials"), ("scope", scope), ("resource", resource)];
        let token = self.token(&form, Some(&format!("machine-{kind}"))).await;
        token["access_token"].as_str().unwrap().to_owned()
    }

    /// The tokens of a user (authorization code with PKCE).
    pub(crate) async fn login(&self, kind: &str, user: &str, scope: &str) -> Value {
        let client = format!("app-{kind}");
        let verifier = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(user));
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let scope = format!("openid offline_access {scope}");
        let query = [
            ("client_id", client.as_str()),
            ("response_type", "code"),
            ("redirect_uri", CALLBACK),
            ("scope", &scope),
            ("prompt", "consent"),
            ("resource", RESOURCE),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("login_hint", user),
            ("state", "s"),
        ];
        let mut url = Url::parse(&format!("{}/auth", self.issuer)).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let back = Browser::new().follow(url).await;
        let code = back.query_pairs().find(|(name, _)| name == "code");
        let code = code.unwrap_or_else(|| panic!("{back}")).1.into_owned();
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", &client),
            ("redirect_uri", CALLBACK),
            ("code", &code),
            ("code_verifier", &verifier),
            ("resource", RESOURCE),
        ];
        self.token(&form, None).await
    }

    /// New tokens by a refresh token.
    pub(crate) async fn refresh(&self, kind: &str, tokens: &Value) -> Value {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &format!("app-{kind}")),
            ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
            ("resource", RESOURCE),
        ];
        self.token(&form, None).await
    }

    pub(crate) async fn revoke(&self, machine: &str, token: &str) {
        let request = self.post("/token/revocation", &[("token", token)]);
        let request = request.header("authorization", basic(machine)).send();
        let response = patiently("a revocation", request).await.unwrap();
        assert_eq!(response.status(), 200);
    }

    /// Replaces all keys.
    pub(crate) async fn rotate(&self) {
        self.control("rotate").await;
    }

    /// Sets how the key endpoint responds: `up`, `down` or `hang`.
    pub(crate) async fn jwks(&self, mode: &str) {
        self.control(&format!("jwks/{mode}")).await;
    }

    /// Sets how the userinfo endpoint responds: `up` or `down`.
    pub(crate) async fn userinfo(&self, mode: &str) {
        self.control(&format!("userinfo/{mode}")).await;
    }

    /// Sets how the token endpoint responds: `up`, `down` or `hang`.
    pub(crate) async fn token_endpoint(&self, mode: &str) {
        self.control(&format!("token/{mode}")).await;
    }

    /// Forgets the clients that have registered.
    pub(crate) async fn forget_clients(&self) {
        self.control("forget").await;
    }

    /// From now on it supports Client ID Metadata Documents, and reads those of
    /// `https://larder.example` at this address.
    pub(crate) async fn read_documents(&self, address: SocketAddr) {
        self.control(&format!("documents/{address}")).await;
    }

    /// How often a path was requested.
    pub(crate) async fn fetches(&self, path: &str) -> u64 {
        let counts: Value = serde_json::from_str(&self.control("counts").await).unwrap();
        counts[path].as_u64().unwrap_or(0)
    }

    /// From now on there is no such user.
    pub(crate) async fn disable(&self, user: &str) {
        self.control(&format!("disable/{user}")).await;
    }

    async fn control(&self, what: &str) -> String {
        let request = http().post(format!("{}/test/{what}", self.issuer)).send();
        let response = patiently("the provider", request).await.unwrap();
        patiently("the provider", response.text()).await.unwrap()
    }

    /// Stops the process: connections are accepted, and no request is answered.
    pub(crate) fn freeze(&self) {
        let id = self.process.lock().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    }

    /// Kills the process: connections are refused.
    pub(crate) fn kill(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.kill();
    }
}

fn basic(client: &str) -> String {
    use base64::prelude::BASE64_STANDARD;

    format!("Basic {}", BASE64_STANDARD.encode(format!("{client}:{}", encode(SECRET))))
}

fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A browser: it keeps cookies and follows redirects, until one leads back to the client.
struct Browser {
    http: Client,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    fn new() -> Self {
        let http = Client::builder().no_proxy().redirect(redirect::Policy::none());
        Self { http: http.build().unwrap(), cookies: BTreeMap::new() }
    }

    async fn follow(mut self, mut url: Url) -> Url {
        for _ in 0..10 {
            if url.as_str().starts_with(CALLBACK) {
                return url;
            }
            let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
            let cookies = cookies.collect::<Vec<_>>().join("; ");
            let request = self.http.get(url.clone()).header("cookie", cookies);
            let response = patiently("a page", request.send()).await.unwrap();
            self.keep_cookies(&response);
            let location = response.headers().get("location").cloned();
            let Some(location) = location else { panic!("{}", response.text().await.unwrap()) };
            url = url.join(location.to_str().unwrap()).unwrap();
        }
        panic!("too many redirects: {url}")
    }

    fn keep_cookies(&mut self, response: &Response) {
        for cookie in response.headers().get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = cookie.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}
