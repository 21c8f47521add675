//! Uploads that continue after a lost connection: they begin at `/resources`, and have a path of
//! their own from then on.

use std::sync::Arc;

use axum::{
    body::{Body, HttpBody},
    response::Response,
};
use http::{HeaderValue, StatusCode, header};
use larder_store::store::{AppendError, Entry, Expected, PartialUpload, StoreError, UploadTarget};
use tracing::Instrument;

use super::{
    access,
    announced::{Announced, bad, text},
    dialect::{self, Dialect},
    feed::{append_all, refused},
    parameters::Parameters,
    received::{BodyProblem, Received},
    stored,
    uploader::{Claim, Uploader},
};
use crate::{
    admission::Permit,
    http::{Endpoint, error::Reply, head::Head, problem::Problem, response::empty},
};

/// The longest ID of an upload.
const MAX_ID_BYTES: usize = 64;

/// Handles the request that begins an upload.
pub(super) async fn begin(
    endpoint: &Endpoint,
    head: &Head,
    body: Body,
    uploader: &Uploader<'_>,
    mut parameters: Parameters,
    dialect: Dialect,
) -> Reply {
    let options = endpoint.options();

    let size = uploader.size(dialect::length(head)?)?;
    let announced = match dialect {
        Dialect::Ietf => Announced::of(head)?,
        Dialect::Tus if size.is_none() => {
            return Err(bad("The header Upload-Length is missing.".into()).into());
        }
        Dialect::Tus => tus_metadata(head, uploader, &mut parameters)?,
    };

    // The body may be a part of the content, so its Content-Length is not the expected size.
    let expected = Expected { size, ..announced.expected };
    let announced = uploader.announced(Announced { expected, ..announced })?;

    access::check_size(size, options.upload_bytes)?;
    let permit = access::permit(endpoint, uploader.owner())?;

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
        reserves: uploader.reserves(),
    };

    let id = uploader.new_id(endpoint);
    let store = endpoint.dispatcher.store();
    let ttl = uploader.ttl(options.upload_ttl);
    let begun = store.begin_upload(uploader.owner(), &id, target, size, ttl);
    let upload = begun.await?;
    uploader.admit_upload(store, &upload).await?;

    let max = upload.size().unwrap_or(options.upload_bytes);
    let claim = uploader.claim(&id);
    let received = receive(endpoint, upload, body, max, permit, &claim).await;
    let (mut upload, received) = received;
    received?;

    if dialect == Dialect::Tus && upload.size() == Some(upload.offset()) {
        (upload, _) = store_whole(endpoint, upload, claim).await?;
    }

    let mut response = empty(StatusCode::CREATED);
    if let Ok(location) = HeaderValue::try_from(uploader.location(head, &id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(described(endpoint, response, &upload, dialect))
}

/// The metadata in tus's `Upload-Metadata`: its content has no headers of its own.
fn tus_metadata(
    head: &Head,
    uploader: &Uploader<'_>,
    parameters: &mut Parameters,
) -> Result<Announced, Problem> {
    let mut announced = Announced::default();

    for (key, value) in dialect::metadata(head)? {
        match &*key {
            "filetype" if value.contains('/') => announced.mime_type = Some(value),
            "filename" | "name" if parameters.details.name.is_none() => {
                parameters.set("name", &value)?;
            }
            "uri" if parameters.uri.is_none() && uploader.may_set("uri") => {
                parameters.set("uri", &value)?;
            }
            "ttl" if parameters.details.ttl.is_none() && uploader.may_set("ttl") => {
                parameters.set("ttl", &value)?;
            }
            // Clients may add metadata of their own.
            _ => {}
        }
    }

    Ok(announced)
}

/// Handles HEAD: how much of the content is stored.
pub(in crate::http) async fn status(
    endpoint: &Endpoint,
    head: &Head,
    uploader: &Uploader<'_>,
    id: &str,
) -> Reply {
    uploader.authorize(endpoint)?;
    let dialect = Dialect::of(head)?;
    let upload = find(endpoint, uploader, id).await?;

    let status = match dialect {
        Dialect::Ietf => StatusCode::NO_CONTENT,
        Dialect::Tus => StatusCode::OK,
    };

    Ok(described(endpoint, empty(status), &upload, dialect))
}

/// Handles PATCH: appends a part. After the last one the content is stored.
pub(in crate::http) async fn append(
    endpoint: &Endpoint,
    head: &Head,
    body: Body,
    uploader: &Uploader<'_>,
    id: &str,
) -> Reply {
    uploader.authorize(endpoint)?;
    let options = endpoint.options();
    let dialect = Dialect::of(head)?;

    let given = text(head, &header::CONTENT_TYPE)?.unwrap_or_default();
    if !given.eq_ignore_ascii_case(dialect.part_type()) {
        let detail = format!("The content type of a part is {}.", dialect.part_type());
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).into());
    }

    let offset = dialect::offset(head)?;
    let is_last = dialect.is_last(head)?;
    // An exact size hint also covers an empty body without a Content-Length.
    let length = body.size_hint().exact();
    let mut upload = find(endpoint, uploader, id).await?;
    let claim = uploader.claim(id);

    if offset != upload.offset() {
        return Err(mismatch(upload.offset(), offset).into());
    }

    if upload.is_stored() {
        if length == Some(0) {
            return finish(endpoint, head, upload, claim, dialect).await;
        }

        let detail = "The upload is complete already.";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail)
            .of_type("completed-upload")
            .into());
    }

    let end = length.map(|length| offset.saturating_add(length));
    check_length(head, &mut upload, end, is_last, options.upload_bytes).await?;

    let permit = access::permit(endpoint, uploader.owner())?;
    upload.expect(end.unwrap_or_default()).await?;
    let left = upload.size().unwrap_or(options.upload_bytes).saturating_sub(offset);
    let (upload, received) = receive(endpoint, upload, body, left, permit, &claim).await;
    received?;

    let is_whole = dialect == Dialect::Tus && upload.size() == Some(upload.offset());
    if is_last || is_whole {
        return finish(endpoint, head, upload, claim, dialect).await;
    }

    Ok(described(endpoint, empty(StatusCode::NO_CONTENT), &upload, dialect))
}

