//! The type of a column, decided over all its values.
//!
//! A value alone does not tell its type: `1.10` is a number among numbers, and a version beside
//! `1.10.1`. A [`ColumnTyping`] gets each value of a column once, in bounded memory, and gives the
//! [`TypedColumn`]: its [`ColumnType`], by which [`ColumnType::value`] reads each value, and the
//! notes about what was taken for null, changed or left as text. Queries, descriptions, previews
//! and pages use this typing alone, so that they agree. [`ColumnNames`] names the columns as SQL
//! does.
//!
//! The type depends neither on the order of the values nor on how they were divided.

mod class;
mod column_type;
mod decimal;
mod names;
mod notation;
mod null_words;
mod record_parts;
mod tally;
mod typed_column;
mod typing_pass;

#[cfg(test)]
mod tests;

pub use column_type::{ColumnType, TypedValue};
pub use decimal::compare_decimals;
pub use names::{ColumnNames, RenamedColumn};
pub use record_parts::{RecordPart, record_parts};
pub use tally::Example;
pub use typed_column::{NullWord, TypedColumn};
pub use typing_pass::ColumnTyping;

/// A value of a column, as the content has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field<'a> {
    /// A field of CSV without its quotes, or a group that the pattern of a log captures.
    Delimited(&'a str),
    /// A JSON value.
    Json(&'a str),
    /// A text that is never a number, such as a line of a log.
    Text(&'a str),
    /// A number that Larder counts, such as that of a line.
    Number(i64),
}
