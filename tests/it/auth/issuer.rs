//! An authorization server whose responses the tests choose.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::signer::Signer;

pub(crate) struct Issuer {
    pub(crate) url: String,
    state: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    replies: Mutex<HashMap<String, Reply>>,
    hits: Mutex<Vec<Hit>>,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

/// The response at a path, or at a path with a query.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Json(Value),
    Text(String),
    Status(u16, Value),
    Redirect(String),
    /// No response at all.
    Hang,
}

impl Issuer {
    /// An issuer with metadata at the path of RFC 8414, and one key of each kind.
    pub(crate) async fn start() -> Self {
        let issuer = Self::empty().await;
        issuer.set_reply("/.well-known/oauth-authorization-server", Reply::Json(issuer.metadata()));
        issuer.set_keys(&[Signer::Rsa.jwk(), Signer::Ec.jwk(), Signer::Ed.jwk()]);
        issuer
    }

    /// An issuer that answers 404 at all paths.
    pub(crate) async fn empty() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Inner::default());
        let router = Router::new().fallback(respond).with_state(Arc::clone(&state));
        tokio::spawn(async move {
            let limits = larder::http::ServeLimits::default();
            larder::http::serve(listener, None, router, &limits, std::future::pending()).await
        });
        Self { url, state }
    }

    pub(crate) fn metadata(&self) -> Value {
        json!({
            "issuer": self.url,
            "jwks_uri": format!("{}/jwks", self.url),
            "introspection_endpoint": format!("{}/introspect", self.url),
        })
    }

    pub(crate) fn set_reply(&self, path: &str, reply: Reply) {
        self.state.replies.lock().unwrap().insert(path.into(), reply);
    }

    pub(crate) fn set_keys(&self, keys: &[Value]) {
        self.set_reply("/jwks", Reply::Json(json!({ "keys": keys })));
    }

    /// How often a path was requested.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.state.hits.lock().unwrap().iter().filter(|hit| hit.path == path).count()
    }

    /// The requests for a path.
    pub(crate) fn requests(&self, path: &str) -> Vec<Hit> {
        let hits = self.state.hits.lock().unwrap();
        hits.iter().filter(|hit| hit.path == path).cloned().collect()
    }

    /// The bodies of the requests for a path.
    pub(crate) fn bodies(&self, path: &str) -> Vec<String> {
        self.requests(path).into_iter().map(|hit| hit.body).collect()
    }
}

async fn respond(State(state): State<Arc<Inner>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let with_query = request.uri().to_string();
    let authorization = request.headers().get("authorization");
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let body: Bytes = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    state.hits.lock().unwrap().push(Hit { path: path.clone(), authorization, body });
    let reply = {
        let replies = state.replies.lock().unwrap();
        replies.get(&with_query).or_else(|| replies.get(&path)).cloned()
    };
    let json = |status: u16, value: &Value| {
        let headers = [("content-type", "application/json")];
        (StatusCode::from_u16(status).unwrap(), headers, value.to_string()).into_response()
    };
    match reply {
        Some(Reply::Json(value)) => json(200, &value),
        Some(Reply::Text(text)) => text.into_response(),
        Some(Reply::Status(status, value)) => json(status, &value),
        Some(Reply::Redirect(to)) => (StatusCode::FOUND, [("location", to)]).into_response(),
        Some(Reply::Hang) => std::future::pending().await,
        None => json(404, &json!({})),
    }
}
