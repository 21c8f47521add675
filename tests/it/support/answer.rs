//! One whole answer, and what tests want to know of it.

use bytes::Bytes;
use reqwest::{Response, header::HeaderMap};
use serde_json::Value;

use super::patiently;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = patiently("a response", request.send()).await.unwrap();
        Self::read(response).await
    }

    pub(crate) async fn read(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = patiently("the body", response.bytes()).await.unwrap();
        Self { status, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The result of a request that went well.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        let mut message = self.json();
        assert_eq!(message["jsonrpc"], "2.0");
        assert!(message.get("error").is_none(), "{message}");
        message["result"].take()
    }

    /// The same where a busy machine may have made a stream of it: what takes a
    /// while is answered so.
    #[track_caller]
    pub(crate) fn result_in_time(&self) -> Value {
        if self.header("content-type") == Some("application/json") {
            return self.result();
        }
        let stream = std::str::from_utf8(&self.body).unwrap();
        let last = stream.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
        let mut message: Value = serde_json::from_str(last.unwrap()).unwrap();
        assert!(message.get("error").is_none(), "{message}");
        message["result"].take()
    }

    /// The error of a request that went wrong.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let mut message = self.json();
        assert_eq!(message["jsonrpc"], "2.0");
        assert!(message.get("result").is_none(), "{message}");
        message["error"].take()
    }

    /// HTTP status, error code, and the id that the answer bears.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (u16, i64, Option<Value>) {
        let code = self.error()["code"].as_i64().unwrap();
        (self.status, code, self.json().get("id").cloned())
    }

    /// What a tool said, which is no failure.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        let result = self.result();
        assert_ne!(result["isError"], true, "{result}");
        text_of(&result)
    }

    /// What a tool said that could not do what it was asked for.
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