/// Checks what a part that ends at `end` says of the size of the upload, and sets the size where it
/// was not known.
async fn check_length(
    head: &Head,
    upload: &mut PartialUpload,
    end: Option<u64>,
    is_last: bool,
    max: u64,
) -> Reply<()> {
    let size = match (dialect::length(head)?, end.filter(|_| is_last)) {
        (Some(size), Some(end)) if size != end => return Err(inconsistent(size, end).into()),
        (size, end) => size.or(end),
    };

    match (upload.size(), size) {
        (Some(known), Some(size)) if known != size => return Err(inconsistent(known, size).into()),
        (Some(known), _) if end.is_some_and(|end| end > known) => {
            return Err(inconsistent(known, end.unwrap_or_default()).into());
        }
        (None, Some(size)) => {
            access::check_size(Some(size), max)?;
            upload.set_size(size).await.map_err(refused)?;
        }
        _ => access::check_size(end, max)?,
    }
    Ok(())
}

/// Handles DELETE: removes the upload. A stored resource stays.
pub(in crate::http) async fn cancel(
    endpoint: &Endpoint,
    head: &Head,
    uploader: &Uploader<'_>,
    id: &str,
) -> Reply {
    uploader.authorize(endpoint)?;
    let dialect = Dialect::of(head)?;
    let upload = find(endpoint, uploader, id).await?;

    upload.cancel().await?;
    uploader.claim(id).release().await;

    Ok(described(endpoint, empty(StatusCode::NO_CONTENT), &upload, dialect))
}

/// Handles OPTIONS: the limits of uploads, if the server receives any.
pub(in crate::http) fn options(endpoint: &Endpoint, methods: &'static str) -> Response {
    let mut response = empty(StatusCode::NO_CONTENT);
    let options = endpoint.options();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));

    if access::receives(endpoint) {
        dialect::add_options(response.headers_mut(), options.upload_bytes, options.upload_ttl);
    }
    response
}

/// Stores the content as a resource.
async fn finish(
    endpoint: &Endpoint,
    head: &Head,
    upload: PartialUpload,
    claim: Claim,
    dialect: Dialect,
) -> Reply {
    let (upload, entry) = store_whole(endpoint, upload, claim).await?;
    endpoint.dispatcher.traffic().add_sent(entry.size);
    let response = match dialect {
        Dialect::Ietf => stored::response(&entry, head),
        Dialect::Tus => empty(StatusCode::NO_CONTENT),
    };

    Ok(described(endpoint, response, &upload, dialect))
}

/// Stores all parts as the resource. It continues if the client disconnects, so that the claim
/// says what became of it.
async fn store_whole(
    endpoint: &Endpoint,
    mut upload: PartialUpload,
    claim: Claim,
) -> Result<(PartialUpload, Arc<Entry>), Problem> {
    let store = endpoint.dispatcher.store().clone();

    let task = async move {
        claim.acquire().await?;

        match claim.during(upload.store()).await {
            Ok(entry) => {
                claim.stored(&store).await;
                Ok((upload, entry))
            }
            Err(error) => {
                // After any other error the upload stays, and can be stored later.
                if matches!(error, AppendError::Store(StoreError::NotAsAnnounced(_))) {
                    claim.release().await;
                }
                Err(refused(error))
            }
        }
    };

    tokio::spawn(task.in_current_span()).await.unwrap_or_else(|error| {
        tracing::error!(%error, "an upload ended");
        Err(BodyProblem::Incomplete.into())
    })
}

/// Appends a body of at most `max` bytes. It continues if the client disconnects, so that what
/// has arrived is kept.
async fn receive(
    endpoint: &Endpoint,
    upload: PartialUpload,
    body: Body,
    max: u64,
    permit: Permit,
    claim: &Claim,
) -> (PartialUpload, Result<(), Problem>) {
    let body = Received::new(body, max, &endpoint.options().body);
    let random = endpoint.random.clone();
    let before = upload.clone();
    let claim = claim.clone();

    let task = async move {
        let _permit = permit;
        claim.during(append_all(upload, body, &random)).await
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
    uploader: &Uploader<'_>,
    id: &str,
) -> Result<PartialUpload, Problem> {
    let unknown = || {
        let detail = "The upload is unknown, removed or expired: begin it again.";
        Problem::new(StatusCode::NOT_FOUND, detail)
    };

    if !uploader.may_own(id)
        || id.len() > MAX_ID_BYTES
        || !id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return Err(unknown());
    }

    let found = endpoint.dispatcher.store().upload_in_parts(uploader.owner(), id).await;
    found.map_err(|error: StoreError| if error.is_not_found() { unknown() } else { error.into() })
}

fn described(
    endpoint: &Endpoint,
    mut response: Response,
    upload: &PartialUpload,
    dialect: Dialect,
) -> Response {
    let now = endpoint.dispatcher.store().now();
    let max = endpoint.options().upload_bytes;
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
