//! Conversion of content before it is read as rows: the content is changed as a whole, in the
//! confined process, and takes the place of what was stored.

use larder_records::{Conversion, Converted, Layout, words::number};

use super::{channel::Channel, formats};
use crate::{Engine, QueryError, Question};

/// The most bytes of content that is changed as a whole. It is in memory twice meanwhile.
const MAX_BYTES: usize = 64 << 20;

/// Changes the contents of all tables that need it. The layouts of the question are then those of
/// the changed contents.
pub(super) fn prepare(question: &mut Question, channel: &mut Channel) -> Result<(), QueryError> {
    let is_jq = question.engine != Engine::Sql;

    for (index, table) in question.tables.iter_mut().enumerate() {
        // A query in SQL before may have changed what a filter reads as it is.
        if is_jq && table.conversion.is_some_and(Conversion::is_for_tables) {
            if channel.converted(index).is_some() {
                channel.restore(index, table.encoding);
            }
            continue;
        }
        if let Some(layout) = channel.converted(index) {
            table.layout = layout;
            if table.conversion.is_some_and(formats::has_parts) {
                table.rows = None;
            }
            continue;
        }

        let Some(conversion) = table.conversion else { continue };
        let part = table.rows.as_deref().filter(|_| formats::has_parts(conversion));
        if let Some(layout) = convert(index, &table.name, conversion, part, channel)? {
            table.layout = layout;
            if formats::has_parts(conversion) {
                table.rows = None;
            }
        }
    }
    Ok(())
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
            && channel.converted(*index).is_none()
    });
    refused.next().is_some_and(|(_, table)| {
        table.conversion = Some(Conversion::LooseJson);
        true
    })
}

/// Changes the content of a table. Returns its new layout, or `None` if it is not what it seemed.
fn convert(
    index: usize,
    table: &str,
    conversion: Conversion,
    part: Option<&str>,
    channel: &mut Channel,
) -> Result<Option<Layout>, QueryError> {
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
        return Err(QueryError::Content { table: table.to_owned(), problem });
    }

    let converted = formats::convert(conversion, &bytes, part)
        .map_err(|problem| QueryError::Content { table: table.to_owned(), problem })?;
    let Some(Converted { layout, bytes, notes }) = converted else { return Ok(None) };
    channel.replace(index, layout, bytes, notes);
    Ok(Some(layout))
}
