//! [`Scope`]: the names that an expression can use.

use super::types::{Typed, ValueSort};

/// Why a check ends before the end of the statement.
#[derive(Debug)]
pub(super) enum CheckEnd {
    /// The statement mixes texts and numbers.
    Problem(String),
    /// The statement is nested too deeply to be checked.
    TooDeep,
}

pub(super) type Checked<T> = Result<T, CheckEnd>;

/// The columns of a table, of a subquery or of a common table expression.
#[derive(Debug, Clone, Default)]
pub(super) struct Relation {
    /// The names, in lower case, and the types.
    pub(super) columns: Vec<(String, Typed)>,
    /// Whether it may have further columns.
    pub(super) is_open: bool,
}

impl Relation {
    /// A relation of which nothing is known.
    pub(super) fn open() -> Self {
        Self { columns: Vec::new(), is_open: true }
    }

    pub(super) fn column(&self, name: &str) -> Option<&Typed> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, typed)| typed)
    }
}

/// A relation in FROM.
#[derive(Debug)]
pub(super) struct FromItem {
    /// The alias or the name, in lower case.
    pub(super) name: String,
    pub(super) relation: Relation,
    /// Columns that an earlier relation has for `*`, because they are joined by their names.
    pub(super) joined: Vec<String>,
}

/// The names of a query, within those of the queries around it.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    pub(super) outer: Option<&'a Scope<'a>>,
    /// Common table expressions, in lower case.
    pub(super) tables: Vec<(String, Relation)>,
    pub(super) sources: Vec<FromItem>,
    /// Names of results, which conditions can use.
    pub(super) aliases: Vec<(String, Typed)>,
    pub(super) depth: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn outermost() -> Self {
        Self::default()
    }

    pub(super) fn within(outer: &'a Scope<'a>) -> Self {
        Self { outer: Some(outer), depth: outer.depth + 1, ..Self::default() }
    }

    fn chain(&self) -> impl Iterator<Item = &Scope<'a>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    /// The common table expression of a name.
    pub(super) fn table(&self, name: &str) -> Option<&Relation> {
        self.chain().find_map(|scope| {
            let found = scope.tables.iter().rev().find(|(known, _)| known == name);
            found.map(|(_, relation)| relation)
        })
    }

    /// The type of a column, with the name or alias of its table if that is given.
    pub(super) fn column(&self, table: Option<&str>, name: &str) -> Typed {
        for scope in self.chain() {
            let mut named =
                scope.sources.iter().filter(|source| table.is_none_or(|t| source.name == t));
            if let Some(typed) = named.clone().find_map(|source| source.relation.column(name)) {
                return typed.clone();
            }
            if named.clone().next().is_some() && is_row_number(name) {
                return Typed::of(ValueSort::Number);
            }
            if named.any(|source| source.relation.is_open) {
                return Typed::unknown();
            }

            let alias = scope.aliases.iter().find(|(known, _)| known == name);
            if let Some((_, typed)) = alias.filter(|_| table.is_none()) {
                return typed.clone();
            }
        }
        Typed::unknown()
    }
}

fn is_row_number(name: &str) -> bool {
    matches!(name, "rowid" | "_rowid_" | "oid")
}
