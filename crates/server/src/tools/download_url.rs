//! `download_url`

use std::time::Duration;

use larder_records::words::number;
use larder_store::store::{Entry, ResourceUri, StoreError};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    link_request::{Request, lifetime, links, no_url, quoted_for_shell},
    stored_file::StoredFile,
};
use crate::{
    content_link::{Disposition, Download, Once, file_name},
    handler::{Context, Structured, ToolError},
    registry::Tool,
};

/// The default lifetime of a link.
const DEFAULT_EXPIRES: Duration = Duration::from_secs(600);

/// Makes a URL that downloads a resource without credentials; whoever has it can read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DownloadUrl {
    /// The URI.
    uri: String,
    /// An earlier one.
    #[serde(default)]
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    /// Seconds; default: 600.
    #[serde(default)]
    expires: Option<f64>,
    /// For a secret.
    #[serde(default)]
    once: bool,
    /// Shown by browsers.
    #[serde(default)]
    inline: bool,
    /// The name.
    #[serde(default)]
    filename: Option<String>,
}

/// A file, and how to download it.
#[derive(Debug, Serialize, JsonSchema)]
struct Downloadable {
    /// The file that the URL gives.
    file: StoredFile,
    /// The request that downloads it.
    download: Request,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: DownloadUrl| async move { download(&ctx, args).await })
}

async fn download<S>(
    ctx: &Context<S>,
    args: DownloadUrl,
) -> Result<(Structured<Downloadable>, CallToolResult), ToolError> {
    let (links, base) = links(ctx)?;
    let uri = ResourceUri::parse(&args.uri).map_err(StoreError::from)?;
    let entry = find(ctx, &uri, args.revision).await?;

    let expires = lifetime(links, args.expires, DEFAULT_EXPIRES)?;
    let mut expires = links.now().saturating_add(expires).min(entry.expires);
    if let Some(shared) = ctx.resource_store().link_target(ctx.identity(), &uri).await? {
        expires = expires.min(shared.until);
    }

    let name = file_name(args.filename.as_deref().unwrap_or(&entry.name));
    let claims = Download {
        owner: entry.owner.clone(),
        uri: uri.clone(),
        revision: entry.revision,
        created: entry.created,
        size: entry.size,
        expires,
        disposition: if args.inline { Disposition::Inline } else { Disposition::Attachment },
        nonce: ctx.scope().random.id(),
    };

    let (method, curl, how, url) = if args.once {
        let claims = Once { download: claims, file_name: name.clone() };
        // An empty body makes it a POST, which gives the link to download.
        ("POST", "curl -fsSL -d ''", " once, by its button,", links.once_url(&claims))
    } else {
        ("GET", "curl -fsS", "", links.download_url(&claims, &name))
    };
    let url = url.ok_or_else(no_url)?;

    let text = format!(
        "{url}\nDownloads {uri} ({} bytes){how} without credentials until {expires}. In a shell:\n\
         {curl} -o {} '{url}'\nIf downloads are limited to known domains, allow {}.",
        number(entry.size),
        quoted_for_shell(&name),
        base.host(),
    );

    let downloadable = Downloadable {
        file: StoredFile { uri: uri.to_string(), name, ..StoredFile::of(&entry) },
        download: Request::new(method, url, expires),
    };
    let text = CallToolResult::success(vec![ContentBlock::text(text)]);
    Ok((Structured(downloadable), text))
}

/// The stored revision. What the server's definition has cannot be downloaded by a link.
async fn find<S>(
    ctx: &Context<S>,
    uri: &ResourceUri,
    revision: Option<u64>,
) -> Result<std::sync::Arc<Entry>, ToolError> {
    match ctx.resource_store().read_revision(ctx.identity(), uri, revision).await {
        Ok(found) => Ok(found.entry),
        Err(error) if error.is_not_found() && ctx.scope().server.is_static(uri.as_str()) => {
            Err(ToolError::permanent(format!(
                "{uri} is part of this server; only stored resources have download URLs. Read it with read_resource."
            )))
        }
        Err(error) => Err(error.into()),
    }
}
