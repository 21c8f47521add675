//! Rules: which expressions may meet in a comparison, in arithmetic or in a condition, and the
//! errors about those that may not.

use larder_protocol::quote::shortened;
use sqlparser::ast::Expr;

use super::{
    super::functions::{is_plain_number, reading_of},
    types::{Affinity, Literal, Typed, ValueSort},
};

/// An expression with its type.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    pub(super) text: &'a dyn std::fmt::Display,
    pub(super) typed: &'a Typed,
}

impl<'a> Operand<'a> {
    pub(super) fn new(expr: &'a Expr, typed: &'a Typed) -> Self {
        Self { text: expr, typed }
    }

    pub(super) fn shown(&self) -> String {
        shortened(&self.text.to_string()).into_owned()
    }

    /// `hour is text, such as '00'`
    pub(super) fn described(&self) -> String {
        let shown = self.shown();
        match &self.typed.literal {
            Some(Literal::Number(_)) => return format!("{shown} is a number"),
            Some(Literal::Text(_)) => return format!("{shown} is a text"),
            None => {}
        }

        let column = self.typed.column.as_ref();
        let kind = match (self.typed.sort, column) {
            (ValueSort::Mixed, _) => "holds numbers and texts",
            (_, Some(column)) if column.sort == self.typed.sort => column.kind,
            (ValueSort::Text | ValueSort::Date, _) => "text",
            _ => "a number",
        };
        let is = if self.typed.sort == ValueSort::Mixed { "" } else { "is " };
        let example = column.and_then(|column| column.example.as_ref());
        let example = example.map_or_else(String::new, |example| format!(", such as {example}"));
        format!("{shown} {is}{kind}{example}")
    }

    /// The call that makes numbers of the texts.
    fn as_number(&self) -> String {
        let example = self.typed.column.as_ref().and_then(|column| column.example.as_deref());
        let example = example.unwrap_or("0").trim_matches('\'');
        reading_of(example, &self.shown())
    }
}

/// Checks a comparison. `is_order`: it asks which is larger.
pub(super) fn compare(left: Operand<'_>, right: Operand<'_>, is_order: bool) -> Result<(), String> {
    let is_mixed = |operand: &Operand<'_>| operand.typed.sort == ValueSort::Mixed;

    if left.typed.is_text() && right.typed.is_number() {
        text_and_number(left, right, is_order)
    } else if right.typed.is_text() && left.typed.is_number() {
        text_and_number(right, left, is_order)
    } else if is_mixed(&left) && !is_mixed(&right) {
        mixed(left, right, is_order)
    } else if is_mixed(&right) && !is_mixed(&left) {
        mixed(right, left, is_order)
    } else {
        Ok(())
    }
}

fn text_and_number(text: Operand<'_>, number: Operand<'_>, is_order: bool) -> Result<(), String> {
    let cure = match text.typed.quoted_text() {
        Some(quoted) if is_plain_number(quoted) => match number.typed.affinity {
            Affinity::None => format!("write {} without quotes", shortened(quoted.trim())),
            Affinity::Numeric | Affinity::Unknown => return Ok(()),
        },
        // No number equals the empty text, as is asked.
        Some("") if !is_order => return Ok(()),
        Some(quoted) if is_null_word(quoted) => format!(
            "words for no value are NULL among numbers: write {0} IS NULL or {0} IS NOT NULL",
            number.shown()
        ),
        Some(_) if number.typed.sort == ValueSort::Boolean => {
            "write 1 for true and 0 for false".into()
        }
        Some(quoted) => {
            let read = reading_of(quoted, &text.shown());
            if read.starts_with("number(") {
                format!("write the number without quotes, or {read}")
            } else {
                format!(
                    "compare with a number, or write CAST({} AS TEXT) to compare texts",
                    number.shown()
                )
            }
        }
        None if text.typed.sort == ValueSort::Date => format!(
            "write a date in quotes, such as '2026-01-31', or CAST(strftime('%Y', {}) AS INTEGER) for its year",
            text.shown()
        ),
        None => {
            let as_text = match &number.typed.literal {
                Some(Literal::Number(literal)) => format!("'{literal}'"),
                _ => format!("CAST({} AS TEXT)", number.shown()),
            };
            format!("write {} to compare numbers, or {as_text} to compare texts", text.as_number())
        }
    };
    Err(format!("{}, and {}: {cure}.", text.described(), number.described()))
}

/// Whether people write the word where a number is missing.
fn is_null_word(text: &str) -> bool {
    let word = text.trim().to_ascii_lowercase();
    matches!(
        &*word,
        "na" | "n/a" | "nan" | "null" | "none" | "nil" | "-" | "?" | "#n/a" | "missing"
    )
}

fn mixed(mixed: Operand<'_>, other: Operand<'_>, is_order: bool) -> Result<(), String> {
    let has_numeric_texts =
        mixed.typed.column.as_ref().is_some_and(|column| column.has_numeric_texts);
    let is_wrong = match (other.typed.quoted_text(), is_order) {
        (Some(quoted), false) => is_plain_number(quoted),
        (None, false) => other.typed.is_number() && has_numeric_texts,
        (_, true) => other.typed.is_number() || other.typed.is_text(),
    };
    if !is_wrong {
        return Ok(());
    }

    let shown = mixed.shown();
    let cure = format!(
        "write try_number({shown}) to compare its numbers, or CAST({shown} AS TEXT) to compare texts"
    );
    Err(format!("{}, and {}: {cure}.", mixed.described(), other.described()))
}

/// Checks an operand of arithmetic.
pub(super) fn arithmetic(operand: Operand<'_>) -> Result<(), String> {
    let typed = operand.typed;
    let shown = operand.shown();
    let cure = match (typed.quoted_text(), typed.sort) {
        (Some(quoted), _) if is_plain_number(quoted) => return Ok(()),
        (None, ValueSort::Text | ValueSort::Date) if typed.has_digits => return Ok(()),
        (Some(quoted), _) => {
            let read = reading_of(quoted, &shown);
            format!("write a number, or {read}")
        }
        (None, ValueSort::Date) => format!(
            "write julianday({shown}) for days, unixepoch({shown}) for seconds, or date({shown}, '+1 day')"
        ),
        (None, ValueSort::Text) => format!("write {}, and || to join texts", operand.as_number()),
        (None, ValueSort::Mixed) => format!("write try_number({shown})"),
        (None, ValueSort::BigInteger) => {
            return Err(format!(
                "{shown} has integers beyond 64 bits, which are texts in SQL: write CAST({shown} AS REAL) for a rounded number."
            ));
        }
        (None, ValueSort::Unknown | ValueSort::Null | ValueSort::Number | ValueSort::Boolean) => {
            return Ok(());
        }
    };
    Err(format!("{}, and arithmetic needs a number: {cure}.", operand.described()))
}

/// Checks a condition.
pub(super) fn condition(operand: Operand<'_>) -> Result<(), String> {
    let is_column = operand.typed.column.is_some();
    if !operand.typed.is_text() || !is_column {
        return Ok(());
    }
    let shown = operand.shown();
    Err(format!(
        "{}, and no condition: compare it, as in {shown} = '…' or {shown} IS NOT NULL.",
        operand.described()
    ))
}
