//! Asking the client: a form to fill in, an address to visit, a model to run,
//! its roots. One face for both eras.
//!
//! In the legacy era the question travels on the call's own stream and the
//! answer comes back to it. In the modern one the call is answered with
//! `input_required`, and **the handler runs again from its start** when the
//! client comes back; answers already given return at once (2026-07-28,
//! patterns: Multi Round-Trip Requests). So code before the first question may
//! run more than once, and each question needs a key of its own that is the
//! same in every run.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ClientCapabilities, JsonObject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Context, ToolError};
use crate::{
    protocol::{Fault, Outgoing, RequestId},
    schema::Validator,
};

/// How long a client in a session may take to answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often a client is asked the same before its answers are given up.
const ATTEMPTS: u32 = 3;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The client did not declare that it can be asked this, or there is no
    /// connection to ask it on.
    #[error("{0}")]
    Unsupported(String),
    /// The client answered with an error, or with what is no answer.
    #[error("{0}")]
    Refused(String),
    /// The client did not answer in time.
    #[error("The client did not answer in time.")]
    TimedOut,
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> Self {
        Self::new(error.to_string())
    }
}

/// What somebody did with a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Filled it in.
    Accepted(T),
    /// Would not.
    Declined,
    /// Closed it.
    Cancelled,
}

/// What the client's model is to do.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    messages: Vec<Value>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
}

impl Sampling {
    /// Answers one message of a user's, in at most so many tokens.
    pub fn new(text: impl Into<String>, max_tokens: u32) -> Self {
        let message = json!({ "role": "user", "content": { "type": "text", "text": text.into() } });
        Self { messages: vec![message], max_tokens, system_prompt: None }
    }

    /// Told this first.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }
}

/// What the client's model said.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampled {
    /// One content block, or several.
    pub content: Value,
    /// Which model it was.
    pub model: String,
    /// Why it stopped.
    #[serde(default)]
    pub stop_reason: Option<String>,
}

impl Sampled {
    /// The text of its answer.
    pub fn text(&self) -> String {
        let blocks = match &self.content {
            Value::Array(blocks) => blocks.as_slice(),
            one => std::slice::from_ref(one),
        };
        blocks.iter().filter_map(|b| b.get("text").and_then(Value::as_str)).collect()
    }
}

/// A place that the client lets the server work in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// For people.
    #[serde(default)]
    pub name: Option<String>,
}

/// How a call's questions reach its client.
#[derive(Clone)]
pub enum Asking {
    /// They do not, and why.
    No(&'static str),
    /// On the call's stream; answers are routed back.
    Routed(Arc<dyn Route>),
    /// By answering the call with them.
    Rounds(Arc<Rounds>),
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No(_) => "Asking::No",
            Self::Routed(_) => "Asking::Routed",
            Self::Rounds(_) => "Asking::Rounds",
        })
    }
}

/// Brings answers back to those who asked.
pub trait Route: Send + Sync {
    /// The answer to the question of that id, when it comes. Dropping the
    /// receiver gives the question up.
    fn expect(&self, question: &RequestId) -> oneshot::Receiver<Result<Value, String>>;
}

/// Writes down which answers there are, for the client to bring back.
pub type Seal = Box<dyn Fn(&BTreeMap<String, Value>) -> String + Send + Sync>;

/// The questions and answers of a call that is answered in rounds.
pub struct Rounds {
    /// What the client brought, unchecked.
    brought: BTreeMap<String, Value>,
    seal: Seal,
    state: Mutex<Asked>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Asked {
    questions: BTreeMap<String, Value>,
    answers: BTreeMap<String, Value>,
}

/// What a call comes to when it cannot go on without its client.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    /// The questions, by key.
    pub questions: BTreeMap<String, Value>,
    /// What the client is to bring back.
    pub state: String,
}

