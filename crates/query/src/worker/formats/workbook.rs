//! Workbooks of Excel and OpenDocument as CSV.

use std::io::Cursor;

use calamine::{
    Data, Dimensions, ExcelDateTime, Range, Reader, SheetVisible, Sheets,
    open_workbook_auto_from_rs,
};
use larder_records::{
    Converted, Dialect, Layout, TableOptions,
    notes::{Note, NoteKind},
    words::count,
};

use super::{chosen, csv, listed, part_name, part_pointer};

/// The most fields of a sheet, whose cells are far apart in hostile ones.
const MAX_FIELDS: usize = 20_000_000;

type Workbook<'a> = Sheets<Cursor<&'a [u8]>>;

/// A sheet as CSV: the named one, or the first one that is shown and not empty.
pub(super) fn convert(
    bytes: &[u8],
    part: Option<&str>,
    options: &TableOptions,
) -> Result<Converted, String> {
    let mut workbook: Workbook<'_> = open_workbook_auto_from_rs(Cursor::new(bytes))
        .map_err(|error| format!("it is no workbook that can be read: {error}"))?;
    let names = workbook.sheet_names();

    let part = part.filter(|part| !part.is_empty()).map(part_name);
    let (name, range) = match part {
        Some(name) if names.contains(&name) => {
            let range = workbook.worksheet_range(&name);
            let range = range.map_err(|error| format!("its sheet {name} cannot be read: {error}"));
            (name, range?)
        }
        Some(name) => return Err(format!("it has no sheet {name}. Sheets: {}", listed(&names))),
        None => first_sheet(&mut workbook)?,
    };
    if range.is_empty() {
        return Err(format!("its sheet {name} is empty. Sheets: {}", listed(&names)));
    }

    let mut notes = vec![chosen(told(&name, &names))];
    let sheet = Sheet::new(&mut workbook, &name, &range)?;
    notes.extend(sheet.notes());
    let (bytes, dialect) = sheet.csv(options)?;
    Ok(Converted { layout: Layout::Rows(dialect), bytes, notes, is_for_tables: false })
}

/// The first sheet that has cells; hidden ones come last.
fn first_sheet(workbook: &mut Workbook<'_>) -> Result<(String, Range<Data>), String> {
    let mut sheets = workbook.sheets_metadata().to_vec();
    sheets.sort_by_key(|sheet| sheet.visible != SheetVisible::Visible);
    let names: Vec<_> = sheets.into_iter().map(|sheet| sheet.name).collect();

    let mut problem = None;
    for name in &names {
        match workbook.worksheet_range(name) {
            Ok(range) if range.is_empty() => {}
            Ok(range) => return Ok((name.clone(), range)),
            // A chart has a sheet of its own.
            Err(error) => {
                problem.get_or_insert_with(|| format!("its sheet {name} cannot be read: {error}"));
            }
        }
    }
    Err(problem.unwrap_or_else(|| format!("its sheets are empty: {}", listed(&names))))
}

fn told(name: &str, names: &[String]) -> String {
    let told = format!("read from the sheet {name}");
    match names.iter().find(|other| *other != name) {
        None => told,
        Some(other) => format!(
            "{told} of {}; rows names another one, such as \"{}\"",
            listed(names),
            part_pointer(other)
        ),
    }
}

/// The cells of a sheet as fields.
struct Sheet {
    rows: Vec<Vec<String>>,
    /// The number of the first row, from 0.
    first_row: usize,
    /// The number of merged cells whose value is repeated.
    merged: u64,
    /// The number of formulas without a value.
    unread: u64,
    /// The place of the first of them.
    first_unread: Option<String>,
}

impl Sheet {
    fn new(workbook: &mut Workbook<'_>, name: &str, range: &Range<Data>) -> Result<Self, String> {
        let (height, width) = range.get_size();
        if height.saturating_mul(width) > MAX_FIELDS {
            return Err(format!(
                "its sheet {name} spans {height} rows and {width} columns, more than is read"
            ));
        }

        let (first_row, first_column) = range.start().unwrap_or_default();
        let mut sheet = Self {
            rows: range.rows().map(|row| row.iter().map(field).collect()).collect(),
            first_row: first_row as usize,
            merged: 0,
            unread: 0,
            first_unread: None,
        };

        for merged in merged_cells(workbook, name) {
            sheet.repeat(merged, first_column as usize);
        }
        if let Ok(formulas) = workbook.worksheet_formula(name) {
            sheet.count_unread(range, &formulas);
        }
        Ok(sheet)
    }

    /// Repeats the value of a merged cell in all its rows and columns.
    fn repeat(&mut self, merged: Dimensions, first_column: usize) {
        let place = |(row, column): (u32, u32)| {
            let row = (row as usize).checked_sub(self.first_row)?;
            Some((row, (column as usize).checked_sub(first_column)?))
        };
        let (Some((top, left)), Some((bottom, right))) = (place(merged.start), place(merged.end))
        else {
            return;
        };
        let Some(row) = self.rows.get(top) else { return };
        let Some(value) = row.get(left).filter(|value| !value.is_empty()).cloned() else { return };

        // A value that is alone in its row is a title.
        let others = row.iter().enumerate().filter(|(column, _)| *column != left);
        if top == bottom && others.into_iter().all(|(_, field)| field.is_empty()) {
            return;
        }

        let bottom = bottom.min(self.rows.len() - 1);
        for row in &mut self.rows[top..=bottom] {
            let right = right.min(row.len().saturating_sub(1));
            for field in row.iter_mut().take(right + 1).skip(left) {
                field.clone_from(&value);
            }
        }
        self.merged += 1;
    }

