//! Comparisons of texts with texts: SQLite compares letter by letter what people read as numbers
//! or dates, and finds no value that has blanks around it.

use larder_protocol::quote::shortened;
use larder_records::notes::{Note, NoteKind};

use super::{
    super::functions::{is_plain_number, order_format, reading_of},
    rules::Operand,
    types::{ColumnFacts, ValueSort},
};

/// Checks a comparison of two texts. `is_order`: it asks which is larger.
pub(super) fn compare(
    left: Operand<'_>,
    right: Operand<'_>,
    is_order: bool,
) -> Result<Option<Note>, String> {
    if !left.typed.is_text() || !right.typed.is_text() {
        Ok(None)
    } else if is_order {
        in_order(left, right)
    } else {
        Ok(with_blanks(left, right).or_else(|| with_blanks(right, left)))
    }
}

/// Checks the order of two texts: dates that do not begin with the year, and numbers that only
/// people read, have another order. Digits may be codes, so that a note is enough.
fn in_order(left: Operand<'_>, right: Operand<'_>) -> Result<Option<Note>, String> {
    if let Some((date, format)) = [left, right].iter().find_map(|o| Some((o, date_format(o)?))) {
        let shown = date.shown();
        return Err(format!(
            "{}, and texts compare letter by letter: write strptime({shown}, '{format}') to compare dates, such as '2026-01-31', or CAST({shown} AS TEXT) to compare texts.",
            date.described()
        ));
    }

    let (Some(one), Some(other)) = (number_call(left), number_call(right)) else { return Ok(None) };
    let columns = || [left, right].into_iter().filter_map(text_column);
    let Some(column) = columns().next() else { return Ok(None) };

    if columns().any(|column| !is_plain_number(example(&column))) {
        return Err(format!(
            "{}, and {}: texts compare letter by letter, so that 10 comes before 9: write {one} and {other} to compare numbers, or CAST({} AS TEXT) to compare texts.",
            left.described(),
            right.described(),
            left.shown()
        ));
    }
    if are_of_one_width(left, right) {
        return Ok(None);
    }
    let text =
        format!("compared as text, of which 10 comes before 9: {one} and {other} compare numbers");
    Ok(Some(note(&column, column.filled, text)))
}

/// Whether codes are compared with one of as many digits: `00501` and `'00599'`.
fn are_of_one_width(left: Operand<'_>, right: Operand<'_>) -> bool {
    let digits = |operand: Operand<'_>| {
        let column = text_column(operand);
        let text = operand.typed.quoted_text().or(column.as_deref().map(example))?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text.len())
    };
    let has_literal = left.typed.literal.is_some() || right.typed.literal.is_some();
    has_literal && digits(left).is_some() && digits(left) == digits(right)
}

/// The note about a column whose values have blanks around them, which is compared with a text
/// that has none, or with another column.
fn with_blanks(padded: Operand<'_>, other: Operand<'_>) -> Option<Note> {
    let column = text_column(padded)?;
    let (count, example) = column.with_blanks.as_ref()?;
    let has_blanks = |text: &str| text.trim().len() < text.len();
    if other.typed.quoted_text().is_some_and(|text| text.is_empty() || has_blanks(text)) {
        return None;
    }

    let shown = padded.shown();
    let text = format!(
        "blanks stand around values, such as {example}, and count: trim({shown}) compares without"
    );
    Some(note(&column, *count, text))
}

/// Checks the argument of `min` or `max`, whose texts are dates that do not begin with the year.
pub(super) fn extreme(name: &str, operand: Operand<'_>) -> Result<(), String> {
    let Some(format) = date_format(&operand) else { return Ok(()) };
    Err(format!(
        "{}, and {name} compares texts letter by letter: write {name}(strptime({shown}, '{format}')), or {name}(CAST({shown} AS TEXT)).",
        operand.described(),
        shown = operand.shown()
    ))
}

/// The note about texts that are sorted as texts, although the first of them is a number or a date.
pub(super) fn sorted(operand: Operand<'_>) -> Option<Note> {
    let column = text_column(operand)?;
    let text = match date_format(&operand) {
        Some(format) => format!(
            "sorted as text, not by date: strptime({}, '{format}') sorts dates",
            operand.shown()
        ),
        None => {
            let reading = number_call(operand)?;
            format!("sorted as text, of which 10 comes before 9: {reading} sorts numbers")
        }
    };
    Some(note(&column, column.filled, text))
}

/// The column of texts whose values an expression has.
fn text_column(operand: Operand<'_>) -> Option<std::rc::Rc<ColumnFacts>> {
    operand.typed.column.clone().filter(|_| operand.typed.sort == ValueSort::Text)
}

/// The format of the dates in a column of texts that have another order than dates.
fn date_format(operand: &Operand<'_>) -> Option<String> {
    let column = text_column(*operand)?;
    order_format(example(&column))
}

/// The call that makes numbers of a column's texts or of a text in quotes, if they are some.
fn number_call(operand: Operand<'_>) -> Option<String> {
    let shown = operand.shown();
    let call = match operand.typed.quoted_text() {
        Some(quoted) => reading_of(quoted, &shortened(&shown)),
        None => reading_of(example(&*text_column(operand)?), &shown),
    };
    call.starts_with("number(").then_some(call)
}

/// The example of a column, without quotes.
fn example(column: &ColumnFacts) -> &str {
    column.example.as_deref().unwrap_or_default().trim_matches('\'')
}

fn note(column: &ColumnFacts, count: u64, text: String) -> Note {
    let column = Some(column.name.clone());
    Note { kind: NoteKind::Text, table: None, column, count, first: None, text }
}