impl Rounds {
    /// A round that begins with these answers.
    pub fn new(brought: BTreeMap<String, Value>, seal: Seal) -> Self {
        Self { brought, seal, state: Mutex::default(), waker: AtomicWaker::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.state.lock()
    }

    pub(crate) fn register(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }

    /// What the client has to be asked, if anything.
    pub(crate) fn required(&self) -> Option<InputRequired> {
        let mut asked = self.lock();
        if asked.questions.is_empty() {
            return None;
        }
        let questions = std::mem::take(&mut asked.questions);
        Some(InputRequired { questions, state: (self.seal)(&asked.answers) })
    }

    /// The answer, if the client brought a good one; otherwise asks, and never
    /// returns: the call ends here, to be run again.
    async fn ask<T>(
        &self,
        key: &str,
        question: Value,
        read: impl FnOnce(Value) -> Result<T, String>,
    ) -> T {
        if let Some(brought) = self.brought.get(key)
            && let Ok(answer) = read(brought.clone())
        {
            self.lock().answers.insert(key.to_owned(), brought.clone());
            return answer;
        }
        self.lock().questions.insert(key.to_owned(), question);
        self.waker.wake();
        std::future::pending().await
    }
}

/// What the client must have declared.
#[derive(Clone, Copy)]
enum Needs {
    Form,
    Url,
    Sampling,
    Roots,
}

impl Needs {
    fn met_by(self, capabilities: &ClientCapabilities) -> bool {
        let declared = serde_json::to_value(capabilities).unwrap_or_default();
        let elicitation = declared.get("elicitation");
        match self {
            // An empty declaration means forms (2025-11-25, client: Elicitation).
            Self::Form => {
                elicitation.is_some_and(|e| e.get("form").is_some() || e.get("url").is_none())
            }
            Self::Url => elicitation.is_some_and(|e| e.get("url").is_some()),
            Self::Sampling => declared.get("sampling").is_some(),
            Self::Roots => declared.get("roots").is_some(),
        }
    }

    fn declaration(self) -> Value {
        match self {
            Self::Form => json!({ "elicitation": { "form": {} } }),
            Self::Url => json!({ "elicitation": { "url": {} } }),
            Self::Sampling => json!({ "sampling": {} }),
            Self::Roots => json!({ "roots": {} }),
        }
    }
}

impl<S> Context<S> {
    /// Whether the client can be asked to fill in a form.
    pub fn can_elicit(&self) -> bool {
        Needs::Form.met_by(&self.client().capabilities)
    }

    /// Whether the client can be asked to run its model.
    pub fn can_sample(&self) -> bool {
        Needs::Sampling.met_by(&self.client().capabilities)
    }

    /// Whether the client can be asked for its roots.
    pub fn can_list_roots(&self) -> bool {
        Needs::Roots.met_by(&self.client().capabilities)
    }

    /// Asks whoever sits at the client to fill in a form: the fields of a flat
    /// struct of strings, numbers and booleans.
    ///
    /// # Errors
    /// [`AskError`]; in the modern era a client that cannot be asked is told so
    /// without the handler.
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: &str,
        message: &str,
    ) -> Result<Elicited<T>, AskError> {
        let schema = crate::schema::describe::<T>().schema;
        Ok(match self.elicit_form(key, message, schema).await? {
            Elicited::Accepted(content) => {
                let content = serde_json::from_value(Value::Object(content));
                Elicited::Accepted(content.map_err(|e| AskError::Refused(e.to_string()))?)
            }
            Elicited::Declined => Elicited::Declined,
            Elicited::Cancelled => Elicited::Cancelled,
        })
    }

