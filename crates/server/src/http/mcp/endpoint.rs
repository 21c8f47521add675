//! The MCP endpoint: reads a request and passes it to its protocol era.

use axum::body::Body;
use bytes::Bytes;
use http::{Method, StatusCode};
use larder_oauth::{Identity, audit};
use larder_protocol::quote::shortened;

use super::{
    batch,
    body::{self, BodyError},
    legacy,
    message::{read, respond},
    post::Post,
};
use crate::{
    admission::RequestPermit,
    dispatch::Reader,
    era::{Accepts, Inbound, batch::is_batch},
    http::{
        Endpoint, HttpOptions,
        checks::Admission,
        error::{HttpError, Reply},
        head::Head,
        response::empty,
        route::Incoming,
    },
};

/// The methods of the endpoint.
pub(in crate::http) const METHODS: &str = "GET, POST, DELETE";

/// Handles a request of a caller.
pub(in crate::http) async fn handle(incoming: Incoming, admission: Admission) -> Reply {
    let Incoming { endpoint, head, body } = incoming;
    let Admission { identity, permit } = admission;

    match *head.method() {
        Method::POST => {
            let accepts = head.accepts();
            let received = receive(&endpoint, &head, accepts, body, identity, &permit).await?;
            let (post, body) = received;

            if is_batch(&body)
                && let Some(answered) = batch::answer(&post, &body).await
            {
                return answered;
            }
            let inbound = read(&post, body).await?;
            respond(post, inbound).await
        }
        Method::GET => open_stream(&endpoint, &head, &identity).await,
        Method::DELETE => end(&endpoint, &head, &identity).await,
        ref other => Err(other_method(other)),
    }
}

/// Handles a POST request of a person's page that has one request of 2026-07-28, with one message.
/// No other message has an effect, so that no session begins.
pub(in crate::http) async fn post_of_person(
    endpoint: &Endpoint,
    head: &Head,
    body: Body,
    identity: Identity,
    permit: &RequestPermit,
) -> Reply {
    let accepts = Accepts { message: true, stream: false };
    let (post, body) = receive(endpoint, head, accepts, body, identity, permit).await?;
    let post = Post { reader: Reader::Person, ..post };
    match read(&post, body).await? {
        inbound @ (Inbound::Modern(..) | Inbound::Rejected { .. }) => respond(post, inbound).await,
        _ => Err(HttpError::ModernOnly),
    }
}

/// Receives the body of a POST request.
///
/// # Errors
/// No kind of response is acceptable, or the body is refused.
async fn receive<'a>(
    endpoint: &'a Endpoint,
    head: &'a Head,
    accepts: Accepts,
    body: Body,
    identity: Identity,
    permit: &RequestPermit,
) -> Reply<(Post<'a>, Bytes)> {
    let HttpOptions { body: limits, json_response, .. } = **endpoint.options();

    if !accepts.message && !accepts.stream {
        return Err(HttpError::NotAcceptable);
    }
    if json_response && !accepts.message {
        return Err(HttpError::JsonOnly);
    }

    match body::read(head, body, &limits, permit).await {
        Ok(body) => Ok((Post { endpoint, head, identity, reader: Reader::Model, accepts }, body)),
        Err(BodyError::Http(error)) => Err(error),
        Err(BodyError::Limited(limited)) => {
            audit::refused(&identity, &"a request body", &limited);
            Err(limited.into())
        }
    }
}

/// Handles a GET request: opens or resumes a legacy stream.
async fn open_stream(endpoint: &Endpoint, head: &Head, identity: &Identity) -> Reply {
    reject_modern(head)?;
    if !head.accepts().stream {
        return Err(HttpError::NotAcceptable);
    }

    Ok(legacy::open_stream(endpoint, head, identity).await?)
}

/// Handles a DELETE request: ends a legacy session.
async fn end(endpoint: &Endpoint, head: &Head, identity: &Identity) -> Reply {
    reject_modern(head)?;
    legacy::end(endpoint, head, identity).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Rejects other methods.
fn other_method(method: &Method) -> HttpError {
    HttpError::Method {
        method: shortened(method.as_str()).into_owned(),
        allow: METHODS.to_owned(),
        advice: "Use POST, or GET and DELETE within a session.".to_owned(),
    }
}

/// Rejects GET and DELETE in the modern era (Streamable HTTP: Earlier Streamable HTTP
/// Revisions).
fn reject_modern(head: &Head) -> Reply<()> {
    if !head.is_modern() {
        return Ok(());
    }

    Err(HttpError::Method {
        method: head.method().to_string(),
        allow: "POST".to_owned(),
        advice: "This protocol version uses POST only.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_method_is_not_sent_back() {
        let method = Method::from_bytes(&[b'A'; 5000]).expect("it is a token");
        let error = other_method(&method);

        assert_eq!(error.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert!(error.to_string().len() < 500);
    }
}
