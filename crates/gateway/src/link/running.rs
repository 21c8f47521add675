//! [`RunningRequest`]: a request that waits for its answer.

use std::sync::Arc;

use larder_oauth::{Identity, Owner};
use larder_server::handler::Receiving;
use tokio::sync::{mpsc, oneshot};

use super::{Answered, CallEvent};
use crate::error::UpstreamError;

/// A request that waits for its answer.
pub(super) struct RunningRequest {
    pub(super) reply: oneshot::Sender<Result<Answered, UpstreamError>>,
    pub(super) events: mpsc::Sender<CallEvent>,
    /// The caller of the request; `None` for requests of Larder's own.
    pub(super) caller: Option<Identity>,
    expects: ExpectedAnswer,
    /// Whether it waits for its client's next round: nobody can be told its progress.
    pub(super) is_parked: bool,
    /// Why a message where the answer is expected was not the answer.
    pub(super) problem: Option<String>,
}

/// The kind of result that a request expects.
pub(crate) enum ExpectedAnswer {
    /// A tool's result or the contents of a resource, whose long texts may be stored while they
    /// arrive.
    Texts(Option<Arc<Receiving>>),
    Other,
}

impl RunningRequest {
    pub(super) fn new(
        reply: oneshot::Sender<Result<Answered, UpstreamError>>,
        events: mpsc::Sender<CallEvent>,
        caller: Option<Identity>,
        expects: ExpectedAnswer,
    ) -> Self {
        Self { reply, events, caller, expects, is_parked: false, problem: None }
    }

    pub(super) fn owner(&self) -> Option<&Owner> {
        self.caller.as_ref().map(Identity::owner)
    }

    pub(super) fn expects_texts(&self) -> bool {
        matches!(self.expects, ExpectedAnswer::Texts(_))
    }

    pub(super) fn receiving(&self) -> Option<&Arc<Receiving>> {
        match &self.expects {
            ExpectedAnswer::Texts(receiving) => receiving.as_ref(),
            ExpectedAnswer::Other => None,
        }
    }

    /// Whether it can be given what is received so.
    pub(super) fn takes(&self, receiving: &Receiving) -> bool {
        self.receiving().is_some_and(|own| own.is_interchangeable_with(receiving))
    }
}
