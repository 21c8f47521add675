//! Guards of `min`, `max` and CAST: SQLite's own compute the result, because bare columns and
//! collations depend on them, and these functions refuse what they would compare or cut wrongly.
//! The [guard](super::super::guard) puts them into a statement.

use std::collections::BTreeMap;

use rusqlite::{
    Connection, Result,
    functions::{Aggregate, Context, WindowAggregate},
    types::ValueRef,
};

use super::{
    FLAGS, Number, Refusals,
    numbers::{self, parse},
    refusal::Cure,
    value,
};

/// The most letters of a number: those of a currency, and an exponent.
const MAX_LETTERS: usize = 4;

pub(super) fn add(connection: &Connection, refusals: &Refusals) -> Result<()> {
    for (name, result, group, frame, arguments, is_max) in [
        ("min", "larder_min", "larder_group_min", "larder_frame_min", "larder_of_min", false),
        ("max", "larder_max", "larder_group_max", "larder_frame_max", "larder_of_max", true),
    ] {
        let check = |in_frame| ExtremeCheck { name, is_max, in_frame, refusals: refusals.clone() };
        connection.create_aggregate_function(group, 1, FLAGS, check(false))?;
        connection.create_window_function(frame, 1, FLAGS, check(true))?;

        let check = check(false);
        connection.create_scalar_function(arguments, -1, FLAGS, move |ctx| {
            let mut seen = Seen::default();
            for index in 0..ctx.len() {
                // The scalar form is null as soon as one argument is.
                if ctx.get_raw(index) == ValueRef::Null {
                    return Ok(None);
                }
                seen.add(ctx.get_raw(index), &check);
            }
            check.result(&seen)
        })?;

        // The result of SQLite, if it is what the check beside it has found.
        let refusals = refusals.clone();
        connection.create_scalar_function(result, 2, FLAGS, move |ctx| {
            if let (ValueRef::Text(text), ValueRef::Real(number)) = (ctx.get_raw(0), ctx.get_raw(1))
            {
                let text = String::from_utf8_lossy(text);
                #[allow(clippy::float_cmp, reason = "both are numbers of texts in the group")]
                if written(&text) != Some(number) {
                    return Err(refuse(&refusals, name, &text));
                }
            }
            Ok(value(ctx, 0))
        })?;
    }

    let refusals = refusals.clone();
    connection.create_scalar_function("larder_castable", 1, FLAGS, move |ctx| {
        if let ValueRef::Text(text) = ctx.get_raw(0) {
            let text = String::from_utf8_lossy(text);
            if Number::plain(&text).is_none() {
                let rule = "CAST takes texts that are numbers as a whole";
                return Err(refusals.refuse(rule.into(), Some(&text), Cure::Of(numbers::cure)));
            }
        }
        Ok(value(ctx, 0))
    })
}

/// Whether `min` or `max` may compare values: numbers, or texts of which some are words, or texts
/// whose order is that of their numbers.
struct ExtremeCheck {
    name: &'static str,
    is_max: bool,
    /// Whether values can leave the group again.
    in_frame: bool,
    refusals: Refusals,
}

/// The values of a group.
#[derive(Debug, Default)]
struct Seen {
    numbers: u64,
    /// Texts that people read as numbers.
    written: u64,
    words: u64,
    text: Option<String>,
    /// The smallest or largest of the written numbers.
    extreme: Option<f64>,
    /// The written numbers of a frame, in an order of bits, with their counts.
    all: BTreeMap<i64, u64>,
}

impl Seen {
    fn add(&mut self, value: ValueRef<'_>, check: &ExtremeCheck) {
        let text = match value {
            ValueRef::Null | ValueRef::Blob(_) => return,
            ValueRef::Integer(_) | ValueRef::Real(_) => {
                self.numbers += 1;
                return;
            }
            ValueRef::Text(text) => String::from_utf8_lossy(text),
        };

        match written(&text) {
            None => self.words += 1,
            Some(number) => {
                self.written += 1;
                if check.in_frame {
                    *self.all.entry(ordered(number)).or_default() += 1;
                }
                if self.extreme.is_none_or(|known| (number > known) == check.is_max) {
                    self.extreme = Some(number);
                }
            }
        }
        self.text.get_or_insert_with(|| text.into_owned());
    }

    fn remove(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null | ValueRef::Blob(_) => {}
            ValueRef::Integer(_) | ValueRef::Real(_) => self.numbers -= 1,
            ValueRef::Text(text) => match written(&String::from_utf8_lossy(text)) {
                None => self.words -= 1,
                Some(number) => {
                    self.written -= 1;
                    let key = ordered(number);
                    let left = self.all.get(&key).copied().unwrap_or(1) - 1;
                    if left == 0 {
                        self.all.remove(&key);
                    } else {
                        self.all.insert(key, left);
                    }
                }
            },
        }
    }

    fn extreme(&self, check: &ExtremeCheck) -> Option<f64> {
        if !check.in_frame {
            return self.extreme;
        }
        let mut keys = self.all.keys();
        let key = if check.is_max { keys.next_back() } else { keys.next() };
        key.map(|key| from_ordered(*key))
    }
}

/// An integer in whose order the numbers are.
fn ordered(number: f64) -> i64 {
    // Zero is one number.
    let bits = (number + 0.0).to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// The number of [`ordered`].
fn from_ordered(key: i64) -> f64 {
    f64::from_bits((key ^ ((key >> 63).cast_unsigned() >> 1).cast_signed()).cast_unsigned())
}

/// The number that people read in a text.
fn written(text: &str) -> Option<f64> {
    // Few texts are numbers, and most of the others show it by their letters: a currency has at
    // most three, and an exponent has one.
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    if !has_digit || text.chars().filter(|c| c.is_alphabetic()).nth(MAX_LETTERS).is_some() {
        return None;
    }
    parse(text, '.').or_else(|| parse(text, ',')).map(Number::real)
}

fn refuse(refusals: &Refusals, name: &str, text: &str) -> rusqlite::Error {
    refusals.refuse(format!("{name} takes numbers, or words"), Some(text), Cure::Of(numbers::cure))
}

impl ExtremeCheck {
    /// The number that the result has to be, if all values are texts that are numbers.
    fn result(&self, seen: &Seen) -> Result<Option<f64>> {
        let is_mixed = seen.numbers > 0 && seen.written + seen.words > 0;
        if is_mixed && let Some(text) = &seen.text {
            return Err(refuse(&self.refusals, self.name, text));
        }
        Ok(seen.extreme(self).filter(|_| seen.words == 0))
    }
}

impl Aggregate<Seen, Option<f64>> for ExtremeCheck {
    fn init(&self, _: &mut Context<'_>) -> Result<Seen> {
        Ok(Seen::default())
    }

    fn step(&self, ctx: &mut Context<'_>, seen: &mut Seen) -> Result<()> {
        seen.add(ctx.get_raw(0), self);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, seen: Option<Seen>) -> Result<Option<f64>> {
        self.result(&seen.unwrap_or_default())
    }
}

impl WindowAggregate<Seen, Option<f64>> for ExtremeCheck {
    fn value(&self, seen: Option<&mut Seen>) -> Result<Option<f64>> {
        seen.map_or(Ok(None), |seen| self.result(seen))
    }

    fn inverse(&self, ctx: &mut Context<'_>, seen: &mut Seen) -> Result<()> {
        seen.remove(ctx.get_raw(0));
        Ok(())
    }
}
