//! [`Link`]: one running upstream. Requests go out with ids of its own;
//! responses, progress and log messages find their call by that id.

mod elicitations;
mod errors;
mod incoming;
mod outside;
mod receiving;
mod running;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use larder_oauth::Identity;
use larder_protocol::{LogLevel, RequestId};
use larder_server::handler::ReceivedResult;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot, watch,
    },
    time::Instant,
};
use tokio_util::sync::CancellationToken;

pub(super) use self::{
    elicitations::Elicitation, incoming::MessageSource, outside::AskedOutside,
    running::ExpectedAnswer,
};
use self::{elicitations::Elicitations, outside::Outside, running::RunningRequest};
use super::{
    budget::{Charge, MessageBudget},
    error::UpstreamError,
    log_rate::LogRate,
    mirrored::Mirrored,
    received::{Capabilities, Question, RawResult},
    settings::Settings,
    subscriptions::Subscriptions,
    wire,
};

/// The messages that may wait for an upstream that reads slowly.
const OUTGOING_CAPACITY: usize = 64;
/// The progress and log messages that may wait for a client that reads slowly.
/// Further ones are dropped.
const EVENTS_CAPACITY: usize = 64;

/// The questions that may wait for the next call.
const MAX_WAITING: usize = 8;

/// The protocol era of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Era {
    Legacy,
    Modern,
}

/// A running upstream.
pub(super) struct Link {
    settings: Arc<Settings>,
    /// The memory for its messages.
    budget: Arc<MessageBudget>,
    name: Arc<str>,
    /// The client's capabilities, as declared to the upstream.
    client_capabilities: Value,

    outgoing: mpsc::Sender<Bytes>,
    state: Mutex<LinkState>,
    next_id: AtomicI64,
    is_resumed: AtomicBool,
    /// Whether the upstream has the roots of a client, on which its lists may depend.
    has_roots: AtomicBool,

    /// Cancelled when the process has ended.
    ended: CancellationToken,
    /// Counts the changes of lists that the upstream announces.
    lists_changed: watch::Sender<u64>,
    /// The latest subscription that a modern upstream has acknowledged.
    acknowledged: watch::Sender<i64>,
    /// The subscriptions that get updates of resources.
    updates: OnceLock<Arc<Subscriptions>>,
    /// The instructions of the upstream, for models.
    instructions: OnceLock<Arc<str>>,

    /// The question that is asked outside of calls.
    outside: Outside,
    elicitations: Elicitations,

    /// The arguments that are mirrored into headers.
    pub(super) mirrored: Mirrored,
    /// Limits the lines of the log about messages that are ignored.
    log_rate: Mutex<LogRate>,
}

#[derive(Default)]
struct LinkState {
    /// The running requests. Later requests have greater ids.
    running: BTreeMap<i64, RunningRequest>,
    /// How the process ended.
    ended: Option<Arc<str>>,
    era: Option<Era>,
    /// The level of log messages that the upstream was told to send.
    log_level: Option<LogLevel>,
    capabilities: Capabilities,
    /// Questions that came while no call was running. The next call asks them, unless the client
    /// can be asked before.
    waiting: Vec<WaitingQuestion>,
    /// Whether a question about roots has got no answer.
    owes_roots: bool,
}

/// A question that waits for somebody who can be asked.
struct WaitingQuestion {
    question: Question,
    since: Instant,
}

/// The answer to a request.
pub(super) struct Answered {
    pub(super) result: RawResult,
    /// The memory that it takes.
    pub(super) charge: Charge,
    /// The parts that were stored while they arrived.
    pub(super) received: ReceivedResult,
}

/// A registered request.
pub(super) struct OpenedRequest {
    pub(super) id: i64,
    pub(super) answer: oneshot::Receiver<Result<Answered, UpstreamError>>,
    pub(super) events: mpsc::Receiver<CallEvent>,
    /// Questions that came while no call was running.
    pub(super) questions: Vec<Question>,
    pub(super) era: Option<Era>,
}

/// A message about a running request.
pub(super) enum CallEvent {
    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
        /// The memory that it takes while it waits.
        _charge: Charge,
    },
    Log {
        level: LogLevel,
        logger: Option<String>,
        data: Value,
        /// The memory that it takes while it waits.
        _charge: Charge,
    },
    Question(Question),
    /// The upstream no longer waits for the answer to that question.
    Withdrawn(RequestId),
    /// The client has done at a URL what the question of this ID asked for.
    ElicitationCompleted(String),
}

