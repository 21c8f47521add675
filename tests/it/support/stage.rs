//! Control over the slow tools: tests see how far a tool is, and let it go on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::sync::{Semaphore, watch};

use super::patiently;

/// A state that a slow tool has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
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
pub(crate) struct Stage {
    beats: watch::Sender<Vec<(String, Beat)>>,
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Stage {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { beats: watch::Sender::new(Vec::new()), gates: Mutex::default() })
    }

    /// Waits until the tool has reached it.
    pub(crate) async fn reached(&self, key: &str, beat: Beat) {
        let mut beats = self.beats.subscribe();
        let reached = beats.wait_for(|beats| beats.iter().any(|(k, b)| k == key && *b == beat));
        patiently(&format!("{key} to reach {beat:?}"), reached).await.unwrap();
    }

    /// Whether the tool has reached it.
    pub(crate) fn has(&self, key: &str, beat: Beat) -> bool {
        self.beats.borrow().iter().any(|(k, b)| k == key && *b == beat)
    }

    /// How often tools with this key have reached it.
    pub(crate) fn count(&self, key: &str, beat: Beat) -> usize {
        self.beats.borrow().iter().filter(|(k, b)| k == key && *b == beat).count()
    }

    /// Lets the tool take so many more steps.
    pub(crate) fn release(&self, key: &str, steps: usize) {
        self.gate(key).add_permits(steps);
    }

    /// Waits until the test releases one more step.
    pub(crate) async fn step(&self, key: &str) {
        self.gate(key).acquire().await.unwrap().forget();
    }

    pub(crate) fn tell(&self, key: &str, beat: Beat) {
        self.beats.send_modify(|beats| beats.push((key.to_owned(), beat)));
    }

    /// Records that a tool has started; the value records how it ends.
    pub(crate) fn enter(self: &Arc<Self>, key: &str) -> Player {
        self.tell(key, Beat::Started);
        Player { stage: Arc::clone(self), key: key.to_owned(), finished: false }
    }

    fn gate(&self, key: &str) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap();
        Arc::clone(gates.entry(key.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))))
    }
}

/// A running tool. Dropping it records whether the tool has returned.
pub(crate) struct Player {
    stage: Arc<Stage>,
    key: String,
    finished: bool,
}

impl Player {
    pub(crate) fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let beat = if self.finished { Beat::Finished } else { Beat::Dropped };
        self.stage.tell(&self.key, beat);
    }
}
