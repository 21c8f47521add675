//! [`Lives`]: the lives of an upstream's processes as one.

use crate::{catalogue::ReasonReader, connection::Life, status::State};

/// The lives of an upstream's processes, at a time.
pub(crate) struct Lives(Vec<Life>);

impl Lives {
    pub(super) fn new(lives: impl Iterator<Item = Life>) -> Self {
        Self(lives.collect())
    }

    /// The best state among the processes.
    pub(crate) fn state(&self) -> State {
        self.0.iter().map(Life::state).max().unwrap_or(State::Idle)
    }

    /// How many processes run.
    pub(crate) fn running(&self) -> usize {
        self.0.iter().filter(|life| life.state().runs()).count()
    }

    /// Whether one of the processes has failed, and none runs.
    pub(crate) fn is_failing(&self) -> bool {
        self.running() == 0 && self.0.iter().any(Life::is_failing)
    }

    /// Why a part of the lists is not offered, in a process that runs.
    pub(crate) fn degraded(&self, reader: ReasonReader) -> Option<String> {
        self.0.iter().find_map(|life| life.degraded(reader))
    }

    /// The event that the best of the processes waits for.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let state = self.state();
        self.0.iter().find(|life| life.state() == state)?.waits_for()
    }
}