impl Link {
    /// A link whose messages to the upstream arrive at the receiver.
    pub(super) fn new(
        settings: Arc<Settings>,
        budget: Arc<MessageBudget>,
        client_capabilities: Value,
    ) -> (Arc<Self>, mpsc::Receiver<Bytes>) {
        let (outgoing, messages) = mpsc::channel(OUTGOING_CAPACITY);

        let link = Self {
            name: settings.name.as_str().into(),
            settings,
            budget,
            client_capabilities,
            outgoing,
            state: Mutex::default(),
            next_id: AtomicI64::new(1),
            is_resumed: AtomicBool::new(false),
            has_roots: AtomicBool::new(false),
            ended: CancellationToken::new(),
            lists_changed: watch::Sender::new(0),
            acknowledged: watch::Sender::new(0),
            updates: OnceLock::new(),
            instructions: OnceLock::new(),
            outside: Outside::default(),
            elicitations: Elicitations::default(),
            mirrored: Mirrored::default(),
            log_rate: Mutex::new(LogRate::new()),
        };

        (Arc::new(link), messages)
    }

    /// The name of the upstream.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The client's capabilities, as declared to the upstream.
    pub(super) fn client_capabilities(&self) -> &Value {
        &self.client_capabilities
    }

    /// Sends a message. Fails only if the process has ended, which the answer says.
    pub(super) async fn send(&self, message: Bytes) {
        let _ = self.outgoing.send(message).await;
    }

    /// Sends a message unless too many wait. The reader must not wait for a
    /// process that waits for the reader.
    pub(super) fn try_send(&self, message: Bytes) {
        let _ = self.outgoing.try_send(message);
    }

    /// The channel of messages to the upstream.
    pub(super) fn outgoing(&self) -> mpsc::Sender<Bytes> {
        self.outgoing.clone()
    }

    /// How long a request may take without progress.
    pub(super) fn call_timeout(&self) -> Duration {
        self.settings.call_timeout
    }

