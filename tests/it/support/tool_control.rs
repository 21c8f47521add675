//! Control over the slow tools: tests see how far a tool is, and let it go on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::sync::{Semaphore, watch};

use super::patiently;

/// A state that a slow tool has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolState {
    /// It has started.
    Started,
    /// It has reported its progress after this step.
    Step(u32),
    /// It has returned.
    Finished,
    /// It was dropped before it returned.
    Dropped,
}

/// What the slow tools of one server have reached, each under its own key.
#[derive(Debug)]
pub(crate) struct ToolControl {
    states: watch::Sender<Vec<(String, ToolState)>>,
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl ToolControl {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { states: watch::Sender::new(Vec::new()), gates: Mutex::default() })
    }

    /// Waits until the tool has reached it.
    pub(crate) async fn reached(&self, key: &str, state: ToolState) {
        let mut states = self.states.subscribe();
        let reached = states.wait_for(|states| states.iter().any(|(k, s)| k == key && *s == state));
        patiently(&format!("{key} to reach {state:?}"), reached).await.unwrap();
    }

    /// Whether the tool has reached it.
    pub(crate) fn has(&self, key: &str, state: ToolState) -> bool {
        self.states.borrow().iter().any(|(k, s)| k == key && *s == state)
    }

    /// How often tools with this key have reached it.
    pub(crate) fn count(&self, key: &str, state: ToolState) -> usize {
        self.states.borrow().iter().filter(|(k, s)| k == key && *s == state).count()
    }

    /// Lets the tool take so many more steps.
    pub(crate) fn release(&self, key: &str, steps: usize) {
        self.gate(key).add_permits(steps);
    }

    /// Waits until the test releases one more step.
    pub(crate) async fn step(&self, key: &str) {
        self.gate(key).acquire().await.unwrap().forget();
    }

    pub(crate) fn record(&self, key: &str, state: ToolState) {
        self.states.send_modify(|states| states.push((key.to_owned(), state)));
    }

    /// Records that a tool has started; the value records how it ends.
    pub(crate) fn enter(self: &Arc<Self>, key: &str) -> RunningTool {
        self.record(key, ToolState::Started);
        RunningTool { control: Arc::clone(self), key: key.to_owned(), finished: false }
    }

    fn gate(&self, key: &str) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap();
        Arc::clone(gates.entry(key.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))))
    }
}

/// A running tool. Dropping it records whether the tool has returned.
pub(crate) struct RunningTool {
    control: Arc<ToolControl>,
    key: String,
    finished: bool,
}

impl RunningTool {
    pub(crate) fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for RunningTool {
    fn drop(&mut self) {
        let state = if self.finished { ToolState::Finished } else { ToolState::Dropped };
        self.control.record(&self.key, state);
    }
}
