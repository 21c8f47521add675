//! Requests to the client: forms, URLs to open, sampling, roots.
//!
//! The API is the same in both protocol eras. In the legacy era the request is
//! sent on the call's stream, and the response is routed back to the call. In
//! the modern era the call returns `input_required`, and **the handler runs
//! again from its start** when the client retries; requests that have a
//! response already return at once (2026-07-28, patterns: Multi Round-Trip
//! Requests). So code before the first request can run more than once, and each
//! request needs a unique key that is the same in every run.

mod capability;
mod elicit;
pub(crate) mod form;
mod forward;
mod request;
mod roots;
mod sampling;

pub use elicit::Elicited;
pub use forward::can_be_asked;
pub use request::AskError;
pub(crate) use roots::below_root;
pub use roots::{Root, within_roots};
pub use sampling::{Sampled, Sampling};
