//! A stream of server-sent events, read as a client reads it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures_util::{Stream, StreamExt};
use reqwest::{Response, header::HeaderMap};
use serde_json::Value;

use super::patiently;

type Incoming = dyn Stream<Item = Result<Event, EventStreamError<reqwest::Error>>> + Send;

/// A stream of server-sent events. Dropping it closes the connection.
pub(crate) struct Events {
    pub(crate) headers: HeaderMap,
    incoming: Pin<Box<Incoming>>,
    raw: Arc<Mutex<String>>,
}

impl Events {
    #[track_caller]
    pub(crate) fn of(response: Response) -> Self {
        let headers = response.headers().clone();
        assert_eq!(response.status(), 200);
        assert_eq!(headers["content-type"], "text/event-stream; charset=utf-8", "{headers:?}");
        let raw = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&raw);
        let bytes = response.bytes_stream().inspect(move |bytes| {
            if let Ok(bytes) = bytes {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
            }
        });
        Self { headers, incoming: Box::pin(bytes.eventsource()), raw }
    }

    /// The next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let next = patiently("an event", self.incoming.next()).await;
        next.map(|event| event.expect("a whole event"))
    }

    /// The next event, or `None` at the end of the stream or when the connection is lost.
    pub(crate) async fn next_or_lost(&mut self) -> Option<Event> {
        patiently("an event or the end", self.incoming.next()).await?.ok()
    }

    /// The message of the next event.
    pub(crate) async fn message(&mut self) -> Value {
        let event = self.next().await.expect("one more event");
        serde_json::from_str(&event.data).unwrap_or_else(|e| panic!("{e}: {event:?}"))
    }

    /// All further events until the stream ends.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// All further events until the stream ends or the connection is lost.
    pub(crate) async fn until_broken(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next_or_lost().await {
            events.push(event);
        }
        events
    }

    /// The messages of all further events until the stream ends.
    pub(crate) async fn messages(self) -> Vec<Value> {
        messages(&self.rest().await)
    }

    /// Waits for the end of the stream; no event may come before it.
    pub(crate) async fn end(&mut self) {
        assert_eq!(self.next().await, None);
    }

    /// Waits for text that is not part of an event, such as a comment.
    pub(crate) async fn comes(&mut self, text: &str) {
        let came = async {
            while !self.raw().contains(text) {
                // A comment does not end the wait for an event, so that ends by itself.
                let wait = std::time::Duration::from_millis(5);
                let event = tokio::time::timeout(wait, self.incoming.next()).await;
                assert!(event.is_err(), "an event came first: {event:?}");
            }
        };
        patiently(text, came).await;
    }

    /// The received text so far.
    pub(crate) fn raw(&self) -> String {
        self.raw.lock().unwrap().clone()
    }
}

/// The messages of events. A priming event has none.
pub(crate) fn messages(events: &[Event]) -> Vec<Value> {
    let data = events.iter().map(|event| &event.data).filter(|data| !data.is_empty());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}
