//! Messages of the Model Context Protocol: JSON-RPC envelopes, protocol versions, methods, faults
//! and notifications, URI templates, JSON Schemas, and text of callers in messages. Has no I/O, so
//! every layer can use it independently of the transport.

mod apps;
mod client;
mod envelope;
pub mod exact;
mod fault;
mod json_digest;
mod log_level;
mod members;
mod meta;
mod method;
pub mod near;
mod other_members;
mod outgoing;
mod params;
pub mod quote;
pub mod schema;
mod size;
mod torn;
mod unescape;
pub mod uri_template;
mod version;

pub use apps::{APP_MIME_TYPE, APPS_EXTENSION, APPS_META, APPS_SCHEME};
pub use client::ClientFacts;
pub use envelope::tool_call;
pub use envelope::{ErrorResponse, Message, Request, parse};
pub use fault::Fault;
pub use json_digest::JsonDigest;
pub use log_level::LogLevel;
pub use meta::{Meta, SERVER_INFO, SUBSCRIPTION_ID, Trace, passed_on_meta};
pub use method::Method;
pub use other_members::{OtherMembers, Shape};
pub use outgoing::{Announcement, Outgoing, updated_resource};
pub use params::describe;
pub use params::{Member, Params};
pub use rmcp::model::{ProgressToken, RequestId};
pub use size::count_values;
pub use size::{has_at_most_values, json_size};
pub use size::{json_exceeds, size_up_to};
pub use torn::consecutive;
pub use unescape::Unescape;
pub use version::ProtocolVersion;
