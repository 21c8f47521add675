//! [`Parked`]: calls that wait for their client's next round. They live in this process.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use larder_oauth::Owner;
use larder_runtime::random::Random;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio_util::task::AbortOnDropHandle;

use super::{connections::InUse, error::UpstreamError, exchange::Exchange, settings::Settings};

/// The calls of one upstream that wait for their client's next round.
pub(super) struct Parked {
    settings: Arc<Settings>,
    /// Names this process, in tickets.
    instance: OnceLock<String>,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    calls: HashMap<String, ParkedCall>,
    /// How many calls each caller has.
    counts: HashMap<Owner, usize>,
}

struct ParkedCall {
    owner: Owner,
    exchange: Exchange,
    /// Keeps the process running.
    in_use: InUse,
    /// Ends the call when nobody answers.
    _expiry: AbortOnDropHandle<()>,
}

/// By which the next round finds its call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ticket {
    instance: String,
    call: String,
}

impl Parked {
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        Self { settings, instance: OnceLock::new(), table: Arc::default() }
    }

    /// Keeps a call until its client's next round, for a while.
    ///
    /// # Errors
    /// Too many calls wait. The call is cancelled.
    pub(super) fn insert(
        &self,
        exchange: Exchange,
        in_use: InUse,
        owner: &Owner,
        random: &Random,
    ) -> Result<Ticket, UpstreamError> {
        let call = random.id();
        let expiry = {
            let table = Arc::downgrade(&self.table);
            let call = call.clone();
            let timeout = self.settings.answer_timeout;
            async move {
                tokio::time::sleep(timeout).await;
                let expired = table.upgrade().and_then(|table| table.lock().remove(&call));
                drop(expired.map(ParkedCall::into_parts));
            }
        };

        let mut table = self.table.lock();
        let count = table.counts.get(owner).copied();
        let settings = &self.settings;
        for (count, max, setting) in [
            (
                count.unwrap_or_default(),
                settings.max_parked_per_caller,
                "upstreams.max_parked_per_caller",
            ),
            (table.calls.len(), settings.max_parked, "upstreams.max_parked"),
        ] {
            if count >= max {
                drop(table);
                let name = settings.name.as_str().into();
                return Err(UpstreamError::TooManyParked { name, max, setting });
            }
        }

        exchange.park();
        *table.counts.entry(owner.clone()).or_default() += 1;
        let expiry = AbortOnDropHandle::new(tokio::spawn(expiry));
        let owner = owner.clone();
        let parked = ParkedCall { owner, exchange, in_use, _expiry: expiry };
        table.calls.insert(call.clone(), parked);
        drop(table);

        Ok(Ticket { instance: self.instance.get_or_init(|| random.id()).clone(), call })
    }

    /// Takes a call of that caller.
    pub(super) fn take(
        &self,
        ticket: &Ticket,
        owner: &Owner,
    ) -> Result<(Exchange, InUse), UpstreamError> {
        let name = || self.settings.name.as_str().into();
        if self.instance.get() != Some(&ticket.instance) {
            return Err(UpstreamError::Elsewhere { name: name() });
        }

        let mut table = self.table.lock();
        let is_theirs = table.calls.get(&ticket.call).is_some_and(|call| call.owner == *owner);
        let taken = if is_theirs { table.remove(&ticket.call) } else { None };
        drop(table);

        let after = self.settings.answer_timeout;
        taken
            .map(ParkedCall::into_parts)
            .ok_or_else(|| UpstreamError::NoLongerWaits { name: name(), after })
    }

    /// Ends all calls.
    pub(super) fn clear(&self) {
        let ended = std::mem::take(&mut *self.table.lock());
        drop(ended);
    }
}

impl ParkedCall {
    fn into_parts(self) -> (Exchange, InUse) {
        (self.exchange, self.in_use)
    }
}

impl Table {
    fn remove(&mut self, call: &str) -> Option<ParkedCall> {
        let removed = self.calls.remove(call)?;
        if let Some(count) = self.counts.get_mut(&removed.owner) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&removed.owner);
            }
        }
        Some(removed)
    }
}
