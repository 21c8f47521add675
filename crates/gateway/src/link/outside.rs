//! Questions about roots that come while no call is running. The client of a session is asked on
//! the stream of its session; other clients are asked by their next call.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use larder_protocol::RequestId;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, watch};

use super::{Era, Link};
use crate::{
    received::{Done, Question},
    wire,
};

/// How long a call waits for the answer to a question that is asked outside of calls.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an upstream is believed to wait for an answer. Most give up after a minute.
const MAX_AGE: Duration = Duration::from_secs(45);
/// The longest time in which an upstream shows that it has read what it was sent.
const SETTLING: Duration = Duration::from_secs(5);
/// How many pings follow the answer to a question about roots. An upstream looks at the folders
/// after it has read the answer, and tells nobody when it has: one ping may overtake that.
const SETTLING_PINGS: usize = 8;
/// The pause after each of them.
const SETTLING_PAUSE: Duration = Duration::from_millis(10);

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// The question that is asked outside of calls.
pub(super) struct Outside {
    /// Wakes the task that asks.
    questions: Notify,
    /// The ID of the request, while it is asked.
    asked: watch::Sender<Option<RequestId>>,
    /// Wakes the task when a call asks the question instead, or when the upstream withdraws it.
    recalled: Notify,
    /// The question that the upstream has withdrawn while it was asked.
    withdrawn: Mutex<Option<RequestId>>,
    /// The turn to bring the upstream up to date: others wait for it.
    turn: Semaphore,
}

impl Default for Outside {
    fn default() -> Self {
        Self {
            questions: Notify::new(),
            asked: watch::Sender::new(None),
            recalled: Notify::new(),
            withdrawn: Mutex::default(),
            turn: Semaphore::new(1),
        }
    }
}

impl Outside {
    /// There is another question.
    pub(super) fn wake(&self) {
        self.questions.notify_one();
    }

    /// The upstream no longer waits for the answer to a question. Returns whether it was asked
    /// here.
    pub(super) fn withdraw(&self, question: &RequestId) -> bool {
        let is_asked = self.asked.borrow().as_ref() == Some(question);
        if is_asked {
            *self.withdrawn.lock() = Some(question.clone());
            self.recalled.notify_one();
        }
        is_asked
    }
}

/// Frees those who wait for an answer when nobody asks any more.
struct Asking<'a>(&'a Outside);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asked.send_replace(None);
    }
}

/// The end of asking outside of calls.
pub(crate) enum AskedOutside {
    /// The client has answered.
    Answered(Value),
    /// The client has refused.
    Refused(String),
    /// Nobody could be asked, so the next call asks.
    NotAsked,
}

impl Link {
    /// Asks the questions that come while no call is running, until the link ends. `ask` sends one
    /// with these params to the client.
    pub(crate) async fn ask_outside<F>(self: &Arc<Self>, ask: impl Fn(Value) -> F)
    where
        F: Future<Output = AskedOutside>,
    {
        let _asking = Asking(&self.outside);
        loop {
            self.outside.questions.notified().await;
            while let Some(question) = self.take_waiting() {
                let asked = tokio::select! {
                    asked = ask(question.request.params.clone()) => asked,
                    () = self.outside.recalled.notified() => AskedOutside::NotAsked,
                };
                let is_left = matches!(asked, AskedOutside::NotAsked);
                self.end_outside(question, asked).await;
                if is_left {
                    break;
                }
            }
        }
    }

    /// Takes a question that waits, to ask it outside of calls.
    fn take_waiting(&self) -> Option<Question> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() {
            return None;
        }
        let question = state.waiting.remove(0).question;
        // A recall of an earlier question does not concern this one.
        let _ = self.outside.recalled.notified().now_or_never();
        *self.outside.withdrawn.lock() = None;
        self.outside.asked.send_replace(Some(question.id.clone()));
        Some(question)
    }

    async fn end_outside(self: &Arc<Self>, question: Question, asked: AskedOutside) {
        match asked {
            AskedOutside::Answered(result) => {
                self.has_roots.store(true, Ordering::Relaxed);
                self.send(wire::response(&question.id, result)).await;
                self.settle().await;
            }
            AskedOutside::Refused(reason) => {
                self.refuse(&question.id, &reason);
                self.settle().await;
            }
            AskedOutside::NotAsked => {
                let is_withdrawn = self.outside.withdrawn.lock().take().is_some();
                if !is_withdrawn {
                    self.give_back(vec![question]);
                }
            }
        }
        self.outside.asked.send_replace(None);
    }

    /// Waits, before a call begins, until the client's answer to an earlier question was taken. If
    /// the client does not answer soon, the call asks. An upstream that has given up asks again.
    pub(crate) async fn roots_settled(self: &Arc<Self>) {
        if self.has_settled() {
            return;
        }

        // The semaphore is never closed.
        let _turn = self.outside.turn.acquire().await;
        self.outside_answered().await;
        if self.gives_up_old_questions() {
            self.notify(ROOTS_CHANGED, &json!({})).await;
            // The upstream asks before it has answered, because it reads messages in their order.
            self.settle().await;
            self.outside_answered().await;
        }
    }

    /// Whether nothing is known that a call would have to wait for.
    fn has_settled(&self) -> bool {
        let Outside { asked, turn, .. } = &self.outside;
        let is_free = turn.available_permits() > 0 && asked.borrow().is_none();
        let state = self.state.lock();
        is_free && state.waiting.is_empty() && !state.owes_roots
    }

    /// Waits until no question is asked outside of calls, and takes one back that stays unanswered.
    async fn outside_answered(&self) {
        let mut asked = self.outside.asked.subscribe();
        let answered = asked.wait_for(Option::is_none);
        if tokio::time::timeout(PATIENCE, answered).await.is_err() {
            self.outside.recalled.notify_one();
            tokio::select! {
                // The sender lives as long as this link, so the wait cannot fail.
                _ = asked.wait_for(Option::is_none) => {}
                () = self.ended() => {}
            }
        }
    }

    /// Discards questions for whose answers the upstream no longer waits. Returns whether it has to
    /// ask again.
    fn gives_up_old_questions(&self) -> bool {
        let mut state = self.state.lock();
        if state.era != Some(Era::Legacy) {
            return false;
        }

        let old: Vec<_> =
            state.waiting.extract_if(.., |waiting| waiting.since.elapsed() > MAX_AGE).collect();
        let is_owed = std::mem::take(&mut state.owes_roots) || !old.is_empty();
        drop(state);

        for waiting in old {
            self.refuse(&waiting.question.id, "Nobody could be asked in time.");
        }
        is_owed
    }

    /// The client's roots have changed. Returns whether the upstream may ask for them: then it has
    /// to be told, before the next call.
    pub(crate) fn owe_roots(&self) -> bool {
        let is_declared = self.client_capabilities.get("roots").is_some();
        let mut state = self.state.lock();
        let is_owed = is_declared && state.era == Some(Era::Legacy);
        state.owes_roots |= is_owed;
        is_owed
    }

    /// Waits until a legacy upstream has done what it was sent, as far as pings show it.
    pub(crate) async fn settle(self: &Arc<Self>) {
        if self.era() != Some(Era::Legacy) {
            return;
        }

        let pings = async {
            for _ in 0..SETTLING_PINGS {
                if self.request::<Done>("ping", json!({})).await.is_err() {
                    return;
                }
                tokio::time::sleep(SETTLING_PAUSE).await;
            }
        };
        let _ = tokio::time::timeout(SETTLING, pings).await;
    }
}
