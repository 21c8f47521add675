//! A whole HTTP response, and what tests check of it.

use bytes::Bytes;
use reqwest::{Response, header::HeaderMap};
use serde_json::Value;

use super::patiently;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether a stream of events will do as well as one JSON message.
    any_form: bool,
}

impl Answer {
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = patiently("a response", request.send()).await.unwrap();
        Self::read(response).await
    }

    pub(crate) async fn read(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = patiently("the body", response.bytes()).await.unwrap();
        Self { status, headers, body, any_form: false }
    }

    /// Takes the message from a stream, too. A process answers by a stream what
    /// takes it longer than 200 ms, which on a busy machine may be anything.
    pub(crate) fn in_any_form(self) -> Self {
        Self { any_form: true, ..self }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The JSON message. Of a stream it is the last one, the response.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let media_type = self.header("content-type");
        if self.any_form && media_type == Some("text/event-stream; charset=utf-8") {
            let stream = std::str::from_utf8(&self.body).unwrap();
            let mut data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
            return serde_json::from_str(data.next_back().expect("an event")).unwrap();
        }
        assert_eq!(media_type, Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The result of a request that succeeded.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        let mut message = self.json();
        assert_eq!(message["jsonrpc"], "2.0");
        assert!(message.get("error").is_none(), "{message}");
        message["result"].take()
    }

    /// The error of a request that failed.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let mut message = self.json();
        assert_eq!(message["jsonrpc"], "2.0");
        assert!(message.get("result").is_none(), "{message}");
        message["error"].take()
    }

    /// The HTTP status, the error code, and the id of an error response.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (u16, i64, Option<Value>) {
        let code = self.error()["code"].as_i64().unwrap();
        (self.status, code, self.json().get("id").cloned())
    }

    /// The text of a tool call that succeeded.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        let result = self.result();
        assert_ne!(result["isError"], true, "{result}");
        text_of(&result)
    }

    /// The text of a tool call that failed.
    #[track_caller]
    pub(crate) fn failure(&self) -> String {
        let result = self.result();
        assert_eq!(result["isError"], true, "{result}");
        text_of(&result)
    }
}

fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
