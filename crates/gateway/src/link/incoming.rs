//! The messages that an upstream sends.

use std::{fmt::Display, sync::Arc};

use bytes::Bytes;
use larder_protocol::{ErrorResponse, RequestId, count_values};
use larder_runtime::compute::Compute;
use larder_server::handler::ReceivedResult;

use super::{Answered, CallEvent, Link, RunningRequest};
use crate::{
    budget::{Charge, FREE_BYTES, Payer, VALUE_BYTES},
    error::UpstreamError,
    message::{
        Arrived, MessageRefusal, StoredTexts,
        line::{Discarded, answered_by},
    },
    received::{self, AnswerTo, Notification, Outcome, Question, Received},
    wire,
};

/// The longest id of an upstream's request, in bytes.
const MAX_ID_BYTES: usize = 1 << 10;

/// The stream that a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageSource {
    /// A channel for all requests, which may have other text, too.
    Shared,
    /// A stream that answers this request, if it answers one.
    Stream(Option<i64>),
    /// A body that is nothing but the answer to this request.
    Body(i64),
}

impl MessageSource {
    /// The request that the upstream answers there, if that is known.
    fn request(self) -> Option<i64> {
        match self {
            Self::Shared => None,
            Self::Stream(request) => request,
            Self::Body(request) => Some(request),
        }
    }
}

/// A message that is read, and the memory that it takes.
struct Message {
    bytes: Bytes,
    received: Received,
    charge: Charge,
    stored: Option<StoredTexts>,
}

impl Link {
    /// Handles a message of the upstream.
    pub(crate) async fn receive(&self, source: MessageSource, message: Arrived) {
        let Some(message) = self.read(source, message).await else { return };
        let messages = match message.received {
            Received::Batch(messages) => messages,
            Received::LongBatch => {
                return self.refuse_message(
                    source,
                    Discarded::Unknown,
                    MessageRefusal::TooManyMessages,
                );
            }
            _ => return self.handle(source, message),
        };

        // Each message of the batch pays for its values; the buffer is that of all of them.
        let mut charge = message.charge;
        let _buffer = charge.split(message.bytes.len());
        drop(charge);

        for bytes in messages {
            let charge = self.charge_of(source.request());
            let message = Arrived { bytes, charge, stored: None };
            let Some(message) = self.read(source, message).await else { continue };
            match message.received {
                Received::Batch(_) | Received::LongBatch => {
                    self.log_ignored("an upstream sent a batch in a batch", None);
                }
                _ => self.handle(source, message),
            }
        }
    }

    /// Reads a message. `None` if there is no room for it, which its call is told.
    async fn read(&self, source: MessageSource, message: Arrived) -> Option<Message> {
        let Arrived { bytes, mut charge, stored } = message;
        if let Err(why) = self.cover_values(&bytes, &mut charge).await {
            self.refuse_message(source, Discarded::by(&bytes), why);
            return None;
        }

        // If too much work waits in the pool, messages are read here: a call must not lose its
        // response.
        let work = bytes.clone();
        let read = self.compute(bytes.len(), move || received::read(&work, answered_by)).await;
        let received = read.unwrap_or_else(|| received::read(&bytes, answered_by));
        Some(Message { bytes, received, charge, stored })
    }

    fn handle(&self, source: MessageSource, message: Message) {
        let Message { bytes, received, charge, stored } = message;
        match received {
            Received::Answer(to, outcome) => {
                let outcome = match outcome {
                    Outcome::Result(result) => Ok(result),
                    Outcome::Error(error) => Err(UpstreamError::Refused(error)),
                    Outcome::Invalid(problem) => Err(self.invalid(&problem.to_string())),
                };
                let answer = outcome.map(|result| {
                    let answered = Answered { result, charge, received: ReceivedResult::default() };
                    (answered, stored)
                });

                self.answer(source, to, answer);
            }
            // A long id would stay in memory with the answer until the upstream reads it.
            Received::Question(Question { id, .. }) | Received::Request { id, .. }
                if is_long(&id) =>
            {
                self.log_ignored("a request with a long id is ignored", None);
            }
            Received::Question(question) => match self.keep(&bytes, charge, source.request()) {
                Some(charge) => self.ask(question.with_charge(charge), source.request()),
                None => self.refuse(&question.id, "There is no room for the question."),
            },
            Received::Request { id, method } if method == "ping" => {
                self.try_send(wire::empty_response(&id));
            }
            Received::Request { id, .. } => self.try_send(wire::method_not_found(&id)),
            Received::Notification(notification) => {
                // Memory is kept only for a notification that is passed on to a call.
                let kept = || self.keep(&bytes, charge, source.request());
                self.notified(notification, kept);
            }
            Received::Nothing(answers, problem) => self.received_nothing(source, answers, &problem),
            Received::Batch(_) | Received::LongBatch => {}
        }
    }

