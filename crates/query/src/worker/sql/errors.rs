//! SQLite's errors in words that say what to do.

use larder_records::words::cut;
use rusqlite::{Error, ErrorCode};

use super::authorize::{Authorizer, Refused};
use crate::{QueryError, Question, worker::profile::Profile};

const ONE_SELECT: &str = "Only one SELECT is run.";
/// The most columns that an error lists.
const MAX_LISTED: usize = 60;

/// Why a query does not run.
pub(super) enum QueryProblem {
    Sqlite(Error),
    /// It is another statement than one SELECT without parameters.
    NoSelect,
}

/// Whether the deadline has stopped the statement.
pub(super) fn is_interrupt(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}

/// An error of the worker's own statements.
pub(super) fn internal(error: &Error, question: &Question) -> QueryError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OutOfMemory) => QueryError::memory(question.memory_bytes, true),
        _ => QueryError::Failed,
    }
}

/// An error of the query.
pub(super) fn explain(
    problem: QueryProblem,
    question: &Question,
    tables: &[Profile],
    authorizer: &Authorizer,
) -> QueryError {
    let error = match problem {
        QueryProblem::NoSelect | QueryProblem::Sqlite(Error::MultipleStatement) => {
            return QueryError::Refused(ONE_SELECT.into());
        }
        QueryProblem::Sqlite(error) => error,
    };

    if error.sqlite_error_code() == Some(ErrorCode::OutOfMemory) {
        return QueryError::memory(question.memory_bytes, true);
    }

    let text = match &error {
        Error::SqlInputError { msg, .. } | Error::SqliteFailure(_, Some(msg)) => msg.clone(),
        error => error.to_string(),
    };
    let is_denied = error.sqlite_error_code() == Some(ErrorCode::AuthorizationForStatementDenied)
        || text.starts_with("not authorized")
        || text.contains("prohibited");

    QueryError::Refused(if is_denied {
        match authorizer.refused() {
            Some(Refused::Function(name)) => {
                format!("There is no function {} here.", cut(&name, 100))
            }
            Some(Refused::Table(name)) => no_table(&name, tables),
            None => ONE_SELECT.into(),
        }
    } else if let Some(column) = text.strip_prefix("no such column: ") {
        no_column(column, tables)
    } else if let Some(table) = text.strip_prefix("no such table: ") {
        no_table(table, tables)
    } else {
        format!("SQLite: {}.", cut(&text, 300).trim_end_matches('.'))
    })
}

fn no_table(name: &str, tables: &[Profile]) -> String {
    let names: Vec<_> = tables.iter().map(|table| table.spec.name.as_str()).collect();
    format!("No table {}. Tables: {}.", cut(name, 100), names.join(", "))
}

fn no_column(column: &str, tables: &[Profile]) -> String {
    // SQLite adds advice about string literals.
    let name = column.split(" - should this be").next().unwrap_or(column);
    let name = name.trim_matches('"');
    let (qualifier, bare) = name.rsplit_once('.').unwrap_or(("", name));

    let is_named = |table: &&Profile| table.spec.name.eq_ignore_ascii_case(qualifier);
    let named: Vec<_> = tables.iter().filter(is_named).collect();
    let shown = if named.is_empty() { tables.iter().collect() } else { named };
    let one = shown.len() == 1;

    let listed = shown.iter().map(|table| {
        let names = table.columns.names();
        let more = names.len().saturating_sub(MAX_LISTED);
        let names: Vec<_> = names.iter().take(MAX_LISTED).map(|name| cut(name, 100)).collect();
        let more = if more > 0 { format!(", … {more} more") } else { String::new() };

        let columns =
            if one { "Columns".into() } else { format!("Columns of {}", table.spec.name) };
        format!("{columns}: {}{more}.", names.join(", "))
    });
    let listed = listed.collect::<Vec<_>>().join(" ");

    let place = if one { format!(" in {}", shown[0].spec.name) } else { String::new() };
    let quotes = if column.contains("string literal") || column.starts_with('"') {
        " A text takes single quotes."
    } else {
        ""
    };

    format!("No column {}{place}. {listed}{quotes}", cut(bare, 100))
}