    /// Counts the formulas that the program which wrote the sheet has not computed.
    fn count_unread(&mut self, range: &Range<Data>, formulas: &Range<String>) {
        let Some((first_row, first_column)) = formulas.start() else { return };
        for (row, column, formula) in formulas.used_cells() {
            let row = first_row + u32::try_from(row).unwrap_or(u32::MAX);
            let column = first_column + u32::try_from(column).unwrap_or(u32::MAX);
            let is_empty = match range.get_value((row, column)) {
                None | Some(Data::Empty) => true,
                Some(Data::String(text)) => text.is_empty(),
                Some(_) => false,
            };
            if is_empty && !formula.is_empty() {
                self.unread += 1;
                self.first_unread.get_or_insert_with(|| format!("{}{}", letters(column), row + 1));
            }
        }
    }

    fn notes(&self) -> Vec<Note> {
        let note = |count, text| Note {
            kind: NoteKind::Repaired,
            table: None,
            column: None,
            count,
            first: None,
            text,
        };
        let mut notes = Vec::new();
        if self.merged > 0 {
            let cells = count(self.merged, "merged cell");
            let verb = if self.merged == 1 { "is" } else { "are" };
            let text = format!("{cells} {verb} repeated in each of its rows and columns");
            notes.push(note(self.merged, text));
        }
        if let Some(first) = &self.first_unread {
            let formulas = count(self.unread, "formula");
            let text = format!(
                "{formulas} without a stored value, first in {first}, taken as null: open and save the workbook in a spreadsheet program"
            );
            notes.push(note(self.unread, text));
        }
        notes
    }

    /// The rows that are not empty. `skip` of the options counts rows of the sheet.
    fn csv(self, options: &TableOptions) -> Result<(Vec<u8>, Dialect), String> {
        let skipped = options.skip.map_or(0, |skip| (skip as usize).saturating_sub(self.first_row));
        let rows = self.rows.into_iter().skip(skipped);
        let rows = rows.filter(|row| row.iter().any(|field| !field.is_empty()));
        let bytes = csv(rows).ok_or("its rows cannot be written")?;

        // Lines above the table and columns without names are those of any table.
        let detected = larder_records::declared_table(&String::from_utf8_lossy(&bytes));
        let dialect =
            Dialect { skip: detected.skip, header: detected.header, ..Dialect::delimited(b',') };
        let skip = if options.skip.is_some() { 0 } else { dialect.skip };
        Ok((bytes, Dialect { skip, ..options.apply_to_rows(dialect) }))
    }
}

/// The merged cells of a sheet; none if the format has none that are known.
fn merged_cells(workbook: &mut Workbook<'_>, name: &str) -> Vec<Dimensions> {
    match workbook {
        Sheets::Xlsx(workbook) => workbook.merge_cells_by_sheet_name(name).unwrap_or_default(),
        Sheets::Xls(workbook) => workbook.merge_cells_by_sheet_name(name).unwrap_or_default(),
        Sheets::Xlsb(_) | Sheets::Ods(_) => Vec::new(),
    }
}

/// The letters of a column, from 0: `A`, `Z`, `AA`.
fn letters(column: u32) -> String {
    let mut rest = u64::from(column) + 1;
    let mut letters = Vec::new();
    while rest > 0 {
        let digit = u8::try_from((rest - 1) % 26).unwrap_or_default();
        letters.push(char::from(b'A' + digit));
        rest = (rest - 1) / 26;
    }
    letters.into_iter().rev().collect()
}

/// A cell as a field of CSV.
fn field(cell: &Data) -> String {
    match cell {
        Data::Empty => String::new(),
        Data::Int(number) => number.to_string(),
        Data::Float(number) => of_float(*number),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Bool(value) => value.to_string(),
        Data::Error(error) => error.to_string(),
        Data::DateTime(time) => of_time(time),
    }
}

fn of_float(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number:.0}")
    } else {
        number.to_string()
    }
}

/// A date, with a time unless it is midnight; a time of no day; or a duration in hours.
fn of_time(time: &ExcelDateTime) -> String {
    let days = time.as_f64();
    if time.is_duration() || (0.0..1.0).contains(&days) {
        return hours(days);
    }

    match time.as_datetime() {
        Some(date) => {
            let text = date.format("%Y-%m-%d %H:%M:%S%.f").to_string();
            text.strip_suffix(" 00:00:00").map_or(text.clone(), str::to_owned)
        }
        None => of_float(days),
    }
}

/// Days as hours, minutes and seconds: `36:30:00`.
#[allow(clippy::cast_possible_truncation, reason = "durations have few digits")]
fn hours(days: f64) -> String {
    let millis = (days * 86_400_000.0).round() as i64;
    let sign = if millis < 0 { "-" } else { "" };
    let millis = millis.unsigned_abs();
    let seconds = millis / 1_000;
    let rest = millis % 1_000;
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
    format!("{sign}{:02}:{:02}:{:02}{fraction}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests;
