//! `upload_url`

use std::time::Duration;

use larder_oauth::Grant;
use larder_protocol::quote::quoted;
use larder_records::words::number;
use larder_store::store::{ResourceUri, StoreError};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    create,
    link_request::{Request, lifetime, links, no_url, quoted_for_shell},
    wording,
};
use crate::{
    content_link::{Upload, file_name},
    handler::{Context, Structured, ToolError},
    registry::{Registry, Tool},
};

/// The default lifetime of a link.
const DEFAULT_EXPIRES: Duration = Duration::from_secs(900);

/// The tool that stores as well, and whose scopes an upload needs.
const CREATING_TOOL: &str = "create_resource";

/// Makes a URL at which anyone stores one file, once; check_upload tells whether it is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UploadUrl {
    /// To store it under.
    #[serde(default)]
    uri: Option<String>,
    /// Of the file.
    #[serde(default)]
    name: Option<String>,
    /// Media type.
    #[serde(default)]
    mime_type: Option<String>,
    /// In bytes.
    #[serde(default)]
    size: Option<u64>,
    /// Hexadecimal.
    #[serde(default)]
    sha256: Option<String>,
    /// Seconds to live.
    #[serde(default)]
    ttl: Option<f64>,
    /// Seconds; default: 900.
    #[serde(default)]
    expires: Option<f64>,
}

/// How to upload a file, and how to check whether it is stored.
#[derive(Debug, Serialize, JsonSchema)]
struct Uploadable {
    /// The ID for check_upload.
    id: String,
    /// The resource that the upload creates.
    file: File,
    /// The request that uploads it.
    upload: Request,
}

/// The resource that an upload creates.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct File {
    /// The URI of the resource.
    uri: String,
    /// The name, if the link fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The media type, if the link fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    /// The size in bytes, if the link fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// The SHA-256, if the link fixes it, such as sha-256:9f86….
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: UploadUrl| async move { upload(&ctx, args) })
}

fn upload<S>(
    ctx: &Context<S>,
    args: UploadUrl,
) -> Result<(Structured<Uploadable>, CallToolResult), ToolError> {
    check_may_create(ctx)?;
    let (links, base) = links(ctx)?;

    let uri = args.uri.unwrap_or_else(|| ctx.mint_uri());
    let uri = ResourceUri::parse(&uri).map_err(StoreError::from)?;
    if ctx.scope().server.is_static(uri.as_str()) {
        return Err(StoreError::ReadOnly { uri }.into());
    }
    ctx.resource_store().check_target(&uri)?;

    let details = create::details(args.name, None, args.mime_type, args.ttl)?;
    let details = ctx.resource_store().check_details(details)?;

    let expires = links.now().saturating_add(lifetime(links, args.expires, DEFAULT_EXPIRES)?);
    let claims = Upload {
        owner: ctx.identity().owner().clone(),
        uri: uri.clone(),
        name: details.name,
        mime_type: details.mime_type,
        size: args.size,
        sha256: args.sha256.map(|text| sha256(&text)).transpose()?,
        ttl: details.ttl,
        expires,
        id: ctx.scope().random.id(),
    };

    let url = links.upload_url(&claims).ok_or_else(no_url)?;
    let id = links.receipt_id(&claims);

    let size = claims.size.map_or_else(String::new, |size| format!(" of {} bytes", number(size)));
    let file = claims.name.as_deref().map_or_else(|| "FILE".into(), file_name);
    let text = format!(
        "{url}\nStores one file{size} as {uri}, once, without credentials until {expires}. A browser shows a page to choose it. In a shell:\n\
         curl -fsS -T {} '{url}'\nIf uploads are limited to known domains, allow {}. After the upload: {}",
        quoted_for_shell(&file),
        base.host(),
        wording::call("check_upload", &json!({ "id": id })),
    );

    let uploadable = Uploadable {
        id,
        file: File {
            uri: uri.to_string(),
            name: claims.name,
            mime_type: claims.mime_type,
            size: claims.size,
            digest: claims.sha256.map(|hex| format!("sha-256:{hex}")),
        },
        upload: Request::new("PUT", url, expires),
    };

    let text = CallToolResult::success(vec![ContentBlock::text(text)]);
    Ok((Structured(uploadable), text))
}

/// A link stores as `create_resource` does, so its maker needs the same scopes.
fn check_may_create<S>(ctx: &Context<S>) -> Result<(), ToolError> {
    let registry = Registry::from_scope(ctx.scope());
    if !registry.offers(&Grant::All, CREATING_TOOL) {
        return Err(ToolError::permanent(
            "This server does not let callers store resources (tools.write).",
        ));
    }

    registry.check_tool_scopes(ctx.identity(), CREATING_TOOL).map_err(|_| {
        ToolError::permanent(
            "upload_url needs the scopes of create_resource (auth.scopes), which your token lacks.",
        )
    })
}

/// A digest, as `download_url` gives it or without its prefix.
fn sha256(text: &str) -> Result<String, ToolError> {
    let hex = text.strip_prefix("sha-256:").unwrap_or(text).to_ascii_lowercase();
    if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(hex);
    }

    let problem = format!("sha256 must be 64 hexadecimal digits, not {}.", quoted(text));
    Err(ToolError::permanent(problem))
}
