//! The console on the server: logins, sessions, and what other pages and other owners cannot do.

mod browser;
mod calls;
mod files;
mod floods;
mod login;
mod oidc;
mod operator;
mod revocation;
mod sessions;
mod traffic;

pub(crate) use self::browser::walk;

use std::{fmt::Display, sync::Arc};

use larder::{
    Builder,
    apps::{self, AppOptions},
    config::{AuthMode, Config, TokenConfig},
    tools::{self, ToolOptions},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Answer, Modern, Server, Setup, ToolControl, http, sha256};

/// A static token that is its own name.
fn token(name: &str) -> TokenConfig {
    TokenConfig {
        name: name.into(),
        sha256: sha256(name),
        scopes: Vec::new(),
        groups: Vec::new(),
        expires: None,
    }
}

/// A server with a console, the built-in tools, and the tokens `anna` and `ben`.
async fn server(change: impl FnOnce(&mut Config)) -> Server {
    Server::configured(|setup| configure(setup, change)).await
}

fn configure(setup: &mut Setup, change: impl FnOnce(&mut Config)) {
    settings(&mut setup.config);
    change(&mut setup.config);
    setup.offer(offered);
}

fn settings(config: &mut Config) {
    config.console.enabled = true;
    config.auth.mode = AuthMode::Static;
    config.auth.tokens = vec![token("anna"), token("ben")];
}

fn offered(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    builder
        .with(tools::reading(ToolOptions::default()))
        .with(tools::writing())
        .with(tools::downloading())
        .with(tools::uploading())
        .with(apps::viewing(AppOptions::default()))
}

/// The body as text.
fn said(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// What a browser keeps of the console at a server.
struct Browser {
    origin: String,
    cookie: Option<String>,
}

impl Browser {
    fn of(server: &Server) -> Self {
        Self::at(server.address)
    }

    /// A browser at the console of an address.
    fn at(address: impl Display) -> Self {
        Self { origin: format!("http://{address}"), cookie: None }
    }

    /// One that has logged in.
    async fn logged_in(server: &Server, token: &str) -> Self {
        let mut browser = Self::of(server);
        let answer = browser.log_in(token).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        browser
    }

    /// A request without an origin, with the cookie.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = http().request(method, format!("{}/console/{path}", self.origin));
        match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path).header("origin", &self.origin)
    }

    async fn log_in(&mut self, token: &str) -> Answer {
        let form = self.post("login").header("content-type", "application/x-www-form-urlencoded");
        let answer = Answer::of(form.body(format!("token={token}"))).await;
        if let Some(set) = answer.headers.get("set-cookie") {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            self.cookie = Some(pair.to_owned());
        }
        answer
    }

    async fn log_out(&self) -> Answer {
        Answer::of(self.post("logout")).await
    }

    async fn session(&self) -> Value {
        Answer::of(self.get("session")).await.json()
    }

    fn rpc(&self, method: &str, params: Value) -> RequestBuilder {
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        self.post("rpc")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .body(Modern::body(&json!(1), method, params).to_string())
    }

    async fn call(&self, tool: &str, arguments: Value) -> Answer {
        Answer::of(self.rpc("tools/call", json!({ "name": tool, "arguments": arguments }))).await
    }

    /// The URIs of the caller's resources.
    async fn listed(&self) -> Vec<String> {
        let answer = self.call("list_resources", json!({ "after": "" })).await;
        let listed: Value = serde_json::from_str(&answer.text()).unwrap();
        let listed = listed["resources"].as_array().unwrap();
        listed.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
    }
}
