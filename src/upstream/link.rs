//! [`Link`]: one running upstream. Requests go out with ids of its own;
//! responses, progress and log messages find their call by that id.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot, watch,
    },
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    error::UpstreamError,
    questions::{OpenQuestions, Question},
    settings::Settings,
    wire,
};
use crate::{
    auth::Owner,
    compute::Compute,
    handler::{Context, Scope},
    protocol::{self, LogLevel, Message, Outgoing, Params, RequestId},
};

/// The messages that may wait for an upstream that reads slowly.
const OUTGOING_CAPACITY: usize = 64;
/// The progress and log messages that may wait for a client that reads slowly.
/// Further ones are dropped.
const EVENTS_CAPACITY: usize = 64;

/// The questions that may wait for the next call.
const MAX_WAITING: usize = 8;

/// The protocol era of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

/// A running upstream.
pub(super) struct Link {
    settings: Arc<Settings>,
    name: Arc<str>,
    /// What the client can be asked for.
    client_capabilities: Value,
    outgoing: mpsc::Sender<Bytes>,
    state: Mutex<LinkState>,
    next_id: AtomicI64,
    /// Cancelled when the process has ended.
    ended: CancellationToken,
    /// Counts the changes of lists that the upstream announces.
    lists_changed: watch::Sender<u64>,
}

#[derive(Default)]
struct LinkState {
    /// The running requests. Later requests have greater ids.
    running: BTreeMap<i64, Running>,
    /// How the process ended.
    ended: Option<Arc<str>>,
    era: Option<Era>,
    /// The level of log messages that the upstream was told to send.
    log_level: Option<LogLevel>,
    capabilities: Value,
    /// Questions that came while no call was running. The next call asks them.
    waiting: Vec<Question>,
}

/// A running request.
struct Running {
    reply: oneshot::Sender<Result<Value, UpstreamError>>,
    events: mpsc::Sender<Event>,
    /// Whose call it is; `None` for Larder's own requests.
    owner: Option<Owner>,
}

/// A message about a running request.
enum Event {
    Progress { progress: f64, total: Option<f64>, message: Option<String> },
    Log { level: LogLevel, logger: Option<String>, data: Value },
    Question(Question),
}

impl Link {
    /// A link whose messages to the upstream arrive at the receiver.
    pub(super) fn new(
        settings: Arc<Settings>,
        client_capabilities: Value,
    ) -> (Arc<Self>, mpsc::Receiver<Bytes>) {
        let (outgoing, messages) = mpsc::channel(OUTGOING_CAPACITY);
        let link = Self {
            name: settings.name.as_str().into(),
            settings,
            client_capabilities,
            outgoing,
            state: Mutex::default(),
            next_id: AtomicI64::new(1),
            ended: CancellationToken::new(),
            lists_changed: watch::Sender::new(0),
        };
        (Arc::new(link), messages)
    }

    /// What the client can be asked for.
    pub(super) fn client_capabilities(&self) -> &Value {
        &self.client_capabilities
    }

    /// Sends a message unless too many wait. The reader must not wait for a
    /// process that waits for the reader.
    fn try_send(&self, message: Bytes) {
        let _ = self.outgoing.try_send(message);
    }

    /// Sets what the start has found out.
    pub(super) fn set_era(&self, era: Era, capabilities: Value) {
        let mut state = self.state.lock();
        state.era = Some(era);
        state.capabilities = capabilities;
    }

    /// Whether the upstream declares the capability.
    pub(super) fn declares(&self, capability: &str) -> bool {
        self.state.lock().capabilities.get(capability).is_some_and(Value::is_object)
    }

    /// Waits until the process has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// How often the upstream has announced a change of its lists.
    pub(super) fn lists_changed(&self) -> watch::Receiver<u64> {
        self.lists_changed.subscribe()
    }

    /// The process has ended: all running requests fail.
    pub(super) fn end(&self, how: &str) {
        let running = {
            let mut state = self.state.lock();
            state.ended = Some(how.into());
            std::mem::take(&mut state.running)
        };
        self.ended.cancel();
        // The request's future knows what it was.
        drop(running);
    }

    /// A message was longer than allowed. Without knowing which request it
    /// answers, all running ones fail.
    pub(super) fn too_long(&self, answers: Option<i64>) {
        let failed: Vec<_> = {
            let running = &mut self.state.lock().running;
            match answers.and_then(|id| running.remove(&id)) {
                Some(one) => vec![one],
                None => std::mem::take(running).into_values().collect(),
            }
        };
        for Running { reply, .. } in failed {
            let _ = reply.send(Err(self.too_long_error()));
        }
    }

