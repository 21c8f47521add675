//! [`Requests`]: sends the requests of calls, and lets the upstream ask their clients.
//!
//! A client that has a stream is asked on it. Otherwise the call ends with `input_required`,
//! and the client's next round goes on: with the request that a legacy upstream still works
//! on, which is [`Parked`] meanwhile, or with another request to a modern upstream.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::try_join_all;
use larder_protocol::{self, Message};
use larder_runtime::spans::outgoing_span;
use larder_server::handler::{Context, RoundTrips, Scope, can_be_asked};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing::Instrument;

use super::{
    connections::InUse,
    error::UpstreamError,
    exchange::{Exchange, ExchangeStep},
    link::{Era, Link},
    parked::{Parked, Ticket},
    received::{InputRequest, InputRequired, RawResult, Round},
    settings::Settings,
    wire,
};

/// How often a modern upstream may ask during one call of a client that has a stream.
const MAX_ROUNDS: u32 = 16;
/// The most questions of one round.
const MAX_QUESTIONS: usize = 64;
/// The wait before a request that the upstream has put off is sent again, at first.
const PUT_OFF: Duration = Duration::from_millis(100);

/// The requests of one upstream.
pub(super) struct Requests {
    name: Arc<str>,
    parked: Parked,
}

/// How the next round goes on. Travels with the client, sealed.
#[derive(Serialize, Deserialize)]
struct Continuation {
    upstream: String,
    next: Next,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Next {
    /// With the request that waits here.
    Parked(Ticket),
    /// With another request, which has the upstream's own `requestState`, if there is one.
    Request { state: Option<String> },
}

impl Requests {
    pub(super) fn new(settings: &Arc<Settings>) -> Self {
        Self { name: settings.name.as_str().into(), parked: Parked::new(Arc::clone(settings)) }
    }

    /// Goes on with the request that an earlier round has begun and that the upstream still
    /// works on. `None` if there is none.
    pub(super) async fn resume(
        &self,
        scope: &Arc<Scope>,
    ) -> Option<Result<RawResult, UpstreamError>> {
        let rounds = scope.round_trips()?;
        let Next::Parked(ticket) = self.next(rounds)? else { return None };
        let resumed = async {
            let (mut exchange, in_use) = self.parked.take(&ticket, scope.identity.owner())?;
            exchange.resume(rounds.responses()).await;
            self.finish(exchange, &in_use, scope).await
        };
        Some(resumed.await)
    }

    /// How an earlier round goes on.
    fn next(&self, rounds: &RoundTrips) -> Option<Next> {
        let continuation = Continuation::deserialize(rounds.continuation()?).ok()?;
        (continuation.upstream == *self.name).then_some(continuation.next)
    }

    /// Sends a request, and waits for its result. `what` names it in errors.
    pub(super) async fn send(
        &self,
        in_use: &InUse,
        link: &Arc<Link>,
        method: &'static str,
        mut params: Value,
        what: &str,
        scope: &Arc<Scope>,
    ) -> Result<RawResult, UpstreamError> {
        if let Some(rounds) = scope.round_trips()
            && let Some(Next::Request { state }) = self.next(rounds)
        {
            add_responses(&mut params, json!(rounds.responses()), state);
        }

        link.set_log_level(scope.log_level).await;
        link.roots_settled().await;
        let exchange = Exchange::begin(link, method, params, what, Some(scope))?;
        self.finish(exchange, in_use, scope).await
    }

    /// Waits for the result, through all rounds that can be held within this call.
    async fn finish(
        &self,
        mut exchange: Exchange,
        in_use: &InUse,
        scope: &Arc<Scope>,
    ) -> Result<RawResult, UpstreamError> {
        for round in 0..MAX_ROUNDS {
            let era = exchange.era();
            let link = Arc::clone(exchange.link());
            let sent = exchange.message().cloned();
            let method = exchange.method();
            let what = exchange.what().to_owned();

            let span = outgoing_span("upstream", || format!("{} {method}", self.name));
            let result = match exchange.run(scope).instrument(span).await? {
                ExchangeStep::Done(result) => result,
                ExchangeStep::Asks(exchange) => return self.park(exchange, in_use, scope).await,
            };

            if era != Some(Era::Modern) {
                return Ok(result);
            }
            let required = match result.round() {
                Ok(Round::Complete(result)) => return Ok(result),
                Ok(Round::Asks(required)) => required,
                Err(problem) => return Err(self.unanswered(&format!("{problem}."))),
            };

            if required.requests.len() > MAX_QUESTIONS {
                let reason = format!("more than {MAX_QUESTIONS} questions at once.");
                return Err(self.unanswered(&reason));
            }

            if let Some(rounds) = scope.round_trips() {
                return self.pass_on(rounds, required, scope).await;
            }
            if required.requests.is_empty() {
                tokio::time::sleep(PUT_OFF * 2u32.pow(round.min(6))).await;
            }

            let InputRequired { requests, state } = required;
            let responses = self.ask(requests, scope).await?;
            let mut params = sent.as_ref().map(params_of).unwrap_or_default();
            add_responses(&mut params, responses, state);
            exchange = Exchange::begin(&link, method, params, &what, Some(scope))?;
        }

        Err(self.unanswered(&format!("it has asked {MAX_ROUNDS} times during one call.")))
    }