    /// Gives an answer to the request that it names. One that names none is for the request that
    /// is answered there, or for the only one that runs.
    fn answer(
        &self,
        source: MessageSource,
        to: AnswerTo,
        answer: Result<(Answered, Option<StoredTexts>), UpstreamError>,
    ) {
        let mut state = self.state.lock();

        let named = match (to, source) {
            (AnswerTo::Request(id), MessageSource::Body(request)) => (id == request).then_some(id),
            (AnswerTo::Request(id), _) => Some(id),
            (AnswerTo::Unnamed, source) => source.request().or_else(|| {
                let mut running = state.running.keys();
                running.next().copied().filter(|_| running.next().is_none())
            }),
            (AnswerTo::Foreign, _) => None,
        };
        let running = named.and_then(|id| state.running.remove(&id));

        let running = match (running, source.request()) {
            (Some(running), _) => running,
            (None, Some(request)) => {
                // The answer may follow: what came instead is told at the end.
                if let Some(running) = state.running.get_mut(&request) {
                    running.problem = Some("it answers another request".to_owned());
                }
                return;
            }
            (None, None) => {
                drop(state);
                return self.answered_nobody(to, answer.err());
            }
        };
        drop(state);

        let answer = answer.map(|(mut answered, stored)| {
            let owner = running.owner().cloned();
            answered.charge.pay_as(Payer { owner, upstream: Arc::clone(&self.name) });
            (answered, stored)
        });
        let answer = answer.and_then(|(answered, stored)| match stored {
            None => Ok(answered),
            Some(stored) if running.takes(&stored.receiving) => {
                Ok(Answered { received: stored.result, ..answered })
            }
            Some(_) => Err(self.invalid("it answered one request as another one")),
        });

        let _ = running.reply.send(answer);
    }

    /// An answer whose request is unknown. Without a name it may be for any that runs, so all of
    /// them fail: none would ever be answered.
    fn answered_nobody(&self, to: AnswerTo, error: Option<UpstreamError>) {
        if to != AnswerTo::Unnamed {
            return;
        }

        let problem = match error {
            Some(UpstreamError::Refused(ErrorResponse { message, .. })) => {
                format!("it sent an error that names no request: {message}")
            }
            _ => "it sent an answer that names no request".to_owned(),
        };

        let running = std::mem::take(&mut self.state.lock().running);
        for RunningRequest { reply, .. } in running.into_values() {
            let _ = reply.send(Err(self.no_answer(&problem)));
        }
    }

    /// Handles bytes that are no message. If they look like an answer, its request fails at once.
    /// Otherwise the request that is answered there fails at the end, unless its answer follows.
    fn received_nothing(
        &self,
        source: MessageSource,
        answers: Option<i64>,
        problem: &received::Problem,
    ) {
        let mut state = self.state.lock();
        let answered = match source {
            MessageSource::Body(request) => answers.map(|_| request),
            MessageSource::Shared | MessageSource::Stream(_) => answers,
        };
        let running = answered.and_then(|id| state.running.remove(&id));
        if running.is_none()
            && let Some(running) = source.request().and_then(|id| state.running.get_mut(&id))
        {
            running.problem = Some(problem.to_string());
            return;
        }
        drop(state);

        match running {
            Some(running) => {
                let _ = running.reply.send(Err(self.invalid(&problem.to_string())));
            }
            None => self.log_ignored("an upstream sent no valid message", Some(&problem)),
        }
    }

