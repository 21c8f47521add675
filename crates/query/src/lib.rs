//! Queries over stored content, SQL by SQLite and jq by jaq; and scripts, JavaScript by QuickJS.
//!
//! The engines run what a caller sends, so each query and each script runs in a process of its
//! own: [`worker`] has no environment, no files, no network and bounded memory
//! and time. Content goes to it block by block through its standard input, when
//! it asks for it. [`Queries`] starts, feeds and ends these processes; [`Scripts`] those of scripts.

mod confinement;
mod error;
mod limits;
mod pool;
mod process;
mod question;
mod script;
mod turns;
mod wire;
pub mod worker;

pub use confinement::{Confinement, ConfinementPolicy};
pub use error::QueryError;
pub use limits::QueryLimits;
pub use pool::Queries;
pub use question::{Answer, Column, Engine, Question, ReadCounts, ResultFormat, Table};
pub use script::{
    HandleOperation, PartRange, Script, ScriptError, ScriptFailure, ScriptHandle, ScriptInput,
    ScriptLimits, ScriptMessage, ScriptOutcome, ScriptRequest, Scripts,
};
