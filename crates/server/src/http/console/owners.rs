//! The owners of the store as operators see them, and the deletion of what one has stored.

use std::{collections::HashSet, sync::Arc, time::Duration};

use axum::body::to_bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use larder_oauth::{Owner, audit};
use larder_store::store::{Store, StoreError, Usage};
use serde_json::{Value, json};

use super::{console, login::own_page, operator::admit_operator, problem};
use crate::{
    dispatch::Callers,
    http::{
        error::{HttpError, Reply},
        head::field,
        response::value_response,
        route::Incoming,
    },
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
pub(in crate::http) async fn list(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let _caller = admit_operator(&endpoint, &head).await?;
    let dispatcher = &endpoint.dispatcher;
    let page = page(dispatcher.store(), dispatcher.traffic().callers(), head.parameter("after"));
    Ok(value_response(StatusCode::OK, &page.await.map_err(unavailable)?))
}

async fn page(
    store: &Store,
    callers: &Callers,
    mut after: Option<String>,
) -> Result<Value, StoreError> {
    let mut owners = Vec::new();
    let mut seen = HashSet::new();

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
                let name = callers.name(&owner);
                json!({
                    "owner": owner.as_str(), "name": name, "resources": resources, "bytes": bytes,
                })
            },
        ));

        after = read.next;
        if after.is_none() || owners.len() >= PAGE {
            break;
        }
    }

    let total = store.usage().await?;
    let quota = store.quota();
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
pub(in crate::http) async fn purge(Incoming { endpoint, head, body }: Incoming) -> Reply {
    own_page(&endpoint, &head)?;
    let caller = admit_operator(&endpoint, &head).await?;

    let form = tokio::time::timeout(FORM_TIME, to_bytes(body, FORM_BYTES)).await;
    let Ok(Ok(form)) = form else { return Err(HttpError::Incomplete) };

    let owner = field(&form, "owner").filter(|owner| !owner.is_empty());
    let owner =
        owner.ok_or_else(|| problem(StatusCode::BAD_REQUEST, "The form names no owner."))?;

    let turn = Arc::clone(&console(&endpoint).purging).try_acquire_owned().map_err(|_| {
        let text = "Another owner's resources are being deleted. Try again when that is done.";
        problem(StatusCode::CONFLICT, text)
    })?;

    let store = endpoint.dispatcher.store().clone();
    let operator = caller.identity.clone();
    let purge = tokio::spawn(async move {
        let owner = Owner::new(owner);
        let deleted = store.purge(&owner).await;
        audit::purged(operator.principal(), &owner, &deleted);
        drop(turn);
        deleted
    });

    let purged = purge
        .await
        .map_err(|_| problem(StatusCode::INTERNAL_SERVER_ERROR, "Internal error. Try again."))?;
    let deleted = purged.map_err(unavailable)?;
    Ok(value_response(StatusCode::OK, &json!({ "deleted": deleted })))
}

#[allow(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn unavailable(error: StoreError) -> HttpError {
    tracing::error!(%error, "the owners of the store cannot be read or purged");
    problem(StatusCode::SERVICE_UNAVAILABLE, "The store is not available now. Try again shortly.")
}
