//! What most servers use: `use larder::prelude::*;`

pub use std::{process::ExitCode, time::Duration};

pub use crate::{
    Audio, Context, DirectoryResource, Elicited, ErrorContext, FileResource, Image, Json, Resource,
    ResourceError, Result, Stored, Structured, Template, ToolError, Value, Variables, assistant,
    handler::Amount, json, model, model::PromptMessage as Message, user,
};
#[cfg(feature = "macros")]
pub use crate::{prompt, resource, tool};

/// This many days.
pub const fn days(count: u64) -> Duration {
    hours(24 * count)
}

/// This many hours.
pub const fn hours(count: u64) -> Duration {
    minutes(60 * count)
}

/// This many minutes.
pub const fn minutes(count: u64) -> Duration {
    seconds(60 * count)
}

/// This many seconds.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
