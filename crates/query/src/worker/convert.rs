//! Conversion of content before it is read as rows: the content is changed as a whole, in the
//! confined process, and takes the place of what was stored.

use larder_records::{Conversion, Converted, Layout, words::number};

use super::{
    channel::{Channel, ContentChange},
    formats,
};
use crate::{Engine, QueryError, Question, Table};

/// The most bytes of content that is changed as a whole. It is in memory twice meanwhile.
const MAX_BYTES: usize = 64 << 20;

/// Changes the contents of all tables that need it. The layouts of the question are then those of
/// the changed contents.
pub(super) fn prepare(question: &mut Question, channel: &mut Channel) -> Result<(), QueryError> {
    let is_jq = question.engine != Engine::Sql;

    for (index, table) in question.tables.iter_mut().enumerate() {
        // A query in the other language may have changed what this one reads otherwise.
        let earlier = channel.change(index);
        let is_of_other = |change: &ContentChange| {
            change.is_for_filters != is_jq && differs_for_filters(change.conversion)
        };
        if earlier.as_ref().is_some_and(is_of_other) {
            channel.restore(index, table.encoding);
        }

        let layout = match (channel.change(index), table.conversion) {
            (Some(change), _) => Some(change.layout),
            (None, Some(conversion)) => convert(index, table, conversion, is_jq, channel)?,
            (None, None) => None,
        };
        if let Some(layout) = layout {
            table.layout = layout;
            if table.conversion.is_some_and(Conversion::has_parts) {
                table.rows = None;
            }
            check_options(table, is_jq)?;
        }
    }
    Ok(())
}

/// Fails if an option says nothing about what content was changed to.
fn check_options(table: &Table, is_jq: bool) -> Result<(), QueryError> {
    let kind = match table.layout {
        Layout::Json => "JSON",
        Layout::JsonLines => "a JSON value on each line",
        Layout::Rows(_) => "a table",
        Layout::Log => "lines of text",
    };
    let is_json = table.layout == Layout::Json || (is_jq && table.layout == Layout::JsonLines);
    // Rows with columns apart are named by their list, too.
    let has_pointer = table.rows.is_some() && !table.conversion.is_some_and(differs_for_filters);
    let has_fields = table.options.nulls.is_some() || table.options.decimal.is_some();

    let wrong = [
        ("pattern", "lines of text", table.pattern.is_some() && table.layout != Layout::Log),
        ("rows", "JSON", has_pointer && !is_json),
        ("nulls and decimal", "tables", has_fields && !matches!(table.layout, Layout::Rows(_))),
    ];
    match wrong.into_iter().find(|(.., is_wrong)| *is_wrong) {
        None => Ok(()),
        Some((option, of, _)) => Err(QueryError::Refused(format!(
            "{option}: for {of}, and {} is read as {kind}: leave it out.",
            table.name
        ))),
    }
}

/// Whether a filter gets the content of a table in another form than SQL.
fn differs_for_filters(conversion: Conversion) -> bool {
    conversion == Conversion::LooseJson || conversion.is_for_tables()
}

/// The tables of JSON that a strict parser has refused, as JSON that needs repair. False if there
/// are none.
pub(super) fn repair_refused(
    question: &mut Question,
    error: &QueryError,
    channel: &Channel,
) -> bool {
    let QueryError::Content { table: refused, .. } = error else { return false };

    let tables = question.tables.iter_mut().enumerate();
    let mut refused = tables.filter(|(index, table)| {
        table.name == *refused
            && table.layout == Layout::Json
            && table.conversion.is_none()
            && channel.change(*index).is_none()
    });
    refused.next().is_some_and(|(_, table)| {
        table.conversion = Some(Conversion::LooseJson);
        true
    })
}

/// Changes the content of a table. Returns its new layout, or `None` if it is not what it seemed.
fn convert(
    index: usize,
    table: &Table,
    conversion: Conversion,
    is_jq: bool,
    channel: &mut Channel,
) -> Result<Option<Layout>, QueryError> {
    if is_jq && conversion.is_for_tables() {
        return Ok(None);
    }

    let mut bytes = Vec::new();
    let mut is_too_long = false;
    let mut content = channel.content(index)?;
    content.blocks(|block, _| {
        is_too_long |= bytes.len() + block.len() > MAX_BYTES;
        if is_too_long {
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(block);
        }
        Ok(())
    })?;
    drop(content);

    // JSON that a strict parser reads has rows all the same.
    if is_too_long && conversion.is_for_tables() {
        return Ok(None);
    }
    if is_too_long {
        let problem = format!(
            "it has to be changed to be read, and is longer than {} bytes, the most that is changed",
            number(MAX_BYTES as u64)
        );
        return Err(QueryError::Content { table: table.name.clone(), problem });
    }

    let converted = if is_jq && differs_for_filters(conversion) {
        conversion.convert_for_filters(&bytes)
    } else {
        let part = table.rows.as_deref().filter(|_| conversion.has_parts());
        formats::convert(conversion, &bytes, part, &table.options)
            .map_err(|problem| QueryError::Content { table: table.name.clone(), problem })?
    };
    let Some(Converted { layout, bytes, notes, .. }) = converted else { return Ok(None) };

    let change = ContentChange { conversion, layout, is_for_filters: is_jq };
    channel.replace(index, change, bytes, notes);
    Ok(Some(layout))
}
