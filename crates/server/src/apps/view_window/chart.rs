//! Figures of a chart. SQL aggregates them over all rows, so no row is left out.

use larder_query::Answer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ranges::{Bins, Range, integer},
    sorted::{Rows, quoted},
};
use crate::{apps::columns, handler::ToolError};

/// The most numbers of one chart, so that it fits into a part.
const MAX_NUMBERS: u64 = 4_000;
/// The most columns whose types are counted.
const MAX_TYPED: usize = 64;
/// The rows of which the first dates are looked for.
const SAMPLED: usize = 200;
const DEFAULT_GROUPS: u64 = 40;
const MAX_GROUPS: u64 = 200;
const DEFAULT_BINS: u64 = 30;
const MAX_BINS: u64 = 200;

/// A date, with or without a time and a zone, as SQLite reads it.
const DATE: &str = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?(Z|[+-][01][0-9]:[0-5][0-9])?)?$";

/// The kind of a chart, and the columns that it draws.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Chart {
    kind: ChartType,
    /// For line: the column across, of numbers or dates; the number of the row by default. For
    /// bars: the column of the groups.
    #[serde(default)]
    x: Option<String>,
    /// The columns of the values. For histogram, one.
    #[serde(default)]
    #[schemars(length(max = 6))]
    y: Vec<String>,
    /// For bars: what is shown of the values of a group. `rows` by default.
    #[serde(default)]
    by: Aggregate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ChartType {
    Line,
    Bars,
    Histogram,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Aggregate {
    /// How many there are.
    #[default]
    Rows,
    Sum,
    Mean,
    Min,
    Max,
}

/// The figures of a chart.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub(super) enum ChartFigures {
    /// The data to draw.
    Columns {
        rows: Value,
        columns: Vec<ColumnCounts>,
        more: usize,
    },
    Line(ChartLine),
    Bars(Bars),
    Histogram(Histogram),
}

/// A column by the values of all rows.
#[derive(Debug, Serialize)]
pub(super) struct ColumnCounts {
    name: String,
    values: Value,
    numbers: Value,
    dates: Value,
}

#[derive(Debug, Serialize)]
pub(super) struct ChartLine {
    rows: Value,
    /// The rows that have a place across.
    placed: Value,
    /// `row`, `number` or `time`, in seconds since 1970.
    across: Across,
    /// Whether each bucket has one value across.
    single: bool,
    /// Of each bucket: the first and the last value across, the rows, and of each column the count,
    /// minimum, mean and maximum.
    buckets: Vec<Vec<Value>>,
    figures: Vec<Figures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Across {
    Row,
    Number,
    Time,
}

#[derive(Debug, Serialize)]
pub(super) struct Bars {
    rows: Value,
    /// All groups, of which the first in the order of their values are sent.
    groups: Value,
    /// Of each group: its value as text, its rows, and the value that is drawn.
    #[serde(rename = "bars")]
    drawn: Vec<(columns::Cell, Value, Value)>,
    /// The values of the column that is drawn, if there is one, and how many of them are numbers.
    values: Value,
    numbers: Value,
}

#[derive(Debug, Serialize)]
pub(super) struct Histogram {
    rows: Value,
    /// Of each bin: its beginning, its end, and how many values are in it. The last bin has its end.
    bins: Vec<(Value, Value, u64)>,
    /// Whether the bins are of whole numbers, which end before the next begins.
    whole: bool,
    figures: Vec<Figures>,
}

/// Figures of a column over all rows.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    column: String,
    /// All values, of which `count` are numbers that SQL has.
    values: Value,
    count: Value,
    min: Value,
    mean: Value,
    max: Value,
}

/// The figures of a chart, or the columns of which one can be drawn.
pub(super) async fn draw(
    rows: &Rows<'_>,
    chart: Option<&Chart>,
    limit: Option<u64>,
) -> Result<ChartFigures, ToolError> {
    let Some(chart) = chart else { return columns(rows).await };

    match chart.kind {
        ChartType::Line => line(rows, chart, limit).await.map(ChartFigures::Line),
        ChartType::Bars => bars(rows, chart, limit).await.map(ChartFigures::Bars),
        ChartType::Histogram => histogram(rows, chart, limit).await.map(ChartFigures::Histogram),
    }
}

