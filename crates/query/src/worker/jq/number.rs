//! Numbers as jq writes and reads them.

use jaq_json::Num;

/// Appends a number: a literal as it was written, and what was computed in the shortest form.
pub(super) fn write_number(to: &mut Vec<u8>, number: &Num) {
    match number {
        Num::Float(number) => to.extend_from_slice(of_float(*number).as_bytes()),
        Num::Dec(literal) => to.extend_from_slice(canonical(literal).as_bytes()),
        Num::Int(_) | Num::BigInt(_) => to.extend_from_slice(number.to_string().as_bytes()),
    }
}

/// The shortest digits that read as the number; null for what is no number, and the largest number
/// for infinity. Exponents have two digits at least.
fn of_float(number: f64) -> String {
    if number.is_nan() {
        return "null".into();
    }

    let number = number.clamp(f64::MIN, f64::MAX);
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();

    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    let most = 14 + i32::try_from(count).unwrap_or_default();
    if (-4..=most).contains(&exponent) && exponent > -5 {
        return format!("{number}");
    }

    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// A decimal literal in the form of the General Decimal Arithmetic Specification, which keeps its
/// digits: `1.10`, `1E+3`, `0.5` for `.5`.
fn canonical(literal: &str) -> String {
    let (sign, rest) = match literal.strip_prefix(['-', '+']) {
        Some(rest) => (if literal.starts_with('-') { "-" } else { "" }, rest),
        None => ("", literal),
    };
    let (number, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Ok(exponent) = exponent.parse::<i64>() else { return literal.to_owned() };

    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };

    let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let exponent = exponent.saturating_sub(i64::try_from(fraction.len()).unwrap_or(i64::MAX));
    let adjusted = exponent.saturating_add(count - 1);

    if exponent > 0 || adjusted < -6 {
        let (first, more) = digits.split_at(1);
        let point = if more.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{more}E{adjusted:+}");
    }

    let point = usize::try_from(count + exponent).unwrap_or(0);
    match (exponent, point) {
        (0, _) => format!("{sign}{digits}"),
        (_, 0) => {
            let zeros = usize::try_from(-(count + exponent)).unwrap_or(0);
            format!("{sign}0.{}{digits}", "0".repeat(zeros))
        }
        _ => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
    }
}

/// The number that a text is, as jq reads it: between white space, with a sign, and without digits on
/// one side of the point.
pub(super) fn parse_number(text: &str) -> Option<Num> {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, "nan" | "NaN") {
        return Some(Num::Float(f64::NAN));
    }
    if unsigned == "Infinity" {
        let number = f64::INFINITY;
        return Some(Num::Float(if text.starts_with('-') { -number } else { number }));
    }

    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));

    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty() && are_digits(digits)
    };
    if whole.len() + fraction.len() == 0
        || !are_digits(whole)
        || !are_digits(fraction)
        || !exponent.is_none_or(is_exponent)
    {
        return None;
    }

    let text = text.strip_prefix('+').unwrap_or(text);
    Some(Num::from_str_radix(text, 10).unwrap_or_else(|| Num::Dec(text.to_owned().into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_jq_writes_them() {
        for (number, expected) in [
            (3.0, "3"),
            (-0.0, "-0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1e15 + 0.5, "1000000000000000.5"),
            (1e17, "1e+17"),
            (1e15, "1000000000000000"),
            (123_456_789_012_345_678.0, "123456789012345680"),
            (1.5e300, "1.5e+300"),
            (f64::INFINITY, "1.7976931348623157e+308"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(of_float(number), expected);
        }

        for (literal, expected) in [
            ("1.10", "1.10"),
            ("1e3", "1E+3"),
            ("1.5e3", "1.5E+3"),
            ("123456.789e3", "123456789"),
            ("1e-5", "0.00001"),
            ("1e-7", "1E-7"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-0.050", "-0.050"),
            ("1e1000", "1E+1000"),
        ] {
            assert_eq!(canonical(literal), expected);
        }
    }

    #[test]
    fn only_numbers_are_read_as_numbers() {
        for text in ["1", " 1\n", "-5", "+5", "5.", ".5", "1e3", "007", "nan", "-Infinity"] {
            assert!(parse_number(text).is_some(), "{text}");
        }
        for text in ["", " ", ".", "1,234", "1 2", "0x10", "1_000", "1e", "e3", "--1", "١", "true"]
        {
            assert!(parse_number(text).is_none(), "{text}");
        }
    }
}
