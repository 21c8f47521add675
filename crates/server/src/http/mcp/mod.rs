//! The MCP endpoint: POST, and the streams and the end of legacy sessions.

pub(super) mod accept;
pub(super) mod body;
pub(super) mod endpoint;
mod fast_path;
mod headers;
mod legacy;
mod modern;
mod post;
pub(super) mod sse;

pub use self::fast_path::FastPath;
