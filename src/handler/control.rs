//! What a running handler may ask of whoever runs it: to end the call, to
//! turn it into a task.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::Poll,
};

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::{Asking, Context, InputRequired};
use crate::{
    protocol::Fault,
    task::{EXTENSION, TaskRun},
};

/// Between a handler and whoever runs it.
#[derive(Default)]
pub struct Control {
    wish: Mutex<Option<Wish>>,
    task: OnceLock<Arc<dyn TaskRun>>,
    waker: AtomicWaker,
    /// How many calls it is within.
    depth: u8,
}

/// How deep calls may lie within each other. Tools that call each other in a
/// circle would otherwise go on until there is no stack left.
const DEEPEST: u8 = 4;

enum Wish {
    Fail(Fault),
    Task,
}

/// Why a call that has not ended goes on no further for now.
pub enum Paused {
    /// The client has to be asked first; the call ends here.
    InputRequired(InputRequired),
    /// It wants to be a task; it can be run on as one.
    Task,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Option<Wish>> {
        self.wish.lock()
    }

    fn wish(&self, wish: Wish) {
        *self.lock() = Some(wish);
        self.waker.wake();
    }

    /// For a call within this one.
    ///
    /// # Errors
    /// When it would lie too deep.
    pub(crate) fn nested(&self) -> Result<Self, Fault> {
        if self.depth == DEEPEST {
            return Err(Fault::Internal(format!(
                "Tools call each other more than {DEEPEST} deep. They probably go round in a circle."
            )));
        }
        Ok(Self { depth: self.depth + 1, ..Self::default() })
    }

    /// The task that the call has become, if it has.
    pub fn task(&self) -> Option<&Arc<dyn TaskRun>> {
        self.task.get()
    }

    /// Says that the call is a task from now on.
    pub fn become_task(&self, task: Arc<dyn TaskRun>) {
        // A call becomes a task once at the most.
        let _ = self.task.set(task);
    }

    /// Runs a call until it ends or pauses.
    ///
    /// # Errors
    /// The fault that the handler ended the call with.
    pub async fn run<T>(
        &self,
        asking: &Asking,
        mut call: Pin<&mut (impl Future<Output = T> + ?Sized)>,
    ) -> Result<Result<T, Paused>, Fault> {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if let Asking::Rounds(rounds) = asking {
                rounds.register(cx.waker());
            }
            if let Poll::Ready(outcome) = call.as_mut().poll(cx) {
                return Poll::Ready(Ok(Ok(outcome)));
            }
            match self.lock().take() {
                Some(Wish::Fail(fault)) => return Poll::Ready(Err(fault)),
                Some(Wish::Task) => return Poll::Ready(Ok(Err(Paused::Task))),
                None => {}
            }
            match asking {
                Asking::Rounds(rounds) if self.task().is_none() => match rounds.required() {
                    Some(required) => Poll::Ready(Ok(Err(Paused::InputRequired(required)))),
                    None => Poll::Pending,
                },
                _ => Poll::Pending,
            }
        })
        .await
    }

    pub(crate) async fn fail<T>(&self, fault: Fault) -> T {
        self.wish(Wish::Fail(fault));
        std::future::pending().await
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

impl<S> Context<S> {
    /// Ends the call here with a protocol error, and never returns. For what a model can act on,
    /// return a [`ToolError`](super::ToolError) instead.
    pub async fn fail<T>(&self, fault: Fault) -> T {
        self.scope().control.fail(fault).await
    }

    /// Whether the client can follow a task.
    pub fn can_follow_tasks(&self) -> bool {
        self.client().has_extension(EXTENSION)
    }

    /// Turns the call into a task where the client can follow one: the request
    /// is answered now, and the handler goes on behind it. Says whether it did;
    /// where not, the handler simply goes on. Ask what has to be known before
    /// the task begins before this (SEP-2663: Task Creation).
    pub async fn into_task(&self) -> bool {
        let control = &self.scope().control;
        let modern = matches!(self.scope().asking, Asking::Rounds(_));
        if control.task().is_some() {
            return true;
        }
        if !modern || !self.can_follow_tasks() {
            return false;
        }
        control.wish(Wish::Task);
        // Polled again only once it is one.
        poll_fn(|_| match control.task() {
            Some(_) => Poll::Ready(true),
            None => Poll::Pending,
        })
        .await
    }

    /// The same for work that cannot be done within a request: a client that
    /// cannot follow a task is told so, and the call ends.
    pub async fn require_task(&self) {
        if !self.into_task().await {
            let required: Value = json!({ "extensions": { EXTENSION: {} } });
            self.fail::<()>(Fault::MissingCapability { required }).await;
        }
    }
}
