//! One message: read, and passed to its protocol era.

use bytes::Bytes;
use http::StatusCode;

use super::{legacy, modern, post::Post};
use crate::{
    era::{Era, Inbound, MessageContext, Unread},
    http::{
        error::{HttpError, Reply},
        response::empty,
    },
};

/// Reads a message.
///
/// # Errors
/// The message has too many values, or cannot be read now.
pub(super) async fn read(post: &Post<'_>, message: Bytes) -> Reply<Inbound> {
    let Post { endpoint, head, identity, .. } = post;
    let max_values = endpoint.options().body.values;
    let context = MessageContext { version: head.version(), in_session: head.session().is_some() };

    let read =
        Inbound::receive(message, context, max_values, identity.owner(), &endpoint.dispatcher);
    read.await.map_err(|unread| match unread {
        Unread::TooManyValues => HttpError::TooManyValues(max_values),
        Unread::Busy(fault) => fault.into(),
    })
}

/// Handles a message.
pub(super) async fn respond(post: Post<'_>, inbound: Inbound) -> Reply {
    match inbound {
        Inbound::Modern(request, meta) => {
            let id = request.id.clone();
            let answered = modern::answer(post, request, meta).await;
            answered.map_err(|error| error.answering(id, Era::Modern))
        }
        Inbound::Initialize(request) => {
            let id = request.id.clone();
            let answered = Box::pin(legacy::initialize(post, request)).await;
            answered.map_err(|fault| HttpError::from(fault).answering(id, Era::Legacy))
        }
        Inbound::Single(request, meta) => {
            let id = request.id.clone();
            let answered = legacy::single(post, request, meta).await;
            answered.map_err(|fault| HttpError::from(fault).answering(id, Era::Legacy))
        }
        Inbound::InSession(request, meta) => {
            let id = request.id.clone();
            let answered = legacy::in_session(post, request, meta).await;
            answered.map_err(|fault| HttpError::from(fault).answering(id, Era::Legacy))
        }

        Inbound::Notification { method, params } => {
            Box::pin(legacy::notification(&post, &method, &params)).await?;
            Ok(empty(StatusCode::ACCEPTED))
        }
        Inbound::Response { id, outcome } => {
            Box::pin(legacy::response(&post, id, outcome)).await?;
            Ok(empty(StatusCode::ACCEPTED))
        }

        Inbound::Ignored => Ok(empty(StatusCode::ACCEPTED)),
        Inbound::Rejected { id, fault, era } => Err(HttpError::Fault { id, fault, era }),
    }
}