    /// Whether an earlier link has begun the session of the upstream.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed.load(Ordering::Relaxed)
    }

    /// Whether the upstream has the roots of a client.
    pub(super) fn has_roots(&self) -> bool {
        self.has_roots.load(Ordering::Relaxed)
    }

    /// Begins with the ids of the n-th link in one session of the upstream.
    pub(super) fn skip_ids(&self, links: u32) {
        self.is_resumed.store(true, Ordering::Relaxed);
        self.next_id.store((i64::from(links) << 32) + 1, Ordering::Relaxed);
    }

    /// Registers a request. `caller` is whose call it is; `None` for Larder's own.
    pub(super) fn open(
        &self,
        caller: Option<Identity>,
        expects: ExpectedAnswer,
    ) -> Result<OpenedRequest, UpstreamError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let (events, messages) = mpsc::channel(EVENTS_CAPACITY);

        let mut state = self.state.lock();
        if let Some(how) = &state.ended {
            return Err(self.not_processed(how));
        }

        let questions = match caller {
            Some(_) => std::mem::take(&mut state.waiting),
            None => Vec::new(),
        };
        let questions = questions.into_iter().map(|waiting| waiting.question).collect();

        state.running.insert(id, RunningRequest::new(reply, events, caller, expects));
        Ok(OpenedRequest { id, answer, events: messages, questions, era: state.era })
    }

    /// The caller of the request; `None` for one of Larder's own, and for one that has ended.
    pub(super) fn caller(&self, id: i64) -> Option<Identity> {
        self.state.lock().running.get(&id)?.caller.clone()
    }

    /// Whether a request waits for its answer.
    pub(super) fn is_running(&self, id: i64) -> bool {
        self.state.lock().running.contains_key(&id)
    }

    /// Forgets a request. Returns whether the upstream has not answered it.
    pub(super) fn forget(&self, id: i64) -> bool {
        self.state.lock().running.remove(&id).is_some()
    }

    /// Sets whether a request waits for its client's next round.
    pub(super) fn set_parked(&self, id: i64, is_parked: bool) {
        if let Some(running) = self.state.lock().running.get_mut(&id) {
            running.is_parked = is_parked;
        }
    }

    /// Gives back questions that no call has asked.
    pub(super) fn give_back(&self, questions: Vec<Question>) {
        let since = Instant::now();
        let mut state = self.state.lock();
        let later = std::mem::take(&mut state.waiting);
        let given = questions.into_iter().map(|question| WaitingQuestion { question, since });
        state.waiting = given.chain(later).take(MAX_WAITING).collect();
    }

    /// Whether a legacy upstream has to be told that the caller wants these log messages:
    /// it was not told to send those or more.
    pub(super) fn raise_log_level(&self, level: LogLevel) -> bool {
        let mut state = self.state.lock();
        let is_set = state.log_level.is_some_and(|set| set <= level);
        if is_set || state.era != Some(Era::Legacy) || state.capabilities.logging.is_none() {
            return false;
        }

        state.log_level = Some(level);
        true
    }

    /// Sets what the start has found out.
    pub(super) fn set_era(&self, era: Era, capabilities: Capabilities) {
        let mut state = self.state.lock();
        state.era = Some(era);
        state.capabilities = capabilities;
    }

    /// The instructions of the upstream, for models.
    pub(super) fn instructions(&self) -> Option<Arc<str>> {
        self.instructions.get().cloned()
    }

    /// Keeps what the upstream tells models. The first text counts.
    pub(super) fn set_instructions(&self, text: Option<String>) {
        if let Some(text) = text {
            let _ = self.instructions.set(text.into());
        }
    }

    /// The capabilities that the upstream declares.
    pub(super) fn capabilities(&self) -> Capabilities {
        self.state.lock().capabilities
    }

    /// The protocol era, once the start has found it out.
    pub(super) fn era(&self) -> Option<Era> {
        self.state.lock().era
    }

    /// Announces updates of resources to these subscriptions from now on.
    pub(super) fn announce_updates_to(&self, subscriptions: Arc<Subscriptions>) {
        // Set once: a link belongs to one connection.
        let _ = self.updates.set(subscriptions);
    }

    /// Waits until a modern upstream has acknowledged that subscription or a later one.
    pub(super) async fn acknowledged(&self, subscription: i64) {
        // The sender lives as long as this link, so the wait cannot fail.
        let _ = self.acknowledged.subscribe().wait_for(|id| *id >= subscription).await;
    }

    /// Changes of lists may have been missed.
    pub(super) fn announce_lists(&self) {
        self.lists_changed.send_modify(|n| *n += 1);
    }

    /// Sends a request whose response does not matter, unless too many messages wait.
    pub(super) fn send_unanswered(&self, method: &str, params: &Value) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.try_send(wire::request(id, method, params, None));
    }

    /// Waits until the process has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// How the process has ended.
    pub(super) fn how_it_ended(&self) -> Option<Arc<str>> {
        self.state.lock().ended.clone()
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
        // Each request's future sees its sender dropped, and names the request in the error.
        drop(running);
    }

    /// A request has failed before a response came.
    pub(super) fn fail(&self, id: i64, error: UpstreamError) {
        if let Some(running) = self.state.lock().running.remove(&id) {
            let _ = running.reply.send(Err(error));
        }
    }

    /// Gives a question to the call during which it came. If that is unknown, to the latest
    /// running call, or to the next one.
    fn ask(&self, question: Question, during: Option<i64>) {
        if self.client_capabilities.get(question.capability()).is_none() {
            return self.refuse(&question.id, "The client did not declare that it can be asked.");
        }

        let mut state = self.state.lock();
        let calls = || state.running.values().rev().filter(|call| call.caller.is_some());
        let call = during.and_then(|id| state.running.get(&id)).filter(|c| c.caller.is_some());
        let call = call.or_else(|| calls().find(|call| !call.is_parked)).or_else(|| calls().next());

        let refused = match call {
            Some(call) => match call.events.try_send(CallEvent::Question(question)) {
                Err(
                    TrySendError::Full(CallEvent::Question(question))
                    | TrySendError::Closed(CallEvent::Question(question)),
                ) => Some(question),
                _ => None,
            },
            // A question about roots concerns no call; the call of any other question has ended.
            None if question.is_about_roots() && state.waiting.len() < MAX_WAITING => {
                state.waiting.push(WaitingQuestion { question, since: Instant::now() });
                self.outside.wake();
                None
            }
            None => Some(question),
        };

        drop(state);
        if let Some(Question { id, .. }) = refused {
            self.refuse(&id, "Nobody can be asked now.");
        }
    }

    /// Answers a question with an error.
    pub(super) fn refuse(&self, question: &RequestId, reason: &str) {
        self.try_send(wire::error(question, reason));
    }

    /// The upstream no longer waits for the answer to a question.
    fn withdraw(&self, question: &RequestId) {
        let mut state = self.state.lock();
        let waiting = state.waiting.len();
        state.waiting.retain(|waiting| waiting.question.id != *question);
        // Only questions about roots wait.
        let is_lost = state.waiting.len() < waiting || self.outside.withdraw(question);
        state.owes_roots |= is_lost;
        for call in state.running.values().filter(|call| call.caller.is_some()) {
            let _ = call.events.try_send(CallEvent::Withdrawn(question.clone()));
        }
    }

    /// Passes on a log message, which names no request: to the latest running
    /// call, if all running calls have one owner.
    fn log(&self, event: CallEvent) {
        let state = self.state.lock();
        let mut calls = state.running.values().rev().filter(|running| running.caller.is_some());
        let Some(latest) = calls.next() else { return };
        if !latest.is_parked && calls.all(|other| other.owner() == latest.owner()) {
            let _ = latest.events.try_send(event);
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, method: &str, params: &Value) {
        self.send(wire::notification(method, params)).await;
    }
}
