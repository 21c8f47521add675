//! Uploads that continue after a lost connection: they begin at `/resources`, and have a path of
//! their own from then on.

use axum::{
    body::{Body, HttpBody},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header, request::Parts};
use tracing::Instrument;

use super::{
    super::{
        Endpoint, UPLOADS_PATH,
        problem::{Problem, Refused},
    },
    access,
    announced::{Announced, bad, text},
    dialect::{self, Dialect},
    feed::{append_all, refused},
    parameters::Parameters,
    received::{BodyProblem, Received},
    stored,
};
use crate::{
    admission::Permit,
    auth::Identity,
    store::{PartialUpload, StoreError, UploadTarget},
};

/// From the path of an upload to the root.
const ROOT: &str = "../../";

/// The longest ID of an upload.
const MAX_ID_BYTES: usize = 64;

/// Handles the request that begins an upload.
pub(super) async fn begin(
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
    identity: &Identity,
    mut parameters: Parameters,
    dialect: Dialect,
) -> Result<Response, Refused> {
    let (headers, options) = (&head.headers, endpoint.options());
    let size = dialect::length(headers)?;
    let announced = match dialect {
        Dialect::Ietf => Announced::of(headers)?,
        Dialect::Tus if size.is_none() => {
            return Err(bad("The header Upload-Length is missing.".into()).into());
        }
        Dialect::Tus => tus_metadata(head, &mut parameters)?,
    };
    access::check_size(size, options.upload_bytes)?;
    let permit = access::permit(endpoint, identity)?;
    let Parameters { uri, details, is_binary } = parameters;
    let target = UploadTarget {
        uri: uri.map_or_else(|| access::minted(endpoint), Ok)?,
        name: details.name,
        title: details.title,
        description: details.description,
        may_be_text: announced.may_be_text() && !is_binary,
        mime_type: announced.mime_type,
        ttl: details.ttl,
        sha256: announced.expected.sha256,
    };
    let (id, store) = (endpoint.random.id(), endpoint.dispatcher.store());
    let begun = store.begin_upload(identity.owner(), &id, target, size, options.upload_ttl);
    let upload = begun.await?;
    let max = upload.size().unwrap_or(options.upload_bytes);
    let (mut upload, received) = receive(endpoint, upload, body, max, permit).await;
    received?;
    if dialect == Dialect::Tus && upload.size() == Some(upload.offset()) {
        upload.store().await.map_err(refused)?;
    }
    let mut response = StatusCode::CREATED.into_response();
    // Relative, because a proxy may add a prefix to all paths.
    let location = format!("{}/{id}", UPLOADS_PATH.trim_start_matches('/'));
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(described(endpoint, response, &upload, dialect))
}

/// What tus says of the content, which has no headers of its own.
fn tus_metadata(head: &Parts, parameters: &mut Parameters) -> Result<Announced, Problem> {
    let mut announced = Announced::default();
    for (key, value) in dialect::metadata(&head.headers)? {
        match &*key {
            "filetype" if value.contains('/') => announced.mime_type = Some(value),
            "filename" | "name" if parameters.details.name.is_none() => {
                parameters.set("name", &value)?;
            }
            "uri" if parameters.uri.is_none() => parameters.set("uri", &value)?,
            "ttl" if parameters.details.ttl.is_none() => parameters.set("ttl", &value)?,
            // Clients may add metadata of their own.
            _ => {}
        }
    }
    Ok(announced)
}

/// Handles HEAD: how much of the content is stored.
pub(in crate::http) async fn status(
    endpoint: &Endpoint,
    head: &Parts,
    identity: &Identity,
    id: &str,
) -> Result<Response, Refused> {
    access::authorize(endpoint, identity)?;
    let dialect = Dialect::of(&head.headers)?;
    let upload = find(endpoint, identity, id).await?;
    let status = match dialect {
        Dialect::Ietf => StatusCode::NO_CONTENT,
        Dialect::Tus => StatusCode::OK,
    };
    Ok(described(endpoint, status.into_response(), &upload, dialect))
}

