//! What Larder keeps: stored resources, sessions, tasks and identities, in memory, files, Redis and
//! S3, and what they are made of. No MCP server is in here: the crate `larder` has that, and exports
//! the modules of this one as its own. It is a crate of its own so that both halves compile at once,
//! and so that a change of the server compiles only the server.
//!
//! Modules that `larder` does not export are hidden, and may change at any time.

// A build with few features leaves parts without a user, and functions with less to do.
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
