//! `list_resources`

use larder_protocol::{APPS_SCHEME, quote::shortened};
use larder_store::store::{Entry, ResourceUri};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ToolOptions,
    wording::{call, check_prefix},
};
use crate::{
    handler::{Context, Json, ToolError},
    registry::Tool,
};

/// The default number of stored resources in a result.
const DEFAULT_LIMIT: usize = 50;

/// Lists stored resources, those of the server, and the quota.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListResources {
    /// The beginning of their URIs.
    #[serde(default)]
    prefix: Option<String>,
    /// The URI before the page.
    #[serde(default)]
    after: Option<String>,
    /// Of the server's own.
    #[serde(default)]
    skip: usize,
    /// Default: 50.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

/// Reserved for the JSON around the items.
const ENVELOPE_BYTES: usize = 512;

pub(super) fn tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: ListResources| {
        // The next call repeats the prefix.
        let prefix_bytes = args.prefix.as_deref().map_or(0, str::len);
        let budget = options.budget(&ctx, ENVELOPE_BYTES).saturating_sub(prefix_bytes);
        let budget = budget.max(ENVELOPE_BYTES);
        async move { list(&ctx, &args, budget).await }
    })
}

async fn list<S>(
    ctx: &Context<S>,
    args: &ListResources,
    budget: usize,
) -> Result<Json<Value>, ToolError> {
    check_prefix(args.prefix.as_deref())?;

    let prefix = args.prefix.as_deref().unwrap_or_default();
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    let owner = ctx.identity().owner();
    let mut page = Page::new(budget);

    // The server's own resources come first; pages of stored resources leave them out.
    let mut skip = args.skip;
    if args.after.is_none() {
        skip = add_own(ctx, prefix, args.skip, &mut page).await?;
    }

    let mut after = args.after.as_deref();
    let stored;
    if !page.is_full {
        stored = ctx.resource_store().list(owner, prefix, after, limit).await?;
        for entry in &stored.entries {
            if !page.add(Kind::Resource, item(entry)) {
                break;
            }
            after = Some(entry.uri.as_str());
        }
        page.is_full |= stored.more;
    }

    let usage = match (&args.after, args.skip) {
        (None, 0) => Some(ctx.resource_store().usage_of(owner).await?),
        _ => None,
    };

    let mut result = json!({
        "complete": !page.is_full,
        "returned": page.resources.len() + page.templates.len(),
        "resources": page.resources,
        "templates": page.templates,
    });
    if let Some(used) = usage {
        let quota = ctx.resource_store().quota();
        result["quota"] = json!({
            "bytes": quota.bytes,
            "used_bytes": used.bytes,
            "resources": quota.resources,
            "used_resources": used.resources,
        });
    }

    if page.is_full {
        let mut next = match after {
            Some(after) => json!({ "after": after, "limit": limit }),
            None => json!({ "skip": skip, "limit": limit }),
        };
        if !prefix.is_empty() {
            next["prefix"] = json!(prefix);
        }
        result["next"] = json!(call("list_resources", &next));
    }

    Ok(Json(result))
}

fn item(entry: &Entry) -> Value {
    json!({
        "uri": entry.uri,
        "name": entry.name,
        "description": entry.description,
        "mime_type": entry.mime_type,
        "size": entry.size,
        "lines": entry.lines,
        "expires": entry.expires.to_string(),
    })
}

/// Adds the server's own resources and templates from the position `skip`, as far
/// as they fit. Returns the position after the last one.
async fn add_own<S>(
    ctx: &Context<S>,
    prefix: &str,
    skip: usize,
    page: &mut Page,
) -> Result<usize, ToolError> {
    let owner = ctx.identity().owner();
    let grant = ctx.identity().grant();
    let catalog = ctx.registry().catalog();
    let registry = ctx.registry();
    let provided = ctx.provided_listing().await;
    let (more_resources, more_templates) =
        provided.map_err(|fault| ToolError::new(fault.to_string()))?;

    // Positions count hidden items, so that they stay valid if the caller's scopes
    // change between two pages.
    let mut position = 0;
    for resource in catalog.resources().chain(&more_resources) {
        let shows = position >= skip
            && resource.uri.starts_with(prefix)
            // Models cannot use pages for people.
            && !resource.uri.starts_with(APPS_SCHEME)
            && registry.can_list_resource(grant, &resource.uri);

        // A stored resource of this URI is listed instead.
        let shadowed = match ResourceUri::parse(&resource.uri) {
            Ok(uri) if shows => ctx.resource_store().get(owner, &uri).await.is_ok(),
            _ => false,
        };

        let item = json!({
            "uri": resource.uri,
            "name": resource.name,
            "description": resource.description,
            "mime_type": resource.mime_type,
        });
        if shows && !shadowed && !page.add(Kind::Resource, item) {
            return Ok(position);
        }

        position += 1;
    }

    for template in catalog.templates().chain(&more_templates) {
        let shows = position >= skip
            && template.uri_template.starts_with(prefix)
            && registry.can_list_template(grant, &template.uri_template);

        let item = json!({
            "uri_template": template.uri_template,
            "name": template.name,
            "description": template.description,
        });
        if shows && !page.add(Kind::Template, item) {
            return Ok(position);
        }

        position += 1;
    }

    Ok(position)
}

#[derive(Clone, Copy)]
enum Kind {
    Resource,
    Template,
}

/// The items of a result, within a budget of bytes.
struct Page {
    resources: Vec<Value>,
    templates: Vec<Value>,
    budget: usize,
    used: usize,
    /// There are more items.
    is_full: bool,
}

impl Page {
    fn new(budget: usize) -> Self {
        Self { resources: Vec::new(), templates: Vec::new(), budget, used: 0, is_full: false }
    }

    /// Adds an item if it fits, and returns whether it did. The first item always
    /// fits, or the next call would be the same one; of a large item the texts are
    /// shortened.
    fn add(&mut self, kind: Kind, item: Value) -> bool {
        let mut item = without_nulls(item);
        let size = |item: &Value| item.to_string().len() + 1;
        if size(&item) > self.budget {
            for member in ["name", "description", "mime_type"] {
                if let Some(Value::String(text)) = item.get_mut(member) {
                    *text = shortened(text).into_owned();
                }
            }
        }

        let size = size(&item);
        if self.used > 0 && self.used + size > self.budget {
            self.is_full = true;
            return false;
        }

        self.used += size;
        match kind {
            Kind::Resource => self.resources.push(item),
            Kind::Template => self.templates.push(item),
        }
        true
    }
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, v| !v.is_null());
    }
    value
}
