//! `number` and `try_number`: numbers as people write them, with marks between thousands, a
//! currency or a percent sign.

use larder_protocol::quote::quoted;
use rusqlite::{
    Connection, Error, Result,
    functions::Context,
    types::{Value, ValueRef},
};

use super::{FLAGS, Refusals, refusal::Cure, text, value};

/// Signs of currencies, and the codes and words that stand beside numbers. Longer ones come
/// before their ends.
const CURRENCIES: &str = "US$ R$ A$ C$ $ € £ ¥ ₹ ₽ ₩ ₺ ₫ ₴ ₦ ₱ ฿ ₪ ₡ ₲ ₵ ₸ ₭ ₮ USD EUR GBP JPY CHF CNY INR \
    AUD CAD NZD SEK NOK DKK ISK PLN CZK HUF RON BGN RUB UAH TRY BRL MXN ARS CLP COP PEN ZAR NGN KES EGP ILS \
    SAR AED QAR KWD KRW TWD HKD SGD THB MYR IDR PHP VND PKR BDT LKR BTC zł Kč kr. kr Ft lei лв Fr. Rs. Rs";

/// Languages that write a comma before decimals.
const WITH_COMMA: &str = "de fr es it pt nl da sv nb nn no fi is pl cs sk sl hu ro bg hr sr bs mk sq ru uk be \
    lt lv et tr az el id vi ca eu gl af kk ky uz hy ka";
/// Regions whose language has a comma and which write a point.
const WITH_POINT: &str =
    "de-ch de-li it-ch es-mx es-us es-pr es-gt es-hn es-ni es-pa es-pe es-sv es-do es-cu es-419";
/// Languages that write a point.
const OTHERS: &str = "en ja zh ko th he hi bn ta te mr gu pa ur ar fa ms sw ga cy mt c posix";

/// A number of SQL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    #[allow(clippy::cast_precision_loss, reason = "as SQLite does")]
    pub(super) fn real(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Real(number) => number,
        }
    }

    /// A number as SQL writes it, and as SQLite takes it from a text without loss.
    pub(super) fn plain(text: &str) -> Option<Self> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
        if let Ok(number) = text.parse() {
            return Some(Self::Integer(number));
        }

        let is_written = |b: u8| b.is_ascii_digit() || b"+-.eE".contains(&b);
        let real = text.bytes().all(is_written).then(|| text.parse::<f64>().ok()).flatten();
        real.filter(|real| real.is_finite()).map(Self::Real)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(number) => Self::Integer(number),
            Number::Real(number) => Self::Real(number),
        }
    }
}

pub(super) fn add(connection: &Connection, refusals: &Refusals) -> Result<()> {
    for arguments in [1, 2] {
        let refusals = refusals.clone();
        connection.create_scalar_function("number", arguments, FLAGS, move |ctx| {
            let decimal = decimal_of(ctx)?;
            read(ctx, decimal).map_err(|text| {
                refusals.refuse(
                    "number takes texts that are numbers".into(),
                    Some(&text),
                    Cure::Of(cure),
                )
            })
        })?;

        connection.create_scalar_function("try_number", arguments, FLAGS, |ctx| {
            let decimal = decimal_of(ctx)?;
            Ok(read(ctx, decimal).unwrap_or(Value::Null))
        })?;
    }
    Ok(())
}

/// The number of the first argument, or its text if it is no number.
fn read(ctx: &Context<'_>, decimal: char) -> std::result::Result<Value, String> {
    match ctx.get_raw(0) {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => Ok(value(ctx, 0)),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            parse(&text, decimal).map(Value::from).ok_or_else(|| text.into_owned())
        }
    }
}

/// The mark before decimals that the second argument asks for; a point by default.
fn decimal_of(ctx: &Context<'_>) -> Result<char> {
    if ctx.len() < 2 {
        return Ok('.');
    }

    let locale = text(ctx, 1).unwrap_or_default();
    decimal_mark(&locale).ok_or_else(|| {
        let problem = format!(
            "number knows no locale {}: give 'de', 'fr', 'en', or the mark before decimals, ',' or '.'",
            quoted(&locale)
        );
        Error::UserFunctionError(problem.into())
    })
}

