//! [`Exchange`]: one request to an upstream, from its beginning to its response.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use larder_protocol::{LogLevel, Outgoing};
use larder_server::handler::{AskMode, Context, Receiving, Scope};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    budget::Charge,
    error::UpstreamError,
    link::{Answered, CallEvent, Era, ExpectedAnswer, Link, OpenedRequest},
    questions::{OpenQuestions, capabilities},
    received::{Answer, Done, Question, RawResult},
    wire,
};

/// One request to an upstream. Dropping it cancels the request, and tells the upstream that
/// nobody answers its questions.
pub(super) struct Exchange {
    link: Arc<Link>,
    id: i64,
    method: &'static str,
    /// Names the request in errors.
    what: String,
    era: Option<Era>,

    /// Absent once it is sent.
    message: Option<Bytes>,
    answer: oneshot::Receiver<Result<Answered, UpstreamError>>,
    events: mpsc::Receiver<CallEvent>,
    /// The upstream's questions that wait for the client's next round, or for the first one.
    questions: Vec<Question>,
    /// Whether the client has answered a question about roots since the upstream was seen to take
    /// answers.
    has_new_roots: bool,
}

/// How far an exchange has come.
pub(super) enum ExchangeStep {
    /// The upstream has answered.
    Done(RawResult),
    /// The client has to be asked in a round.
    Asks(Exchange),
}

impl Link {
    /// Sends a request of Larder's own, and reads its answer.
    pub(super) async fn request<T: Answer>(
        self: &Arc<Self>,
        method: &'static str,
        params: Value,
    ) -> Result<T, UpstreamError> {
        self.request_counted(method, params).await.map(|(answer, _)| answer)
    }

    /// Sends a request of Larder's own, and reads its answer. Returns the memory of the answer as
    /// well.
    pub(super) async fn request_counted<T: Answer>(
        self: &Arc<Self>,
        method: &'static str,
        params: Value,
    ) -> Result<(T, Charge), UpstreamError> {
        let answer = self.answer_to(method, params);
        let answer = tokio::time::timeout(self.call_timeout(), answer).await;
        answer.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Sends a request as [`Link::request`] does, without a limit of time.
    pub(super) async fn request_patiently<T: Answer>(
        self: &Arc<Self>,
        method: &'static str,
        params: Value,
    ) -> Result<T, UpstreamError> {
        self.answer_to(method, params).await.map(|(answer, _)| answer)
    }

    async fn answer_to<T: Answer>(
        self: &Arc<Self>,
        method: &'static str,
        params: Value,
    ) -> Result<(T, Charge), UpstreamError> {
        let mut exchange = Exchange::begin(self, method, params, method, None)?;
        exchange.send().await;

        let answer = (&mut exchange.answer).await;
        let answer = answer.unwrap_or_else(|_| Err(self.ended_during(method)))?;

        let Answered { result, charge, .. } = answer;
        match result.read() {
            Ok(read) => Ok((read, charge)),
            Err(problem) => Err(self.invalid(&format!("{method}: {problem}"))),
        }
    }

    /// Tells a legacy upstream which log messages the caller wants, if it has
    /// not been told to send those or more.
    pub(super) async fn set_log_level(self: &Arc<Self>, wanted: Option<LogLevel>) {
        if let Some(level) = wanted
            && self.raise_log_level(level)
        {
            // A refusal costs log messages, not the call.
            let told = self.request::<Done>("logging/setLevel", json!({ "level": level }));
            let _ = told.await;
        }
    }
}

impl Exchange {
    /// Begins a request, which [`Exchange::run`] sends. `what` names it in errors.
    pub(super) fn begin(
        link: &Arc<Link>,
        method: &'static str,
        mut params: Value,
        what: &str,
        scope: Option<&Scope>,
    ) -> Result<Self, UpstreamError> {
        let caller = scope.map(|scope| scope.identity.clone());
        let expects = match method {
            "tools/call" | "tasks/result" => {
                ExpectedAnswer::Texts(scope.and_then(|scope| scope.control.receiving()))
            }
            "resources/read" => {
                let storing = scope.filter(|scope| !scope.control.holds_contents());
                ExpectedAnswer::Texts(storing.map(|scope| Arc::new(Receiving::of_resource(scope))))
            }
            _ => ExpectedAnswer::Other,
        };

        let OpenedRequest { id, answer, events, questions, era } = link.open(caller, expects)?;
        let link = Arc::clone(link);
        let what = what.to_owned();
        let message = None;
        let has_new_roots = false;
        let mut exchange =
            Self { link, id, method, what, era, message, answer, events, questions, has_new_roots };

        if matches!(method, "tools/call" | "prompts/get" | "resources/read")
            && let Some(meta) = scope.and_then(|scope| scope.passed_on_meta.as_deref())
        {
            for (name, value) in meta {
                wire::add_meta(&mut params, name, value.clone());
            }
        }
        if scope.is_some_and(|scope| scope.progress_token.is_some()) {
            wire::add_meta(&mut params, "progressToken", json!(id));
        }

        if era == Some(Era::Modern) {
            let client = match scope {
                Some(scope) if matches!(scope.asking, AskMode::Unavailable(_)) => json!({}),
                Some(scope) => capabilities(&scope.client),
                None => exchange.link.client_capabilities().clone(),
            };
            wire::declare_modern(&mut params, &client);
            if let Some(level) = scope.and_then(|scope| scope.log_level) {
                wire::add_meta(&mut params, "io.modelcontextprotocol/logLevel", json!(level));
            }
        }

        let exact = scope.filter(|_| method == "tools/call");
        let exact = exact.and_then(|scope| scope.control.exact_arguments());
        exchange.message = Some(wire::request(id, method, &params, exact));
        Ok(exchange)
    }

