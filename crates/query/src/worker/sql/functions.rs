//! Functions that SQLite does not have.

use regex::Regex;
use rusqlite::{
    Connection, Error, Result,
    functions::{Aggregate, Context, FunctionFlags},
    types::ValueRef,
};

use crate::worker::decode::regex_problem;

/// The names of the functions that [`add`] adds.
pub(super) const NAMES: [&str; 20] = [
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
    "sqrt",
    "pow",
    "power",
    "exp",
    "ln",
    "log10",
    "ceil",
    "floor",
    "trunc",
];

const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

/// Adds the functions to a connection.
pub(super) fn add(connection: &Connection) -> Result<()> {
    connection.create_aggregate_function("median", 1, FLAGS, Percentile)?;
    connection.create_aggregate_function("percentile", 2, FLAGS, Percentile)?;
    for (name, sample, root) in [
        ("stddev", true, true),
        ("stddev_samp", true, true),
        ("stddev_pop", false, true),
        ("variance", true, false),
        ("var_samp", true, false),
        ("var_pop", false, false),
    ] {
        connection.create_aggregate_function(name, 1, FLAGS, Spread { sample, root })?;
    }

    // `x REGEXP y` calls regexp(y, x).
    connection.create_scalar_function("regexp", 2, FLAGS, |ctx| {
        let regex = regex(ctx, 0)?;
        Ok(text(ctx, 1).map(|text| regex.is_match(&text)))
    })?;

    connection.create_scalar_function("regexp_extract", -1, FLAGS, |ctx| {
        let regex = regex(ctx, 1)?;
        let group =
            if ctx.len() > 2 { ctx.get::<i64>(2)? } else { i64::from(regex.captures_len() > 1) };
        let group = usize::try_from(group).unwrap_or(usize::MAX);

        let Some(text) = text(ctx, 0) else { return Ok(None) };
        let found = regex.captures(&text).and_then(|found| found.get(group));
        Ok(found.map(|found| found.as_str().to_owned()))
    })?;

    connection.create_scalar_function("regexp_replace", 3, FLAGS, |ctx| {
        let regex = regex(ctx, 1)?;
        let with = text(ctx, 2).unwrap_or_default();
        Ok(text(ctx, 0).map(|text| regex.replace_all(&text, &*with).into_owned()))
    })?;

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
        connection.create_scalar_function(name, 1, FLAGS, move |ctx| {
            Ok(number(ctx, 0).map(function).filter(|number| !number.is_nan()))
        })?;
    }

    for name in ["pow", "power"] {
        connection.create_scalar_function(name, 2, FLAGS, |ctx| {
            let power = number(ctx, 0).zip(number(ctx, 1)).map(|(base, by)| base.powf(by));
            Ok(power.filter(|number| !number.is_nan()))
        })?;
    }

    Ok(())
}

fn number(ctx: &Context<'_>, index: usize) -> Option<f64> {
    match ctx.get_raw(index) {
        #[allow(clippy::cast_precision_loss, reason = "as SQLite does")]
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        _ => None,
    }
}

fn text(ctx: &Context<'_>, index: usize) -> Option<String> {
    match ctx.get_raw(index) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
    }
}

/// The regular expression of an argument, which is compiled once for a statement.
fn regex(ctx: &Context<'_>, index: usize) -> Result<std::sync::Arc<Regex>> {
    let argument = i32::try_from(index).unwrap_or_default();
    if index >= ctx.len() {
        return Err(Error::UserFunctionError("a regular expression is missing".into()));
    }

    ctx.get_or_create_aux(argument, |pattern| {
        let pattern = pattern.as_str().map_err(|_| "a regular expression must be text".to_owned());
        pattern.and_then(|pattern| {
            Regex::new(pattern)
                .map_err(|error| format!("invalid regular expression: {}", regex_problem(&error)))
        })
    })
}

/// `median(x)`, and `percentile(x, p)` with p from 0 to 100, interpolated.
struct Percentile;

type Numbers = (Vec<f64>, f64);

impl Aggregate<Numbers, Option<f64>> for Percentile {
    fn init(&self, _: &mut Context<'_>) -> Result<Numbers> {
        Ok((Vec::new(), 50.0))
    }

    fn step(&self, ctx: &mut Context<'_>, (numbers, percent): &mut Numbers) -> Result<()> {
        if ctx.len() > 1 {
            let given = number(ctx, 1).filter(|p| (0.0..=100.0).contains(p));
            let problem = "the second argument of percentile is a number from 0 to 100";
            *percent = given.ok_or_else(|| Error::UserFunctionError(problem.into()))?;
        }

        numbers.extend(number(ctx, 0));
        Ok(())
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a position in a list"
    )]
    fn finalize(&self, _: &mut Context<'_>, numbers: Option<Numbers>) -> Result<Option<f64>> {
        let Some((mut numbers, percent)) = numbers.filter(|(numbers, _)| !numbers.is_empty())
        else {
            return Ok(None);
        };

        numbers.sort_unstable_by(f64::total_cmp);
        let position = percent / 100.0 * (numbers.len() - 1) as f64;
        let (below, above) = (position.floor() as usize, position.ceil() as usize);
        let (low, high) = (numbers[below], numbers[above]);
        Ok(Some(low + (high - low) * position.fract()))
    }
}

/// Standard deviation and variance, by Welford's method.
struct Spread {
    sample: bool,
    root: bool,
}

/// The count, the mean, and the sum of squares of differences from it.
type Moments = (f64, f64, f64);

impl Aggregate<Moments, Option<f64>> for Spread {
    fn init(&self, _: &mut Context<'_>) -> Result<Moments> {
        Ok((0.0, 0.0, 0.0))
    }

    fn step(&self, ctx: &mut Context<'_>, (count, mean, squares): &mut Moments) -> Result<()> {
        if let Some(number) = number(ctx, 0) {
            *count += 1.0;
            let difference = number - *mean;
            *mean += difference / *count;
            *squares += difference * (number - *mean);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, moments: Option<Moments>) -> Result<Option<f64>> {
        let (count, _, squares) = moments.unwrap_or_default();
        let by = if self.sample { count - 1.0 } else { count };
        if by <= 0.0 {
            return Ok(None);
        }

        let variance = squares / by;
        Ok(Some(if self.root { variance.sqrt() } else { variance }))
    }
}
