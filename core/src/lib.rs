//! The storage half of Larder: resources, sessions, tasks and identities, kept in memory, files,
//! Redis or S3, and the formats that they use. The crate `larder` has the MCP server, and exports the
//! modules of this crate as its own. Two crates compile in parallel, and a change of the server
//! compiles only the server.
//!
//! Modules that `larder` does not export are hidden, and may change at any time.

// Builds with few features leave some items unused, and some functions with less to do.
#![cfg_attr(
    not(all(feature = "console", feature = "login", feature = "redis", feature = "upstream")),
    allow(
        dead_code,
        unreachable_pub,
        clippy::needless_pass_by_value,
        clippy::unnecessary_wraps,
        clippy::unused_async,
        clippy::unused_self
    )
)]

pub mod admission;
pub mod auth;
pub mod clock;
#[doc(hidden)]
pub mod compute;
#[doc(hidden)]
pub mod environment;
#[doc(hidden)]
pub mod hex;
#[doc(hidden)]
pub mod histograms;
#[doc(hidden)]
pub mod in_flight;
#[doc(hidden)]
pub mod in_span;
#[doc(hidden)]
pub mod key_ring;
#[doc(hidden)]
pub mod metric;
#[doc(hidden)]
pub mod network;
#[doc(hidden)]
pub mod panics;
pub mod preview;
pub mod protocol;
#[doc(hidden)]
pub mod quote;
pub mod random;
pub mod records;
#[cfg(feature = "redis")]
pub mod redis;
#[doc(hidden)]
pub mod schema;
pub mod session;
pub mod store;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transfer;
pub mod uri_template;
#[cfg(any(feature = "http", feature = "login", feature = "upstream"))]
pub mod vault;
