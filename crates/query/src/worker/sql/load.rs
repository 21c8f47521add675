//! The second pass: fills a table with the columns that a query reads.

use std::collections::BTreeSet;

use larder_records::typing::{ColumnType, Field, TypedValue};
use rusqlite::{Connection, Statement, params_from_iter, types::Value};

use super::{column_types::quoted, errors};
use crate::{
    QueryError, Question,
    worker::{
        Deadline,
        channel::Channel,
        decode::{Sink, read},
        profile::Profile,
        rounded::RoundedWithin,
    },
};

/// Loads the wanted columns, besides those that are loaded already.
pub(super) fn load(
    connection: &mut Connection,
    index: usize,
    table: &mut Profile,
    wanted: &BTreeSet<usize>,
    question: &Question,
    channel: &mut Channel,
    deadline: &Deadline,
) -> Result<(), QueryError> {
    let wanted: BTreeSet<usize> = match &table.loaded {
        Some(loaded) if wanted.is_subset(loaded) => return Ok(()),
        Some(loaded) => wanted | loaded,
        None => wanted.clone(),
    };

    let internal = |error: rusqlite::Error| errors::internal(&error, question);
    let name = quoted(&table.spec.name);
    if table.loaded.take().is_some() {
        connection.execute_batch(&format!("DELETE FROM {name}")).map_err(internal)?;
    }

    let transaction = connection.transaction().map_err(internal)?;
    // A row needs a column even if none is read.
    let columns: Vec<usize> =
        if wanted.is_empty() { vec![0] } else { wanted.iter().copied().collect() };
    let names: Vec<_> = columns.iter().map(|c| quoted(&table.columns.names()[*c])).collect();
    let marks = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT INTO {name} ({}) VALUES ({marks})", names.join(", "));

    let mut slots = vec![None; table.columns.len()];
    for (slot, column) in columns.iter().enumerate().filter(|_| !wanted.is_empty()) {
        slots[*column] = Some((slot, table.column_type(*column)));
    }

    let mut loader = Loader {
        insert: transaction.prepare(&insert).map_err(internal)?,
        slots,
        cells: vec![Value::Null; columns.len()],
        rounded: RoundedWithin::default(),
        question,
    };

    let mut content = channel.content(index)?;
    let total = Some(table.counts.rows);
    let columns = &mut table.columns;
    read(&table.spec, &table.at, columns, &mut content, deadline, total, &mut loader)?;

    table.rounded = std::mem::take(&mut loader.rounded);
    drop(loader);
    transaction.commit().map_err(internal)?;
    table.loaded = Some(wanted);
    Ok(())
}

/// Inserts the rows of a table.
struct Loader<'a> {
    insert: Statement<'a>,
    /// The parameter of the statement and the type for each column; `None` for those that are not
    /// loaded.
    slots: Vec<Option<(usize, ColumnType)>>,
    /// The values of the present row, by parameter.
    cells: Vec<Value>,
    rounded: RoundedWithin,
    question: &'a Question,
}

impl Sink for Loader<'_> {
    fn field(&mut self, record: u64, column: usize, field: Field<'_>) {
        let Some((slot, column_type)) = self.slots.get(column).copied().flatten() else { return };
        self.cells[slot] = match column_type.value(field) {
            TypedValue::Null => Value::Null,
            TypedValue::Boolean(value) => Value::Integer(value.into()),
            TypedValue::Integer(number) => Value::Integer(number),
            TypedValue::Number(number) => Value::Real(number),
            TypedValue::BigInteger(text) | TypedValue::Text(text) => Value::Text(text.into_owned()),
            TypedValue::Json(json) => {
                self.rounded.look(record, column, json);
                Value::Text(json.to_owned())
            }
        };
    }

    fn end(&mut self, _: &mut Channel) -> Result<(), QueryError> {
        let done = self.insert.execute(params_from_iter(&self.cells));
        self.cells.fill(Value::Null);
        done.map(|_| ()).map_err(|error| errors::internal(&error, self.question))
    }
}
