//! The session with a server over HTTP: whether the server still knows it, and its end.

use std::{sync::atomic::Ordering, time::Duration};

use reqwest::{
    Method as Verb, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE},
};

use super::{Http, outline::Outline};
use crate::remote_session::Session;

/// How long the end of a session, or the question whether there is one, may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A request that every server answers in a session that it knows.
const PING: &str = r#"{"jsonrpc":"2.0","id":"larder-session","method":"ping"}"#;

impl Http {
    /// Whether the response says that the server does not know the session any more. 404 says so
    /// (2025-11-25, transports: Session Management). Servers that keep to no document answer 410,
    /// or 400 or 401, which may be about the request alone: then a ping shows what is meant.
    pub(super) async fn has_lost(
        &self,
        session: &Session,
        response: &Response,
        outline: &Outline,
    ) -> bool {
        if session.id.is_none() {
            return false;
        }

        match response.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => true,
            StatusCode::BAD_REQUEST => !self.knows(session, outline).await,
            StatusCode::UNAUTHORIZED if !response.headers().contains_key(WWW_AUTHENTICATE) => {
                !self.knows(session, outline).await
            }
            _ => false,
        }
    }

    /// Whether the server answers in this session. If it cannot be asked, it is believed to.
    async fn knows(&self, session: &Session, outline: &Outline) -> bool {
        let asked = self.send_with_token(outline.caller.as_ref(), |token| {
            let ping = self.request(Verb::POST, session, token);
            let ping = ping.header(ACCEPT, "application/json, text/event-stream");
            ping.header(CONTENT_TYPE, "application/json").body(PING)
        });

        match tokio::time::timeout(TIMEOUT, asked).await {
            Ok(Ok(Ok(response))) => !matches!(
                response.status(),
                StatusCode::BAD_REQUEST
                    | StatusCode::UNAUTHORIZED
                    | StatusCode::NOT_FOUND
                    | StatusCode::GONE
            ),
            _ => true,
        }
    }

    pub(super) async fn end_session(&self) {
        let session = self.session.now.lock().clone();
        if session.id.is_some() && !self.session.outlives.load(Ordering::Relaxed) {
            let ended =
                self.send_with_token(None, |token| self.request(Verb::DELETE, &session, token));
            let _ = tokio::time::timeout(TIMEOUT, ended).await;
        }
    }
}
