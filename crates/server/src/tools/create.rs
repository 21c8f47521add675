//! `create_resource`

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use larder_oauth::Owner;
use larder_runtime::compute::Compute;
use larder_store::store::{Content, Details, StoreError};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::wording;
use crate::{
    handler::{Context, StoredFacts, Structured, ToolError},
    registry::{StoredJson, Tool},
};

/// Stores one of text, json, blob and copy_of under a URI, until it expires.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateResource {
    /// Such as results://search/42; made if left out.
    #[serde(default)]
    uri: Option<String>,
    /// Text.
    #[serde(default)]
    text: Option<String>,
    /// Base64.
    #[serde(default)]
    blob: Option<String>,
    /// JSON.
    #[serde(default)]
    #[schemars(with = "Option<Value>", extend("x-larder-listed" = { "type": "object" }))]
    json: Option<StoredJson>,
    /// The URI of another.
    #[serde(default)]
    copy_of: Option<String>,
    /// Of copy_of.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    /// Short.
    #[serde(default)]
    name: Option<String>,
    /// Of the content.
    #[serde(default)]
    description: Option<String>,
    /// Media type.
    #[serde(default)]
    mime_type: Option<String>,
    /// Seconds; a day by default.
    #[serde(default)]
    ttl: Option<f64>,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: CreateResource| async move { create(&ctx, args).await })
        .stored_argument("json")
}

async fn create<S>(
    ctx: &Context<S>,
    args: CreateResource,
) -> Result<(Structured<StoredFacts>, CallToolResult), ToolError> {
    let uri = args.uri.unwrap_or_else(|| ctx.mint_uri());
    let details = details(args.name, args.description, args.mime_type, args.ttl)?;

    if let Some(source) = args.copy_of {
        if args.text.is_some() || args.blob.is_some() || args.json.is_some() {
            return Err(ToolError::permanent("Give copy_of or new content, not both."));
        }

        let source = ctx.read_any_revision(&source, args.revision).await?;
        let entry = ctx.copy_resource(&source, uri).details(details).await?;
        return Ok(wording::stored_result(&entry, "Stored"));
    }

    if args.revision.is_some() {
        return Err(ToolError::permanent(
            "revision needs copy_of: it is that of the resource to copy.",
        ));
    }

    let content = content(ctx.identity().owner(), args.text, args.blob, args.json).await?;
    let entry = ctx.create_resource(uri, content).details(details).await?;
    Ok(wording::stored_result(&entry, "Stored"))
}

/// The details that these arguments give.
pub(super) fn details(
    name: Option<String>,
    description: Option<String>,
    media_type: Option<String>,
    seconds: Option<f64>,
) -> Result<Details, ToolError> {
    Ok(Details {
        name,
        description,
        mime_type: media_type.map(|text| mime_type(&text)).transpose()?,
        ttl: seconds.map(ttl).transpose()?,
        ..Details::default()
    })
}

/// The content of the one of these arguments that was given.
pub(super) async fn content(
    caller: &Owner,
    text: Option<String>,
    blob: Option<String>,
    json: Option<StoredJson>,
) -> Result<Content, ToolError> {
    match (text, blob, json) {
        (Some(text), None, None) => Ok(text.into()),
        (None, Some(blob), None) => Ok(decoded(caller, blob).await?.into()),
        (None, None, Some(StoredJson(json))) => {
            let bytes = json.len();
            let json = move || Content::json(json.as_bytes());
            let content = Compute::run(caller.as_str(), bytes, json).done().await;
            Ok(content.map_err(StoreError::from)?.with_mime_type("application/json"))
        }
        (None, None, None) => {
            Err(ToolError::permanent("There is nothing to store: give one of text, json and blob."))
        }
        _ => Err(ToolError::permanent("Give exactly one of text, json and blob.")),
    }
}

/// The bytes of the argument `blob`.
pub(super) async fn decoded(caller: &Owner, blob: String) -> Result<Vec<u8>, ToolError> {
    let decode = |blob: String| BASE64_STANDARD.decode(blob.trim_ascii());
    let decoding = Compute::run(caller.as_str(), blob.len(), move || decode(blob));
    decoding.done().await.map_err(StoreError::from)?.map_err(|error| {
        ToolError::permanent(format!(
            "blob is not base64: {error}. Encode the bytes with the standard alphabet and padding, or give text instead."
        ))
    })
}

pub(super) fn ttl(seconds: f64) -> Result<Duration, ToolError> {
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(ToolError::permanent(
            "ttl must be positive: it is the time to live in seconds.",
        ));
    }

    // Stores count in milliseconds: less than one would be zero.
    Duration::try_from_secs_f64(seconds)
        .map(|ttl| ttl.max(Duration::from_millis(1)))
        .map_err(|_| ToolError::permanent("ttl is too large."))
}

/// Checks for `type/subtype`, with or without parameters (RFC 9110, 8.3.1).
fn mime_type(text: &str) -> Result<String, ToolError> {
    let is_token = |t: &str| {
        !t.is_empty() && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };

    let essence = text.split(';').next().unwrap_or_default().trim();
    match essence.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) && text.len() <= 255 => {
            Ok(text.to_owned())
        }
        _ => Err(ToolError::permanent("mime_type must look like text/csv.")),
    }
}