fn decimal_mark(locale: &str) -> Option<char> {
    if let "," | "." = locale {
        return locale.chars().next();
    }

    let locale = locale.to_ascii_lowercase().replace('_', "-");
    let locale = locale.split('.').next().unwrap_or_default();
    let language = locale.split('-').next().unwrap_or_default();
    let has = |list: &str, name: &str| list.split_whitespace().any(|listed| listed == name);

    if has(WITH_POINT, locale) || has(OTHERS, language) {
        Some('.')
    } else {
        has(WITH_COMMA, language).then_some(',')
    }
}

/// The advice about a text that is not a number.
pub(super) fn cure(value: &str, column: &str) -> String {
    let read = |number: Number| match number {
        Number::Integer(number) => number.to_string(),
        Number::Real(number) => number.to_string(),
    };

    if let Some(number) = parse(value, '.') {
        format!("number({column}) reads it as {}", read(number))
    } else if let Some(number) = parse(value, ',') {
        format!("number({column}, 'de') reads it as {}", read(number))
    } else {
        format!("try_number({column}) is NULL where the text is no number")
    }
}

/// The number that a text is, with a sign, a currency and a percent sign at most. 12 % is 12.
pub(super) fn parse(text: &str, decimal: char) -> Option<Number> {
    let mut rest = text.trim();
    let mut is_negative = false;
    // Accounts write (5.00) for -5.00.
    if let Some(inner) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        is_negative = true;
        rest = inner.trim();
    }

    let mut has_sign = is_negative;
    let mut has_unit = false;
    loop {
        let sign = rest.chars().next().filter(|c| matches!(c, '+' | '-' | '\u{2212}'));
        if let Some(sign) = sign.filter(|_| !has_sign) {
            has_sign = true;
            is_negative = sign != '+';
            rest = rest[sign.len_utf8()..].trim_start();
        } else if let Some(after) = (!has_unit).then(|| after_currency(rest)).flatten() {
            has_unit = true;
            rest = after.trim_start();
        } else {
            break;
        }
    }

    loop {
        if let Some(before) = (!has_sign).then(|| rest.strip_suffix('-')).flatten() {
            has_sign = true;
            is_negative = true;
            rest = before.trim_end();
        } else if let Some(before) = (!has_unit).then(|| before_unit(rest)).flatten() {
            has_unit = true;
            rest = before.trim_end();
        } else {
            break;
        }
    }

    unsigned(rest, decimal, is_negative)
}

fn after_currency(text: &str) -> Option<&str> {
    CURRENCIES.split_whitespace().find_map(|name| text.strip_prefix(name))
}

fn before_unit(text: &str) -> Option<&str> {
    text.strip_suffix('%')
        .or_else(|| CURRENCIES.split_whitespace().find_map(|name| text.strip_suffix(name)))
}

fn unsigned(text: &str, decimal: char, is_negative: bool) -> Option<Number> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.parse::<i32>().ok()?)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once(decimal) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };

    let fraction_digits = fraction.unwrap_or_default();
    let digits = without_groups(whole, decimal)?;
    let has_digits = !digits.is_empty() || !fraction_digits.is_empty();
    if !has_digits || !fraction_digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }

    let sign = if is_negative { "-" } else { "" };
    if fraction.is_none() && exponent.is_none() {
        let written = format!("{sign}{digits}");
        if let Ok(number) = written.parse() {
            return Some(Number::Integer(number));
        }

        // A real that has other digits would be another number.
        let real: f64 = written.parse().ok()?;
        let is_exact = format!("{real:.0}") == format!("{sign}{}", digits.trim_start_matches('0'));
        return is_exact.then_some(Number::Real(real));
    }

    let exponent = exponent.unwrap_or(0);
    let real: f64 = format!("{sign}0{digits}.{fraction_digits}0e{exponent}").parse().ok()?;
    real.is_finite().then_some(Number::Real(real))
}

