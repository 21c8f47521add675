//! [`Refusals`]: why a function takes no value, and what to write instead.

use std::sync::Arc;

use larder_protocol::quote::{quoted, shortened};
use parking_lot::Mutex;
use rusqlite::Error;

/// The last refusal of the functions of a connection.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Refusals(Arc<Mutex<Option<Refusal>>>);

/// Why a function takes no value.
#[derive(Debug, Clone)]
pub(in super::super) struct Refusal {
    /// The values that the function takes: `sum takes numbers`.
    rule: String,
    /// The text that it got.
    value: Option<String>,
    cure: Cure,
}

/// The advice what to write instead.
#[derive(Debug, Clone)]
pub(super) enum Cure {
    /// Advice for a value and its column.
    Of(fn(value: &str, column: &str) -> String),
    /// Fixed advice, in which `{x}` is the column.
    Text(String),
}

/// The place of a value: the column, and the row in words.
#[derive(Debug, Clone)]
pub(in super::super) struct ValuePlace {
    pub(in super::super) column: String,
    pub(in super::super) at: String,
}

impl Refusals {
    /// Keeps a refusal, and returns the error that ends the statement.
    pub(super) fn refuse(&self, rule: String, value: Option<&str>, cure: Cure) -> Error {
        let refusal = Refusal { rule, value: value.map(str::to_owned), cure };
        let text = refusal.text(None);
        *self.0.lock() = Some(refusal);
        Error::UserFunctionError(text.into())
    }

    /// The refusal that has ended a statement.
    pub(in super::super) fn take(&self) -> Option<Refusal> {
        self.0.lock().take()
    }
}

impl Refusal {
    /// The value that was refused.
    pub(in super::super) fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// The error, with the place of the value if it is known.
    pub(in super::super) fn text(&self, place: Option<&ValuePlace>) -> String {
        let column = place.map_or("x", |place| &place.column);
        let value = self.value.as_deref().unwrap_or_default();

        let not = if self.value.is_some() {
            format!(", not the text {}", quoted(value))
        } else {
            String::new()
        };
        let at = place.map_or_else(String::new, |place| format!(" ({})", shortened(&place.at)));

        let cure = match &self.cure {
            Cure::Of(cure) => cure(value, column),
            Cure::Text(text) => text.replace("{x}", column),
        };
        format!("{}{not}{at}: {cure}.", self.rule)
    }
}
