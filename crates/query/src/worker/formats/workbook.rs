//! Workbooks of Excel and OpenDocument as CSV.

use std::io::Cursor;

use calamine::{Data, Reader, open_workbook_auto_from_rs};
use larder_records::{Converted, Dialect, Layout};

use super::{chosen, csv, listed, part_name};

/// A sheet as CSV: the named one, or the first one that is not empty.
pub(super) fn convert(bytes: &[u8], part: Option<&str>) -> Result<Converted, String> {
    let problem = |error: calamine::Error| format!("it is no workbook that can be read: {error}");
    let mut workbook = open_workbook_auto_from_rs(Cursor::new(bytes)).map_err(problem)?;
    let names = workbook.sheet_names();

    let wanted = match part.filter(|part| !part.is_empty()).map(part_name) {
        None => names.clone(),
        Some(name) if names.contains(&name) => vec![name],
        Some(name) => return Err(format!("it has no sheet {name}. Sheets: {}", listed(&names))),
    };

    for name in wanted {
        let sheet = workbook.worksheet_range(&name).map_err(problem)?;
        if sheet.is_empty() {
            continue;
        }

        let rows = sheet.rows().map(|row| row.iter().map(field).collect::<Vec<_>>());
        let rows = rows.filter(|row| row.iter().any(|field| !field.is_empty()));
        let bytes = csv(rows).ok_or("its rows cannot be written")?;

        // Lines above the table and columns without names are those of any table.
        let text = String::from_utf8_lossy(&bytes);
        let detected = larder_records::declared_table(&text);
        let dialect =
            Dialect { skip: detected.skip, header: detected.header, ..Dialect::delimited(b',') };

        let mut told = format!("read from the sheet {name}");
        if names.len() > 1 {
            told += &format!(
                " of {}; rows names another one, such as \"/{}\"",
                listed(&names),
                names[names.len() - 1]
            );
        }
        return Ok(Converted { layout: Layout::Rows(dialect), bytes, notes: vec![chosen(told)] });
    }

    Err(format!("its sheets are empty: {}", listed(&names)))
}

/// A cell as a field of CSV.
fn field(cell: &Data) -> String {
    match cell {
        Data::Empty => String::new(),
        Data::Int(number) => number.to_string(),
        Data::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            format!("{number:.0}")
        }
        Data::Float(number) => number.to_string(),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Bool(value) => value.to_string(),
        Data::Error(error) => error.to_string(),
        Data::DateTime(time) => match time.as_datetime() {
            Some(date) if !time.is_duration() => {
                let text = date.format("%Y-%m-%d %H:%M:%S").to_string();
                text.strip_suffix(" 00:00:00").map_or(text.clone(), str::to_owned)
            }
            _ => time.as_f64().to_string(),
        },
    }
}
