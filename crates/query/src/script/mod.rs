//! Scripts: JavaScript of a caller, each in a worker process of its own that ends with the script.
//!
//! A worker is not trusted. It is confined as the worker of a query is, and its pipe is the only
//! way out: [`ScriptMessage`]s, which [`Script`] counts and bounds before anybody acts on them.

mod accounts;
mod error;
mod limits;
mod message;
mod run;

use self::message::ScriptReply;
pub(crate) use self::message::{MAX_CALL_BYTES, ScriptStart};
pub use self::{
    error::ScriptError,
    limits::ScriptLimits,
    message::{
        HandleOperation, PartRange, ScriptFailure, ScriptHandle, ScriptInput, ScriptMessage,
        ScriptOutcome,
    },
    run::{Script, ScriptRequest, Scripts},
};