async fn columns(rows: &Rows<'_>) -> Result<ChartFigures, ToolError> {
    let sample = rows.ask(format!("SELECT * FROM t LIMIT {SAMPLED}")).await?;
    let names: Vec<_> = sample.columns.iter().map(|column| column.name.clone()).collect();
    let typed = &names[..names.len().min(MAX_TYPED)];

    let mut counts = String::from("count(*)");
    for (index, name) in typed.iter().enumerate() {
        let column = quoted(name);
        let dates = if may_be_dates(&sample, index) {
            format!("sum({})", is_date(&column))
        } else {
            "0".to_owned()
        };
        counts += &format!(", count({column}), sum({} IS NOT NULL), {dates}", number(&column));
    }

    let answer = rows.ask(format!("SELECT {counts} FROM t")).await?;
    let mut found = first_row(answer).into_iter();
    let mut next = || found.next().unwrap_or(Value::Null);

    let rows = next();
    let columns = typed.iter().map(|name| ColumnCounts {
        name: name.clone(),
        values: next(),
        numbers: next(),
        dates: next(),
    });
    Ok(ChartFigures::Columns { rows, columns: columns.collect(), more: names.len() - typed.len() })
}

/// Whether the first values of a column, as far as there are some, begin as dates do.
fn may_be_dates(sample: &Answer, column: usize) -> bool {
    let mut values = sample.rows.iter().filter_map(|row| row.get(column)).filter(|v| !v.is_null());
    values.all(|value| {
        let text = value.as_str().unwrap_or_default().as_bytes();
        text.len() >= 10 && text[..4].iter().all(u8::is_ascii_digit) && text[4] == b'-'
    })
}

async fn line(rows: &Rows<'_>, chart: &Chart, limit: Option<u64>) -> Result<ChartLine, ToolError> {
    let across = across(rows, chart).await?;
    let x = match (&chart.x, across) {
        (Some(name), Across::Time) => time(&quoted(name)),
        (Some(name), _) => number(&quoted(name)),
        (None, _) => row_number(rows).await?.to_owned(),
    };
    let values = numbered(&format!("{x} AS x"), &chart.y, rows);
    let aggregates: Vec<_> = (0..chart.y.len())
        .map(|at| format!(", count(y{at}), min(y{at}), avg(y{at}), max(y{at})"))
        .collect();
    let aggregates = aggregates.concat();

    let numbers = 3 + 4 * chart.y.len() as u64;
    let most = limit.unwrap_or(super::DEFAULT_LIMIT).clamp(1, MAX_NUMBERS / numbers);
    let distinct = format!(
        "(SELECT count(*) FROM (SELECT DISTINCT x FROM v WHERE x IS NOT NULL LIMIT {}))",
        most + 1
    );
    let given: Vec<_> = (0..chart.y.len()).map(|at| format!(", count(g{at})")).collect();
    let given = given.concat();
    let answer = rows
        .ask(format!(
            "{values}SELECT count(*), count(x), min(x), max(x), {distinct}{aggregates}{given} FROM v"
        ))
        .await?;

    let found = first_row(answer);
    let single = found[4].as_u64().unwrap_or(0) <= most;
    let bucket = match Range::of(&found[2], &found[3]) {
        Some(range) if !single => range.bucket("x", most),
        _ => "x".to_owned(),
    };

    let buckets = rows
        .ask(format!(
            "{values}SELECT min(x), max(x), count(*){aggregates} FROM v WHERE x IS NOT NULL \
             GROUP BY {bucket} ORDER BY 1"
        ))
        .await?;

    let (totals, given) = found[5..].split_at(4 * chart.y.len());
    Ok(ChartLine {
        rows: found[0].clone(),
        placed: found[1].clone(),
        across,
        single,
        buckets: buckets.rows.into_iter().map(|row| row.into_iter().map(safe).collect()).collect(),
        figures: figures(&chart.y, given, totals),
    })
}

/// A table `v` of the rows: `first`, and of each column the number as `y0` and whether it has a value
/// as `g0`.
fn numbered(first: &str, columns: &[String], rows: &Rows<'_>) -> String {
    let columns = columns.iter().enumerate().map(|(at, name)| {
        let column = quoted(name);
        let number = number(&column);
        format!(", {number} AS y{at}, iif({column} IS NULL, NULL, 1) AS g{at}")
    });
    let columns: String = columns.collect();
    format!("WITH v AS (SELECT {first}{columns} FROM t{}) ", rows.condition)
}

