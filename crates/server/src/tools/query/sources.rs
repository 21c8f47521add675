//! What a query reads: the resources and how they are divided into rows.

use std::collections::BTreeMap;

use larder_protocol::quote::quoted;
use larder_query::Table;
use larder_records::{Layout, Pointer, TableOptions};
use larder_store::store::StoredResource;

use super::{From, QueryResource, form};
use crate::handler::{Context, ToolError};

const MAX_TABLES: usize = 8;

/// Finds the resources as the caller.
pub(super) async fn find<S>(
    ctx: &Context<S>,
    args: &QueryResource,
) -> Result<Vec<(Table, StoredResource)>, ToolError> {
    let tables = match &args.from {
        // Some hosts pass objects as text.
        From::Uri(text) if text.starts_with('{') => {
            serde_json::from_str(text).map_err(|_| {
                ToolError::new(
                    "from is neither a URI nor an object of table names and URIs, such as {\"orders\":\"results://1\"}.",
                )
            })?
        }
        From::Uri(uri) => BTreeMap::from([("t".to_owned(), uri.clone())]),
        From::Tables(tables) => tables.clone(),
    };

    if tables.is_empty() || tables.len() > MAX_TABLES {
        return Err(ToolError::new(format!("from names 1 to {MAX_TABLES} tables.")));
    }
    if args.revision.is_some() && tables.len() > 1 {
        return Err(ToolError::new("revision needs a single URI in from."));
    }
    if let Some(Err(error)) = args.rows.as_ref().map(|rows| rows.parse::<Pointer>()) {
        return Err(ToolError::new(format!("rows: {error}.")));
    }

    let mut sources = Vec::with_capacity(tables.len());
    for (name, uri) in tables {
        check_name(&name)?;
        let content = ctx.read_any_revision(&uri, args.revision).await?;
        let form = form::find(&content, args.format, &TableOptions::default()).await?;
        let table = Table {
            name,
            layout: form.layout.unwrap_or(Layout::Log),
            rows: args.rows.clone(),
            pattern: args.pattern.clone(),
            encoding: form.encoding,
            conversion: form.conversion,
            options: TableOptions::default(),
        };
        sources.push((table, content));
    }

    let has_log =
        sources.iter().any(|(table, _)| table.layout == Layout::Log && table.conversion.is_none());
    if args.pattern.is_some() && !has_log {
        return Err(ToolError::new("pattern is for logs: add \"format\":\"log\"."));
    }
    Ok(sources)
}

fn check_name(name: &str) -> Result<(), ToolError> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts_well && name.len() <= 64 && name.chars().all(is_word) && !reserved(name) {
        return Ok(());
    }

    Err(ToolError::new(format!(
        "{} cannot be the name of a table: use a letter and up to 63 letters, digits and underscores; sqlite_, json_ and pragma_ are reserved.",
        quoted(name)
    )))
}

/// Names that SQLite reserves.
fn reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("sqlite_") || name.starts_with("json_") || name.starts_with("pragma_")
}
