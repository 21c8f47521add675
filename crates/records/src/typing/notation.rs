//! [`Notation`]: how a number is written.

/// The digits of an integer that always fits into 64 bits.
const SAFE_DIGITS: usize = 18;
/// A plus sign before so many digits begins the number of a telephone.
const PHONE_DIGITS: usize = 7;
/// The significant digits that a 64-bit floating-point number keeps.
const EXACT_DIGITS: usize = 17;

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// Digits, with or without a sign, that fit into 64 bits.
    Integer,
    /// Digits that are more than 64 bits hold.
    BigInteger,
    /// A number with a point or an exponent.
    Decimal(Decimal),
    /// Digits that a number would lose: zeros in front, as in `00501`, or the plus sign of a
    /// telephone number.
    Code,
}

/// How a number with a point or an exponent is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    /// The digits after the point.
    pub(super) decimals: usize,
    /// The zeros at the end of these digits.
    pub(super) zeros: usize,
    /// Whether it reads as a version does: `3.10`, without sign, exponent or `3.05`.
    pub(super) is_version: bool,
    /// Whether it has an exponent, and neither a point nor a sign of the exponent: `12e4`.
    pub(super) is_bare_exponent: bool,
    /// Whether it has more digits than a number keeps.
    pub(super) is_rounded: bool,
}

/// Whether a text is digits without a zero in front, few enough for 64 bits. Most numbers are.
#[inline]
pub(super) fn is_plain_integer(text: &str) -> bool {
    let bytes = text.as_bytes();
    match bytes {
        [b'0'..=b'9'] => true,
        [b'1'..=b'9', rest @ ..] if bytes.len() <= SAFE_DIGITS => {
            rest.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// The notation of a text without blanks around it; `None` if it is no number.
pub(super) fn notation(text: &str) -> Option<Notation> {
    let (has_plus, unsigned) = match text.as_bytes().first()? {
        b'+' => (true, &text[1..]),
        b'-' => (false, &text[1..]),
        _ => (false, text),
    };

    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };

    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let decimals = fraction.unwrap_or_default();
    if !is_digits(whole) || !is_digits(decimals) || whole.len() + decimals.len() == 0 {
        return None;
    }

    let exponent_digits = exponent.map(|text| text.strip_prefix(['+', '-']).unwrap_or(text));
    if exponent_digits.is_some_and(|digits| digits.is_empty() || !is_digits(digits)) {
        return None;
    }

    let has_zero_in_front = whole.len() > 1 && whole.starts_with('0');
    if fraction.is_none() && exponent.is_none() {
        let is_code = has_zero_in_front || (has_plus && whole.len() >= PHONE_DIGITS);
        return Some(match text.parse::<i64>() {
            _ if is_code => Notation::Code,
            Ok(_) => Notation::Integer,
            Err(_) => Notation::BigInteger,
        });
    }

    if has_zero_in_front {
        return Some(Notation::Code);
    }
    // Infinity has no digits to come back to.
    text.parse::<f64>().ok().filter(|number| number.is_finite())?;

    let is_unsigned = unsigned.len() == text.len();
    Some(Notation::Decimal(Decimal {
        decimals: decimals.len(),
        zeros: decimals.len() - decimals.trim_end_matches('0').len(),
        is_version: is_unsigned && exponent.is_none() && reads_as_version(whole, decimals),
        is_bare_exponent: fraction.is_none()
            && exponent.is_some_and(|text| !text.starts_with(['+', '-'])),
        is_rounded: significant_digits(whole, decimals) > EXACT_DIGITS,
    }))
}

/// Whether both parts of a number read as parts of a version: `3` and `10`, not `05` or nothing.
fn reads_as_version(whole: &str, decimals: &str) -> bool {
    let is_part =
        |part: &str| (1..=3).contains(&part.len()) && (part == "0" || !part.starts_with('0'));
    is_part(whole) && is_part(decimals)
}

/// The digits from the first to the last that is not zero.
fn significant_digits(whole: &str, decimals: &str) -> usize {
    let digits = || whole.bytes().chain(decimals.bytes());
    let leading = digits().take_while(|digit| *digit == b'0').count();
    let trailing = digits().rev().take_while(|digit| *digit == b'0').count();
    digits().count().saturating_sub(leading + trailing)
}
