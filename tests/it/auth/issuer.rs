//! An authorization server that says whatever a test wants.

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

pub(super) struct Issuer {
    pub(super) url: String,
    state: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    answers: Mutex<HashMap<String, Said>>,
    hits: Mutex<Vec<(String, String)>>,
}

/// What is answered at a path.
#[derive(Debug, Clone)]
pub(super) enum Said {
    Json(Value),
    Text(String),
    Status(u16, Value),
    Redirect(String),
    /// Nothing, ever.
    Hang,
}

impl Issuer {
    /// With its metadata where RFC 8414 has it, and one key of each kind.
    pub(super) async fn start() -> Self {
        let issuer = Self::silent().await;
        issuer.say("/.well-known/oauth-authorization-server", Said::Json(issuer.metadata()));
        issuer.keys(&[Signer::Rsa.jwk(), Signer::Ec.jwk(), Signer::Ed.jwk()]);
        issuer
    }

    /// With nothing at all yet.
    pub(super) async fn silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Inner::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        tokio::spawn(async move {
            let limits = larder::http::ServeLimits::default();
            larder::http::serve(listener, None, router, &limits, std::future::pending()).await
        });
        Self { url, state }
    }

    pub(super) fn metadata(&self) -> Value {
        json!({
            "issuer": self.url,
            "jwks_uri": format!("{}/jwks", self.url),
            "introspection_endpoint": format!("{}/introspect", self.url),
        })
    }

    pub(super) fn say(&self, path: &str, said: Said) {
        self.state.answers.lock().unwrap().insert(path.into(), said);
    }

    pub(super) fn keys(&self, keys: &[Value]) {
        self.say("/jwks", Said::Json(json!({ "keys": keys })));
    }

    /// How often that path was asked for.
    pub(super) fn hits(&self, path: &str) -> usize {
        self.state.hits.lock().unwrap().iter().filter(|(hit, _)| hit == path).count()
    }

    /// What was sent there.
    pub(super) fn bodies(&self, path: &str) -> Vec<String> {
        let hits = self.state.hits.lock().unwrap();
        hits.iter().filter(|(hit, _)| hit == path).map(|(_, body)| body.clone()).collect()
    }
}

async fn answer(State(state): State<Arc<Inner>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let body: Bytes = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    state.hits.lock().unwrap().push((path.clone(), body));
    let said = state.answers.lock().unwrap().get(&path).cloned();
    let json = |status: u16, value: &Value| {
        let headers = [("content-type", "application/json")];
        (StatusCode::from_u16(status).unwrap(), headers, value.to_string()).into_response()
    };
    match said {
        Some(Said::Json(value)) => json(200, &value),
        Some(Said::Text(text)) => text.into_response(),
        Some(Said::Status(status, value)) => json(status, &value),
        Some(Said::Redirect(to)) => (StatusCode::FOUND, [("location", to)]).into_response(),
        Some(Said::Hang) => std::future::pending().await,
        None => json(404, &json!({})),
    }
}
