//! [`OpenQuestions`]: requests of an upstream to the client of a call.

use bytes::Bytes;
use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use larder_protocol::{ClientFacts, RequestId};
use larder_server::handler::{AskError, Context, Scope, can_be_asked};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{
    received::{InputRequest, Question},
    wire,
};

impl Question {
    /// The capability that a client declares for it.
    pub(super) fn capability(&self) -> &str {
        self.request.method.split('/').next().unwrap_or_default()
    }

    /// Whether it asks for the client's roots, as some servers do when they start.
    pub(super) fn is_about_roots(&self) -> bool {
        self.request.method == "roots/list"
    }

    /// Whether the client of a call can be asked this.
    pub(super) fn suits(&self, scope: &Scope) -> bool {
        let InputRequest { method, params } = &self.request;
        can_be_asked(&scope.client.capabilities, method, params)
    }

    /// The key of the client's answer. The upstream's ids are unique in its connection.
    pub(super) fn key(&self) -> String {
        match &self.id {
            RequestId::Number(id) => format!("request_{id}"),
            RequestId::String(id) => format!("request_{id}"),
        }
    }

    /// The request as `inputRequests` has it.
    pub(super) fn input_request(&self) -> Value {
        json!(self.request)
    }
}

/// The part of a client's capabilities that is declared to an upstream whose questions reach
/// only that client.
pub(super) fn capabilities(client: &ClientFacts) -> Value {
    let declared = serde_json::to_value(&client.capabilities).unwrap_or_default();
    let mut passed_on = Map::new();
    for name in ["elicitation", "sampling", "roots"] {
        if let Some(capability) = declared.get(name) {
            passed_on.insert(name.into(), capability.clone());
        }
    }

    Value::Object(passed_on)
}

type Asked = BoxFuture<'static, Answered>;

/// The answer to a question.
struct Answered {
    id: RequestId,
    is_about_roots: bool,
    answer: Result<Value, AskError>,
}

/// The open questions of a call. Dropping it tells the upstream that nobody
/// answers.
pub(super) struct OpenQuestions {
    outgoing: mpsc::Sender<Bytes>,
    asked: FuturesUnordered<Asked>,
    ids: Vec<RequestId>,
}

impl OpenQuestions {
    pub(super) fn new(outgoing: mpsc::Sender<Bytes>) -> Self {
        Self { outgoing, asked: FuturesUnordered::new(), ids: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Asks the client.
    pub(super) fn ask(&mut self, question: Question, context: &Context) {
        let key = question.key();
        let is_about_roots = question.is_about_roots();
        let Question { id, request: InputRequest { method, params }, charge } = question;
        self.ids.push(id.clone());
        let context = context.clone();
        self.asked.push(Box::pin(async move {
            let answer = context.forward(&key, &method, params).await;
            drop(charge);
            Answered { id, is_about_roots, answer }
        }));
    }

    /// The upstream no longer waits for that answer.
    pub(super) fn withdraw(&mut self, id: &RequestId) {
        self.ids.retain(|open| open != id);
    }

    /// Waits for an answer, and sends it to the upstream. Returns whether it names roots. Pending
    /// without questions.
    pub(super) async fn answered(&mut self) -> bool {
        let Some(Answered { id, is_about_roots, answer }) = self.asked.next().await else {
            return std::future::pending().await;
        };
        if !self.ids.contains(&id) {
            // The upstream has withdrawn the question.
            return false;
        }

        self.ids.retain(|open| *open != id);
        let message = match answer {
            Ok(result) => wire::response(&id, result),
            Err(error) => wire::error(&id, &error.to_string()),
        };

        // Fails only if the upstream has ended.
        let _ = self.outgoing.send(message).await;
        is_about_roots
    }
}

impl Drop for OpenQuestions {
    fn drop(&mut self) {
        for id in &self.ids {
            let _ = self.outgoing.try_send(wire::error(id, "The call has ended."));
        }
    }
}
