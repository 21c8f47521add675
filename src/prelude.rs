//! The items that most servers use: `use larder::prelude::*;`

pub use std::{process::ExitCode, time::Duration};

#[cfg(feature = "macros")]
pub use larder_macros::{prompt, resource, tool};
pub use larder_protocol::uri_template::Variables;
pub use larder_server::{
    handler::{
        Amount, Audio, Context, Elicited, ErrorContext, Image, Json, ResourceError, Result, Stored,
        Structured, ToolError, assistant, user,
    },
    registry::{Resource, Template},
    sources::{DirectoryResource, FileResource},
};
pub use rmcp::{model, model::PromptMessage as Message};
pub use serde_json::{Value, json};

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
