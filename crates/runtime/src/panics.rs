//! Counts panics that are caught, so that operators hear of them.

use metrics::Counter;

use crate::metric::{self, Label};

const NAME: &str = "larder_panics_total";

/// The part of the server in which a panic was caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanicSite {
    /// A handler of the server's author.
    Handler,
    /// The rest of a call.
    Call,
    /// A request outside of calls.
    Request,
    /// A connection to an upstream.
    Upstream,
}

impl PanicSite {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Handler, Self::Call, Self::Request, Self::Upstream];

    /// The value of the label `part`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Handler => "handler",
            Self::Call => "call",
            Self::Request => "request",
            Self::Upstream => "upstream",
        }
    }

    /// Begins its series at 0, so that alerts see a value.
    pub fn describe(self) {
        self.counter().absolute(0);
    }

    /// Counts a panic that was caught there.
    pub fn count(self) {
        self.counter().increment(1);
    }

    fn counter(self) -> Counter {
        metric::counter(NAME, [("part", Label::fixed(self.as_str()))])
    }
}
