//! [`Grid`]: the rows of a table of HTML, whose cells span rows and columns.

use larder_protocol::quote::shortened;
use larder_records::{
    notes::{Note, NoteKind},
    words::count,
};

use super::super::chosen;

/// A cell, and how many rows and columns it spans.
#[derive(Debug, Clone, Default)]
pub(super) struct SpanningCell {
    pub(super) text: String,
    /// Whether it is a cell of a header.
    pub(super) is_head: bool,
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Places the cells of a table in its rows.
#[derive(Debug, Default)]
pub(super) struct Grid {
    rows: Vec<GridRow>,
    /// The cells that span further rows, by column: how many, and the cell.
    spans: Vec<Option<(usize, SpanningCell)>>,
    /// The number of cells that were repeated.
    repeated: u64,
}

#[derive(Debug, Default)]
struct GridRow {
    fields: Vec<String>,
    /// Whether all cells with a text are those of a header, or some are.
    heads: Heads,
    /// Whether it has one cell, which spans several columns.
    is_lone: bool,
}

/// The cells of a header among those of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Heads {
    #[default]
    None,
    Some,
    All,
}

/// A table with one field for each row and column.
#[derive(Debug, Default)]
pub(super) struct FullTable {
    pub(super) rows: Vec<Vec<String>>,
    heads: Heads,
    /// The texts that stand above the columns.
    titles: Vec<String>,
    repeated: u64,
    joined_heads: u64,
}

impl Grid {
    /// Adds a row. Returns the bytes of its fields; `None` if they are more than `room`.
    pub(super) fn add(&mut self, cells: Vec<SpanningCell>, room: usize) -> Option<usize> {
        let is_lone = matches!(&cells[..], [only] if only.columns > 1 && only.rows == 1)
            && self.spans.iter().all(Option::is_none);
        let is_empty = cells.is_empty();
        self.repeated += cells.iter().filter(|cell| cell.is_repeated(is_lone)).count() as u64;

        let mut placed: Vec<SpanningCell> = Vec::new();
        let mut bytes = 0;
        let mut cells = cells.into_iter();
        loop {
            if let Some(cell) = self.spanning(placed.len()) {
                bytes += cell.text.len() + 1;
                placed.push(cell);
            } else if let Some(cell) = cells.next() {
                // Each copy takes more room than its text.
                bytes += cell.columns * (cell.text.len() + size_of::<SpanningCell>());
                if bytes > room {
                    return None;
                }
                self.place(&cell, &mut placed);
            } else if self.spans.iter().skip(placed.len()).any(Option::is_some) {
                placed.push(SpanningCell::default());
            } else {
                break;
            }
        }

        // A row without cells of its own only ends spans.
        if is_empty {
            return Some(0);
        }
        let heads = heads(&placed);
        let fields = placed.into_iter().map(|cell| cell.text).collect();
        self.rows.push(GridRow { fields, heads, is_lone });
        Some(bytes)
    }

    /// The cell of a row above that spans this row, too.
    fn spanning(&mut self, column: usize) -> Option<SpanningCell> {
        let span = self.spans.get_mut(column)?;
        let (rows, cell) = span.take()?;
        let copy = cell.clone();
        *span = rows.checked_sub(1).filter(|left| *left > 0).map(|left| (left, cell));
        Some(copy)
    }

    fn place(&mut self, cell: &SpanningCell, placed: &mut Vec<SpanningCell>) {
        for _ in 0..cell.columns {
            let column = placed.len();
            // Cells may overlap; the later one is on top.
            self.spanning(column);
            if cell.rows > 1 {
                if self.spans.len() <= column {
                    self.spans.resize_with(column + 1, || None);
                }
                self.spans[column] = Some((cell.rows - 1, cell.clone()));
            }
            placed.push(cell.clone());
        }
    }

    /// Ends a section, beyond which no cell spans.
    pub(super) fn end_section(&mut self) {
        self.spans.clear();
    }

    pub(super) fn finish(self) -> FullTable {
        let Self { mut rows, repeated, .. } = self;
        let others = rows.iter().filter(|row| !row.is_lone);
        let width = others.map(|row| row.fields.len()).max().unwrap_or(0);

        // A text across all columns is a title above the table, or that of a group of rows.
        for row in rows.iter_mut().filter(|row| row.is_lone && row.fields.len() >= width) {
            row.fields.truncate(width.max(1));
            row.fields.iter_mut().skip(1).for_each(String::clear);
        }
        let first = rows.iter().position(|row| !row.is_lone).unwrap_or(0);
        let titles = rows.drain(..first).filter_map(|row| row.fields.into_iter().next()).collect();

        let heads = rows.first().map_or(Heads::None, |row| row.heads);
        let joined_heads = join_heads(&mut rows);
        let rows = rows.into_iter().map(|row| row.fields).collect();
        FullTable { rows, heads, titles, repeated, joined_heads }
    }
}

impl SpanningCell {
    fn is_repeated(&self, is_lone: bool) -> bool {
        !is_lone && !self.text.is_empty() && (self.columns > 1 || self.rows > 1)
    }
}

fn heads(cells: &[SpanningCell]) -> Heads {
    let any = cells.iter().any(|cell| cell.is_head);
    let all = cells.iter().all(|cell| cell.is_head || cell.text.is_empty());
    match (any, all) {
        (false, _) => Heads::None,
        (true, false) => Heads::Some,
        (true, true) => Heads::All,
    }
}

/// Makes one header of several rows of one. Returns their number.
fn join_heads(rows: &mut Vec<GridRow>) -> u64 {
    let heads = rows.iter().take_while(|row| row.heads == Heads::All && !row.is_lone).count();
    if heads < 2 || heads == rows.len() {
        return 0;
    }

    let width = rows[..heads].iter().map(|row| row.fields.len()).max().unwrap_or(0);
    let name = |column: usize| {
        let mut parts: Vec<&str> = Vec::new();
        for part in rows[..heads].iter().filter_map(|row| row.fields.get(column)) {
            if !part.is_empty() && parts.last() != Some(&&**part) {
                parts.push(part);
            }
        }
        parts.join("_")
    };
    let fields = (0..width).map(name).collect();
    let header = GridRow { fields, heads: Heads::All, is_lone: false };
    rows.splice(..heads, [header]);
    heads as u64
}

impl FullTable {
    pub(super) fn has_rows(&self) -> bool {
        self.rows.len() > 1
    }

    /// The number of fields.
    pub(super) fn cells(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Whether the first row has names. One without cells of a header has, unless it has numbers.
    pub(super) fn has_header(&self) -> bool {
        let is_number = |field: &String| field.replace(',', "").parse::<f64>().is_ok();
        match self.heads {
            Heads::All => true,
            // Each row begins with its name.
            Heads::Some => false,
            Heads::None => !self.rows.first().is_some_and(|row| row.iter().any(is_number)),
        }
    }

    /// How the table was changed.
    pub(super) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if self.repeated > 0 {
            let verb = if self.repeated == 1 { "is" } else { "are" };
            let text = format!(
                "{} that span rows or columns {verb} repeated in each",
                count(self.repeated, "cell")
            );
            let kind = NoteKind::Repaired;
            let count = self.repeated;
            notes.push(Note { kind, table: None, column: None, count, first: None, text });
        }
        if self.joined_heads > 0 {
            notes.push(chosen(format!(
                "the {} of the header are joined by _",
                count(self.joined_heads, "row")
            )));
        }
        if let Some(title) = self.titles.first() {
            notes.push(chosen(format!("{} stands above it", shortened(title))));
        }
        notes
    }
}
