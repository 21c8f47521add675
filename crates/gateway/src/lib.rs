//! Other MCP servers behind this one: their tools are offered as they are, and
//! results that are too large for an answer are stored like those of any tool.
//!
//! An [`Upstream`] is a [`Provider`](larder_server::registry::Provider) of the registry.
//! Its `connection` keeps one process of it running and starts it again; a
//! `link` is one running process.

mod account;
mod budget;
mod catalogue;
mod claim;
mod connection;
mod connections;
mod content;
pub mod direct;
mod era;
mod error;
mod exchange;
mod followed;
mod following;
mod guarded;
mod http;
mod link;
mod log_rate;
mod login;
mod memory;
mod message;
mod mirrored;
mod names;
mod parked;
mod process;
mod program;
mod provider;
mod questions;
mod recall;
mod received;
mod remote_session;
mod requests;
mod rewrite;
mod set;
mod settings;
mod shared;
mod start;
mod statistics;
mod status;
mod stderr;
mod subscriptions;
#[cfg(target_os = "linux")]
pub mod supervisor;
mod tasks;
mod token_exchange;
mod wire;

pub use process::supervise_programs;
pub use provider::Upstream;
pub use set::Upstreams;
pub use settings::{
    ClientTls, Command, Inherited, LoginIssuer, OAuth, OAuthClient, Remote, RemoteAuth,
    SessionPolicy, Settings, Target, TokenExchangeSettings, TokenServer, ToolFilter,
};
pub use status::{LastError, State, Status};
