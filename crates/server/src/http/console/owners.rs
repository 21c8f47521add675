//! What operators see of the owners of the store, and how they delete what one has stored.

use std::{collections::HashSet, sync::Arc, time::Duration};

use axum::{
    body::to_bytes,
    extract::{RawQuery, Request, State},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use larder_oauth::{Owner, audit};
use larder_store::store::{Store, StoreError, Usage};
use serde_json::{Value, json};

use super::{console, login::own_page, operator::admit_operator, problem};
use crate::http::{
    Endpoint,
    error::{HttpError, json_response},
};

/// How many owners a page has, about.
const PAGE: usize = 50;

/// How many pages of the store are read for one of the console, because the resources of listed
/// owners may be gone.
const MAX_READS: usize = 8;

/// How many owners' usage is read at once.
const AT_ONCE: usize = 8;

/// The most bytes of the form of a purge.
const FORM_BYTES: usize = 16 << 10;
const FORM_TIME: Duration = Duration::from_secs(10);

/// A page of the owners who have stored something, with their use and the quota. The query `after`
/// is `next` of the page before.
pub(super) async fn list(
    State(endpoint): State<Arc<Endpoint>>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let (head, _) = request.into_parts();
    let _caller = match admit_operator(&endpoint, &head).await {
        Ok(caller) => caller,
        Err(response) => return *response,
    };

    let mut fields = url::form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let after = fields.find(|(name, _)| name == "after").map(|(_, after)| after.into_owned());

    match page(endpoint.dispatcher.store(), after).await {
        Ok(page) => json_response(StatusCode::OK, page.to_string().into()),
        Err(error) => unavailable(&error),
    }
}

async fn page(store: &Store, mut after: Option<String>) -> Result<Value, StoreError> {
    let (mut owners, mut seen) = (Vec::new(), HashSet::new());

    for _ in 0..MAX_READS {
        let mut read = store.owners(after.as_deref(), PAGE).await?;
        // A page of the store may have an owner twice.
        read.owners.retain(|owner| seen.insert(owner.clone()));

        let with_usage = stream::iter(read.owners).map(|owner| {
            let store = store.clone();
            async move {
                let usage = store.usage_of(&owner).await?;
                Ok::<_, StoreError>((owner, usage))
            }
        });
        let found: Vec<(Owner, Usage)> = with_usage.buffered(AT_ONCE).try_collect().await?;
        owners.extend(found.into_iter().filter(|(_, usage)| usage.resources > 0).map(
            |(owner, Usage { resources, bytes, .. })| {
                json!({ "owner": owner.as_str(), "resources": resources, "bytes": bytes })
            },
        ));

        after = read.next;
        if after.is_none() || owners.len() >= PAGE {
            break;
        }
    }

    let (total, quota) = (store.usage().await?, store.quota());
    Ok(json!({
        "owners": owners,
        "next": after,
        // The quota also counts uploads in progress and sessions.
        "total": { "resources": total.resources, "bytes": total.bytes + total.reserved },
        "quota": { "resources": quota.resources, "bytes": quota.bytes },
    }))
}

/// Deletes all that the `owner` of a form has stored. It continues when the browser goes away; one
/// runs at a time.
pub(super) async fn purge(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if let Err(response) = own_page(&endpoint, &head) {
        return *response;
    }

    let caller = match admit_operator(&endpoint, &head).await {
        Ok(caller) => caller,
        Err(response) => return *response,
    };

    let form = tokio::time::timeout(FORM_TIME, to_bytes(body, FORM_BYTES)).await;
    let Ok(Ok(form)) = form else { return HttpError::Incomplete.into_response() };

    let mut fields = url::form_urlencoded::parse(&form);
    let owner = fields.find(|(name, _)| name == "owner").map(|(_, owner)| owner.into_owned());
    let Some(owner) = owner.filter(|owner| !owner.is_empty()) else {
        return problem(StatusCode::BAD_REQUEST, "The form names no owner.");
    };

    let Ok(turn) = Arc::clone(&console(&endpoint).purging).try_acquire_owned() else {
        let text = "Another owner's resources are being deleted. Try again when that is done.";
        return problem(StatusCode::CONFLICT, text);
    };

    let (store, operator) = (endpoint.dispatcher.store().clone(), caller.identity.clone());
    let purge = tokio::spawn(async move {
        let owner = Owner::new(owner);
        let deleted = store.purge(&owner).await;
        audit::purged(operator.principal(), &owner, &deleted);
        drop(turn);
        deleted
    });

    match purge.await {
        Ok(Ok(deleted)) => {
            json_response(StatusCode::OK, json!({ "deleted": deleted }).to_string().into())
        }
        Ok(Err(error)) => unavailable(&error),
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "Internal error. Try again."),
    }
}

fn unavailable(error: &StoreError) -> Response {
    tracing::error!(%error, "the owners of the store cannot be read or purged");
    problem(StatusCode::SERVICE_UNAVAILABLE, "The store is not available now. Try again shortly.")
}
