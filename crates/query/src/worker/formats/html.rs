//! Tables of HTML as CSV.

mod grid;

use html5gum::{Token, Tokenizer};
use larder_records::{Converted, Dialect, Layout, TableOptions, words::count};

use self::grid::{FullTable, Grid, SpanningCell};
use super::{chosen, csv, listed, part_name};

/// The most columns that a cell spans, as browsers take it.
const MAX_COLUMNS: usize = 1_000;
/// The most bytes of the cells of all tables, which are repeated where they span.
const MAX_BYTES: usize = 128 << 20;

/// A table: the one with the number that is named, from 0, or the one with the most cells. `None`
/// if the page has none and none is named.
pub(super) fn convert(
    bytes: &[u8],
    part: Option<&str>,
    options: &TableOptions,
) -> Result<Option<Converted>, String> {
    let mut found = Tables { room: MAX_BYTES, ..Tables::default() };
    let text = String::from_utf8_lossy(bytes);
    for token in Tokenizer::new(&*text).flatten() {
        found.token(token);
    }
    let tables = found.finish()?;

    let part = part.filter(|part| !part.is_empty());
    let chosen_index = match part {
        Some(part) => named(&part_name(part), tables.len())?,
        // Of several that are equally large, the first one.
        None => {
            let size = |index: &usize| tables[*index].cells();
            match (0..tables.len()).rev().max_by_key(size) {
                Some(index) => index,
                None => return Ok(None),
            }
        }
    };

    let mut notes = vec![chosen(told(chosen_index, tables.len()))];
    let table = tables.into_iter().nth(chosen_index).unwrap_or_default();
    notes.extend(table.notes());
    let dialect = Dialect { header: table.has_header(), ..Dialect::delimited(b',') };
    let dialect = options.apply_to_rows(dialect);
    let bytes = csv(table.rows).ok_or("its rows cannot be written")?;
    let layout = Layout::Rows(dialect);
    Ok(Some(Converted { layout, bytes, notes, is_for_tables: false }))
}

/// The index of the table that `rows` of the query names.
fn named(name: &str, tables: usize) -> Result<usize, String> {
    if tables == 0 {
        return Err(format!("it has no table {name}: it is HTML without tables; leave rows out"));
    }

    let index = name.parse().ok().filter(|index| *index < tables);
    index.ok_or_else(|| {
        let names: Vec<_> = (0..tables).map(|index| format!("\"/{index}\"")).collect();
        format!("it has no table {name}. Tables of HTML are counted from 0: {}", listed(&names))
    })
}

fn told(index: usize, tables: usize) -> String {
    if tables == 1 {
        return "read from a table of HTML".to_owned();
    }
    format!(
        "read from table {index} of {} of HTML, counted from 0; rows names another one, such as \"/{}\"",
        count(tables as u64, "table"),
        usize::from(index == 0),
    )
}

/// Collects the tables of a page. A table within another one is a table of its own.
#[derive(Default)]
struct Tables {
    /// The tables in the order of their first tags; empty ones while they are open.
    all: Vec<FullTable>,
    /// The tables that are open, the innermost last.
    open: Vec<OpenTable>,
    /// The depth of elements whose text is not shown.
    hidden: usize,
    /// The bytes that further cells may have.
    room: usize,
    is_too_long: bool,
}

#[derive(Default)]
struct OpenTable {
    /// The place among all tables.
    index: usize,
    grid: Grid,
    row: Option<Vec<SpanningCell>>,
    cell: Option<SpanningCell>,
}

impl Tables {
    /// The tables of more than one row.
    fn finish(mut self) -> Result<Vec<FullTable>, String> {
        // A page that was cut does not close its tables.
        while !self.open.is_empty() {
            self.end_table();
        }
        if self.is_too_long {
            return Err(format!(
                "the cells of its tables are longer than {MAX_BYTES} bytes where they are repeated in the rows and columns that they span"
            ));
        }
        Ok(self.all.into_iter().filter(FullTable::has_rows).collect())
    }

    fn token(&mut self, token: Token) {
        match token {
            Token::StartTag(tag) => {
                let span = |name: &[u8]| {
                    let value = String::from_utf8_lossy(tag.attributes.get(name)?).into_owned();
                    value.trim().parse::<usize>().ok()
                };
                let cell = SpanningCell {
                    text: String::new(),
                    is_head: &*tag.name == b"th",
                    columns: span(b"colspan").unwrap_or(1).clamp(1, MAX_COLUMNS),
                    // 0 are all further rows of the section.
                    rows: match span(b"rowspan") {
                        Some(0) => usize::MAX,
                        rows => rows.unwrap_or(1),
                    },
                };
                self.start(&tag.name, cell, tag.self_closing);
            }
            Token::EndTag(tag) => self.end(&tag.name),
            Token::String(text) if self.hidden == 0 => {
                if let Some(cell) = self.open.last_mut().and_then(|open| open.cell.as_mut()) {
                    cell.text.push_str(&String::from_utf8_lossy(&text.value));
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, name: &[u8], cell: SpanningCell, is_empty: bool) {
        match name {
            b"script" | b"style" if !is_empty => self.hidden += 1,
            b"table" => {
                // Only a cell has a table within; elsewhere it ends the one before.
                if self.open.last().is_some_and(|open| open.cell.is_none()) {
                    self.end_table();
                }
                self.open.push(OpenTable { index: self.all.len(), ..OpenTable::default() });
                self.all.push(FullTable::default());
            }
            b"thead" | b"tbody" | b"tfoot" => self.end_section(),
            b"tr" => {
                self.end_row();
                if let Some(open) = self.open.last_mut() {
                    open.row = Some(Vec::new());
                }
            }
            b"td" | b"th" => {
                if let Some(open) = self.open.last_mut() {
                    open.end_cell();
                    open.row.get_or_insert_default();
                    open.cell = Some(cell);
                }
            }
            b"br" | b"p" | b"div" | b"li" => {
                if let Some(cell) = self.open.last_mut().and_then(|open| open.cell.as_mut()) {
                    cell.text.push(' ');
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        match name {
            b"script" | b"style" => self.hidden = self.hidden.saturating_sub(1),
            b"table" => self.end_table(),
            b"thead" | b"tbody" | b"tfoot" => self.end_section(),
            b"tr" => self.end_row(),
            b"td" | b"th" => {
                if let Some(open) = self.open.last_mut() {
                    open.end_cell();
                }
            }
            _ => {}
        }
    }

    fn end_row(&mut self) {
        let Some(open) = self.open.last_mut() else { return };
        open.end_cell();
        let Some(row) = open.row.take() else { return };

        if self.is_too_long {
            return;
        }
        let added = open.grid.add(row, self.room);
        match added.and_then(|bytes| self.room.checked_sub(bytes)) {
            Some(room) => self.room = room,
            None => self.is_too_long = true,
        }
    }

    fn end_section(&mut self) {
        self.end_row();
        if let Some(open) = self.open.last_mut() {
            open.grid.end_section();
        }
    }

    fn end_table(&mut self) {
        self.end_row();
        if let Some(open) = self.open.pop() {
            self.all[open.index] = open.grid.finish();
        }
    }
}

impl OpenTable {
    fn end_cell(&mut self) {
        let Some(mut cell) = self.cell.take() else { return };
        cell.text = cell.text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.row.get_or_insert_default().push(cell);
    }
}

#[cfg(test)]
mod tests;
