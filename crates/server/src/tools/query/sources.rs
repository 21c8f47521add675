//! The resources that a query reads, and how they are divided into rows.

use larder_protocol::quote::quoted;
use larder_query::Table;
use larder_records::{Layout, Pointer};
use larder_store::store::StoredResource;

use super::{Format, QueryResource, form, from::SourceOptions};
use crate::handler::{Context, ToolError};

const MAX_TABLES: usize = 8;

/// Finds the resources as the caller.
pub(super) async fn find<S>(
    ctx: &Context<S>,
    args: &QueryResource,
) -> Result<Vec<(Table, StoredResource)>, ToolError> {
    let tables = args.from.tables();
    if tables.is_empty() || tables.len() > MAX_TABLES {
        return Err(ToolError::new(format!("from names 1 to {MAX_TABLES} tables.")));
    }
    if tables.len() > 1 {
        check_options_of_one(args)?;
    }

    let is_sql = args.sql.is_some();
    let mut sources = Vec::with_capacity(tables.len());
    for (name, options) in tables {
        check_name(&name)?;
        let options = with_arguments(options, args);
        let content = ctx.read_any_revision(&options.uri, options.revision).await?;
        let form = form::find(&content, options.format.unwrap_or_default(), &options.table).await?;
        let layout = form.layout.unwrap_or(Layout::Log);
        if form.conversion.is_none() {
            check(&name, layout, &options, is_sql)?;
        }

        let SourceOptions { rows, pattern, table, .. } = options;
        let encoding = form.encoding;
        let conversion = form.conversion;
        let table = Table { name, layout, rows, pattern, encoding, conversion, options: table };
        sources.push((table, content));
    }
    Ok(sources)
}

/// Fails if an option of one resource is given beside several: it would say for one of them what
/// is true of another.
fn check_options_of_one(args: &QueryResource) -> Result<(), ToolError> {
    let given = [
        ("format", args.format != Format::Auto, "\"csv\""),
        ("rows", args.rows.is_some(), "\"/items\""),
        ("pattern", args.pattern.is_some(), "\"(?P<level>ERROR|WARN)\""),
        ("revision", args.revision.is_some(), "2"),
    ];
    let Some((name, _, value)) = given.into_iter().find(|(_, is_given, _)| *is_given) else {
        return Ok(());
    };

    Err(ToolError::new(format!(
        "{name} needs a single URI in from; with several, give it to a table: {{\"orders\":{{\"uri\":\"results://1\",\"{name}\":{value}}}}}."
    )))
}

/// The options of the only table, with those of the call where it has none of its own.
fn with_arguments(options: SourceOptions, args: &QueryResource) -> SourceOptions {
    SourceOptions {
        uri: options.uri,
        format: options.format.or(Some(args.format)),
        rows: options.rows.or_else(|| args.rows.clone()),
        pattern: options.pattern.or_else(|| args.pattern.clone()),
        revision: options.revision.or(args.revision),
        table: options.table,
    }
}

/// Fails if an option says nothing about a resource of this layout.
fn check(
    name: &str,
    layout: Layout,
    options: &SourceOptions,
    is_sql: bool,
) -> Result<(), ToolError> {
    if options.pattern.is_some() && layout != Layout::Log {
        return Err(ToolError::new("pattern is for logs: add \"format\":\"log\"."));
    }

    let has_fields = options.table.nulls.is_some() || options.table.decimal.is_some();
    if has_fields && !matches!(layout, Layout::Rows(_)) {
        return Err(ToolError::new(format!(
            "nulls and decimal are for tables, and {name} is none: use nullif(column, …) or number(column, 'de')."
        )));
    }

    let Some(rows) = &options.rows else { return Ok(()) };
    if let Err(error) = rows.parse::<Pointer>() {
        return Err(ToolError::new(format!("rows: {error}.")));
    }

    let kind = match layout {
        Layout::Json => return Ok(()),
        Layout::JsonLines if !is_sql => return Ok(()),
        Layout::JsonLines => "NDJSON, whose rows are its lines",
        Layout::Rows(_) => "a table, whose rows are below its header",
        Layout::Log => "a log, whose rows are its lines",
    };
    Err(ToolError::new(format!("rows is for JSON, and {name} is {kind}: leave it out.")))
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
