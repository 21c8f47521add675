//! `view_resource`

use std::{fmt::Write, sync::Arc};

use larder_records::words::count;
use larder_store::store::{Kind, StoredResource};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    AppOptions, READING_TOOL, check_scopes,
    info::{self, Against},
    result,
    view::View,
};
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
    spill::tool_calls::{READ_AT_ONCE, call, read_arguments, type_and_size},
};

/// The most bytes of the preview for the model.
const PREVIEW_BYTES: usize = 2_000;

/// Shows a stored resource to the person as a table, tree, log, image, PDF, chart or diff, where
/// the host has pages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewResource {
    /// The URI.
    uri: String,
    /// By default what fits best.
    #[serde(default)]
    r#as: WantedView,
    /// For diff: a revision or a URI; the revision before by default.
    #[serde(default)]
    against: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WantedView {
    #[default]
    Auto,
    Table,
    Json,
    Log,
    Image,
    Pdf,
    Diff,
    Chart,
}

impl WantedView {
    fn view(self) -> Option<View> {
        Some(match self {
            Self::Auto => return None,
            Self::Table => View::Table,
            Self::Json => View::Json,
            Self::Log => View::Log,
            Self::Image => View::Image,
            Self::Pdf => View::Pdf,
            Self::Diff => View::Diff,
            Self::Chart => View::Chart,
        })
    }
}

pub(super) fn tool<S: Send + Sync + 'static>(options: &Arc<AppOptions>) -> Tool<S> {
    let options = Arc::clone(options);
    Tool::new(move |ctx: Context<S>, args: ViewResource| {
        let options = Arc::clone(&options);
        async move { view(&ctx, &args, &options).await }
    })
}

async fn view<S>(
    ctx: &Context<S>,
    args: &ViewResource,
    options: &AppOptions,
) -> Result<CallToolResult, ToolError> {
    check_scopes(ctx, READING_TOOL)?;
    let found = ctx.read_any_revision(&args.uri, None).await?;

    let wanted = match (args.r#as.view(), &args.against) {
        (None, Some(_)) => Some(View::Diff),
        (view, _) => view,
    };

    let mut info = info::describe(ctx, &found, wanted, options).await?;
    if let Some(view) = wanted.filter(|view| !info.views.contains(view)) {
        return Err(ToolError::new(format!(
            "{} ({}) cannot be shown as {}: leave out as.",
            found.entry.uri,
            type_and_size(&found.entry),
            serde_json::to_string(&view).unwrap_or_default().trim_matches('"')
        )));
    }

    if let Some(other) = other_side(ctx, args, &found).await? {
        let entry = &other.entry;
        info.against = Some(Against {
            uri: entry.uri.to_string(),
            revision: entry.revision,
            size: entry.size,
        });
    }

    result(text(ctx, &found).await?, &info)
}

/// The content that the resource is compared with.
async fn other_side<S>(
    ctx: &Context<S>,
    args: &ViewResource,
    found: &StoredResource,
) -> Result<Option<StoredResource>, ToolError> {
    let Some(against) = &args.against else { return Ok(None) };

    let other = match against.parse::<u64>() {
        Ok(revision) => ctx.read_any_revision(&args.uri, Some(revision)).await?,
        Err(_) => ctx.read_any_revision(against, None).await?,
    };

    if found.entry.kind == Kind::Binary || other.entry.kind == Kind::Binary {
        return Err(ToolError::new("against is for text, and one of both is binary."));
    }
    Ok(Some(other))
}

async fn text<S>(ctx: &Context<S>, found: &StoredResource) -> Result<String, ToolError> {
    let entry = &found.entry;
    let mut text = format!("{} ({})", entry.uri, type_and_size(entry));
    if entry.kind == Kind::Text {
        // Writing to a string cannot fail.
        let _ = write!(text, ", {}", count(entry.lines, "line"));
    }
    let _ = write!(text, ", revision {}. ", entry.revision);

    text.push_str(if ctx.client().shows_apps() {
        "The person sees all of it."
    } else {
        "This host shows no pages, so the person sees only what you say."
    });

    let read = call("read_resource", &read_arguments(entry, READ_AT_ONCE));
    let _ = writeln!(text, " To read it yourself: {read}.");

    let budget = PREVIEW_BYTES.min(ctx.output_bytes() / 2);
    found.preview(budget).await?.write_to(&mut text);
    Ok(text)
}
