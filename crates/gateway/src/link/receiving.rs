//! Which running call a message belongs to while it arrives.

use std::sync::Arc;

use larder_protocol::count_values;
use larder_server::handler::Receiving;

use super::{Link, RunningRequest};
use crate::{
    budget::{Charge, Payer, VALUE_BYTES},
    message::{Calls, line::answered_first},
    settings::SessionPolicy,
};

impl Calls for Link {
    fn charge(&self, request: Option<i64>, head: &[u8]) -> Charge {
        let request = request.or_else(|| answered_first(head));
        self.charge_of(request)
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
        let suits = |call: &RunningRequest| {
            call.receiving().is_some_and(|other| other.is_interchangeable_with(first))
        };
        results.all(suits).then(|| Arc::clone(first))
    }

    fn waits_for(&self, receiving: &Receiving) -> bool {
        let state = self.state.lock();
        state.running.values().any(|call| call.takes(receiving))
    }
}

impl Link {
    /// The payer of a message: the owner of the call that it is for. If that is unknown, the owner
    /// of all calls that run, if they have one.
    pub(super) fn payer(&self, request: Option<i64>) -> Payer {
        let state = self.state.lock();
        let owner = match request {
            Some(id) => state.running.get(&id).and_then(RunningRequest::owner),
            None => {
                let mut owners = state.running.values().filter_map(RunningRequest::owner);
                let first = owners.next();
                first.filter(|first| owners.all(|other| other == *first))
            }
        };
        Payer { owner: owner.cloned(), upstream: Arc::clone(&self.name) }
    }

    /// An empty charge of a message. Where callers share the upstream, it never waits for room: the one
    /// reader of their answers would wait.
    pub(super) fn charge_of(&self, request: Option<i64>) -> Charge {
        let charge = self.budget.charge(self.payer(request));
        if self.settings.session == SessionPolicy::All { charge.at_once() } else { charge }
    }

    /// The charge of a message that is kept until somebody takes it, which counts however short it
    /// is. `None` if there is no room for it.
    pub(super) fn keep(
        &self,
        message: &[u8],
        charge: Charge,
        request: Option<i64>,
    ) -> Option<Charge> {
        if !charge.is_empty() {
            return Some(charge);
        }
        let mut charge = self.charge_of(request);
        let values = count_values(message, self.settings.max_values)?;
        charge.try_cover_all(message.len() + values * VALUE_BYTES).ok()?;
        Some(charge)
    }
}