    /// The same with a schema of one's own. What comes back fits it.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub async fn elicit_form(
        &self,
        key: &str,
        message: &str,
        schema: JsonObject,
    ) -> Result<Elicited<JsonObject>, AskError> {
        let validator = Validator::new(schema.clone()).map_err(AskError::Refused)?;
        let params = json!({ "message": message, "requestedSchema": schema });
        let read = move |answer| {
            read_elicited(answer, |content| {
                validator.check(&content)?;
                match content {
                    Value::Object(content) => Ok(content),
                    _ => Err("content must be an object".to_owned()),
                }
            })
        };
        self.ask(key, Needs::Form, "elicitation/create", params, read).await
    }

    /// Asks whoever sits at the client to visit an address.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub async fn elicit_url(
        &self,
        key: &str,
        message: &str,
        url: &str,
    ) -> Result<Elicited<()>, AskError> {
        let mut params = json!({ "mode": "url", "message": message, "url": url });
        if matches!(self.scope().asking, Asking::Routed(_)) {
            params["elicitationId"] = json!(self.scope().random.id());
        }
        let read = |answer| read_elicited(answer, |_| Ok(()));
        self.ask(key, Needs::Url, "elicitation/create", params, read).await
    }

    /// Asks the client to run its model.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub async fn sample(&self, key: &str, sampling: &Sampling) -> Result<Sampled, AskError> {
        let params = serde_json::to_value(sampling).unwrap_or_default();
        let read = |answer| serde_json::from_value(answer).map_err(|e| e.to_string());
        self.ask(key, Needs::Sampling, "sampling/createMessage", params, read).await
    }

    /// Asks the client for the places that the server may work in.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, AskError> {
        #[derive(Deserialize)]
        struct Roots {
            roots: Vec<Root>,
        }
        let read = |answer| {
            let roots: Result<Roots, _> = serde_json::from_value(answer);
            roots.map(|r| r.roots).map_err(|e| e.to_string())
        };
        self.ask(key, Needs::Roots, "roots/list", json!({}), read).await
    }

    async fn ask<T>(
        &self,
        key: &str,
        needs: Needs,
        method: &'static str,
        params: Value,
        read: impl Fn(Value) -> Result<T, String>,
    ) -> Result<T, AskError> {
        let able = needs.met_by(&self.client().capabilities);
        match &self.scope().asking {
            Asking::No(reason) => Err(AskError::Unsupported((*reason).to_owned())),
            Asking::Rounds(_) if !able => {
                self.fail(Fault::MissingCapability { required: needs.declaration() }).await
            }
            Asking::Rounds(_) if self.scope().control.task().is_some() => {
                self.ask_in_task(key, json!({ "method": method, "params": params }), read).await
            }
            Asking::Rounds(rounds) => {
                Ok(rounds.ask(key, json!({ "method": method, "params": params }), read).await)
            }
            Asking::Routed(_) if !able => Err(AskError::Unsupported(format!(
                "The client cannot be asked: it does not declare the capability {}.",
                needs.declaration()
            ))),
            Asking::Routed(route) => {
                let id = RequestId::String(format!("larder-{}", self.scope().random.id()).into());
                let answer = route.expect(&id);
                self.send(Outgoing::Ask { id, method, params }).await;
                match tokio::time::timeout(PATIENCE, answer).await {
                    Ok(Ok(Ok(answer))) => read(answer).map_err(|fault| {
                        AskError::Refused(format!("The client's answer cannot be used: {fault}"))
                    }),
                    Ok(Ok(Err(refused))) => Err(AskError::Refused(refused)),
                    Ok(Err(_)) => Err(AskError::Refused("The session has ended.".into())),
                    Err(_) => Err(AskError::TimedOut),
                }
            }
        }
    }
}

impl<S> Context<S> {
    /// Asks by the task's state. A key is used once in a task's life (SEP-2663:
    /// Task Update Requests), so asking again after an answer that is none
    /// takes another one.
    async fn ask_in_task<T>(
        &self,
        key: &str,
        question: Value,
        read: impl Fn(Value) -> Result<T, String>,
    ) -> Result<T, AskError> {
        let Some(task) = self.scope().control.task() else {
            return Err(AskError::Unsupported("The call is no task.".into()));
        };
        let mut attempt = 1;
        loop {
            let key = if attempt == 1 { key.to_owned() } else { format!("{key}_{attempt}") };
            let answered = task.ask(&key, &question).await;
            let answered = answered.map_err(|fault| AskError::Refused(fault.to_string()))?;
            let answer = answered.await.map_err(|_| {
                AskError::Refused("The task ended before the client answered.".into())
            })?;
            match read(answer) {
                Ok(answer) => return Ok(answer),
                Err(fault) if attempt == ATTEMPTS => {
                    return Err(AskError::Refused(format!(
                        "The client's answer cannot be used: {fault}"
                    )));
                }
                Err(_) => attempt += 1,
            }
        }
    }
}

fn read_elicited<T>(
    answer: Value,
    accept: impl FnOnce(Value) -> Result<T, String>,
) -> Result<Elicited<T>, String> {
    #[derive(Deserialize)]
    struct Answer {
        action: String,
        #[serde(default)]
        content: Value,
    }
    let Answer { action, content } = serde_json::from_value(answer).map_err(|e| e.to_string())?;
    match action.as_str() {
        "accept" => Ok(Elicited::Accepted(accept(content)?)),
        "decline" => Ok(Elicited::Declined),
        "cancel" => Ok(Elicited::Cancelled),
        other => Err(format!("the action {other:?} is none of accept, decline and cancel")),
    }
}
