//! Rows in another order, or some of the rows: by SQL.

use std::fmt::Write;

use larder_oauth::Owner;
use larder_query::{Answer, Engine, Queries, Question, Table};
use larder_records::{Layout, TableOptions};
use larder_store::store::StoredResource;
use serde_json::Value;
use tokio::time::Instant;

use super::{Filter, Op, ViewWindow};
use crate::{
    apps::{
        columns::{self, Column},
        table::RowWindow,
    },
    handler::ToolError,
};

/// The name of the table.
const TABLE: &str = "t";
/// The most columns in which a text is looked for.
const MAX_TEXT_COLUMNS: usize = 50;
/// The bytes of rows that a query returns, before cells are cut.
const QUERY_BYTES: usize = 1 << 20;

/// The rows of a resource that fit the conditions of a request.
pub(super) struct Rows<'a> {
    caller: &'a Owner,
    found: &'a StoredResource,
    table: Table,
    queries: &'a Queries,
    /// The statements of a request have the time of one query together.
    begun: Instant,
    /// ` WHERE …`, or nothing.
    pub(super) condition: String,
}

impl<'a> Rows<'a> {
    /// The rows that the request asks for.
    pub(super) async fn new(
        caller: &'a Owner,
        found: &'a StoredResource,
        args: &ViewWindow,
        queries: &'a Queries,
    ) -> Result<Self, ToolError> {
        let layout = found.layout().await?.unwrap_or(Layout::Log);
        let table = Table {
            name: TABLE.into(),
            layout,
            rows: args.at.clone(),
            pattern: None,
            encoding: None,
            conversion: None,
            options: TableOptions::default(),
        };
        let begun = Instant::now();
        let mut rows = Self { caller, found, table, queries, begun, condition: String::new() };

        rows.condition = match args.query.as_deref().filter(|text| !text.is_empty()) {
            None => condition(&args.filter, &[], ""),
            Some(text) => {
                let names = rows.columns().await?;
                condition(&args.filter, &names, text)
            }
        };
        Ok(rows)
    }

    /// The names of the columns, which any row gives.
    pub(super) async fn columns(&self) -> Result<Vec<String>, ToolError> {
        let columns = self.ask(format!("SELECT * FROM {TABLE} LIMIT 1")).await?.columns;
        Ok(columns.into_iter().map(|column| column.name).collect())
    }

    /// The answer to a statement over the table `t`.
    pub(super) async fn ask(&self, text: String) -> Result<Answer, ToolError> {
        let limits = self.queries.limits();
        let question = Question {
            engine: Engine::Sql,
            text,
            tables: vec![self.table.clone()],
            offset: 0,
            limit: 10_000,
            text_bytes: QUERY_BYTES,
            store: None,
            result_bytes: limits.result_bytes,
            seconds: limits.time.saturating_sub(self.begun.elapsed()).as_secs().max(1),
            memory_bytes: limits.memory_bytes,
            input_bytes: limits.input_bytes,
        };

        let contents = std::slice::from_ref(self.found);
        let answer = self.queries.ask(self.caller, &question, contents, None).await;
        answer.map_err(|error| ToolError::new(error.to_string()))
    }
}

/// The rows of the request, in its order.
pub(super) async fn window(all: &Rows<'_>, args: &ViewWindow) -> Result<RowWindow, ToolError> {
    let condition = &all.condition;
    let total = if args.offset == 0 {
        let answer = all.ask(format!("SELECT count(*) FROM {TABLE}{condition}")).await?;
        answer.rows.first().and_then(|row| row.first()).and_then(Value::as_u64)
    } else {
        None
    };

    let limit = args.limit.unwrap_or(super::DEFAULT_LIMIT);
    let order = args.sort.as_ref().map_or_else(String::new, |sort| {
        let column = quoted(&sort.column);
        let direction = if sort.descending { "DESC" } else { "ASC" };
        format!(" ORDER BY {column} IS NULL, {column} {direction}, rowid")
    });

    let offset = args.offset;
    let sql = format!("SELECT * FROM {TABLE}{condition}{order} LIMIT {limit} OFFSET {offset}");
    Ok(RowWindow { offset, total, ..rows(all.ask(sql).await?).fit() })
}

