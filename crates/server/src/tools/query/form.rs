//! How a resource is read as rows: what its bytes show, changed as the caller says.

use larder_records::{Conversion, Dialect, Layout, TableOptions, TextEncoding};
use larder_store::store::{Form, StoredResource};

use super::Format;
use crate::handler::ToolError;

/// Finds how the content is divided into rows. The layout is always given.
pub(super) async fn find(
    content: &StoredResource,
    format: Format,
    options: &TableOptions,
) -> Result<Form, ToolError> {
    let encoding = match options.encoding {
        None => None,
        Some(charset) => {
            let (head, _) = content.head_and_tail(16, 0).await?;
            Some(TextEncoding::given(&head, charset))
        }
    };

    let is_table = format == Format::Csv || (format == Format::Auto && options.make_a_table());
    let is_auto = format == Format::Auto;
    let Some(found) = content.form(None, encoding).await? else {
        return Err(binary(content).await?);
    };

    // Sheets and members are tables of their own, and so are those of a page, unless a delimiter
    // says that it is no page.
    let is_of_bytes = found.conversion.is_some_and(Conversion::is_of_bytes);
    if is_of_bytes && !is_auto && format != Format::Csv {
        return Err(ToolError::new(format!(
            "{} is a workbook or a zip archive, whose parts have formats of their own: leave format out.",
            content.entry.uri
        )));
    }
    let is_page = is_auto && options.delimiter.is_none();
    if is_of_bytes || (is_page && found.conversion.is_some_and(Conversion::has_parts)) {
        return Ok(Form { layout: found.layout.or(Some(Layout::Log)), ..found });
    }
    let form = if is_table {
        content.form(Some("text/csv"), encoding).await?.unwrap_or(found)
    } else {
        found
    };

    let layout = match format {
        Format::Json => Layout::Json,
        Format::Ndjson => Layout::JsonLines,
        Format::Tsv => Layout::Rows(options.apply(Dialect::delimited(b'\t'))),
        Format::Log => Layout::Log,
        Format::Csv | Format::Auto => match form.layout {
            Some(Layout::Rows(detected)) => Layout::Rows(options.apply(detected)),
            _ if is_table => Layout::Rows(options.apply(Dialect::delimited(b','))),
            layout => layout.unwrap_or(Layout::Log),
        },
    };

    let may_change = (is_auto || format == Format::Json) && !is_table;
    let conversion = form.conversion.filter(|_| may_change);
    Ok(Form { layout: Some(layout), conversion, ..form })
}

/// The error of content that is no text and has no rows.
async fn binary(content: &StoredResource) -> Result<ToolError, ToolError> {
    let entry = &content.entry;
    let (head, _) = content.head_and_tail(16, 0).await?;
    let advice = Conversion::advice(&head).map(|advice| format!(" {advice}."));
    Ok(ToolError::new(format!(
        "{} is binary ({}) and has no rows.{}",
        entry.uri,
        entry.mime_type,
        advice.unwrap_or_default()
    )))
}