/// The number of a row. A column may have the name by which SQLite numbers rows.
async fn row_number(rows: &Rows<'_>) -> Result<&'static str, ToolError> {
    let columns = rows.columns().await?;
    let is_column = |name: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    let free = ["rowid", "_rowid_", "oid"].into_iter().find(|name| !is_column(name));
    Ok(free.unwrap_or("row_number() OVER ()"))
}

/// Whether the column across has dates: all its values are some.
async fn across(rows: &Rows<'_>, chart: &Chart) -> Result<Across, ToolError> {
    let Some(name) = &chart.x else { return Ok(Across::Row) };

    let column = quoted(name);
    let dates = format!("SELECT count({column}), sum({}) FROM t", is_date(&column));
    let found = first_row(rows.ask(dates).await?);
    let count = found.first().and_then(Value::as_u64).unwrap_or(0);
    let dates = found.get(1).and_then(Value::as_u64).unwrap_or(0);
    Ok(if count > 0 && count == dates { Across::Time } else { Across::Number })
}

async fn bars(rows: &Rows<'_>, chart: &Chart, limit: Option<u64>) -> Result<Bars, ToolError> {
    let group =
        chart.x.as_ref().ok_or_else(|| ToolError::new("x: name the column of the groups."))?;
    let column = match (chart.y.first(), chart.by) {
        (_, Aggregate::Rows) => None,
        (None, _) => return Err(ToolError::new("y: name the column of the values.")),
        (Some(name), _) => Some(quoted(name)),
    };
    let number = column.as_deref().map_or("NULL".to_owned(), number);
    let value = match chart.by {
        Aggregate::Rows => "count(*)".to_owned(),
        // A sum of integers may exceed those of SQL, so it orders the groups only.
        Aggregate::Sum => format!("iif(count({number}) > 0, total({number}), NULL)"),
        Aggregate::Mean => format!("avg({number})"),
        Aggregate::Min => format!("min({number})"),
        Aggregate::Max => format!("max({number})"),
    };

    // The names in the outer statement are its own, whatever the columns of the table are.
    let (group, condition) = (quoted(group), &rows.condition);
    let exact = if chart.by == Aggregate::Sum { integer_sum(&number) } else { NO_SUM.to_owned() };
    let limit = limit.unwrap_or(DEFAULT_GROUPS).clamp(1, MAX_GROUPS);
    let answer = rows
        .ask(format!(
            "SELECT a, b, c, d, e, f FROM (SELECT {group} AS a, count(*) AS b, {value} AS c, {exact} \
             FROM t{condition} GROUP BY 1) ORDER BY c IS NULL, c DESC, a LIMIT {limit}"
        ))
        .await?;
    let counts = column
        .map_or("NULL, NULL".to_owned(), |column| format!("count({column}), count({number})"));
    let totals = rows
        .ask(format!(
            "SELECT count(*), (SELECT count(*) FROM (SELECT 1 FROM t{condition} GROUP BY {group})), \
             {counts} FROM t{condition}"
        ))
        .await?;

    let mut totals = first_row(totals).into_iter();
    let mut total = || totals.next().unwrap_or_default();
    Ok(Bars {
        rows: total(),
        groups: total(),
        drawn: answer.rows.into_iter().filter_map(bar).collect(),
        values: total(),
        numbers: total(),
    })
}

/// The columns of [`integer_sum`] without a sum.
const NO_SUM: &str = "NULL AS d, NULL AS e, NULL AS f";

/// The sum of integers in two halves, so that neither exceeds the integers of SQL, and the count of the
/// numbers that are no integers.
fn integer_sum(number: &str) -> String {
    let integer = format!("iif(typeof({number}) = 'integer', {number}, NULL)");
    format!(
        "sum({integer} >> 32) AS d, sum({integer} & 4294967295) AS e, \
         sum(typeof({number}) = 'real') AS f"
    )
}

/// A bar, from the row of its group.
fn bar(row: Vec<Value>) -> Option<(columns::Cell, Value, Value)> {
    let [group, count, value, high, low, reals] = <[Value; 6]>::try_from(row).ok()?;
    let exact = match (high.as_i64(), low.as_i64(), reals.as_u64()) {
        (Some(high), Some(low), Some(0)) => {
            Some(integer((i128::from(high) << 32) + i128::from(low)))
        }
        _ => None,
    };
    Some((columns::result_cell(&group), count, exact.unwrap_or_else(|| safe(value))))
}

async fn histogram(
    rows: &Rows<'_>,
    chart: &Chart,
    limit: Option<u64>,
) -> Result<Histogram, ToolError> {
    let [_] = &*chart.y else {
        return Err(ToolError::new("y: name the one column of the values."));
    };

    let values = numbered("1 AS x", &chart.y, rows);
    let answer = rows
        .ask(format!(
            "{values}SELECT count(*), sum(typeof(y0) = 'real'), count(g0), count(y0), min(y0), \
             avg(y0), max(y0) FROM v"
        ))
        .await?;

    let found = first_row(answer);
    let figures = figures(&chart.y, &found[2..3], &found[3..]);
    let whole = found[1].as_u64().unwrap_or(0) == 0;
    let Some(range) = Range::of(&found[4], &found[6]) else {
        return Ok(Histogram { rows: found[0].clone(), bins: Vec::new(), whole: true, figures });
    };

    let range = if whole { range } else { range.of_reals() };
    let bins = Bins::over(range, limit.unwrap_or(DEFAULT_BINS).clamp(1, MAX_BINS));
    let bin = bins.of("y0");
    let counted = rows
        .ask(format!("{values}SELECT {bin}, count(*) FROM v WHERE y0 IS NOT NULL GROUP BY 1"))
        .await?;

    let mut counts = vec![0; bins.edges().len()];
    for row in counted.rows {
        let at = row.first().and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let count = row.get(1).and_then(Value::as_u64);
        if let Some((place, count)) = at.and_then(|at| counts.get_mut(at)).zip(count) {
            *place += count;
        }
    }

    let bins = bins.edges().into_iter().zip(counts);
    let bins = bins.map(|((from, to), count)| (from, to, count)).collect();
    Ok(Histogram { rows: found[0].clone(), bins, whole, figures })
}

/// A column's numbers; in a column of texts, those that are some. The check of statements takes the
/// column for one of texts, too, so `likely`, which is its argument, hides its type.
fn number(column: &str) -> String {
    format!(
        "likely(CASE typeof({column}) WHEN 'integer' THEN {column} WHEN 'real' THEN {column} \
         WHEN 'text' THEN try_number({column}) END)"
    )
}

/// Whether the value is a date that exists.
fn is_date(column: &str) -> String {
    format!(
        "typeof({column}) = 'text' AND {column} REGEXP '{DATE}' AND \
         try_strptime(substr({column}, 1, 10), '%Y-%m-%d') IS NOT NULL"
    )
}

/// A column's dates, in seconds since 1970.
fn time(column: &str) -> String {
    format!("CASE WHEN {} THEN unixepoch({column}, 'subsec') END", is_date(column))
}

/// The figures of columns: of each the values, and then count, minimum, mean and maximum of its numbers.
fn figures(names: &[String], values: &[Value], found: &[Value]) -> Vec<Figures> {
    let figures = names.iter().zip(values).zip(found.chunks_exact(4));
    figures
        .map(|((name, values), found)| Figures {
            column: name.clone(),
            values: values.clone(),
            count: found[0].clone(),
            min: safe(found[1].clone()),
            mean: safe(found[2].clone()),
            max: safe(found[3].clone()),
        })
        .collect()
}

/// A number of SQL; an integer that a page would round is text.
fn safe(value: Value) -> Value {
    value.as_i64().map_or(value, |number| integer(number.into()))
}

/// The only row of an aggregate, with at least the cells that are asked for.
fn first_row(answer: Answer) -> Vec<Value> {
    let width = answer.columns.len();
    let mut row = answer.rows.into_iter().next().unwrap_or_default();
    row.resize(width.max(row.len()), Value::Null);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_a_page_would_round_are_texts() {
        assert_eq!(safe(7.into()), Value::from(7));
        assert_eq!(safe(9_007_199_254_740_993_i64.into()), Value::from("9007199254740993"));
        assert_eq!(safe(i64::MIN.into()), Value::from("-9223372036854775808"));
        assert_eq!(safe(1e300.into()), Value::from(1e300));
        assert_eq!(integer(1 << 64), Value::from("18446744073709551616"));
    }
}