/// Handles PATCH: appends a part. After the last one the content is stored.
pub(in crate::http) async fn append(
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
    identity: &Identity,
    id: &str,
) -> Result<Response, Refused> {
    access::authorize(endpoint, identity)?;
    let (headers, options) = (&head.headers, endpoint.options());
    let dialect = Dialect::of(headers)?;
    let given = text(headers, &header::CONTENT_TYPE)?.unwrap_or_default();
    if !given.eq_ignore_ascii_case(dialect.part_type()) {
        let detail = format!("The content type of a part is {}.", dialect.part_type());
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).into());
    }
    let (offset, is_last) = (dialect::offset(headers)?, dialect.is_last(headers)?);
    // An empty body needs no header.
    let length = body.size_hint().exact();
    let mut upload = find(endpoint, identity, id).await?;
    if offset != upload.offset() {
        return Err(mismatch(upload.offset(), offset).into());
    }
    if upload.is_stored() {
        if length == Some(0) {
            return finish(endpoint, upload, dialect).await;
        }
        let detail = "The upload is complete already.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail)
            .of_type("completed-upload")
            .into());
    }
    let end = length.map(|length| offset.saturating_add(length));
    let size = match (dialect::length(headers)?, end.filter(|_| is_last)) {
        (Some(size), Some(end)) if size != end => return Err(inconsistent(size, end).into()),
        (size, end) => size.or(end),
    };
    match (upload.size(), size) {
        (Some(known), Some(size)) if known != size => return Err(inconsistent(known, size).into()),
        (Some(known), _) if end.is_some_and(|end| end > known) => {
            return Err(inconsistent(known, end.unwrap_or_default()).into());
        }
        (None, Some(size)) => {
            access::check_size(Some(size), options.upload_bytes)?;
            upload.set_size(size).await.map_err(refused)?;
        }
        _ => access::check_size(end, options.upload_bytes)?,
    }
    let permit = access::permit(endpoint, identity)?;
    let left = upload.size().unwrap_or(options.upload_bytes).saturating_sub(offset);
    let (upload, received) = receive(endpoint, upload, body, left, permit).await;
    received?;
    let is_whole = dialect == Dialect::Tus && upload.size() == Some(upload.offset());
    if is_last || is_whole {
        return finish(endpoint, upload, dialect).await;
    }
    Ok(described(endpoint, StatusCode::NO_CONTENT.into_response(), &upload, dialect))
}

/// Handles DELETE: removes the upload. A stored resource stays.
pub(in crate::http) async fn cancel(
    endpoint: &Endpoint,
    head: &Parts,
    identity: &Identity,
    id: &str,
) -> Result<Response, Refused> {
    access::authorize(endpoint, identity)?;
    let dialect = Dialect::of(&head.headers)?;
    let upload = find(endpoint, identity, id).await?;
    upload.cancel().await?;
    Ok(described(endpoint, StatusCode::NO_CONTENT.into_response(), &upload, dialect))
}

/// Handles OPTIONS: the limits of uploads, if the server receives any.
pub(in crate::http) fn options(endpoint: &Endpoint, methods: &'static str) -> Response {
    let (mut response, options) = (StatusCode::NO_CONTENT.into_response(), endpoint.options());
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    if access::receives(endpoint) {
        dialect::add_options(response.headers_mut(), options.upload_bytes, options.upload_ttl);
    }
    response
}

/// Stores the content as a resource.
async fn finish(
    endpoint: &Endpoint,
    mut upload: PartialUpload,
    dialect: Dialect,
) -> Result<Response, Refused> {
    let entry = upload.store().await.map_err(refused)?;
    let response = match dialect {
        Dialect::Ietf => stored::response(&entry, ROOT),
        Dialect::Tus => StatusCode::NO_CONTENT.into_response(),
    };
    Ok(described(endpoint, response, &upload, dialect))
}

/// Appends a body of at most `max` bytes. It continues if the client disconnects, so that what
/// has arrived is kept.
async fn receive(
    endpoint: &Endpoint,
    upload: PartialUpload,
    body: Body,
    max: u64,
    permit: Permit,
) -> (PartialUpload, Result<(), Problem>) {
    let body = Received::new(body, max, &endpoint.options());
    let (random, before) = (endpoint.random.clone(), upload.clone());
    let task = async move {
        let _permit = permit;
        append_all(upload, body, &random).await
    };
    match tokio::spawn(task.in_current_span()).await {
        Ok(appended) => appended,
        Err(error) => {
            tracing::error!(%error, "an upload ended");
            (before, Err(BodyProblem::Incomplete.into()))
        }
    }
}

async fn find(
    endpoint: &Endpoint,
    identity: &Identity,
    id: &str,
) -> Result<PartialUpload, Problem> {
    let unknown = || {
        let detail = "The upload is unknown, removed or expired: begin it again.";
        Problem::new(StatusCode::NOT_FOUND, detail)
    };
    if id.len() > MAX_ID_BYTES || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(unknown());
    }
    let found = endpoint.dispatcher.store().upload_in_parts(identity.owner(), id).await;
    found.map_err(|error: StoreError| if error.is_not_found() { unknown() } else { error.into() })
}

fn described(
    endpoint: &Endpoint,
    mut response: Response,
    upload: &PartialUpload,
    dialect: Dialect,
) -> Response {
    let (now, max) = (endpoint.dispatcher.store().now(), endpoint.options().upload_bytes);
    dialect.describe(response.headers_mut(), upload, now, max);
    response
}

fn mismatch(expected: u64, provided: u64) -> Problem {
    let detail = format!("The upload continues at byte {expected}, not {provided}.");
    Problem::new(StatusCode::CONFLICT, detail)
        .of_type("mismatching-upload-offset")
        .member("expected-offset", expected)
        .member("provided-offset", provided)
}

fn inconsistent(announced: u64, size: u64) -> Problem {
    let detail = format!("The upload has {announced} bytes as announced before, not {size}.");
    Problem::new(StatusCode::BAD_REQUEST, detail).of_type("inconsistent-upload-length")
}
