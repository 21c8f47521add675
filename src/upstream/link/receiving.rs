//! Which running call a message belongs to while it arrives.

use std::sync::Arc;

use super::{Expects, Link, Running};
use crate::{
    handler::Receiving,
    upstream::{
        budget::Charge,
        message::{Calls, line::answered_first},
    },
};

impl Calls for Link {
    fn charge(&self) -> Charge {
        self.budget.charge()
    }

    /// Many servers write the id after the result. Then the message may be for any call that
    /// runs, so its texts are stored only if all these calls are of one caller and one tool, or all read resources.
    fn receiving(&self, request: Option<i64>, head: &[u8]) -> Option<Arc<Receiving>> {
        let state = self.state.lock();
        if let Some(id) = request.or_else(|| answered_first(head)) {
            return state.running.get(&id)?.receiving().cloned();
        }
        let mut results = state.running.values().filter(|call| call.expects_texts());
        let first = results.next()?.receiving()?;
        let suits = |call: &Running| {
            call.receiving().is_some_and(|other| other.is_interchangeable_with(first))
        };
        results.all(suits).then(|| Arc::clone(first))
    }

    fn waits_for(&self, receiving: &Receiving) -> bool {
        let state = self.state.lock();
        state.running.values().any(|call| call.takes(receiving))
    }
}

impl Running {
    fn expects_texts(&self) -> bool {
        matches!(self.expects, Expects::Texts(_))
    }

    fn receiving(&self) -> Option<&Arc<Receiving>> {
        match &self.expects {
            Expects::Texts(receiving) => receiving.as_ref(),
            Expects::Other => None,
        }
    }

    /// Whether it can be given what is received so.
    pub(super) fn takes(&self, receiving: &Receiving) -> bool {
        self.receiving().is_some_and(|own| own.is_interchangeable_with(receiving))
    }
}
