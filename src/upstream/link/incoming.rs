//! The messages that an upstream sends.

use bytes::Bytes;

use super::{Answer, Link, Running};
use crate::{
    compute::Compute,
    protocol::{self, Message, RequestId, count_values},
    upstream::{
        budget::{Charge, FREE_BYTES, VALUE_BYTES},
        error::UpstreamError,
        message::{Arrived, Refusal, StoredTexts, line::answered_by},
        questions::Question,
        wire,
    },
};

impl Link {
    /// Handles a message of the upstream. `request` is the one that the upstream answers
    /// meanwhile, if that is known.
    pub(in crate::upstream) async fn receive(&self, request: Option<i64>, message: Arrived) {
        let Arrived { bytes: message, mut charge, stored } = message;
        if let Err(why) = self.cover_values(&message, &mut charge).await {
            return self.refuse_message(answered_by(&message).or(request), why);
        }
        // If too much work waits in the pool, messages are parsed here: a call must not lose its
        // response.
        let work = message.clone();
        let parsed = self.compute(message.len(), move || protocol::parse(&work)).await;
        match parsed.unwrap_or_else(|| protocol::parse(&message)) {
            Ok(Message::Response { id: RequestId::Number(id), outcome }) => {
                if let Some(running) = self.state.lock().running.remove(&id) {
                    let is_suited = |stored: &StoredTexts| running.takes(&stored.receiving);
                    let answer = if stored.as_ref().is_none_or(is_suited) {
                        let received = stored.map(|stored| stored.result).unwrap_or_default();
                        let answer = outcome.map(|value| Answer { value, charge, received });
                        answer.map_err(UpstreamError::Refused)
                    } else {
                        Err(self.invalid("it answered one request as another one"))
                    };
                    let _ = running.reply.send(answer);
                }
            }
            Ok(Message::Notification { method, params }) => self.notified(&method, &params, charge),
            Ok(Message::Request(received)) => match Question::of(&received) {
                Some(question) => self.ask(question, request),
                None if received.method == "ping" => {
                    self.try_send(wire::empty_response(&received.id));
                }
                None => self.try_send(wire::method_not_found(&received.id)),
            },
            Ok(Message::Response { .. }) => {}
            Err((fault, _)) => {
                tracing::warn!(upstream = %self.name, %fault, "an upstream sent no valid message");
            }
        }
    }

    /// Takes the memory for the parsed values of a message, of which small ones take many times
    /// their JSON.
    async fn cover_values(&self, message: &Bytes, charge: &mut Charge) -> Result<(), Refusal> {
        if message.len() <= FREE_BYTES {
            return Ok(());
        }
        let (work, max) = (message.clone(), self.settings.max_values);
        let counted = self.compute(message.len(), move || count_values(&work, max)).await;
        let counted = counted.unwrap_or_else(|| count_values(message, max));
        let values = counted.ok_or(Refusal::TooManyValues)?;
        let covered = charge.cover(message.len() + values * VALUE_BYTES).await;
        covered.map_err(|_| Refusal::NoRoom)
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

    /// A message was discarded. Without knowing which request it answers, all running ones fail.
    pub(in crate::upstream) fn refuse_message(&self, answers: Option<i64>, why: Refusal) {
        let failed: Vec<_> = {
            let running = &mut self.state.lock().running;
            match answers.and_then(|id| running.remove(&id)) {
                Some(one) => vec![one],
                None => std::mem::take(running).into_values().collect(),
            }
        };
        for Running { reply, .. } in failed {
            let _ = reply.send(Err(self.refusal_error(why)));
        }
    }
}
