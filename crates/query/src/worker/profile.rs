//! [`Profile`]: the first pass over a table's content: its columns, their types, the number of
//! rows.

use std::collections::BTreeSet;

use larder_records::{
    Layout, Lists, Pointer,
    notes::Note,
    typing::{ColumnNames, ColumnType, ColumnTyping, Field, RecordPart, TypedColumn},
};

use super::{
    Deadline,
    channel::Channel,
    decode::{Sink, content_error, read},
    rounded::RoundedWithin,
};
use crate::{QueryError, ReadCounts, Table};

/// A table after the first pass: its columns, their types and its counts.
pub(super) struct Profile {
    pub(super) spec: Table,
    /// The place of the rows, in JSON.
    pub(super) at: Pointer,
    pub(super) columns: ColumnNames,
    /// The types, one for each column.
    typed: Vec<TypedColumn>,
    pub(super) counts: ReadCounts,
    /// The columns whose values are in the table, once it is loaded.
    pub(super) loaded: Option<BTreeSet<usize>>,
    /// The integers within loaded JSON that SQLite rounds.
    pub(super) rounded: RoundedWithin,
}

/// Collects the types of all columns.
#[derive(Default)]
struct Types(Vec<ColumnTyping>);

impl Sink for Types {
    fn field(&mut self, record: u64, column: usize, field: Field<'_>) {
        if column >= self.0.len() {
            self.0.resize_with(column + 1, ColumnTyping::default);
        }
        self.0[column].add(record, field);
    }

    fn end(&mut self, _: &mut Channel) -> Result<(), QueryError> {
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

        let mut columns = ColumnNames::default();
        let mut types = Types::default();
        let mut content = channel.content(index)?;
        let counts = read(table, &at, &mut columns, &mut content, deadline, None, &mut types)?;
        drop(content);

        if columns.is_empty() {
            columns.of_part(RecordPart::Value);
        }
        columns.resolve();

        let mut typings = types.0;
        typings.resize_with(columns.len(), ColumnTyping::default);
        let typed = typings.into_iter().map(ColumnTyping::finish).collect();
        Ok(Self {
            spec: table.clone(),
            at,
            columns,
            typed,
            counts,
            loaded: None,
            rounded: RoundedWithin::default(),
        })
    }

    /// The type of a column, by its index.
    pub(super) fn column_type(&self, column: usize) -> ColumnType {
        self.typed.get(column).map_or(ColumnType::Null, TypedColumn::column_type)
    }

    /// A column, by its index.
    pub(super) fn column(&self, column: usize) -> Option<&TypedColumn> {
        self.typed.get(column)
    }

    /// Notes for an answer that reads these columns.
    pub(super) fn notes(&self, read: &BTreeSet<usize>) -> Vec<Note> {
        let mut notes = Vec::new();
        let is_read = |column: &usize| read.contains(column);

        for renamed in self.columns.renamed() {
            if is_read(&renamed.column) || renamed.taken_by.as_ref().is_some_and(is_read) {
                notes.push(renamed.note(&self.columns));
            }
        }
        for column in read {
            if let (Some(typed), Some(name)) =
                (self.column(*column), self.columns.names().get(*column))
            {
                notes.extend(typed.notes(name));
                notes.extend(self.rounded.note(*column, name));
            }
        }

        let table = Some(&self.spec.name);
        notes.into_iter().map(|note| Note { table: table.cloned(), ..note }).collect()
    }
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
