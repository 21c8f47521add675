//! Calls of the page: messages of MCP, with the identity of the session.

use super::{access::admit, login::own_page};
use crate::http::{
    error::Reply,
    mcp::{check_content_length, post_of_person},
    route::Incoming,
    surface::Format,
};

/// One request of 2026-07-28 and its response, as at the MCP endpoint. Always one JSON message:
/// a stream would outlive the end of its session.
pub(in crate::http) async fn call(Incoming { endpoint, head, body }: Incoming) -> Reply {
    own_page(&endpoint, &head)?;
    check_content_length(&endpoint, &head)?;

    let caller = admit(&endpoint, &head).await?;
    let answered = post_of_person(&endpoint, &head, body, caller.identity, &caller.permit).await;
    Ok(answered.unwrap_or_else(|error| Format::JsonRpc.write(&error, false)))
}