/// The digits before decimals, without the marks between thousands. `None` if the marks stand
/// elsewhere: `2,5` is not 25.
fn without_groups(text: &str, decimal: char) -> Option<String> {
    let mark = text.chars().find(|c| !c.is_ascii_digit());
    let Some(mark) = mark else { return Some(text.to_owned()) };

    let is_mark =
        mark != decimal && (matches!(mark, ',' | '.' | '\'' | '\u{2019}') || mark.is_whitespace());
    let groups: Vec<&str> = text.split(mark).collect();
    let all_digits = groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_digit()));
    let (first, others) = groups.split_first()?;
    let (last, middle) = others.split_last()?;

    let begins_well = (1..=3).contains(&first.len()) && !first.starts_with('0');
    let thousands = middle.iter().all(|group| group.len() == 3);
    // 12,34,567 in India.
    let lakhs = mark == ',' && first.len() < 3 && middle.iter().all(|group| group.len() == 2);

    let is_grouped =
        is_mark && all_digits && begins_well && last.len() == 3 && (thousands || lakhs);
    is_grouped.then(|| groups.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1,234", 1234.0),
            ("$5.00", 5.0),
            ("-$1,234.50", -1234.5),
            ("$-5", -5.0),
            ("($1,234.50)", -1234.5),
            ("12 %", 12.0),
            ("12.5%", 12.5),
            ("€ 7", 7.0),
            ("7 EUR", 7.0),
            ("US$3", 3.0),
            (" 9 ", 9.0),
            ("+3", 3.0),
            (".097", 0.097),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("1.5E-3", 0.0015),
            ("12,34,567.8", 1_234_567.8),
            ("1'234'567", 1_234_567.0),
            ("1\u{202f}234", 1234.0),
            ("\u{2212}4", -4.0),
            ("5-", -5.0),
            ("007", 7.0),
            ("1,000,000,000,000,000,000,000", 1e21),
        ] {
            assert_eq!(parse(text, '.').map(Number::real), Some(expected), "{text}");
        }

        for (text, expected) in [
            ("2,5", 2.5),
            ("1.234", 1234.0),
            ("1.234,56 €", 1234.56),
            ("1 234,5", 1234.5),
            ("7", 7.0),
        ] {
            assert_eq!(parse(text, ',').map(Number::real), Some(expected), "{text}");
        }
    }

    #[test]
    fn no_other_text_is_a_number() {
        for text in [
            "",
            " ",
            "NA",
            "-",
            "2,5",
            "0,123",
            "1,23",
            "1,2345",
            "1,234,5",
            "1.2.3",
            "12,34",
            "5kg",
            "1e",
            "0x1F",
            "1_000",
            "1e1_0",
            "infinity",
            "+inf",
            "١٢",
            "１２",
            "1e٣",
            "NaN",
            "inf",
            "$",
            "%",
            "1 2",
            "--5",
            "$5%",
            "(-5)",
            "1,234.5.6",
            "2026-01-31",
            "e5",
            ".",
            "12345678901234567891",
            "1..2",
            "1,,234",
            "$$5",
            "5 M",
            "1e999",
        ] {
            assert_eq!(parse(text, '.'), None, "{text}");
        }
        assert_eq!(parse("1,234.5", ','), None);
    }

    #[test]
    fn a_locale_tells_the_mark_before_decimals() {
        for (locale, expected) in [
            ("de", Some(',')),
            ("de_DE.UTF-8", Some(',')),
            ("de-CH", Some('.')),
            ("pt-BR", Some(',')),
            ("es-MX", Some('.')),
            ("en-GB", Some('.')),
            (",", Some(',')),
            ("xx", None),
            ("", None),
        ] {
            assert_eq!(decimal_mark(locale), expected, "{locale}");
        }
    }
}
