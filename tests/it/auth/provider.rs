//! The certified provider in a process of its own (tests/oidc), and what its
//! clients do to get tokens.

use std::{collections::BTreeMap, path::Path, process::Stdio};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::{Client, Response, Url, redirect};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
};

use super::RESOURCE;
use crate::support::{http, patiently};

const SECRET: &str = "a secret for tests only";
const CALLBACK: &str = "http://127.0.0.1/callback";

pub(super) struct Provider {
    pub(super) issuer: String,
    http: Client,
    process: Child,
    /// Closed when this is dropped, and then it ends.
    _stdin: ChildStdin,
}

impl Provider {
    pub(super) async fn start() -> Self {
        Self::spawn(http(), &[]).await
    }

    /// One that is reached by HTTPS, with this key and certificate.
    pub(super) async fn encrypted(http: Client, key: &Path, cert: &Path) -> Self {
        Self::spawn(http, &[("TLS_KEY", key), ("TLS_CERT", cert)]).await
    }

    async fn spawn(http: Client, environment: &[(&str, &Path)]) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oidc");
        let mut command = Command::new("node");
        command.arg("provider.mjs").current_dir(folder).kill_on_drop(true);
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("node, to run the provider by");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = patiently("the provider", lines.next_line()).await.unwrap();
        let line = line.expect("a provider: run `npm ci` in tests/oidc, as `make test` does");
        let line: Value = serde_json::from_str(&line).unwrap();
        let stdin = process.stdin.take().unwrap();
        let issuer = line["issuer"].as_str().unwrap().to_owned();
        Self { issuer, http, process, _stdin: stdin }
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
        let text = response.text().await.unwrap();
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// A machine's token (client credentials) of that kind.
    pub(super) async fn machine(&self, kind: &str, scope: &str) -> String {
        self.machine_for(kind, scope, RESOURCE).await
    }

    pub(super) async fn machine_for(&self, kind: &str, scope: &str, resource: &str) -> String {
        let form = [("grant_type", "client_credentials"), ("scope", scope), ("resource", resource)];
        let token = self.token(&form, Some(&format!("machine-{kind}"))).await;
        token["access_token"].as_str().unwrap().to_owned()
    }

    /// Somebody's tokens (code with PKCE) of that kind.
    pub(super) async fn login(&self, kind: &str, user: &str, scope: &str) -> Value {
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

    /// New tokens for old.
    pub(super) async fn refresh(&self, kind: &str, tokens: &Value) -> Value {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &format!("app-{kind}")),
            ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
            ("resource", RESOURCE),
        ];
        self.token(&form, None).await
    }

    pub(super) async fn revoke(&self, machine: &str, token: &str) {
        let request = self.post("/token/revocation", &[("token", token)]);
        let response = request.header("authorization", basic(machine)).send().await.unwrap();
        assert_eq!(response.status(), 200);
    }

    /// New keys, the old ones forgotten.
    pub(super) async fn rotate(&self) {
        self.told("rotate").await;
    }

    /// `up`, `down` or `hang`.
    pub(super) async fn jwks(&self, mode: &str) {
        self.told(&format!("jwks/{mode}")).await;
    }

    pub(super) async fn fetches(&self, path: &str) -> u64 {
        let counts: Value = serde_json::from_str(&self.told("counts").await).unwrap();
        counts[path].as_u64().unwrap_or(0)
    }

    async fn told(&self, what: &str) -> String {
        let response = http().post(format!("{}/test/{what}", self.issuer)).send().await.unwrap();
        response.text().await.unwrap()
    }

    /// Stops the process without ending it: connections are taken, nothing is answered.
    pub(super) async fn freeze(&self) {
        let id = self.process.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().await.unwrap().success());
    }

    /// Ends it: connections are refused.
    pub(super) async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }
}

fn basic(client: &str) -> String {
    use base64::prelude::BASE64_STANDARD;

    format!("Basic {}", BASE64_STANDARD.encode(format!("{client}:{}", encode(SECRET))))
}

fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// What a person's browser does: follows redirects with cookies, until it is
/// sent back to the client.
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