    /// Opens a request that may stay without a response, and that nothing times out.
    pub(super) async fn open(
        link: &Arc<Link>,
        method: &'static str,
        params: Value,
    ) -> Result<Self, UpstreamError> {
        let mut exchange = Self::begin(link, method, params, method, None)?;
        exchange.send().await;
        Ok(exchange)
    }

    /// Waits for the response, or for the end of the upstream.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.answer).await;
    }

    /// The request's id.
    pub(super) fn id(&self) -> i64 {
        self.id
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(super) fn method(&self) -> &'static str {
        self.method
    }

    /// The name of the request in errors.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    /// The protocol era of the upstream.
    pub(super) fn era(&self) -> Option<Era> {
        self.era
    }

    /// The request, until it is sent.
    pub(super) fn message(&self) -> Option<&Bytes> {
        self.message.as_ref()
    }

    async fn send(&mut self) {
        let Some(message) = self.message.clone() else { return };
        self.link.send(message).await;
        self.message = None;
    }

    /// Runs on until the response comes or the client has to be asked in a round. Passes on
    /// progress, log messages and the questions that the client can be asked meanwhile.
    pub(super) async fn run(mut self, scope: &Arc<Scope>) -> Result<ExchangeStep, UpstreamError> {
        let context = Context::new(Arc::clone(scope), Arc::new(()));
        let by_rounds = scope.round_trips().is_some();
        let mut asked = OpenQuestions::new(self.link.outgoing());
        for question in std::mem::take(&mut self.questions) {
            self.ask(question, by_rounds, &mut asked, &context);
        }

        let timeout = self.link.call_timeout();
        let mut deadline = Instant::now() + timeout;

        loop {
            while let Ok(event) = self.events.try_recv() {
                self.handle(event, by_rounds, &mut asked, &context).await;
            }
            if !self.questions.is_empty() {
                return Ok(ExchangeStep::Asks(self));
            }

            // An upstream may need the answer to an earlier question for this request.
            if asked.is_empty() {
                if std::mem::take(&mut self.has_new_roots) && self.message.is_some() {
                    self.link.settle().await;
                }
                self.send().await;
            }

            tokio::select! {
                biased;
                Some(event) = self.events.recv() => {
                    deadline = Instant::now() + timeout;
                    self.handle(event, by_rounds, &mut asked, &context).await;
                }
                answer = &mut self.answer => {
                    let answer = answer.unwrap_or_else(|_| Err(self.link.ended_during(&self.what)));
                    return self.end(answer, scope).map(ExchangeStep::Done);
                }
                is_about_roots = asked.answered() => {
                    self.has_new_roots |= is_about_roots;
                    deadline = Instant::now() + timeout;
                }
                // The client's time to answer has a limit of its own.
                () = tokio::time::sleep_until(deadline), if asked.is_empty() => {
                    return Err(self.link.timed_out());
                }
            }
        }
    }

