//! Streams of events: the answer to a request, and the notifications of a legacy server.

use std::time::Duration;

use futures_util::TryStreamExt;
use larder_oauth::Identity;
use reqwest::{Method as Verb, Response, StatusCode, header::ACCEPT};
use tokio::time::Instant;
use tokio_util::io::StreamReader;

use super::{Http, Unsent, response::is_stream};
use crate::{
    error::UpstreamError,
    link::{Link, MessageSource},
    message::{
        LineEnds,
        line::IncomingLine,
        sse::{Position, read_event},
    },
    remote_session::Session,
};

const LAST_EVENT: &str = "last-event-id";

/// The pause before a stream is opened again, unless the server names another one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The most attempts in a row to go on with an answer that bring no event.
const MAX_ATTEMPTS: u32 = 8;

/// Growing pauses between the connections of a stream.
struct Pauses(Duration);

impl Pauses {
    fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// The stream was of use, so the next pause is a short one.
    fn reset(&mut self) {
        self.0 = FIRST_PAUSE;
    }

    /// The next pause, which is at least what the server wants.
    fn next(&mut self, position: &Position) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(MAX_PAUSE);
        match position.retry {
            // A server that names a short time is left alone longer and longer as well.
            Some(retry) if pause == FIRST_PAUSE => retry.min(MAX_PAUSE),
            Some(retry) => retry.min(MAX_PAUSE).max(pause),
            None => pause,
        }
    }
}

impl Http {
    /// Reads a stream to its end. `request` is the one that it answers, if it answers one. Returns
    /// whether there was any message.
    pub(super) async fn read_stream(
        &self,
        link: &Link,
        response: Response,
        request: Option<i64>,
        position: &mut Position,
    ) -> bool {
        let mut ends = LineEnds::default();
        let bytes = response.bytes_stream().map_ok(move |piece| ends.normalize(piece));
        // An empty piece would look like the end.
        let bytes = bytes.try_filter(|piece| std::future::ready(!piece.is_empty()));
        let mut input = StreamReader::new(bytes.map_err(std::io::Error::other));
        let mut brings_messages = false;

        loop {
            match read_event(&mut input, self.max_message, link, request, position).await {
                Ok(IncomingLine::Message(message)) => {
                    brings_messages = true;
                    link.receive(MessageSource::Stream(request), message).await;
                }
                Ok(IncomingLine::Refused { what, why }) => {
                    link.refuse_message(MessageSource::Stream(request), what, why);
                }
                Ok(IncomingLine::End) | Err(_) => return brings_messages,
            }
        }
    }

    /// Goes on with the answer to a request whose stream has ended early, after the last event that
    /// has arrived (2025-11-25, transports: Resumability), until the answer has come or the server
    /// does not go on.
    pub(super) async fn resume(
        &self,
        link: &Link,
        request: i64,
        caller: Option<&Identity>,
        session: &Session,
        position: &mut Position,
    ) {
        let mut pauses = Pauses::new();
        let mut attempts = 0;

        while link.is_running(request) && attempts < MAX_ATTEMPTS {
            let Some(last) = position.last_id.clone() else { return };
            tokio::time::sleep(pauses.next(position)).await;

            let opened = self.send_with_token(caller, |url, token| {
                let stream = self.request(Verb::GET, url, session, token);
                stream.header(ACCEPT, "text/event-stream").header(LAST_EVENT, &last)
            });
            match opened.await {
                Ok(response) if is_stream(&response) => {
                    self.read_stream(link, response, Some(request), position).await;
                }
                Ok(response) if !may_come_later(response.status()) => return,
                Ok(_) | Err(Unsent::Failed(_)) => {}
                Err(Unsent::NoAccess(_)) => return,
            }

            if position.last_id.as_ref() == Some(&last) {
                attempts += 1;
            } else {
                attempts = 0;
                pauses.reset();
            }
        }
    }

    /// Reads the notifications that a legacy server sends on a stream of its own,
    /// if it has one.
    pub(super) async fn listen(&self, link: &Link) {
        let mut pauses = Pauses::new();
        let mut position = Position::default();

        loop {
            let session = self.session.now.lock().clone();
            let opened = self.send_with_token(None, |url, token| {
                let stream = self.request(Verb::GET, url, &session, token);
                let stream = stream.header(ACCEPT, "text/event-stream");
                match &position.last_id {
                    Some(last) => stream.header(LAST_EVENT, last),
                    None => stream,
                }
            });

            let begun = Instant::now();
            match opened.await {
                Ok(response) if is_stream(&response) => {
                    let is_used = self.read_stream(link, response, None, &mut position).await;
                    if is_used || begun.elapsed() >= MAX_PAUSE {
                        pauses.reset();
                    }
                }
                Ok(response) if may_come_later(response.status()) => {}
                // The server offers no such stream, or the next request asks for a login.
                Ok(_) | Err(Unsent::NoAccess(UpstreamError::Login(_))) => return,
                Err(Unsent::Failed(_) | Unsent::NoAccess(_)) => {}
            }

            tokio::time::sleep(pauses.next(&position)).await;
        }
    }
}

/// Whether a server that answers so may send the stream later.
fn may_come_later(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::CONFLICT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_respect_what_the_server_wants() {
        let seconds = |retry: Option<u64>| -> Vec<_> {
            let retry = retry.map(Duration::from_secs);
            let mut position = Position::default();
            position.retry = retry;
            let mut pauses = Pauses::new();
            (0..8).map(|_| pauses.next(&position).as_secs()).collect()
        };

        assert_eq!(seconds(None), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(seconds(Some(0)), [0, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(seconds(Some(5)), [5, 5, 5, 8, 16, 32, 60, 60]);
        assert_eq!(seconds(Some(3_600)), [60; 8]);
    }
}
