//! `/resources?uri=…`: resources of a caller with a bearer token, for scripts.

use http::{StatusCode, header};
use larder_oauth::Grant;
use larder_protocol::quote::quoted;
use larder_store::store::{ResourceUri, StoreError};
use percent_encoding::percent_decode_str;

use super::representation::Representation;
use crate::{
    content_link::{Disposition, file_name},
    http::{
        checks::Admission,
        conditions::{Conditions, entity_tag},
        error::Reply,
        head::Head,
        problem::Problem,
        response::empty,
        route::Incoming,
        upload::{self, Uploader},
    },
};

/// The tool that does the same as DELETE, and whose scopes it needs.
const DELETE_TOOL: &str = "delete_resource";

/// The methods of resources.
const METHODS: &str = "GET, HEAD, PUT, POST, DELETE, OPTIONS";

/// The methods of an upload that can be resumed.
const UPLOAD_METHODS: &str = "HEAD, PATCH, DELETE, OPTIONS";

/// Sends the content of a resource.
pub(in crate::http) async fn read(incoming: Incoming, admission: Admission) -> Reply {
    let Incoming { endpoint, head, .. } = incoming;
    let identity = &admission.identity;

    let Query { uri, revision } = Query::of(&head)?;
    let dispatcher = &endpoint.dispatcher;
    dispatcher.authorize_read(uri.as_str(), identity)?;

    let found = dispatcher.store().read_revision(identity, &uri, revision).await?;
    let file_name = file_name(&found.entry.name);
    let representation =
        Representation { found: &found, wanted: Disposition::Attachment, file_name: &file_name };

    let limits = dispatcher.caller_limits();
    representation.response(&head, || limits.transfer(identity.owner()))
}

/// Stores the body as a resource, or begins an upload that can be resumed.
pub(in crate::http) async fn receive(incoming: Incoming, admission: Admission) -> Reply {
    let Incoming { endpoint, head, body } = incoming;
    upload::receive(&endpoint, &head, body, &Uploader::Caller(&admission.identity)).await
}

/// Removes a resource.
pub(in crate::http) async fn delete(incoming: Incoming, admission: Admission) -> Reply {
    let Incoming { endpoint, head, .. } = incoming;
    let identity = &admission.identity;

    let Query { uri, revision } = Query::of(&head)?;
    if revision.is_some() {
        let detail = "DELETE removes all revisions: leave out revision.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail).into());
    }

    let dispatcher = &endpoint.dispatcher;
    let store = dispatcher.store();
    if !dispatcher.registry().offers(&Grant::All, DELETE_TOOL) {
        let detail = "This server does not let callers delete resources (tools.write).";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail).into());
    }
    dispatcher.authorize_tool(DELETE_TOOL, identity)?;

    let deleted = if head.has(&header::IF_MATCH) {
        let entry = store.get(identity.owner(), &uri).await?.entry;
        let holds = Conditions::of(&head).matches(&entity_tag(&entry));
        if !holds || !store.delete_unchanged(&entry).await? {
            let detail = "The resource has changed since: nothing was deleted.";
            return Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail).into());
        }
        true
    } else {
        store.delete(identity.owner(), &uri).await?
    };

    if deleted {
        Ok(empty(StatusCode::NO_CONTENT))
    } else {
        Err(StoreError::NotFound { uri }.into())
    }
}

/// Says what uploads are limited to.
pub(in crate::http) async fn options(incoming: Incoming, _: Admission) -> Reply {
    Ok(upload::options(&incoming.endpoint, METHODS))
}

/// Says how much of an upload has arrived.
pub(in crate::http) async fn upload_status(incoming: Incoming, admission: Admission) -> Reply {
    let id = incoming.segment_from_end(0);
    let Incoming { endpoint, head, .. } = incoming;
    upload::status(&endpoint, &head, &Uploader::Caller(&admission.identity), &id).await
}

/// Appends a part to an upload.
pub(in crate::http) async fn append(incoming: Incoming, admission: Admission) -> Reply {
    let id = incoming.segment_from_end(0);
    let Incoming { endpoint, head, body } = incoming;
    upload::append(&endpoint, &head, body, &Uploader::Caller(&admission.identity), &id).await
}

/// Removes an upload.
pub(in crate::http) async fn cancel(incoming: Incoming, admission: Admission) -> Reply {
    let id = incoming.segment_from_end(0);
    let Incoming { endpoint, head, .. } = incoming;
    upload::cancel(&endpoint, &head, &Uploader::Caller(&admission.identity), &id).await
}

/// Says what a part of an upload is limited to.
pub(in crate::http) async fn upload_options(incoming: Incoming, _: Admission) -> Reply {
    Ok(upload::options(&incoming.endpoint, UPLOAD_METHODS))
}

/// The parameters of a request.
#[derive(Debug)]
struct Query {
    uri: ResourceUri,
    revision: Option<u64>,
}

impl Query {
    /// A `+` is not a space here: URIs have none.
    fn of(head: &Head) -> Result<Self, Problem> {
        let problem = |detail: String| Problem::new(StatusCode::BAD_REQUEST, detail);
        let mut uri = None;
        let mut revision = None;
        let pairs = head.query().split('&');

        for (name, value) in pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
            let value = percent_decode_str(value).decode_utf8_lossy();
            let is_first = match name {
                "uri" => uri.replace(value).is_none(),
                "revision" => revision.replace(value).is_none(),
                "" => true,
                other => {
                    return Err(problem(format!(
                        "Unknown parameter {}. Percent-encode the URI: curl -G --data-urlencode 'uri=…'.",
                        quoted(other)
                    )));
                }
            };

            if !is_first {
                return Err(problem(format!("The parameter {name} is given twice.")));
            }
        }

        let missing = || problem("The parameter uri is missing: /resources?uri=….".into());
        let uri = ResourceUri::parse(&uri.ok_or_else(missing)?).map_err(StoreError::from)?;
        let revision = revision.map(|text| {
            text.parse().map_err(|_| problem(format!("{} is no revision.", quoted(&text))))
        });

        Ok(Self { uri, revision: revision.transpose()? })
    }
}
