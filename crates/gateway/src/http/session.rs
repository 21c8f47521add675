//! The session with a server over HTTP: whether the server still knows it, and its end.

use std::{sync::atomic::Ordering, time::Duration};

use reqwest::{
    Method as Verb, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};

use super::{Http, outline::Outline, refused::RefusedRequest};
use crate::remote_session::Session;

/// How long the end of a session, or the question whether there is one, may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A request that every server answers in a session that it knows.
const PING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
/// The id of the ping. Those of other requests are greater.
const PING_ID: i64 = 0;

impl Http {
    /// Whether a refusal says that the server does not know the session any more. 404 says so
    /// (2025-11-25, transports: Session Management), unless it has the answer to this very request.
    /// Servers that keep to no document answer 400, 401 or 410, or any status with a text or a code
    /// about a session. All of these may be about the request alone: a ping shows what is meant.
    pub(super) async fn has_lost(
        &self,
        session: &Session,
        refused: &RefusedRequest,
        outline: &Outline,
    ) -> bool {
        if session.id.is_none() {
            return false;
        }

        let is_doubtful = match refused.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => !refused.answers(outline.id),
            StatusCode::BAD_REQUEST => true,
            StatusCode::UNAUTHORIZED => !refused.has_challenge,
            _ => false,
        };
        (is_doubtful || refused.may_be_about_session()) && !self.knows(session, outline).await
    }

    /// Whether the server answers in this session. If it cannot be asked, it is believed to.
    pub(super) async fn knows(&self, session: &Session, outline: &Outline) -> bool {
        let asked = async {
            let sent = self.send_with_token(outline.caller.as_ref(), |url, token| {
                let ping = self.request(Verb::POST, url, session, token);
                let ping = ping.header(ACCEPT, "application/json, text/event-stream");
                ping.header(CONTENT_TYPE, "application/json").body(PING)
            });
            let Ok(response) = sent.await else { return true };

            let answer = RefusedRequest::read(response).await;
            if answer.may_be_about_session() {
                return false;
            }
            let is_refused = matches!(
                answer.status,
                StatusCode::BAD_REQUEST
                    | StatusCode::UNAUTHORIZED
                    | StatusCode::NOT_FOUND
                    | StatusCode::GONE
            );
            !is_refused || answer.answers(Some(PING_ID))
        };
        tokio::time::timeout(TIMEOUT, asked).await.unwrap_or(true)
    }

    pub(super) async fn end_session(&self) {
        let session = self.session.now.lock().clone();
        if session.id.is_some() && !self.session.outlives.load(Ordering::Relaxed) {
            let ended = self.send_with_token(None, |url, token| {
                self.request(Verb::DELETE, url, &session, token)
            });
            let _ = tokio::time::timeout(TIMEOUT, ended).await;
        }
    }
}