    /// Logs, at a limited rate, that a message is ignored.
    fn log_ignored(&self, what: &str, problem: Option<&dyn Display>) {
        let Some(skipped) = self.log_rate.lock().take() else { return };
        let skipped = Some(skipped).filter(|skipped| *skipped > 0);
        let problem = problem.map(tracing::field::display);
        tracing::warn!(upstream = %self.name, problem, skipped, "{what}");
    }

    /// Handles a notification. `kept` is the charge of one that is kept until a call takes it;
    /// without room, the call does without the notification.
    fn notified(&self, notification: Notification, kept: impl FnOnce() -> Option<Charge>) {
        match notification {
            Notification::Progress { token, progress, total, message } => {
                let Some(charge) = kept() else { return };
                let state = self.state.lock();
                if let Some(running) = state.running.get(&token).filter(|call| !call.is_parked) {
                    let event = CallEvent::Progress { progress, total, message, _charge: charge };
                    let _ = running.events.try_send(event);
                }
            }
            Notification::Log { level, logger, data } => {
                tracing::debug!(upstream = %self.name, ?level, ?logger, %data);
                let Some(charge) = kept() else { return };
                self.log(CallEvent::Log { level, logger, data, _charge: charge });
            }
            Notification::Cancelled(question) => {
                if !is_long(&question) {
                    self.withdraw(&question);
                }
            }
            Notification::ListChanged => self.announce_lists(),
            Notification::ResourceUpdated(uri) => {
                if let Some(updates) = self.updates.get() {
                    updates.updated(&uri);
                }
            }
            Notification::ElicitationComplete(id) => self.elicitation_completed(&id),
            Notification::Acknowledged(id) => {
                self.acknowledged.send_if_modified(|latest| {
                    let is_later = id > *latest;
                    *latest = id.max(*latest);
                    is_later
                });
            }
            Notification::Other => {}
        }
    }

    /// Takes the memory for the parsed values of a message, of which small ones take many times
    /// their JSON.
    async fn cover_values(
        &self,
        message: &Bytes,
        charge: &mut Charge,
    ) -> Result<(), MessageRefusal> {
        if message.len() <= FREE_BYTES {
            return Ok(());
        }

        let work = message.clone();
        let max = self.settings.max_values;
        let counted = self.compute(message.len(), move || count_values(&work, max)).await;
        let counted = counted.unwrap_or_else(|| count_values(message, max));
        let values = counted.ok_or(MessageRefusal::TooManyValues)?;

        let covered = charge.cover(message.len() + values * VALUE_BYTES).await;
        covered.map_err(|_| MessageRefusal::NoRoom)
    }

    /// Runs work on a large message off the runtime's workers. `None` if too much work waits
    /// there.
    async fn compute<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        Compute::run(&self.name, size, work).done().await.ok()
    }

    /// A message was discarded. An upstream that asked is told; a message that may be the answer
    /// to any request fails all that run.
    pub(crate) fn refuse_message(
        &self,
        source: MessageSource,
        what: Discarded,
        why: MessageRefusal,
    ) {
        if let Discarded::Question(id) = &what
            && !is_long(id)
        {
            self.refuse(id, &self.refusal_error(why).to_string());
        }

        let failed: Vec<_> = {
            let running = &mut self.state.lock().running;
            match (what, source) {
                (Discarded::Answer(id), _)
                | (Discarded::Unknown, MessageSource::Stream(Some(id)) | MessageSource::Body(id)) => {
                    running.remove(&id).into_iter().collect()
                }
                (Discarded::Unknown, MessageSource::Shared) => {
                    std::mem::take(running).into_values().collect()
                }
                (Discarded::Question(_) | Discarded::Other, _)
                | (Discarded::Unknown, MessageSource::Stream(None)) => {
                    let why = self.refusal_error(why);
                    return self.log_ignored("a message is discarded", Some(&why));
                }
            }
        };

        for RunningRequest { reply, .. } in failed {
            let _ = reply.send(Err(self.refusal_error(why)));
        }
    }
}

/// Whether an id is longer than those of requests that are answered.
fn is_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(id) if id.len() > MAX_ID_BYTES)
}