    /// A request has failed before a response came.
    pub(super) fn fail(&self, id: i64, error: UpstreamError) {
        if let Some(running) = self.state.lock().running.remove(&id) {
            let _ = running.reply.send(Err(error));
        }
    }

    /// The error for what the upstream should not have sent.
    pub(super) fn invalid(&self, problem: &str) -> UpstreamError {
        UpstreamError::Invalid { name: Arc::clone(&self.name), problem: problem.to_owned() }
    }

    /// The error for a request that the upstream has not processed.
    pub(super) fn not_processed(&self, reason: &str) -> UpstreamError {
        UpstreamError::NotProcessed { name: Arc::clone(&self.name), reason: reason.to_owned() }
    }

    /// The error for a message that is longer than allowed.
    pub(super) fn too_long_error(&self) -> UpstreamError {
        UpstreamError::TooLong { name: Arc::clone(&self.name), max: self.settings.max_message }
    }

    /// Handles a message of the upstream.
    pub(super) async fn receive(&self, message: Bytes) {
        let size = message.len();
        // Large messages are parsed off the runtime's workers. If too much work waits there,
        // they are parsed here: a call must not lose its response.
        let work = message.clone();
        let parsed = Compute::run(&self.name, size, move || protocol::parse(&work)).done().await;
        match parsed.unwrap_or_else(|_| protocol::parse(&message)) {
            Ok(Message::Response { id: RequestId::Number(id), outcome }) => {
                if let Some(running) = self.state.lock().running.remove(&id) {
                    let _ = running.reply.send(outcome.map_err(UpstreamError::Refused));
                }
            }
            Ok(Message::Notification { method, params }) => self.notified(&method, &params),
            Ok(Message::Request(request)) => match Question::of(&request) {
                Some(question) => self.ask(question),
                None if request.method == "ping" => {
                    self.try_send(wire::empty_response(&request.id));
                }
                None => self.try_send(wire::method_not_found(&request.id)),
            },
            Ok(Message::Response { .. }) => {}
            Err((fault, _)) => {
                tracing::warn!(upstream = %self.name, %fault, "an upstream sent no valid message");
            }
        }
    }

    /// Gives a question to the latest running call, or to the next one.
    fn ask(&self, question: Question) {
        let mut state = self.state.lock();
        let refused = match state.running.values().rev().find(|call| call.owner.is_some()) {
            Some(call) => match call.events.try_send(Event::Question(question)) {
                Err(TrySendError::Full(Event::Question(question))) => Some(question),
                _ => None,
            },
            None if state.waiting.len() < MAX_WAITING => {
                state.waiting.push(question);
                None
            }
            None => Some(question),
        };
        if let Some(Question { id, .. }) = refused {
            self.try_send(wire::error(&id, "Nobody can be asked now."));
        }
    }

    fn notified(&self, method: &str, params: &Params) {
        #[derive(Deserialize)]
        struct Progress {
            #[serde(rename = "progressToken")]
            token: i64,
            #[serde(rename = "progress")]
            done: f64,
            total: Option<f64>,
            message: Option<String>,
        }
        #[derive(Deserialize)]
        struct Log {
            level: LogLevel,
            logger: Option<String>,
            #[serde(default)]
            data: Value,
        }
        match method {
            "notifications/progress" => {
                let Ok(update) = params.parse::<Progress>() else { return };
                let Progress { token, done: progress, total, message } = update;
                if let Some(running) = self.state.lock().running.get(&token) {
                    let _ = running.events.try_send(Event::Progress { progress, total, message });
                }
            }
            "notifications/message" => {
                let Ok(Log { level, logger, data }) = params.parse::<Log>() else { return };
                tracing::debug!(upstream = %self.name, ?level, ?logger, %data);
                self.log(Event::Log { level, logger, data });
            }
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {
                self.lists_changed.send_modify(|n| *n += 1);
            }
            _ => {}
        }
    }

