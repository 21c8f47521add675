//! [`Control`]: lets a running handler end its call early or turn it into a task.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::Poll,
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use larder_protocol::Fault;
use larder_runtime::held::{Counted, Held};
use larder_store::task::TaskRun;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, value::RawValue};
use tokio::sync::SetOnce;

use super::ReceivedText;
use super::{AskMode, InputRequired, ReceivedResult, Receiving};

/// The maximum depth of nested calls. Tools that call each other in a circle would
/// otherwise overflow the stack.
const MAX_DEPTH: u8 = 4;

/// The channel between a handler and the code that polls it.
#[derive(Default)]
pub struct Control {
    interrupt: Mutex<Option<Interrupt>>,
    task: SetOnce<Arc<dyn TaskRun>>,
    waker: AtomicWaker,
    /// The number of calls around this call.
    depth: u8,
    /// The counted memory of the result, until the call ends with it.
    held: Mutex<Held>,

    /// Decides whether long strings of the result are stored while they arrive.
    receiving: OnceLock<Decide>,
    /// The long strings that have arrived.
    received: Mutex<ReceivedResult>,
    /// The long contents of resources that have arrived.
    contents: Mutex<ReceivedContents>,

    /// The arguments as they were sent, where a value does not keep their numbers.
    exact_arguments: OnceLock<Bytes>,
    /// The structured content of the result as it was sent, where a value does not keep its
    /// numbers.
    exact_content: Mutex<Option<Box<RawValue>>>,
}

/// The long contents of resources that upstreams have read for a call.
#[derive(Default)]
struct ReceivedContents {
    stored: Vec<ReceivedText>,
    /// Whether the store refused a content, so that further contents are held in memory.
    are_held: bool,
}

/// Returns how long strings of a result are stored while they arrive; `None` if they are not.
type Decide = Box<dyn Fn() -> Option<Receiving> + Send + Sync>;

/// A request of the handler that ends or changes its call.
enum Interrupt {
    Fail(Fault),
    BecomeTask,
}

/// The reason why [`Control::run`] has stopped polling a call.
pub enum Polled<T> {
    /// The call has returned.
    Returned(T),
    /// The handler has ended the call with this error.
    Failed(Fault),
    /// The call has no result yet.
    Suspended(Suspended),
}

/// The reason why a call without a result is not polled any more.
pub enum Suspended {
    /// The call needs input from the client. It ends here.
    InputRequired(InputRequired),
    /// The handler wants the call to become a task. The caller can poll it
    /// again as a task.
    Task,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Option<Interrupt>> {
        self.interrupt.lock()
    }

    fn interrupt(&self, interrupt: Interrupt) {
        *self.lock() = Some(interrupt);
        self.waker.wake();
    }

    /// The control of a call that this call makes.
    ///
    /// # Errors
    /// [`Fault::Internal`] if it would be nested too deeply.
    pub(super) fn nested(&self) -> Result<Self, Fault> {
        if self.depth == MAX_DEPTH {
            return Err(Fault::Internal(format!(
                "Tool calls are nested more than {MAX_DEPTH} deep. The tools probably call each other in a circle."
            )));
        }
        Ok(Self { depth: self.depth + 1, ..Self::default() })
    }

    /// The number of calls around this call.
    pub(crate) fn depth(&self) -> u8 {
        self.depth
    }

    /// Holds memory for as long as the result of the call takes it.
    pub fn hold(&self, memory: Box<dyn Counted>) {
        self.held.lock().add(memory);
    }

    /// Takes the memory of the result, which is on its way to the client.
    pub(crate) fn take_held(&self) -> Held {
        std::mem::take(&mut *self.held.lock())
    }

    /// Lets long strings of the result be stored while they arrive. `decide` is called when the
    /// tool is known; it must not hold the call. The caller takes the strings with
    /// [`Control::take_received`].
    pub(crate) fn receive(&self, decide: Decide) {
        // Set once, before the call begins.
        let _ = self.receiving.set(decide);
    }

    /// Decides how long strings of the result are stored while they arrive; `None` if they are not.
    pub fn receiving(&self) -> Option<Arc<Receiving>> {
        self.receiving.get()?().map(Arc::new)
    }

    /// Sets the JSON of the arguments as they were sent.
    pub(crate) fn set_exact_arguments(&self, json: Bytes) {
        // Set once, before the call.
        let _ = self.exact_arguments.set(json);
    }

    /// The JSON of the arguments as they were sent, where a value does not keep their numbers.
    pub fn exact_arguments(&self) -> Option<&Bytes> {
        self.exact_arguments.get()
    }

    /// Sets the JSON of the structured content as it was sent.
    pub fn set_exact_content(&self, json: Option<Box<RawValue>>) {
        *self.exact_content.lock() = json;
    }

