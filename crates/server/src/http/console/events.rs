//! Changes of what the caller has stored, as they happen.

use std::sync::Arc;

use futures_util::StreamExt;
use http::StatusCode;
use larder_oauth::Identity;
use larder_protocol::{ClientFacts, Fault, Message, parse};
use serde_json::json;

use super::{access::admit, console, problem};
use crate::{
    era::{Encoded, Subscription},
    http::{Endpoint, error::Reply, mcp::sse, route::Incoming},
};

/// Follows the list of resources, and those that the query names: `?uri=…`. The stream ends with
/// the session.
pub(in crate::http) async fn follow(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    if head.is_from_another_site() {
        return Err(problem(StatusCode::FORBIDDEN, "This request comes from another site."));
    }

    let caller = admit(&endpoint, &head).await?;
    let uris: Vec<_> = url::form_urlencoded::parse(head.query().as_bytes())
        .filter(|(name, _)| name == "uri")
        .map(|(_, uri)| uri.into_owned())
        .collect();
    let subscription = subscribe(&endpoint, &caller.identity, &uris).await?;
    let permit = endpoint.dispatcher.caller_limits().stream(&caller.identity)?;

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
    Ok(sse::response(sse::with_permit(frames, permit), &endpoint))
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

    let dispatcher = &endpoint.dispatcher;
    let closing = endpoint.stages.closing.clone();
    let client = Arc::new(ClientFacts::default());
    Subscription::new(request.id, &request.params, identity, &client, dispatcher, closing).await
}
