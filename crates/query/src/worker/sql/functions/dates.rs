//! SQLite's functions of dates, with an error where they would return NULL or another date than
//! the text has.

use chrono::NaiveDate;
use rusqlite::{
    Connection, Result,
    functions::Context,
    types::{Value, ValueRef},
};

use super::{FLAGS, Number, Refusals, delegate, formats, refusal::Cure, text};

/// The Julian days of the years 1 to 9999, which numbers without a modifier mean.
const JULIAN_DAYS: std::ops::Range<f64> = 1_721_425.5..5_373_484.5;
/// The seconds since 1970 at the start of the year 3000: larger numbers are milliseconds, but for
/// the end of the year 9999, which stands for "never".
const SECONDS: f64 = 32_503_680_000.0;
const NEVER: std::ops::RangeInclusive<f64> = 253_402_128_000.0..=253_402_300_800.0;

pub(super) fn add(connection: &Connection, refusals: &Refusals) -> Result<()> {
    for name in ["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"] {
        let refusals = refusals.clone();
        connection.create_scalar_function(name, -1, FLAGS, move |ctx| {
            let result = delegate(ctx, name)?;
            check(ctx, name, &result, &refusals)?;
            Ok(result)
        })?;
    }
    Ok(())
}

/// Fails if the result of a function is not the date of its arguments.
fn check(ctx: &Context<'_>, name: &str, result: &Value, refusals: &Refusals) -> Result<()> {
    if (0..ctx.len()).any(|index| ctx.get_raw(index) == ValueRef::Null) {
        return Ok(());
    }

    let (first, last) = match name {
        "strftime" => (1, 1),
        "timediff" => (0, 1),
        _ => (0, 0),
    };
    let has_modifier = |name: &str| {
        let mut modifiers = (last + 1..ctx.len()).filter_map(|index| text(ctx, index));
        modifiers.any(|modifier| modifier.trim().eq_ignore_ascii_case(name))
    };

    for index in first..ctx.len().min(last + 1) {
        let Some(value) = text(ctx, index) else { continue };
        let number = Number::plain(&value).map(Number::real);
        let problem = match number {
            Some(number) => of_number(number, name, has_modifier),
            None => of_text(&value, name, *result == Value::Null),
        };

        if let Some(cure) = problem {
            let rule = format!("{name} reads no date in {value}");
            return Err(match number {
                Some(_) => refusals.refuse(rule, None, cure),
                None => {
                    let rule = format!("{name} takes dates as 2026-01-31 or 2026-01-31 12:30:00");
                    refusals.refuse(rule, Some(&value), cure)
                }
            });
        }
    }

    // The dates are right, so a modifier or the format is not.
    if *result == Value::Null && ctx.len() > first {
        let cure = Cure::Text(format!(
            "its modifiers are 'unixepoch', '+1 day', 'start of month', 'weekday 0' and the like{}",
            if name == "strftime" {
                ", and its fields %Y %m %d %H %M %S %j %w %W %s %f"
            } else {
                ""
            }
        ));
        return Err(refusals.refuse(format!("{name} knows no such modifier or field"), None, cure));
    }
    Ok(())
}

/// The advice about a number that is no moment of the years 1 to 3000.
fn of_number(number: f64, name: &str, has: impl Fn(&str) -> bool) -> Option<Cure> {
    let size = number.abs();
    let by = match size {
        _ if size >= 1e17 => "1000000000",
        _ if size >= 1e14 => "1000000",
        _ => "1000",
    };

    if has("unixepoch") || (has("auto") && !JULIAN_DAYS.contains(&number)) {
        let is_large = size >= SECONDS && !NEVER.contains(&number);
        return is_large.then(|| {
            Cure::Text(format!(
                "'unixepoch' counts seconds; divide smaller units, as in {name}({{x}} / {by}, 'unixepoch')"
            ))
        });
    }
    if JULIAN_DAYS.contains(&number) {
        return None;
    }

    let of_seconds = if size >= SECONDS {
        format!("write {name}({{x}} / {by}, 'unixepoch') for smaller units than seconds since 1970")
    } else {
        format!("write {name}({{x}}, 'unixepoch') for seconds since 1970")
    };
    Some(Cure::Text(format!(
        "a number without a modifier is a Julian day; {of_seconds}, and strptime({{x}}, '%Y%m%d') for digits of a date"
    )))
}

/// The advice about a text that SQLite does not read as it is written.
fn of_text(value: &str, name: &str, is_null: bool) -> Option<Cure> {
    let text = value.trim();
    if is_null {
        let is_read = super::plain::call("julianday", &[Value::Text(value.to_owned())]);
        if is_read.is_ok_and(|day| day == Value::Null) {
            return Some(Cure::Of(formats::cure));
        }
    }

    // SQLite takes 2026-02-31 for the third of March, and 12:30 for a time in the year 2000.
    let is_time = text.as_bytes().get(2) == Some(&b':');
    if is_time && matches!(name, "date" | "julianday" | "unixepoch" | "timediff") {
        let cure = "it has a time only, which SQLite takes for one of 2000-01-01";
        return Some(Cure::Text(cure.into()));
    }

    let day =
        text.get(..10).filter(|day| day.as_bytes()[4] == b'-' && day.as_bytes()[7] == b'-')?;
    let is_day = NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok();
    (!is_day).then(|| Cure::Text("there is no such day".into()))
}
