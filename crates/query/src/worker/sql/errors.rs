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
    /// The statement is another than one SELECT without parameters.
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

/// The error for a statement that is no SELECT.
pub(super) fn no_select() -> QueryError {
    QueryError::Refused(ONE_SELECT.into())
}

/// The error of a statement over a table whose columns are not known yet. What depends on them shows
/// when it runs.
pub(super) fn before_tables(error: &Error, authorizer: &Authorizer) -> Result<(), QueryError> {
    let text = match error {
        Error::MultipleStatement => return Err(no_select()),
        Error::SqlInputError { msg, .. } | Error::SqliteFailure(_, Some(msg)) => msg.clone(),
        error => error.to_string(),
    };

    if is_denied(error, &text) {
        return Err(QueryError::Refused(denied(authorizer, &[])));
    }
    if let Some(name) = text.strip_prefix("no such table: ") {
        return Err(QueryError::Refused(no_table(name, &[])));
    }

    let is_unreadable = ["syntax error", "unrecognized token", "incomplete input"];
    if is_unreadable.iter().any(|problem| text.contains(problem)) {
        let text = cut(&text, 300).trim_end_matches('.');
        return Err(QueryError::Refused(format!("SQLite: {text}.")));
    }
    Ok(())
}

fn is_denied(error: &Error, text: &str) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::AuthorizationForStatementDenied)
        || text.starts_with("not authorized")
        || text.contains("prohibited")
}

/// Says what the authorizer has refused.
fn denied(authorizer: &Authorizer, tables: &[Profile]) -> String {
    match authorizer.refused() {
        Some(Refused::Function(name)) => format!("There is no function {} here.", cut(&name, 100)),
        Some(Refused::Table(name)) => no_table(&name, tables),
        None => ONE_SELECT.into(),
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
    QueryError::Refused(if is_denied(&error, &text) {
        denied(authorizer, tables)
    } else if let Some(column) = text.strip_prefix("no such column: ") {
        no_column(column, tables)
    } else if let Some(table) = text.strip_prefix("no such table: ") {
        no_table(table, tables)
    } else if let Some(name) = text.strip_prefix("no such function: ") {
        no_function(name)
    } else {
        format!("SQLite: {}.", cut(&text, 300).trim_end_matches('.'))
    })
}

/// The functions that there are beside SQLite's own.
const FURTHER_FUNCTIONS: &str = "median(x), percentile(x, 95), stddev(x), \
variance(x), x REGEXP 'a+', regexp_extract(x, 'a+'), regexp_replace(x, 'a+', 'b'), \
number('2,5', 'de'), try_number(x), strptime(x, '%d/%m/%Y') and try_strptime(x, '%d/%m/%Y')";

fn no_function(name: &str) -> String {
    format!(
        "There is no function {} here. Besides SQLite's there are {FURTHER_FUNCTIONS}.",
        cut(name, 100)
    )
}

fn no_table(name: &str, tables: &[Profile]) -> String {
    let names: Vec<_> = tables.iter().map(|table| table.spec.name.as_str()).collect();
    let names = if names.is_empty() { vec!["t"] } else { names };
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
