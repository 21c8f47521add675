//! [`Tally`]: counts of the values of a column, by their sort, with the first value of each.

use larder_protocol::quote::visible;

use super::{Field, notation::Decimal};
use crate::words::cut;

/// The longest example in bytes.
const MAX_EXAMPLE: usize = 40;
/// A value of a column, and the number of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The number of the record, from 0.
    pub record: u64,
    /// The value as it is written, cut with an ellipsis if it is long.
    pub text: String,
}

impl Example {
    pub(super) fn new(record: u64, field: Field<'_>) -> Self {
        let text = match field {
            Field::Delimited(text) | Field::Json(text) | Field::Text(text) => text,
            Field::Number(number) => return Self { record, text: number.to_string() },
        };
        let end = if text.len() > MAX_EXAMPLE { "…" } else { "" };
        Self { record, text: format!("{}{end}", cut(text, MAX_EXAMPLE)) }
    }

    /// The value for a message: without control characters.
    pub(super) fn shown(&self) -> String {
        visible(self.text.trim()).into_owned()
    }
}

/// The tallies of a column.
pub(super) type Tallies = [Tally; SORTS];

/// The sorts of values that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TallySort {
    Null,
    Blank,
    NullWord,
    Boolean,
    Integer,
    BigInteger,
    Decimal,
    Date,
    Code,
    NumericText,
    Text,
    List,
    Object,
}

/// The number of [`TallySort`]s.
pub(super) const SORTS: usize = 13;

/// A count of values, with the first of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) first: Option<Box<Example>>,
}

impl Tally {
    #[inline]
    pub(super) fn add(&mut self, record: u64, field: Field<'_>) {
        self.count += 1;
        let is_first = self.first.as_ref().is_none_or(|first| record < first.record);
        if is_first {
            self.first = Some(Box::new(Example::new(record, field)));
        }
    }
}

/// How the decimals of a column are written.
#[derive(Debug, Clone, Default)]
pub(super) struct Decimals {
    /// The numbers of decimals that occur, as bits.
    pub(super) seen: u64,
    /// The numbers of decimals to which a value with zeros at its end can be shortened, as bits.
    pub(super) shortened: u64,
    pub(super) versions: u64,
    pub(super) with_zeros: Tally,
    pub(super) bare_exponents: Tally,
    pub(super) rounded: Tally,
}

impl Decimals {
    pub(super) fn add(&mut self, decimal: &Decimal, record: u64, field: Field<'_>) {
        let bits = |count: usize| (1_u64 << count.min(63)) - 1;
        let digits = decimal.decimals.min(63);
        self.seen |= 1 << digits;
        self.versions += u64::from(decimal.is_version);

        if decimal.zeros > 0 {
            self.shortened |= bits(digits) & !bits(digits.saturating_sub(decimal.zeros));
            self.with_zeros.add(record, field);
        }
        if decimal.is_bare_exponent {
            self.bare_exponents.add(record, field);
        }
        if decimal.is_rounded {
            self.rounded.add(record, field);
        }
    }
}
