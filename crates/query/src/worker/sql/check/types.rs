//! [`Typed`]: what is known about the values of an expression before it is computed.

use std::rc::Rc;

/// The columns of a table, for the check.
#[derive(Debug, Clone)]
pub(super) struct TableFacts {
    pub(super) name: String,
    pub(super) columns: Vec<ColumnFacts>,
}

/// A column, and the values that it holds.
#[derive(Debug, Clone)]
pub(super) struct ColumnFacts {
    pub(super) name: String,
    pub(super) sort: ValueSort,
    /// The type with its article: `an integer`, `text`.
    pub(super) kind: &'static str,
    /// A value, as it is written in a statement.
    pub(super) example: Option<String>,
    /// The number of its values.
    pub(super) filled: u64,
    /// Whether texts of the column are numbers.
    pub(super) has_numeric_texts: bool,
    /// How many texts have blanks around them, and the first of them as a statement has it.
    pub(super) with_blanks: Option<(u64, String)>,
}

/// The sort of the values of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSort {
    /// Any values, or one of the sorts that depends on the row.
    Unknown,
    /// NULL, whatever the row.
    Null,
    Number,
    Text,
    /// Texts of ISO 8601.
    Date,
    /// True and false, which are 1 and 0.
    Boolean,
    /// Integers, of which some are beyond 64 bits: texts that compare as numbers.
    BigInteger,
    /// Numbers and texts.
    Mixed,
}

impl ValueSort {
    fn is_number(self) -> bool {
        matches!(self, Self::Number | Self::Boolean)
    }

    fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Date)
    }
}

/// Whether SQLite makes a number of a text that is compared with the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affinity {
    Numeric,
    None,
    /// Only SQLite knows, when it computes the expression.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Literal {
    Number(String),
    Text(String),
}

/// An expression, as far as its type is known.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub(super) sort: ValueSort,
    pub(super) affinity: Affinity,
    /// The column whose values the expression has.
    pub(super) column: Option<Rc<ColumnFacts>>,
    pub(super) literal: Option<Literal>,
    /// Whether the texts are always numbers, such as those of `strftime('%Y', x)`.
    pub(super) has_digits: bool,
}

impl Typed {
    /// An expression with values of a sort.
    pub(super) fn of(sort: ValueSort) -> Self {
        let affinity = Affinity::None;
        Self { sort, affinity, column: None, literal: None, has_digits: false }
    }

    pub(super) fn unknown() -> Self {
        Self { affinity: Affinity::Unknown, ..Self::of(ValueSort::Unknown) }
    }

    pub(super) fn column(facts: &ColumnFacts) -> Self {
        let affinity = if facts.sort.is_number() { Affinity::Numeric } else { Affinity::Unknown };
        Self { affinity, column: Some(Rc::new(facts.clone())), ..Self::of(facts.sort) }
    }

    pub(super) fn literal(literal: Literal) -> Self {
        let sort = match literal {
            Literal::Number(_) => ValueSort::Number,
            Literal::Text(_) => ValueSort::Text,
        };
        Self { literal: Some(literal), ..Self::of(sort) }
    }

    /// The text of a literal in quotes.
    pub(super) fn quoted_text(&self) -> Option<&str> {
        match &self.literal {
            Some(Literal::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_number(&self) -> bool {
        self.sort.is_number()
    }

    pub(super) fn is_text(&self) -> bool {
        self.sort.is_text()
    }

    /// The expression as the column of a subquery or the result of a function.
    pub(super) fn with_affinity(self, affinity: Affinity) -> Self {
        Self { affinity, literal: None, ..self }
    }

    /// One of two expressions, depending on the row.
    pub(super) fn or(self, other: Self) -> Self {
        if self.is_null() {
            return other.with_affinity(Affinity::Unknown);
        }
        if other.is_null() {
            return self.with_affinity(Affinity::Unknown);
        }

        let has_digits = self.has_digits && other.has_digits;
        let sort = match (self.sort, other.sort) {
            (one, two) if one == two => one,
            (one, two) if one.is_number() && two.is_number() => ValueSort::Number,
            (one, two) if one.is_text() && two.is_text() => ValueSort::Text,
            (one, two) if one.is_number() && two.is_text() => ValueSort::Mixed,
            (one, two) if one.is_text() && two.is_number() => ValueSort::Mixed,
            _ => ValueSort::Unknown,
        };

        // A text in quotes that is given for missing values mixes the sorts on purpose.
        let is_on_purpose = self.quoted_text().is_some() || other.quoted_text().is_some();
        let sort =
            if sort == ValueSort::Mixed && is_on_purpose { ValueSort::Unknown } else { sort };
        let texts_first = if self.is_text() { [self, other] } else { [other, self] };
        let column = texts_first.into_iter().find_map(|typed| typed.column);
        Self { column, has_digits, affinity: Affinity::Unknown, ..Self::of(sort) }
    }

    fn is_null(&self) -> bool {
        self.sort == ValueSort::Null
    }
}