    /// The JSON of this structured content as it was sent, where a value does not keep its numbers.
    pub(crate) fn exact_content(&self, content: Option<&Value>) -> Option<Box<RawValue>> {
        let content = content?;
        let json = self.exact_content.lock().clone()?;
        let parsed = serde_json::from_str::<Value>(json.get()).ok()?;
        (*content == parsed).then_some(json)
    }

    /// Sets the strings that have placeholders in the result.
    pub fn set_received(&self, received: ReceivedResult) {
        *self.received.lock() = received;
    }

    /// The strings that have placeholders in the result.
    pub(crate) fn take_received(&self) -> ReceivedResult {
        std::mem::take(&mut *self.received.lock())
    }

    /// Adds contents that have placeholders in the result of a read.
    pub fn add_contents(&self, contents: Vec<ReceivedText>) {
        self.contents.lock().stored.extend(contents);
    }

    /// Takes the content with this placeholder in the result of a read.
    pub fn take_content(&self, name: &str) -> Option<ReceivedText> {
        let stored = &mut self.contents.lock().stored;
        let index = stored.iter().position(|content| content.uri.as_str() == name)?;
        Some(stored.swap_remove(index))
    }

    /// Whether long contents of resources stay in memory while they arrive.
    pub fn holds_contents(&self) -> bool {
        self.contents.lock().are_held
    }

    /// Holds further long contents of resources in memory, because the store refused a content.
    pub fn hold_contents(&self) {
        self.contents.lock().are_held = true;
    }

    /// The task that the call has become, if any.
    pub fn task(&self) -> Option<&Arc<dyn TaskRun>> {
        self.task.get()
    }

    /// Makes the call a task.
    pub fn become_task(&self, task: Arc<dyn TaskRun>) {
        // A call becomes a task at most once.
        let _ = self.task.set(task);
    }

    /// Polls a call until it returns, is ended by its handler, or pauses.
    pub async fn run<T>(
        &self,
        asking: &AskMode,
        mut call: Pin<&mut (impl Future<Output = T> + ?Sized)>,
    ) -> Polled<T> {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if let AskMode::RoundTrips(rounds) = asking {
                rounds.register(cx.waker());
            }

            if let Poll::Ready(outcome) = call.as_mut().poll(cx) {
                return Poll::Ready(Polled::Returned(outcome));
            }

            match self.lock().take() {
                Some(Interrupt::Fail(fault)) => return Poll::Ready(Polled::Failed(fault)),
                Some(Interrupt::BecomeTask) => {
                    return Poll::Ready(Polled::Suspended(Suspended::Task));
                }
                None => {}
            }

            match asking {
                AskMode::RoundTrips(rounds) if self.task().is_none() => match rounds.required() {
                    Some(required) => {
                        Poll::Ready(Polled::Suspended(Suspended::InputRequired(required)))
                    }
                    None => Poll::Pending,
                },
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// Ends the call with this error. Never returns.
    pub(super) async fn fail<T>(&self, fault: Fault) -> T {
        self.interrupt(Interrupt::Fail(fault));
        std::future::pending().await
    }

    /// Requests that the call becomes a task, and waits until it is one.
    pub(super) async fn request_task(&self) {
        self.interrupt(Interrupt::BecomeTask);
        self.task.wait().await;
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{pin::pin, time::Duration};

    use futures_util::{StreamExt, stream::FuturesUnordered};

    use super::*;
    use larder_oauth::Principal;
    use larder_runtime::{clock::ManualClock, random::Random};
    use larder_store::task::{MemoryTasks, TaskLimits, Tasks};

    #[tokio::test(start_paused = true)]
    async fn a_call_that_becomes_a_task_within_a_set_of_futures_goes_on() {
        let control = Control::default();
        let asking = AskMode::Unavailable("a test");

        let mut call = pin!(async {
            // Polls a future again only after it was woken.
            let mut set = FuturesUnordered::new();
            set.push(control.request_task());
            set.push(control.request_task());
            while set.next().await.is_some() {}
            "done"
        });

        let suspended = control.run(&asking, call.as_mut()).await;
        assert!(matches!(suspended, Polled::Suspended(Suspended::Task)));

        let clock = Arc::new(ManualClock::new());
        let tasks = MemoryTasks::new(clock, Random::counting(), TaskLimits::default());
        let (_, task) = tasks.create(&Principal::Local.owner()).await.unwrap();
        control.become_task(task);

        let running = control.run(&asking, call.as_mut());
        let done = tokio::time::timeout(Duration::from_secs(1), running).await.expect("it goes on");
        assert!(matches!(done, Polled::Returned("done")));
    }
}
