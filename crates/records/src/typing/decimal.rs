//! [`compare_decimals`]: the order of numbers of any size, as texts.

use std::cmp::Ordering;

/// A larger exponent belongs to no number that SQLite writes.
const MAX_EXPONENT: i64 = 1_000;

/// Compares two texts as numbers, exactly: digits with or without a sign, a point and an exponent.
/// A text that is no number comes after all numbers, in the order of its bytes.
pub fn compare_decimals(left: &str, right: &str) -> Ordering {
    match (Digits::of(left), Digits::of(right)) {
        (Some(left), Some(right)) => left.compare(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// A number: its sign, and its digits from the first that is not zero.
struct Digits<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
    /// The power of ten of the digit before the first one; 1 for `7`, 0 for `0.7`.
    magnitude: i64,
}

impl<'a> Digits<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

        let is_number = whole.len() + fraction.len() > 0
            && exponent.abs() <= MAX_EXPONENT
            && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        if !is_number {
            return None;
        }

        let whole = whole.trim_start_matches('0');
        let mut magnitude = i64::try_from(whole.len()).ok()? + exponent;
        let mut fraction = fraction.trim_end_matches('0');
        if whole.is_empty() {
            let digits = fraction.trim_start_matches('0');
            magnitude -= i64::try_from(fraction.len() - digits.len()).ok()?;
            fraction = digits;
        }
        Some(Self { is_negative: text.starts_with('-'), whole, fraction, magnitude })
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    fn compare(&self, other: &Self) -> Ordering {
        let sign = |digits: &Self| match (digits.is_zero(), digits.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };

        match (sign(self), sign(other)) {
            (0, 0) => Ordering::Equal,
            (1, 1) => self.compare_size(other),
            (-1, -1) => other.compare_size(self),
            (left, right) => left.cmp(&right),
        }
    }

    /// Compares without the signs.
    fn compare_size(&self, other: &Self) -> Ordering {
        // Zeros at the end of the digits do not count: 10 and 1e1 are equal.
        let mut left = self.whole.bytes().chain(self.fraction.bytes());
        let mut right = other.whole.bytes().chain(other.fraction.bytes());

        self.magnitude.cmp(&other.magnitude).then_with(|| {
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return Ordering::Equal,
                    (digit, other) => {
                        let order = digit.unwrap_or(b'0').cmp(&other.unwrap_or(b'0'));
                        if order != Ordering::Equal {
                            return order;
                        }
                    }
                }
            }
        })
    }
}
