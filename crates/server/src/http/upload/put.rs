//! Stores the body of a request as a resource.

use std::{io, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, StatusCode};
use larder_oauth::Owner;
use larder_store::store::{Content, Details, Entry, Reserves, ResourceUri, Store};
use tracing::Instrument;

use super::{
    access::{check_size, minted, permit},
    announced::{Announced, check_no_range},
    dialect::Dialect,
    parameters::Parameters,
    received::{BodyProblem, Received, not_stored},
    resumable,
    stored::response,
    uploader::Uploader,
};
use crate::http::{
    Endpoint,
    conditions::{Conditions, Precondition, entity_tag},
    error::Reply,
    head::Head,
    problem::Problem,
};

/// Handles PUT and POST: creates the resource, or replaces it. A POST may begin an upload that can
/// be resumed.
pub(in crate::http) async fn receive(
    endpoint: &Endpoint,
    head: &Head,
    body: Body,
    uploader: &Uploader<'_>,
) -> Reply {
    uploader.authorize(endpoint)?;
    check_no_range(head)?;

    let parameters = uploader.parameters(head)?;
    if parameters.uri.is_none() && head.method() != Method::POST {
        let detail =
            "The parameter uri is missing: PUT /resources?uri=…. With POST the server makes a URI.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail).into());
    }

    if let Some(dialect) = Dialect::of_creation(head)? {
        return resumable::begin(endpoint, head, body, uploader, parameters, dialect).await;
    }

    let entry = store(endpoint, head, body, uploader, parameters).await?;
    endpoint.dispatcher.traffic().add_sent(entry.size);
    Ok(response(&entry, head))
}

/// Stores the body of a request as a resource.
async fn store(
    endpoint: &Endpoint,
    head: &Head,
    body: Body,
    uploader: &Uploader<'_>,
    parameters: Parameters,
) -> Reply<Arc<Entry>> {
    let Parameters { uri, details, is_binary } = parameters;
    let uri = uri.map_or_else(|| minted(endpoint), Ok)?;
    let announced = uploader.announced(Announced::of(head)?)?;

    let options = endpoint.options();
    let max = options.upload_bytes;
    check_size(announced.expected.size, max)?;
    let store = endpoint.dispatcher.store().clone();
    let owner = uploader.owner().clone();
    let permit = permit(endpoint, &owner)?;

    let condition = Condition {
        store: store.clone(),
        owner: owner.clone(),
        uri: uri.clone(),
        conditions: Conditions::of(head),
    };
    condition.check().await?;

    let received = Received::new(body, max, &options.body).into_stream();
    let claim = uploader.claim(&endpoint.random.id());
    let claimed = claim.clone();

    // The condition is checked once more when the content has arrived, which may take long.
    let checked = stream::once(async move {
        condition.check().await.map_err(io::Error::other)?;
        claimed.acquire().await.map_err(io::Error::other)?;
        Ok(Bytes::new())
    });
    let received = received.chain(checked);

    let content = if announced.may_be_text() && !is_binary {
        Content::text_or_bytes(received)
    } else {
        Content::byte_stream(received)
    };

    let details = Details { mime_type: announced.mime_type, ..details };
    let content = match uploader.reserves() {
        Reserves::Announced => content.expecting(announced.expected),
        Reserves::Arrived => content.expecting(announced.expected).counted_as_it_arrives(),
    };

    let storing = async move {
        let _permit = permit;
        let stored = claim.during(store.create(&owner, uri, content, details)).await;
        match &stored {
            Ok(_) => claim.stored(&store).await,
            Err(_) => claim.release().await,
        }
        stored
    };

    // The task continues if the client disconnects, so that no claim stays behind.
    let stored = tokio::spawn(storing.in_current_span()).await.map_err(|error| {
        tracing::error!(%error, "an upload ended");
        Problem::from(BodyProblem::Incomplete)
    })?;

    Ok(stored.map_err(not_stored)?)
}

/// The preconditions of a request (RFC 9110, 13).
struct Condition {
    store: Store,
    owner: Owner,
    uri: ResourceUri,
    conditions: Conditions,
}

impl Condition {
    async fn check(&self) -> Result<(), Problem> {
        if self.conditions.is_empty() {
            return Ok(());
        }

        let holds = match self.store.get(&self.owner, &self.uri).await {
            Ok(found) => self.conditions.check(&entity_tag(&found.entry)) == Precondition::Holds,
            Err(error) if error.is_not_found() => !self.conditions.has_match(),
            Err(error) => return Err(error.into()),
        };

        if holds {
            return Ok(());
        }
        let detail = "If-Match or If-None-Match does not hold: nothing was stored.";
        Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail))
    }
}
