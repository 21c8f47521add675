//! SQL over tables in memory, by SQLite.

mod authorize;
mod big_literals;
mod check;
mod column_types;
mod errors;
mod functions;
mod guard;
mod load;
mod tokens;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use larder_records::typing::compare_decimals;
use rusqlite::{Connection, Statement, config::DbConfig, limits::Limit};

use self::{
    authorize::Authorizer,
    check::check,
    column_types::{ColumnTypes, NUMBERS, create_table, quoted},
    errors::QueryProblem,
    functions::{Refusals, ValuePlace},
    guard::Guarded,
    load::load,
};
use super::{Deadline, channel::Channel, output::RowWriter, profile::Profile};
use crate::{Answer, QueryError, Question, ReadCounts, wire::Progress};

/// The number of virtual machine instructions between two checks of the deadline.
const PROGRESS_STEPS: i32 = 20_000;
/// The maximum number of columns of a table: SQLite's default limit.
const MAX_COLUMNS: usize = 2_000;

/// The table of a query over one content.
const TABLE: &str = "t";

/// Checks that a text is one SELECT over the table `t`, whose columns are not known yet.
pub(super) fn check_statement(question: &Question) -> Result<(), QueryError> {
    let internal = |error: rusqlite::Error| errors::internal(&error, question);
    let mut connection = connect(question.memory_bytes, &Refusals::default()).map_err(internal)?;
    connection.execute_batch("CREATE TABLE t (x)").map_err(internal)?;

    let authorizer = Authorizer::new([TABLE.to_owned()].into());
    authorizer.install(&mut connection);
    match connection.prepare(&question.text) {
        Ok(statement) if !statement.readonly() || statement.column_count() == 0 => {
            Err(errors::no_select())
        }
        Ok(_) => Ok(()),
        Err(error) => errors::before_tables(&error, &authorizer),
    }
}

/// The tables of a worker.
pub(super) struct Database {
    connection: Connection,
    authorizer: Authorizer,
    tables: Vec<Profile>,
    /// The columns that the present query reads, by table.
    read: Vec<BTreeSet<usize>>,
    /// Why a function has refused a value.
    refusals: Refusals,
    /// When the current question ends, for the progress handler.
    deadline: Arc<AtomicU64>,
}

impl Database {
    /// Makes empty tables with the columns of the contents. `free_bytes` is the memory that
    /// queries may use.
    pub(super) fn open(
        question: &Question,
        channel: &mut Channel,
        deadline: &Deadline,
        free_bytes: u64,
    ) -> Result<Self, QueryError> {
        let mut tables = Vec::new();
        for (index, table) in question.tables.iter().enumerate() {
            tables.push(Profile::new(index, table, channel, deadline)?);
        }

        let internal = |error: rusqlite::Error| errors::internal(&error, question);
        let refusals = Refusals::default();
        let mut connection = connect(free_bytes, &refusals).map_err(internal)?;

        for table in &tables {
            if table.columns.len() > MAX_COLUMNS {
                return Err(QueryError::Content {
                    table: table.spec.name.clone(),
                    problem: format!(
                        "it has {} columns, and sql reads at most {MAX_COLUMNS}: use jq, or rows with another JSON Pointer",
                        table.columns.len()
                    ),
                });
            }
            connection.execute_batch(&create_table(table)).map_err(internal)?;
        }

        let names = tables.iter().map(|table| table.spec.name.to_lowercase()).collect();
        let authorizer = Authorizer::new(names);

        let ends = Arc::new(AtomicU64::new(u64::MAX));
        let over = Arc::clone(&ends);
        connection
            .progress_handler(
                PROGRESS_STEPS,
                Some(move || Deadline::has_passed(over.load(Ordering::Relaxed))),
            )
            .map_err(internal)?;

        Ok(Self { connection, authorizer, tables, read: Vec::new(), refusals, deadline: ends })
    }

    pub(super) fn answer(
        &mut self,
        question: &Question,
        channel: &mut Channel,
        deadline: &Deadline,
    ) -> Result<Answer, QueryError> {
        self.deadline.store(deadline.as_millis(), Ordering::Relaxed);

        // Preparing against empty tables tells which columns the statement reads. No others are
        // loaded.
        self.authorizer.install(&mut self.connection);
        let asked = self.prepare(&question.text, question)?;
        let names: Vec<String> = asked.column_names().map(str::to_owned).collect();
        drop(asked);
        let read = self.authorizer.columns_read();
        Authorizer::remove(&mut self.connection);

        // SQLite has accepted the statement, so its depth is bounded.
        let notes = check(&question.text, &self.tables).map_err(QueryError::Refused)?;

        let types = ColumnTypes::new(&self.tables);
        let sql = if types.have_big_integers(&read) {
            big_literals::as_texts(&question.text)
        } else {
            Cow::Borrowed(&*question.text)
        };

        let reads_all = joins_by_name(&question.text);
        let wanted: Vec<_> =
            self.tables.iter().map(|table| columns_of(table, &read, reads_all)).collect();
        for (index, (table, wanted)) in self.tables.iter_mut().zip(&wanted).enumerate() {
            load(&mut self.connection, index, table, wanted, question, channel, deadline)?;
        }

        self.read.clone_from(&wanted);
        drop(self.refusals.take());
        self.authorizer.install(&mut self.connection);
        let answer = self.run(&sql, &names, question, channel, deadline);
        Authorizer::remove(&mut self.connection);
        let mut answer = answer?;

        answer.notes.extend(notes);
        for (table, wanted) in self.tables.iter().zip(&wanted) {
            answer.notes.extend(table.notes(wanted));
        }
        answer.read = self.tables.iter().fold(ReadCounts::default(), |sum, table| ReadCounts {
            rows: sum.rows + table.counts.rows,
            bytes: sum.bytes + table.counts.bytes,
            skipped: sum.skipped + table.counts.skipped,
        });

        let chosen = self.tables.iter().filter(|t| t.spec.rows.is_none() && !t.at.is_empty());
        answer.places = chosen.map(|t| (t.spec.name.clone(), t.at.to_string())).collect();
        Ok(answer)
    }

