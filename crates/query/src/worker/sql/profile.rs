//! The first pass over a table's content: its columns, their types, the number
//! of rows.

use std::{collections::BTreeSet, fmt::Write};

use larder_records::{Layout, Lists, Pointer};

use crate::{
    QueryError, ReadCounts, Table,
    cell::{Cell, Field},
    worker::{
        Deadline,
        channel::Channel,
        decode::{Columns, Sink, content_error, read},
    },
};

/// What is known about a table.
pub(super) struct Profile {
    pub(super) spec: Table,
    /// Where the rows are, in JSON.
    pub(super) at: Pointer,
    pub(super) columns: Columns,
    pub(super) kinds: Kinds,
    pub(super) counts: ReadCounts,
    /// The columns whose values are in the table, once it is loaded.
    pub(super) loaded: Option<BTreeSet<usize>>,
}

/// The types of the values of each column.
#[derive(Debug, Default)]
pub(super) struct Kinds(Vec<Kind>);

#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "one for each type")]
struct Kind {
    integers: bool,
    reals: bool,
    texts: bool,
    /// Digits that a number would lose.
    codes: bool,
}

impl Kinds {
    /// Whether the column has codes, so that all its numbers are text.
    pub(super) fn is_code(&self, column: usize) -> bool {
        self.0.get(column).is_some_and(|kind| kind.codes)
    }

    /// The type by which SQLite compares the column with texts and numbers.
    fn declared(&self, column: usize) -> &'static str {
        let kind = self.0.get(column).copied().unwrap_or_default();
        match (kind.texts || kind.codes, kind.integers, kind.reals) {
            _ if kind.codes => "TEXT",
            (true, false, false) => "TEXT",
            (false, true, false) => "INTEGER",
            (false, false, true) => "REAL",
            (false, true, true) => "NUMERIC",
            _ => "",
        }
    }
}

impl Sink for Kinds {
    fn field(&mut self, column: usize, field: Field<'_>) {
        if column >= self.0.len() {
            self.0.resize(column + 1, Kind::default());
        }

        let kind = &mut self.0[column];
        match field.cell() {
            Cell::Null => {}
            Cell::Integer(_) => kind.integers = true,
            Cell::Real(_) => kind.reals = true,
            Cell::Text(_) => {
                kind.codes = kind.codes || field.is_code();
                kind.texts = true;
            }
        }
    }

    fn end(&mut self, _: &Columns, _: &mut Channel) -> Result<(), QueryError> {
        Ok(())
    }
}

impl Profile {
    /// Reads the content of the table with this index.
    pub(super) fn new(
        index: usize,
        table: &Table,
        channel: &mut Channel,
        deadline: &Deadline,
    ) -> Result<Self, QueryError> {
        let at = match &table.rows {
            _ if table.layout != Layout::Json => Pointer::default(),
            Some(at) => {
                at.parse().map_err(|error| QueryError::Refused(format!("rows: {error}.")))?
            }
            None => outermost_list(index, table, channel)?,
        };

        let (mut columns, mut kinds) = (Columns::default(), Kinds::default());
        let mut content = channel.content(index)?;
        let counts = read(table, &at, &mut columns, &mut content, deadline, None, &mut kinds)?;
        drop(content);

        if columns.names.is_empty() {
            columns = Columns::value();
        }

        Ok(Self { spec: table.clone(), at, columns, kinds, counts, loaded: None })
    }

    pub(super) fn create_table(&self) -> String {
        let mut sql = format!("CREATE TABLE {} (", quoted(&self.spec.name));
        for (index, name) in self.columns.names.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(sql, "{comma}{} {}", quoted(name), self.kinds.declared(index));
        }
        sql + ")"
    }
}

/// A name in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The list that has the rows, if the query does not say, as
/// [`Lists::finish_with_index`] finds it. Without one, the members of the object are the rows.
fn outermost_list(
    index: usize,
    table: &Table,
    channel: &mut Channel,
) -> Result<Pointer, QueryError> {
    let mut lists = Lists::default();
    let mut is_list = None;
    let mut content = channel.content(index)?;

    content.blocks(|block, _| {
        if is_list.is_none() {
            let first = block.iter().find(|b| !b.is_ascii_whitespace() && b.is_ascii());
            is_list = first.map(|first| *first == b'[');
        }

        // The second pass finds the fault of a list.
        if is_list == Some(true) { Ok(()) } else { feed(&mut lists, block, table) }
    })?;

    if is_list == Some(true) {
        return Ok(Pointer::default());
    }

    let (_, index) =
        lists.finish_with_index().map_err(|fault| content_error(&table.name, &fault))?;
    // The index always has a valid pointer.
    Ok(index.at().parse().unwrap_or_default())
}

fn feed(lists: &mut Lists, block: &[u8], table: &Table) -> Result<(), QueryError> {
    lists.feed(block).map_err(|fault| content_error(&table.name, &fault))
}
