//! `strptime` and `try_strptime`: dates and times in a format, as ISO text.

use chrono::{
    NaiveDate, NaiveDateTime, NaiveTime,
    format::{Item, Parsed, StrftimeItems, parse},
};
use larder_protocol::quote::quoted;
use rusqlite::{Connection, Error, Result, functions::Context};

use super::{FLAGS, Refusals, refusal::Cure, text};

/// Formats of dates that errors propose, with and without a time after them.
const PROPOSED: [&str; 14] = [
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%Y-%m-%d",
    "%Y.%m.%d",
    "%Y%m%d",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%d/%m/%y",
    "%m/%d/%y",
];
const TIMES: [&str; 9] = [
    "",
    " %H:%M",
    " %H:%M:%S",
    " %H:%M:%S.%f",
    " %H:%M:%S,%f",
    "T%H:%M:%S.%f%z",
    " %I:%M %p",
    " %I:%M:%S %p",
    "T%H:%M:%S%z",
];
/// Other formats that errors propose.
const OTHERS: [&str; 4] =
    ["%d/%b/%Y:%H:%M:%S %z", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z", "%B %Y"];

pub(super) fn add(connection: &Connection, refusals: &Refusals) -> Result<()> {
    let refusals = refusals.clone();
    connection.create_scalar_function("strptime", 2, FLAGS, move |ctx| {
        let Some((text, format)) = arguments(ctx)? else { return Ok(None) };
        iso(&text, &format).map(Some).ok_or_else(|| {
            let rule = format!("strptime takes texts of the format {}", quoted(&format));
            refusals.refuse(rule, Some(&text), Cure::Of(cure))
        })
    })?;

    connection.create_scalar_function("try_strptime", 2, FLAGS, |ctx| {
        let Some((text, format)) = arguments(ctx)? else { return Ok(None) };
        Ok(iso(&text, &format))
    })
}

/// The text and the format, which is valid; `None` if one is null.
fn arguments(ctx: &Context<'_>) -> Result<Option<(String, String)>> {
    let (Some(text), Some(format)) = (text(ctx, 0), text(ctx, 1)) else { return Ok(None) };

    let is_valid = !StrftimeItems::new(&format).any(|item| item == Item::Error);
    if is_valid && format.contains('%') {
        return Ok(Some((text.into_owned(), format.into_owned())));
    }

    let problem = format!(
        "{} is no format of strptime: write fields such as '%d/%m/%Y %H:%M:%S'",
        quoted(&format)
    );
    Err(Error::UserFunctionError(problem.into()))
}

/// The date, the time, or both, as ISO text. With an offset, in UTC.
fn iso(text: &str, format: &str) -> Option<String> {
    let text = text.trim();
    variants(format).iter().find_map(|format| {
        let mut parsed = Parsed::new();
        parse(&mut parsed, text, StrftimeItems::new(format)).ok()?;
        written(parsed)
    })
}

/// The formats of chrono that a format stands for: C and Python read a fraction by `%f`, an offset
/// with or without a colon by `%z`, and UTC by `%Z`.
fn variants(format: &str) -> Vec<String> {
    let format = format.replace(".%f", "%.f").replace("%z", "%#z");
    let fractions = if format.contains("%f") { &["%3f", "%6f", "%9f"][..] } else { &["%f"] };
    let zones = if format.contains("%Z") { &["UTC", "GMT", "Z"][..] } else { &["%Z"] };

    let with_fraction = fractions.iter().map(|fraction| format.replace("%f", fraction));
    with_fraction
        .flat_map(|format| zones.iter().map(move |zone| format.replace("%Z", zone)))
        .collect()
}

fn written(mut parsed: Parsed) -> Option<String> {
    if let Some(seconds) = parsed.timestamp() {
        let nanos = parsed.nanosecond().unwrap_or(0);
        let moment = chrono::DateTime::from_timestamp(seconds, nanos)?;
        return Some(with_time(moment.naive_utc()));
    }

    // A month without a day begins with its first.
    let has_week = parsed.ordinal().is_some() || parsed.isoweek().is_some();
    let has_week = has_week || parsed.week_from_sun().is_some() || parsed.week_from_mon().is_some();
    let has_year = parsed.year().is_some() || parsed.year_mod_100().is_some();
    if has_year && !has_week && parsed.day().is_none() {
        if parsed.month().is_none() {
            parsed.set_month(1).ok()?;
        }
        parsed.set_day(1).ok()?;
    }

    let has_hour = parsed.hour_mod_12().is_some();
    if has_hour && parsed.minute().is_none() {
        parsed.set_minute(0).ok()?;
    }

    match (parsed.to_naive_date(), parsed.to_naive_time()) {
        (Ok(date), Ok(time)) => {
            let local = NaiveDateTime::new(date, time);
            let offset = i64::from(parsed.offset().unwrap_or(0));
            Some(with_time(local.checked_sub_signed(chrono::TimeDelta::try_seconds(offset)?)?))
        }
        (Ok(date), Err(_)) if !has_hour => Some(date_text(date)),
        // A date that was given in part would be lost.
        (Err(_), Ok(time)) if !has_year && parsed.month().is_none() && parsed.day().is_none() => {
            Some(time_text(time))
        }
        _ => None,
    }
}

fn date_text(date: NaiveDate) -> String {
    date.format("%Y-%m-%d").to_string()
}

fn time_text(time: NaiveTime) -> String {
    // Without a fraction, or with three, six or nine digits of one.
    time.format("%H:%M:%S%.f").to_string()
}

fn with_time(moment: NaiveDateTime) -> String {
    format!("{} {}", date_text(moment.date()), time_text(moment.time()))
}

/// The formats in which a text is a date.
fn formats_of(value: &str) -> impl Iterator<Item = String> {
    let dates =
        PROPOSED.iter().flat_map(|date| TIMES.iter().map(move |time| format!("{date}{time}")));
    let all = dates.chain(OTHERS.iter().map(|format| (*format).to_owned()));

    all.filter(move |format| {
        // Chrono takes two digits for a year of four.
        let is_same_length =
            !format.contains("%Y") || iso(value, &format.replace("%Y", "%y")).is_none();
        is_same_length && iso(value, format).is_some()
    })
}

/// The format of a text that is a date, if such texts have another order than their dates.
pub(in super::super) fn order_format(value: &str) -> Option<String> {
    let has_digits = value.bytes().any(|byte| byte.is_ascii_digit());
    let format = has_digits.then(|| formats_of(value).next())??;
    (!format.starts_with("%Y")).then_some(format)
}

/// The advice about a text that is no date.
pub(super) fn cure(value: &str, column: &str) -> String {
    let formats: Vec<String> =
        formats_of(value).take(2).map(|format| format!("strptime({column}, '{format}')")).collect();

    if formats.is_empty() {
        format!(
            "strptime({column}, '%d/%m/%Y'), with the format of the texts, makes ISO text of them; try_strptime is NULL where a text has another format"
        )
    } else {
        format!("{} makes ISO text of it", formats.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_iso_text_by_a_format() {
        for (text, format, expected) in [
            ("31/12/2025", "%d/%m/%Y", "2025-12-31"),
            ("1/2/2025", "%d/%m/%Y", "2025-02-01"),
            (" 12/31/25 ", "%m/%d/%y", "2025-12-31"),
            ("31.12.2025 14:05", "%d.%m.%Y %H:%M", "2025-12-31 14:05:00"),
            ("Dec 31, 2025 2:05 PM", "%b %d, %Y %I:%M %p", "2025-12-31 14:05:00"),
            ("2025-12-31T14:05:06.5", "%Y-%m-%dT%H:%M:%S.%f", "2025-12-31 14:05:06.500"),
            ("2025-12-31 14:05:06,123", "%Y-%m-%d %H:%M:%S,%f", "2025-12-31 14:05:06.123"),
            ("31/Dec/2025:23:30:00 -0100", "%d/%b/%Y:%H:%M:%S %z", "2026-01-01 00:30:00"),
            ("2025-12-31 14:05:06 UTC", "%Y-%m-%d %H:%M:%S %Z", "2025-12-31 14:05:06"),
            ("2025-12-31T14:05:06Z", "%Y-%m-%dT%H:%M:%S%z", "2025-12-31 14:05:06"),
            ("20251231", "%Y%m%d", "2025-12-31"),
            ("December 2025", "%B %Y", "2025-12-01"),
            ("1735689600", "%s", "2025-01-01 00:00:00"),
            ("14:05", "%H:%M", "14:05:00"),
            ("2024 366", "%Y %j", "2024-12-31"),
        ] {
            assert_eq!(iso(text, format).as_deref(), Some(expected), "{text} {format}");
        }
    }

    #[test]
    fn texts_of_another_format_are_none() {
        for (text, format) in [
            ("2025-12-31", "%d/%m/%Y"),
            ("31/02/2025", "%d/%m/%Y"),
            ("12/31/2025", "%d/%m/%Y"),
            ("31/12/2025 10:00", "%d/%m/%Y"),
            ("", "%d/%m/%Y"),
            ("2:05", "%I:%M"),
            ("2025-12-31 14:05:06 EST", "%Y-%m-%d %H:%M:%S %Z"),
            ("Mon 2025-12-31", "%a %Y-%m-%d"),
            ("05-31 10:00", "%m-%d %H:%M"),
        ] {
            assert_eq!(iso(text, format), None, "{text} {format}");
        }
    }

    #[test]
    fn errors_propose_the_formats_that_a_text_may_have() {
        for (text, expected) in [
            ("31/12/2025", "strptime(day, '%d/%m/%Y') makes ISO text of it"),
            (
                "05/06/2025",
                "strptime(day, '%d/%m/%Y') or strptime(day, '%m/%d/%Y') makes ISO text of it",
            ),
            ("31.12.2025 10:00", "strptime(day, '%d.%m.%Y %H:%M') makes ISO text of it"),
            ("31/12/25", "strptime(day, '%d/%m/%y') makes ISO text of it"),
            (
                "01/Jan/2026:10:00:00 +0000",
                "strptime(day, '%d/%b/%Y:%H:%M:%S %z') makes ISO text of it",
            ),
        ] {
            assert_eq!(cure(text, "day"), expected, "{text}");
        }
        assert!(cure("soon", "day").contains("try_strptime"));
    }
}
