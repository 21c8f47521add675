//! Functions that SQLite does not have, and those of SQLite that would take a text for a number
//! without a word.

mod dates;
mod extremes;
mod formats;
mod numbers;
mod plain;
mod refusal;
mod regular;
mod statistics;
mod sums;
#[cfg(test)]
mod tests;
mod texts;

use std::borrow::Cow;

use rusqlite::{
    Connection, Result,
    functions::{Context, FunctionFlags},
    types::{Value, ValueRef},
};

use self::plain::delegate;
pub(super) use self::{
    formats::order_format,
    refusal::{Refusals, ValuePlace},
};
use self::{numbers::Number, refusal::Cure};

/// The names of the functions that [`add`] adds and SQLite does not have.
pub(super) const NAMES: [&str; 34] = [
    "median",
    "percentile",
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    "regexp",
    "regexp_extract",
    "regexp_replace",
    "number",
    "try_number",
    "strptime",
    "try_strptime",
    "plain",
    "sqrt",
    "pow",
    "power",
    "exp",
    "ln",
    "log10",
    "ceil",
    "floor",
    "trunc",
    // Only guards call these.
    "larder_min",
    "larder_max",
    "larder_group_min",
    "larder_group_max",
    "larder_frame_min",
    "larder_frame_max",
    "larder_of_min",
    "larder_of_max",
    "larder_castable",
];

const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

/// Adds the functions to a connection. They say in `refusals` why they take no value.
pub(super) fn add(connection: &Connection, refusals: &Refusals) -> Result<()> {
    sums::add(connection, refusals)?;
    extremes::add(connection, refusals)?;
    statistics::add(connection, refusals)?;
    regular::add(connection)?;
    texts::add(connection)?;
    numbers::add(connection, refusals)?;
    dates::add(connection, refusals)?;
    formats::add(connection, refusals)?;
    add_arithmetic(connection, refusals)
}

fn add_arithmetic(connection: &Connection, refusals: &Refusals) -> Result<()> {
    type Function = fn(f64) -> f64;
    let unary: [(&str, Function); 7] = [
        ("sqrt", f64::sqrt),
        ("exp", f64::exp),
        ("ln", f64::ln),
        ("log10", f64::log10),
        ("ceil", f64::ceil),
        ("floor", f64::floor),
        ("trunc", f64::trunc),
    ];
    for (name, function) in unary {
        let refusals = refusals.clone();
        connection.create_scalar_function(name, 1, FLAGS, move |ctx| {
            let number = refusals.real(ctx, 0, name)?;
            Ok(number.map(function).filter(|number| !number.is_nan()))
        })?;
    }

    for name in ["pow", "power"] {
        let refusals = refusals.clone();
        connection.create_scalar_function(name, 2, FLAGS, move |ctx| {
            let base = refusals.real(ctx, 0, name)?;
            let power = base.zip(refusals.real(ctx, 1, name)?).map(|(base, by)| base.powf(by));
            Ok(power.filter(|number| !number.is_nan()))
        })?;
    }

    // SQLite's own take 1 for '1,234'.
    for (name, count) in [("abs", 1), ("sign", 1), ("round", 1), ("round", 2)] {
        let refusals = refusals.clone();
        connection.create_scalar_function(name, count, FLAGS, move |ctx| {
            for index in 0..ctx.len() {
                refusals.number(ctx, index, name)?;
            }
            delegate(ctx, name)
        })?;
    }
    Ok(())
}

impl Refusals {
    /// The number of an argument; `None` for null. Refuses a text that is not a number as a whole.
    fn number(&self, ctx: &Context<'_>, index: usize, function: &str) -> Result<Option<Number>> {
        let text = match ctx.get_raw(index) {
            ValueRef::Null => return Ok(None),
            ValueRef::Integer(number) => return Ok(Some(Number::Integer(number))),
            ValueRef::Real(number) => return Ok(Some(Number::Real(number))),
            ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text),
        };

        match Number::plain(&text) {
            Some(number) => Ok(Some(number)),
            None => Err(self.refuse(
                format!("{function} takes numbers"),
                Some(&text),
                Cure::Of(numbers::cure),
            )),
        }
    }

    /// The argument as [`Refusals::number`] gives it, with the precision of a real.
    fn real(&self, ctx: &Context<'_>, index: usize, function: &str) -> Result<Option<f64>> {
        Ok(self.number(ctx, index, function)?.map(Number::real))
    }
}

/// Whether SQLite takes a text for a number without loss.
pub(super) fn is_plain_number(text: &str) -> bool {
    Number::plain(text).is_some()
}

/// The call that makes numbers of texts such as this example.
pub(super) fn reading_of(example: &str, column: &str) -> String {
    if numbers::parse(example, '.').is_some() {
        format!("number({column})")
    } else if numbers::parse(example, ',').is_some() {
        format!("number({column}, 'de')")
    } else {
        format!("try_number({column})")
    }
}

/// The text of an argument, as SQLite writes it; `None` for null.
fn text<'a>(ctx: &'a Context<'_>, index: usize) -> Option<Cow<'a, str>> {
    written(ctx.get_raw(index))
}

/// A value as text; `None` for null.
fn written(value: ValueRef<'_>) -> Option<Cow<'_, str>> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into()),
        ValueRef::Real(number) => Some(real_text(number).into()),
        ValueRef::Text(text) | ValueRef::Blob(text) => Some(String::from_utf8_lossy(text)),
    }
}

/// A real as SQLite writes it: `2.0`, `1.0e+20`.
fn real_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Inf" } else { "-Inf" }.into();
    }

    let size = number.abs();
    if number == 0.0 || (1e-4..1e17).contains(&size) {
        let text = number.to_string();
        return if text.contains('.') { text } else { text + ".0" };
    }

    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with('-') { '-' } else { '+' };
    format!("{digits}{point}e{sign}{:0>2}", exponent.trim_start_matches('-'))
}

fn value(ctx: &Context<'_>, index: usize) -> Value {
    match ctx.get_raw(index) {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}
