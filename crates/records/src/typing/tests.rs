#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn typed<'a>(fields: impl IntoIterator<Item = Field<'a>>) -> TypedColumn {
    let mut typing = ColumnTyping::default();
    for (record, field) in fields.into_iter().enumerate() {
        typing.add(record as u64, field);
    }
    typing.finish()
}

fn csv(fields: &[&str]) -> TypedColumn {
    typed(fields.iter().map(|field| Field::Delimited(field)))
}

fn json(values: &[&str]) -> TypedColumn {
    typed(values.iter().map(|value| Field::Json(value)))
}
