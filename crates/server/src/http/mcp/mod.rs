//! The MCP endpoint: POST, and the streams and the end of legacy sessions.

mod batch;
mod body;
mod endpoint;
mod legacy;
mod message;
mod modern;
mod post;
pub(super) mod sse;

pub(super) use self::{
    body::check_content_length,
    endpoint::{METHODS, handle, post_of_person},
};