    fn unanswered(&self, reason: &str) -> UpstreamError {
        UpstreamError::Unanswered { name: Arc::clone(&self.name), reason: reason.to_owned() }
    }

    /// Ends the round with the questions of an upstream that still works on the request.
    async fn park(
        &self,
        exchange: Exchange,
        in_use: &InUse,
        scope: &Scope,
    ) -> Result<RawResult, UpstreamError> {
        let Some(rounds) = scope.round_trips() else {
            return Err(self.unanswered("its client cannot be asked."));
        };

        let requests = exchange.input_requests();
        let owner = scope.identity.owner();
        let ticket = self.parked.insert(exchange, in_use.clone(), owner, &scope.random)?;
        self.end_round(rounds, requests, Next::Parked(ticket)).await
    }

    /// Ends the round with the questions of a modern upstream.
    async fn pass_on(
        &self,
        rounds: &RoundTrips,
        required: InputRequired,
        scope: &Scope,
    ) -> Result<RawResult, UpstreamError> {
        let InputRequired { requests, state } = required;
        let capabilities = &scope.client.capabilities;
        let is_declared = |InputRequest { method, params }: &InputRequest| {
            can_be_asked(capabilities, method, params)
        };
        if !requests.values().all(is_declared) {
            let reason = "The client does not declare that it can be asked that.";
            return Err(self.unanswered(reason));
        }

        let requests = requests.into_iter().map(|(key, request)| (key, json!(request))).collect();
        self.end_round(rounds, requests, Next::Request { state }).await
    }

    /// Never returns, because the call ends here.
    async fn end_round(
        &self,
        rounds: &RoundTrips,
        requests: BTreeMap<String, Value>,
        next: Next,
    ) -> Result<RawResult, UpstreamError> {
        let continuation = Continuation { upstream: self.name.to_string(), next };
        rounds.end_round(requests, json!(continuation)).await
    }

    /// Asks the client while the call runs. Returns its responses, by key.
    async fn ask(
        &self,
        requests: BTreeMap<String, InputRequest>,
        scope: &Arc<Scope>,
    ) -> Result<Value, UpstreamError> {
        let context = Context::new(Arc::clone(scope), Arc::new(()));
        let context = &context;
        let asked = requests.into_iter().map(|(key, request)| async move {
            let InputRequest { method, params } = request;
            let response = context.forward(&key, &method, params).await;
            response.map(|response| (key, response))
        });

        let responses = try_join_all(asked).await;
        let responses = responses.map_err(|error| self.unanswered(&error.to_string()))?;
        Ok(Value::Object(responses.into_iter().collect()))
    }

    /// Ends all requests that wait for their clients.
    pub(super) fn close(&self) {
        self.parked.clear();
    }
}

/// Adds to a request what its next round has.
fn add_responses(params: &mut Value, responses: Value, state: Option<String>) {
    wire::add_param(params, "inputResponses", responses);
    if let Some(state) = state {
        wire::add_param(params, "requestState", json!(state));
    }
}

/// The params of a request, read from its message: they are rarely needed twice.
fn params_of(message: &Bytes) -> Value {
    match larder_protocol::parse(message) {
        Ok(Message::Request(request)) => request.params.parse().unwrap_or_default(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_goes_on_with_what_the_last_one_had() {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
        let mut params = params_of(&Bytes::from_static(message));
        add_responses(&mut params, json!({ "q": {} }), Some("s".into()));
        let next = json!({ "name": "a", "inputResponses": { "q": {} }, "requestState": "s" });
        assert_eq!(params, next);

        // The state of an earlier round does not go on.
        let mut params = params_of(&Bytes::from_static(message));
        add_responses(&mut params, json!({}), None);
        assert_eq!(params.get("requestState"), None);
    }
}
