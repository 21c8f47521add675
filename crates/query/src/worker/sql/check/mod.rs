//! Checks a statement against the types of the columns: SQLite compares texts with numbers, adds
//! and joins them without a word. A statement that the parser does not know passes, and so does
//! what has no type that is known.

mod calls;
mod dialect;
mod expressions;
mod facts;
mod queries;
mod rules;
mod scope;
mod texts;
mod types;

#[cfg(test)]
mod tests;

use larder_records::notes::Note;
use sqlparser::{ast::Statement, parser::Parser};

use self::{
    dialect::Sqlite,
    facts::facts,
    queries::Checker,
    scope::{CheckEnd, Scope},
    types::TableFacts,
};
use crate::worker::profile::Profile;

/// The maximum depth of a statement that is parsed. SQLite has accepted it before.
const MAX_DEPTH: usize = 200;

/// Fails if the statement, which SQLite accepts, mixes texts and numbers. The error says what to
/// write instead. The notes say which texts are sorted although they are numbers.
pub(super) fn check(sql: &str, tables: &[Profile]) -> Result<Vec<Note>, String> {
    check_facts(sql, &facts(tables))
}

fn check_facts(sql: &str, tables: &[TableFacts]) -> Result<Vec<Note>, String> {
    let parser = Parser::new(&Sqlite).with_recursion_limit(MAX_DEPTH);
    let statements = parser.try_with_sql(sql).and_then(|mut parser| parser.parse_statements());

    let Ok(statements) = statements else { return Ok(Vec::new()) };
    let [Statement::Query(query)] = &statements[..] else { return Ok(Vec::new()) };

    let checker = Checker::new(tables);
    match checker.query(query, &Scope::outermost()) {
        Err(CheckEnd::Problem(problem)) => Err(problem),
        Ok(_) | Err(CheckEnd::TooDeep) => Ok(checker.notes()),
    }
}
