//! `list_resources`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ToolOptions;
use crate::{
    handler::{Context, Json, ToolError},
    registry::Tool,
    store::ResourceUri,
};

/// The default number of stored resources in a result.
const DEFAULT_LIMIT: usize = 50;

/// Lists your stored resources, and this server's own resources and URI
/// templates, as JSON. Read one with read_resource.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListResources {
    /// Only URIs that begin with this, such as results://.
    #[serde(default)]
    prefix: Option<String>,
    /// Only stored resources whose URI sorts after this one: the next page.
    #[serde(default)]
    after: Option<String>,
    /// The most stored resources to return. 50 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

/// Reserved for the JSON around the items.
const ENVELOPE_BYTES: usize = 512;

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: ListResources| {
        let budget = options.budget(&ctx, ENVELOPE_BYTES);
        async move { list(&ctx, &args, budget).await }
    })
}

async fn list<S>(
    ctx: &Context<S>,
    args: &ListResources,
    budget: usize,
) -> Result<Json<Value>, ToolError> {
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    let (owner, grant) = (ctx.identity().owner(), ctx.identity().grant());
    let page = ctx.store().list(owner, prefix, args.after.as_deref(), limit).await?;

    let mut resources = Vec::new();
    let mut templates = Vec::new();
    let mut used = 0;
    let mut complete = !page.more;
    if args.after.is_none() {
        // The server's own are few: they are all on the first page.
        let catalog = ctx.registry().catalog();
        let custom = ctx.custom_listing().await;
        let (more_resources, more_templates) =
            custom.map_err(|fault| ToolError::new(fault.to_string()))?;
        for resource in catalog.resources().chain(&more_resources) {
            let shadowed = match ResourceUri::parse(&resource.uri) {
                Ok(uri) => ctx.store().get(owner, &uri).await.is_ok(),
                Err(_) => false,
            };
            let shows = ctx.registry().can_list_resource(grant, &resource.uri);
            if shows && resource.uri.starts_with(prefix) && !shadowed {
                let item = json!({
                    "uri": resource.uri,
                    "name": resource.name,
                    "description": resource.description,
                    "mime_type": resource.mime_type,
                });
                complete &= push(&mut resources, without_nulls(item), &mut used, budget);
            }
        }
        for template in catalog.templates().chain(&more_templates) {
            let shows = ctx.registry().can_list_template(grant, &template.uri_template);
            if shows && template.uri_template.starts_with(prefix) {
                let item = json!({
                    "uri_template": template.uri_template,
                    "name": template.name,
                    "description": template.description,
                });
                complete &= push(&mut templates, without_nulls(item), &mut used, budget);
            }
        }
    }
    let mut last = args.after.clone();
    for entry in &page.entries {
        let item = json!({
            "uri": entry.uri,
            "name": entry.name,
            "description": entry.description,
            "mime_type": entry.mime_type,
            "size": entry.size,
            "lines": entry.lines,
            "expires": entry.expires.to_string(),
        });
        if !push(&mut resources, without_nulls(item), &mut used, budget) {
            complete = false;
            break;
        }
        last = Some(entry.uri.as_str().to_owned());
    }
    let mut result = json!({
        "complete": complete,
        "returned": resources.len() + templates.len(),
        "resources": resources,
        "templates": templates,
    });
    if !complete && let Some(last) = last {
        let mut next = json!({ "after": last, "limit": limit });
        if !prefix.is_empty() {
            next["prefix"] = json!(prefix);
        }
        result["next"] = json!(super::wording::call("list_resources", &next));
    }
    Ok(Json(result))
}

/// Adds an item if it fits the budget, and returns whether it did. The first
/// item always fits.
fn push(items: &mut Vec<Value>, item: Value, used: &mut usize, budget: usize) -> bool {
    let size = item.to_string().len() + 1;
    let fits = *used + size <= budget || *used == 0;
    if fits {
        *used += size;
        items.push(item);
    }
    fits
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, v| !v.is_null());
    }
    value
}
