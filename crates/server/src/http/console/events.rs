//! Changes of what the caller has stored, as they happen.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use futures_util::StreamExt;
use http::StatusCode;
use larder_oauth::Identity;
use larder_protocol::{ClientFacts, Fault, Message, parse};
use serde_json::json;

use super::{access::admit, console, origin::is_from_another_site, problem};
use crate::{
    era::{Encoded, Era, Subscription},
    http::{Endpoint, error::fault_response, mcp::sse},
};

/// Follows the list of resources, and those that the query names: `?uri=…`. The stream ends with
/// the session.
pub(super) async fn follow(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    if is_from_another_site(&head.headers) {
        return problem(StatusCode::FORBIDDEN, "This request comes from another site.");
    }

    let caller = match admit(&endpoint, &head).await {
        Ok(caller) => caller,
        Err(response) => return *response,
    };

    let query = head.uri.query().unwrap_or_default();
    let uris: Vec<_> = url::form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| name == "uri")
        .map(|(_, uri)| uri.into_owned())
        .collect();
    let subscription = match subscribe(&endpoint, &caller.identity, &uris).await {
        Ok(subscription) => subscription,
        Err(fault) => return fault_response(None, &fault, Era::Legacy),
    };

    let permit = match endpoint.dispatcher.caller_limits().stream(&caller.identity) {
        Ok(permit) => permit,
        Err(limited) => return fault_response(None, &limited.into(), Era::Legacy),
    };

    let ended = {
        let endpoint = Arc::clone(&endpoint);
        async move {
            match caller.session {
                Some((key, session)) => console(&endpoint).sessions.ended(key, session).await,
                None => std::future::pending().await,
            }
        }
    };

    let messages = subscription.messages().take_until(Box::pin(ended));
    let frames = messages.flat_map(|message| sse::message(Encoded::Complete(message)));
    sse::response(sse::with_permit(frames, permit), &endpoint)
}

async fn subscribe(
    endpoint: &Endpoint,
    identity: &Identity,
    uris: &[String],
) -> Result<Subscription, Fault> {
    let request = json!({
        "jsonrpc": "2.0",
        "id": "console",
        "method": "subscriptions/listen",
        "params": {
            "notifications": { "resourcesListChanged": true, "resourceSubscriptions": uris },
        },
    });

    let Ok(Message::Request(request)) = parse(&request.to_string().into()) else {
        return Err(Fault::invalid_params("The URIs cannot be followed.".to_owned()));
    };

    let (dispatcher, closing) = (&endpoint.dispatcher, endpoint.stages.closing.clone());
    let client = Arc::new(ClientFacts::default());
    Subscription::new(request.id, &request.params, identity, &client, dispatcher, closing).await
}
