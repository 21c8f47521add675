//! Reads messages, off the runtime's workers if they are large.

use std::sync::Arc;

use bytes::Bytes;
use larder_oauth::Owner;
use larder_protocol::Fault;
use larder_runtime::compute::{Compute, INLINE_BYTES};
use larder_store::store::busy_fault;

use super::{Inbound, MessageContext};
use crate::dispatch::Dispatcher;

/// Why a message is not read.
#[derive(Debug)]
pub enum Unread {
    /// The message has too many JSON values.
    TooManyValues,
    /// The server is busy with others.
    Busy(Fault),
}

impl Inbound {
    /// Reads a message of at most `max_values` JSON values.
    ///
    /// # Errors
    /// Too many values, or too much work that waits.
    pub async fn receive(
        body: Bytes,
        context: MessageContext<'_>,
        max_values: usize,
        owner: &Owner,
        dispatcher: &Arc<Dispatcher>,
    ) -> Result<Self, Unread> {
        // A job of the pool needs copies, so small messages are read here.
        if body.len() <= INLINE_BYTES {
            return Self::read_accepted(&body, context, max_values, dispatcher);
        }

        let dispatcher = Arc::clone(dispatcher);
        let version = context.version.map(str::to_owned);
        let in_session = context.in_session;
        let work = Compute::run(owner.as_str(), body.len(), move || {
            let context = MessageContext { version: version.as_deref(), in_session };
            Self::read_accepted(&body, context, max_values, &dispatcher)
        });

        work.done().await.map_err(|busy| Unread::Busy(busy_fault(busy)))?
    }

    fn read_accepted(
        body: &Bytes,
        context: MessageContext<'_>,
        max_values: usize,
        dispatcher: &Dispatcher,
    ) -> Result<Self, Unread> {
        let is_accepted = dispatcher.accepts_values(body, max_values);
        is_accepted.then(|| Self::read(body, context)).ok_or(Unread::TooManyValues)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use larder_runtime::{
        clock::{Clock, ManualClock},
        random::Random,
    };
    use larder_store::{
        store::{MemoryLimits, Store, StoreLimits},
        task::{MemoryTasks, TaskLimits},
    };

    use crate::{
        admission::{AdmissionLimits, Limits},
        dispatch::DispatchLimits,
        registry::Registry,
    };

    fn dispatcher() -> Arc<Dispatcher> {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let store =
            Store::memory(Arc::clone(&clock), MemoryLimits::default(), StoreLimits::default());
        let tasks = MemoryTasks::new(Arc::clone(&clock), Random::counting(), TaskLimits::default());

        Arc::new(Dispatcher::new(
            Registry::builder("test").build().expect("it builds"),
            store,
            Arc::new(tasks),
            Random::counting(),
            DispatchLimits::default(),
            Limits::new(AdmissionLimits::default(), clock),
        ))
    }

    #[tokio::test]
    async fn a_large_message_is_read_elsewhere_and_a_small_one_at_once() {
        let owner = Owner::new("a");
        let dispatcher = dispatcher();
        // Reading the large message takes far longer than one poll.
        let large = "[0],".repeat(1 << 20);

        for (numbers, is_large) in [("", false), (&*large, true)] {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":[{numbers}0]}}}}"#);
            let context = MessageContext::default();
            let mut read =
                Box::pin(Inbound::receive(body.into(), context, usize::MAX, &owner, &dispatcher));

            let at_once = (&mut read).now_or_never();
            assert_eq!(at_once.is_none(), is_large);

            let read = match at_once {
                Some(read) => read,
                None => read.await,
            };

            assert!(matches!(read, Ok(Inbound::Single(..))), "{is_large}");
        }
    }

    #[tokio::test]
    async fn too_many_values_are_refused() {
        let owner = Owner::new("a");
        let dispatcher = dispatcher();
        let body = Bytes::from_static(b"[0,0,0,0,0,0,0,0]");
        let read = Inbound::receive(body, MessageContext::default(), 2, &owner, &dispatcher);
        assert!(matches!(read.await, Err(Unread::TooManyValues)));
    }
}
