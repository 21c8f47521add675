//! [`Authorizer`]: what a statement may do, namely read the tables, recur, and call listed
//! functions.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use rusqlite::{
    Connection,
    hooks::{AuthAction, AuthContext, Authorization},
};

/// Functions of SQLite, besides those whose names begin with `json`.
const FUNCTIONS: &str = " -> ->> abs avg char coalesce concat concat_ws count cume_dist current_date \
    current_time current_timestamp date datetime dense_rank first_value format glob group_concat hex \
    ifnull iif if instr julianday lag last_value lead length like likelihood likely lower ltrim match max \
    min nth_value ntile nullif octet_length percent_rank printf quote random rank replace round \
    row_number rtrim sign soundex sqlite_version strftime string_agg substr substring sum time timediff \
    total trim typeof unhex unicode unistr unistr_quote unixepoch unlikely upper ";

/// The names that SQLite has asked about for the present statement.
#[derive(Default)]
struct Seen {
    /// Table, in lower case, and column.
    read: BTreeSet<(String, String)>,
    /// The refused function or table.
    refused: Option<Refused>,
}

/// A name that a statement may not use.
#[derive(Debug, Clone)]
pub(super) enum Refused {
    Function(String),
    Table(String),
}

/// Decides for SQLite what statements may do.
pub(super) struct Authorizer {
    tables: Arc<BTreeSet<String>>,
    seen: Arc<Mutex<Seen>>,
}

impl Authorizer {
    /// An authorizer for statements over these tables, in lower case.
    pub(super) fn new(tables: BTreeSet<String>) -> Self {
        Self { tables: Arc::new(tables), seen: Arc::default() }
    }

    /// Checks the statements that are prepared from now on.
    pub(super) fn install(&self, connection: &mut Connection) {
        *self.seen.lock() = Seen::default();

        let tables = Arc::clone(&self.tables);
        let seen = Arc::clone(&self.seen);
        let check = move |context: AuthContext<'_>| check(&context, &tables, &mut seen.lock());
        // Setting an authorizer fails only for connections of other threads.
        let _ = connection.authorizer(Some(check));
    }

    /// Allows everything from now on, for the worker's own statements.
    pub(super) fn remove(connection: &mut Connection) {
        let none: Option<fn(AuthContext<'_>) -> Authorization> = None;
        let _ = connection.authorizer(none);
    }

    /// The columns that the statements since [`Authorizer::install`] read.
    pub(super) fn columns_read(&self) -> BTreeSet<(String, String)> {
        std::mem::take(&mut self.seen.lock().read)
    }

    /// The name that was refused, if a statement was refused because of a name.
    pub(super) fn refused(&self) -> Option<Refused> {
        self.seen.lock().refused.clone()
    }
}

fn check(context: &AuthContext<'_>, tables: &BTreeSet<String>, seen: &mut Seen) -> Authorization {
    let allowed = match context.action {
        // The column name is empty where no column is read, such as for count(*).
        AuthAction::Select | AuthAction::Recursive | AuthAction::Read { column_name: "", .. } => {
            true
        }
        AuthAction::Read { table_name, column_name } => {
            let table = table_name.to_lowercase();
            let is_ours = tables.contains(&table);
            let is_other = matches!(
                &*table,
                "json_each"
                    | "json_tree"
                    | "jsonb_each"
                    | "jsonb_tree"
                    | "sqlite_master"
                    | "sqlite_schema"
            );

            if is_ours {
                seen.read.insert((table, column_name.to_owned()));
            }

            let allowed = is_ours || is_other;
            if !allowed {
                seen.refused = Some(Refused::Table(table_name.to_owned()));
            }
            allowed
        }
        AuthAction::Function { function_name } => {
            let name = function_name.to_lowercase();
            let allowed = name.starts_with("json")
                || super::functions::NAMES.contains(&&*name)
                || FUNCTIONS.split(' ').any(|listed| listed == name);

            if !allowed {
                seen.refused = Some(Refused::Function(name));
            }
            allowed
        }
        _ => false,
    };

    if allowed { Authorization::Allow } else { Authorization::Deny }
}