    fn prepare(&self, sql: &str, question: &Question) -> Result<Statement<'_>, QueryError> {
        let problem = |problem| errors::explain(problem, question, &self.tables, &self.authorizer);
        let statement = self.connection.prepare(sql);
        let statement = statement.map_err(|error| problem(QueryProblem::Sqlite(error)))?;

        let is_select = statement.readonly() && statement.column_count() > 0;
        if !is_select || statement.parameter_count() > 0 {
            return Err(problem(QueryProblem::NoSelect));
        }

        Ok(statement)
    }

    /// Runs a statement whose columns have these names.
    fn run(
        &self,
        sql: &str,
        names: &[String],
        question: &Question,
        channel: &mut Channel,
        deadline: &Deadline,
    ) -> Result<Answer, QueryError> {
        let guarded = Guarded::new(sql);
        let sql = match &guarded {
            Guarded::Unchanged => sql,
            Guarded::Text(guarded) => guarded,
            Guarded::TooLong => {
                let problem = "min and max are nested too deeply: name the inner ones in a WITH.";
                return Err(QueryError::Refused(problem.into()));
            }
        };
        let mut statement = self.prepare(sql, question)?;
        let mut writer = RowWriter::new(names, question, channel)?;

        let failed = |error: rusqlite::Error| {
            if errors::is_interrupt(&error) {
                let read = self.tables.iter().map(|table| table.counts.rows).sum();
                return deadline.error(Progress { read, total: Some(read) });
            }
            if let Some(refusal) = self.refusals.take() {
                let place = refusal
                    .value()
                    .and_then(|value| place(&self.connection, &self.tables, &self.read, value));
                return QueryError::Refused(refusal.text(place.as_ref()));
            }
            errors::explain(QueryProblem::Sqlite(error), question, &self.tables, &self.authorizer)
        };

        let mut rows = statement.raw_query();
        loop {
            match rows.next() {
                Ok(Some(row)) => writer.row(row)?,
                Ok(None) => break,
                Err(error) => return Err(failed(error)),
            }
        }

        drop(rows);
        writer.finish()
    }
}

/// The columns of a table that a statement reads.
fn columns_of(
    table: &Profile,
    read: &BTreeSet<(String, String)>,
    reads_all: bool,
) -> BTreeSet<usize> {
    if reads_all {
        return (0..table.columns.len()).collect();
    }
    let of_table = read.iter().filter(|(name, _)| name.eq_ignore_ascii_case(&table.spec.name));
    of_table.filter_map(|(_, column)| table.columns.find(column)).collect()
}

/// The row and the column of a text, by the only column that the query reads and that has it.
fn place(
    connection: &Connection,
    tables: &[Profile],
    read: &[BTreeSet<usize>],
    value: &str,
) -> Option<ValuePlace> {
    let mut found = Vec::new();
    for (table, read) in tables.iter().zip(read) {
        for column in read {
            let Some(name) = table.columns.names().get(*column) else { continue };
            let sql = format!(
                "SELECT rowid FROM {} WHERE {} = ?1 AND typeof({}) = 'text' LIMIT 1",
                quoted(&table.spec.name),
                quoted(name),
                quoted(name)
            );
            let row = connection.query_row(&sql, [value], |row| row.get::<_, i64>(0));
            if let Ok(row) = row {
                let at = format!("{name} in row {row} of {}", table.spec.name);
                found.push(ValuePlace { column: column_name(name), at });
            }
        }
    }

    found.pop().filter(|_| found.is_empty())
}

/// A column's name as a statement has it: quoted only where it must be.
fn column_name(name: &str) -> String {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_word { name.to_owned() } else { quoted(name) }
}

/// Whether a statement may join by names: the authorizer is not asked about these
/// columns. A word in a text or a comment only costs time.
fn joins_by_name(sql: &str) -> bool {
    let mut words = sql.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word.eq_ignore_ascii_case("using") || word.eq_ignore_ascii_case("natural"))
}

/// A database in memory that cannot reach anything else. It leaves a tenth of the free memory to
/// what reads the content and writes the result.
fn connect(free_bytes: u64, refusals: &Refusals) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    let heap = free_bytes / 10 * 9;
    connection.execute_batch(&format!(
        "PRAGMA hard_heap_limit = {heap}; PRAGMA temp_store = MEMORY; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cell_size_check = OFF;"
    ))?;

    for (option, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        // A name in double quotes that is no column is an error, not a text.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(option, on)?;
    }

    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, 64 << 20),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 500),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 200),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }

    functions::add(&connection, refusals)?;
    connection.create_collation(NUMBERS, compare_decimals)?;
    Ok(connection)
}