/// ` WHERE …`, or nothing. `text` is looked for in all of `columns`.
fn condition(filters: &[Filter], columns: &[String], text: &str) -> String {
    let mut all: Vec<String> = filters.iter().map(one_condition).collect();
    if !text.is_empty() {
        let pattern = like(text);
        let any = columns.iter().take(MAX_TEXT_COLUMNS);
        let any: Vec<_> = any.map(|name| format!("{} {pattern}", quoted(name))).collect();
        all.push(if any.is_empty() { "0".to_owned() } else { format!("({})", any.join(" OR ")) });
    }

    if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
}

fn one_condition(filter: &Filter) -> String {
    let column = quoted(&filter.column);
    let value = &filter.value;
    let number = value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let number = number.map(|_| value.trim());

    match filter.op {
        Op::Contains => format!("{column} {}", like(value)),
        Op::Equals => equals(&column, value, number),
        Op::Not => format!("({column} IS NULL OR NOT {})", equals(&column, value, number)),
        Op::Less => order(&column, "<", value, number),
        Op::Greater => order(&column, ">", value, number),
        Op::Empty => format!("({column} IS NULL OR {column} = '')"),
        Op::Filled => format!("({column} IS NOT NULL AND {column} <> '')"),
    }
}

/// A condition that a column has a value, which a page knows as text: a column of numbers has
/// numbers, a column of codes texts, and true is 1. A page does not know which one a column is,
/// so its type is hidden from the check of statements by `likely`, which is the column itself.
fn equals(column: &str, value: &str, number: Option<&str>) -> String {
    let number = match value {
        "true" => Some("1"),
        "false" => Some("0"),
        _ => number,
    };

    let text = format!("CAST({column} AS TEXT) = {}", literal(value));
    match number {
        Some(number) => format!("({text} OR likely({column}) = {number})"),
        None => format!("({text})"),
    }
}

/// A condition on the order of a column and a value: of their numbers, if both are some.
fn order(column: &str, op: &str, value: &str, number: Option<&str>) -> String {
    let texts = format!("likely({column}) {op} {}", literal(value));
    match number {
        Some(number) => format!("coalesce(try_number({column}) {op} {number}, {texts})"),
        None => texts,
    }
}

/// `LIKE '%text%'`
fn like(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars().take(200) {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    format!("LIKE {} ESCAPE '\\'", literal(&format!("%{pattern}%")))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', "''"))
}

pub(super) fn quoted(name: &str) -> String {
    let mut quoted = String::with_capacity(name.len() + 2);
    // Writing to a string cannot fail.
    let _ = write!(quoted, "\"{}\"", name.replace('\0', "").replace('"', "\"\""));
    quoted
}

fn rows(answer: Answer) -> RowWindow {
    let columns = answer.columns.into_iter();
    let columns = columns.map(|column| Column::of_result(column.name, &column.kind)).collect();
    let rows = answer.rows.iter().map(|row| row.iter().map(columns::result_cell).collect());
    RowWindow { columns, rows: rows.collect(), ..RowWindow::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(op: Op, value: &str) -> String {
        condition(&[Filter { column: "a\"b".into(), op, value: value.into() }], &[], "")
    }

    #[test]
    fn names_and_values_are_quoted() {
        for (op, value, expected) in [
            (Op::Contains, "50%'", r#" WHERE "a""b" LIKE '%50\%''%' ESCAPE '\'"#),
            (Op::Equals, "7", r#" WHERE (CAST("a""b" AS TEXT) = '7' OR likely("a""b") = 7)"#),
            (Op::Less, "x'--", r#" WHERE likely("a""b") < 'x''--'"#),
            (
                Op::Greater,
                "-1.5",
                r#" WHERE coalesce(try_number("a""b") > -1.5, likely("a""b") > '-1.5')"#,
            ),
            (Op::Empty, "", r#" WHERE ("a""b" IS NULL OR "a""b" = '')"#),
        ] {
            assert_eq!(filter(op, value), expected);
        }

        let columns = ["a".to_owned(), "b".to_owned()];
        let expected = r#" WHERE ("a" LIKE '%x%' ESCAPE '\' OR "b" LIKE '%x%' ESCAPE '\')"#;
        assert_eq!(condition(&[], &columns, "x"), expected);
        assert_eq!(condition(&[], &[], ""), "");
    }
}