    /// Takes the answer.
    fn end(
        &self,
        answer: Result<Answered, UpstreamError>,
        scope: &Scope,
    ) -> Result<RawResult, UpstreamError> {
        if let Err(UpstreamError::Refused(error)) = &answer {
            self.link.note_error(error, self.id, scope);
        }

        let Answered { result, charge, received } = answer?;
        match self.method {
            "resources/read" => scope.control.add_contents(received.texts),
            _ => scope.control.set_received(received),
        }
        if !charge.is_empty() {
            // The result takes memory until the client has it.
            scope.control.hold(Box::new(charge));
        }
        Ok(result)
    }

    async fn handle(
        &mut self,
        event: CallEvent,
        by_rounds: bool,
        asked: &mut OpenQuestions,
        context: &Context,
    ) {
        match event {
            CallEvent::Question(question) => self.ask(question, by_rounds, asked, context),
            CallEvent::ElicitationCompleted(id) => {
                context.send(Outgoing::ElicitationComplete { id }).await;
            }
            CallEvent::Withdrawn(id) => {
                self.questions.retain(|question| question.id != id);
                asked.withdraw(&id);
            }
            CallEvent::Progress { progress, total, message, .. } => {
                context.send_progress(progress, total, message.as_deref()).await;
            }
            CallEvent::Log { level, logger, data, .. } => {
                if context.scope().log_level.is_some_and(|lowest| level >= lowest) {
                    context.send(Outgoing::Log { level, logger, data }).await;
                }
            }
        }
    }

    fn ask(
        &mut self,
        question: Question,
        by_rounds: bool,
        asked: &mut OpenQuestions,
        context: &Context,
    ) {
        if !by_rounds {
            self.link.note_question(&question.request.params, self.id, context.scope());
            asked.ask(question, context);
        } else if question.suits(context.scope()) {
            self.questions.push(question);
        } else {
            self.link.refuse(&question.id, "The client cannot be asked that.");
        }
    }

    /// Waits for the client's next round.
    pub(super) fn park(&self) {
        self.link.set_parked(self.id, true);
    }

    /// The questions for the client, by key (`inputRequests`).
    pub(super) fn input_requests(&self) -> BTreeMap<String, Value> {
        let requests = self.questions.iter().map(|open| (open.key(), open.input_request()));
        requests.collect()
    }

    /// Goes on with the client's responses, by key. Questions without one stay open.
    pub(super) async fn resume(&mut self, responses: &BTreeMap<String, Value>) {
        self.link.set_parked(self.id, false);

        let mut left = Vec::new();
        for question in std::mem::take(&mut self.questions) {
            match responses.get(&question.key()).filter(|response| response.is_object()) {
                Some(response) => {
                    self.has_new_roots |= question.is_about_roots();
                    self.link.send(wire::response(&question.id, response.clone())).await;
                }
                None => left.push(question),
            }
        }
        self.questions = left;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let was_running = self.link.forget(self.id);
        self.events.close();

        let mut questions = std::mem::take(&mut self.questions);
        while let Ok(event) = self.events.try_recv() {
            match event {
                CallEvent::Question(question) => questions.push(question),
                CallEvent::Withdrawn(id) => questions.retain(|question| question.id != id),
                CallEvent::Progress { .. }
                | CallEvent::Log { .. }
                | CallEvent::ElicitationCompleted(_) => {}
            }
        }

        if self.message.is_some() {
            // This request was never sent: the next request asks the questions instead.
            self.link.give_back(questions);
            return;
        }

        for Question { id, .. } in questions {
            self.link.refuse(&id, "The call has ended.");
        }

        // `initialize` must not be cancelled (2025-11-25, utilities: Cancellation).
        if was_running && self.method != "initialize" {
            let params = json!({ "requestId": self.id, "reason": "The caller no longer waits." });
            self.link.try_send(wire::notification("notifications/cancelled", &params));
        }
    }
}