    /// Passes on a log message, which names no request: to the latest running
    /// call, if all running calls have one owner.
    fn log(&self, event: Event) {
        let state = self.state.lock();
        let mut calls = state.running.values().rev().filter(|running| running.owner.is_some());
        let Some(latest) = calls.next() else { return };
        if calls.all(|other| other.owner == latest.owner) {
            let _ = latest.events.try_send(event);
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, method: &str, params: &Value) {
        let _ = self.outgoing.send(wire::notification(method, params)).await;
    }

    /// Sends a request of Larder's own.
    pub(super) async fn request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Value, UpstreamError> {
        self.exchange(method, params, method, None).await
    }

    /// Sends a request for a call, and passes on its progress and log messages.
    /// Dropping the future cancels the request. `what` names it in errors.
    pub(super) async fn call(
        &self,
        method: &str,
        params: Value,
        what: &str,
        scope: &Arc<Scope>,
    ) -> Result<Value, UpstreamError> {
        self.set_log_level(scope.log_level).await;
        self.exchange(method, params, what, Some(scope)).await
    }

    async fn exchange(
        &self,
        method: &str,
        mut params: Value,
        what: &str,
        scope: Option<&Arc<Scope>>,
    ) -> Result<Value, UpstreamError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, mut answer) = oneshot::channel();
        let (events, mut messages) = mpsc::channel(EVENTS_CAPACITY);
        let owner = scope.map(|scope| scope.identity.owner().clone());
        let (era, waiting) = {
            let mut state = self.state.lock();
            if let Some(how) = &state.ended {
                return Err(self.not_processed(how));
            }
            let waiting = match owner {
                Some(_) => std::mem::take(&mut state.waiting),
                None => Vec::new(),
            };
            state.running.insert(id, Running { reply, events, owner });
            (state.era, waiting)
        };
        let mut request = Request { link: self, id, is_sent: false, method };
        if scope.is_some_and(|scope| scope.progress_token.is_some()) {
            params["_meta"]["progressToken"] = json!(id);
        }
        if era == Some(Era::Modern) {
            wire::declare_modern(&mut params, &json!({}));
            if let Some(level) = scope.and_then(|scope| scope.log_level) {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
            }
        }
        let message = wire::request(id, method, &params);
        drop(params);
        // Fails only if the process has ended, which the answer says.
        let _ = self.outgoing.send(message).await;
        request.is_sent = true;
        let context = scope.map(|scope| Context::new(Arc::clone(scope), Arc::new(())));
        let timeout = self.settings.call_timeout;
        let mut questions = OpenQuestions::new(self.outgoing.clone());
        if let Some(context) = &context {
            for question in waiting {
                questions.ask(question, context);
            }
        }
        let mut deadline = Instant::now() + timeout;
        loop {
            tokio::select! {
                biased;
                Some(event) = messages.recv() => {
                    deadline = Instant::now() + timeout;
                    match (event, &context) {
                        (Event::Question(question), Some(context)) => {
                            questions.ask(question, context);
                        }
                        (event, Some(context)) => pass_on(context, event).await,
                        (_, None) => {}
                    }
                }
                answer = &mut answer => return match answer {
                    Ok(answer) => answer,
                    Err(_) => {
                        let how = self.state.lock().ended.clone();
                        Err(self.ended_during(what, how.as_deref().unwrap_or("closed")))
                    }
                },
                () = questions.answered() => deadline = Instant::now() + timeout,
                // The client's time to answer has a limit of its own.
                () = tokio::time::sleep_until(deadline), if questions.is_empty() => {
                    let name = Arc::clone(&self.name);
                    return Err(UpstreamError::TimedOut { name, after: timeout });
                }
            }
        }
    }

    /// Tells a legacy upstream which log messages the caller wants, if it has
    /// not been told to send those or more.
    async fn set_log_level(&self, wanted: Option<LogLevel>) {
        let Some(level) = wanted else { return };
        {
            let mut state = self.state.lock();
            let is_set = state.log_level.is_some_and(|set| set <= level);
            if is_set || state.era != Some(Era::Legacy) || state.capabilities["logging"].is_null() {
                return;
            }
            state.log_level = Some(level);
        }
        // A refusal costs log messages, not the call.
        let _ = self.request("logging/setLevel", json!({ "level": level })).await;
    }

    fn ended_during(&self, what: &str, how: &str) -> UpstreamError {
        let name = Arc::clone(&self.name);
        UpstreamError::Ended { name, how: how.into(), request: what.to_owned() }
    }
}

/// Sends a message about a call to its client.
async fn pass_on(context: &Context, event: Event) {
    match event {
        Event::Progress { progress, total, message } => {
            context.progress(progress, total, message.as_deref()).await;
        }
        Event::Log { level, logger, data } => {
            if context.scope().log_level.is_some_and(|lowest| level >= lowest) {
                context.send(Outgoing::Log { level, logger, data }).await;
            }
        }
        // The call itself asks them.
        Event::Question(_) => {}
    }
}

/// A request that is forgotten when it is dropped, and cancelled if the
/// upstream still works on it.
struct Request<'a> {
    link: &'a Link,
    id: i64,
    is_sent: bool,
    method: &'a str,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        let was_running = self.link.state.lock().running.remove(&self.id).is_some();
        // `initialize` must not be cancelled (2025-11-25, utilities: Cancellation).
        if was_running && self.is_sent && self.method != "initialize" {
            let params = json!({ "requestId": self.id, "reason": "The caller no longer waits." });
            let _ =
                self.link.outgoing.try_send(wire::notification("notifications/cancelled", &params));
        }
    }
}
