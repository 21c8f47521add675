//! Figures of a chart. SQL aggregates them over all rows, so no row is left out.

use larder_query::Answer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sorted::{Rows, quoted};
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
/// Integers in a range up to this have a bin for each.
const SINGLE_BINS: f64 = 60.0;

/// A date, with or without a time and a zone, as SQLite reads it.
const DATE: &str = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?(Z|[+-][01][0-9]:[0-5][0-9])?)?$";

/// What a chart shows.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Chart {
    kind: Kind,
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
enum Kind {
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
pub(super) enum Drawn {
    /// What there is to draw.
    Columns {
        rows: Value,
        columns: Vec<Counted>,
        more: usize,
    },
    Line(Line),
    Bars(Bars),
    Histogram(Histogram),
}

/// A column by the values of all rows.
#[derive(Debug, Serialize)]
pub(super) struct Counted {
    name: String,
    values: Value,
    numbers: Value,
    dates: Value,
}

#[derive(Debug, Serialize)]
pub(super) struct Line {
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
    bars: Vec<(columns::Cell, Value, Value)>,
}

#[derive(Debug, Serialize)]
pub(super) struct Histogram {
    rows: Value,
    /// Of each bin: its beginning, its end, and how many values are in it. The last bin has its end.
    bins: Vec<(f64, f64, u64)>,
    /// Whether the bins are of whole numbers, which end before the next begins.
    whole: bool,
    figures: Vec<Figures>,
}

/// Figures of a column over all rows.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    column: String,
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
) -> Result<Drawn, ToolError> {
    let Some(chart) = chart else { return columns(rows).await };

    match chart.kind {
        Kind::Line => line(rows, chart, limit).await.map(Drawn::Line),
        Kind::Bars => bars(rows, chart, limit).await.map(Drawn::Bars),
        Kind::Histogram => histogram(rows, chart, limit).await.map(Drawn::Histogram),
    }
}

async fn columns(rows: &Rows<'_>) -> Result<Drawn, ToolError> {
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
    let columns = typed.iter().map(|name| Counted {
        name: name.clone(),
        values: next(),
        numbers: next(),
        dates: next(),
    });
    Ok(Drawn::Columns { rows, columns: columns.collect(), more: names.len() - typed.len() })
}

/// Whether the first values of a column, as far as there are some, begin as dates do.
fn may_be_dates(sample: &Answer, column: usize) -> bool {
    let mut values = sample.rows.iter().filter_map(|row| row.get(column)).filter(|v| !v.is_null());
    values.all(|value| {
        let text = value.as_str().unwrap_or_default().as_bytes();
        text.len() >= 10 && text[..4].iter().all(u8::is_ascii_digit) && text[4] == b'-'
    })
}

async fn line(rows: &Rows<'_>, chart: &Chart, limit: Option<u64>) -> Result<Line, ToolError> {
    let across = across(rows, chart).await?;
    let x = match (&chart.x, across) {
        (Some(name), Across::Time) => time(&quoted(name)),
        (Some(name), _) => number(&quoted(name)),
        (None, _) => "rowid".to_owned(),
    };

    let ys = chart.y.iter().enumerate();
    let ys: String = ys.map(|(at, name)| format!(", {} AS y{at}", number(&quoted(name)))).collect();
    let values = format!("WITH v AS (SELECT {x} AS x{ys} FROM t{}) ", rows.condition);
    let aggregates: String = (0..chart.y.len())
        .map(|at| format!(", count(y{at}), min(y{at}), avg(y{at}), max(y{at})"))
        .collect();

    let numbers = 3 + 4 * chart.y.len() as u64;
    let most = limit.unwrap_or(super::DEFAULT_LIMIT).clamp(1, MAX_NUMBERS / numbers);
    let distinct = format!(
        "(SELECT count(*) FROM (SELECT DISTINCT x FROM v WHERE x IS NOT NULL LIMIT {}))",
        most + 1
    );
    let answer = rows
        .ask(format!(
            "{values}SELECT count(*), count(x), min(x), max(x), {distinct}{aggregates} FROM v"
        ))
        .await?;

    let found = first_row(answer);
    let single = found.get(4).and_then(Value::as_u64).unwrap_or(0) <= most;
    let bucket = if single {
        "x".to_owned()
    } else {
        let low = found.get(2).and_then(Value::as_f64).unwrap_or(0.0);
        let high = found.get(3).and_then(Value::as_f64).unwrap_or(0.0);
        place("x", low, real(most) / (high - low), most - 1)?
    };

    let buckets = rows
        .ask(format!(
            "{values}SELECT min(x), max(x), count(*){aggregates} FROM v WHERE x IS NOT NULL \
             GROUP BY {bucket} ORDER BY 1"
        ))
        .await?;

    Ok(Line {
        rows: found[0].clone(),
        placed: found[1].clone(),
        across,
        single,
        buckets: buckets.rows.into_iter().map(|row| row.into_iter().map(safe).collect()).collect(),
        figures: figures(&chart.y, &found[5..]),
    })
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
    let value = match (chart.y.first(), chart.by) {
        (_, Aggregate::Rows) => "count(*)".to_owned(),
        (None, _) => return Err(ToolError::new("y: name the column of the values.")),
        (Some(name), by) => {
            let function = match by {
                Aggregate::Sum => "sum",
                Aggregate::Mean => "avg",
                Aggregate::Min => "min",
                _ => "max",
            };
            format!("{function}({})", number(&quoted(name)))
        }
    };

    let (group, condition) = (quoted(group), &rows.condition);
    let limit = limit.unwrap_or(DEFAULT_GROUPS).clamp(1, MAX_GROUPS);
    let answer = rows
        .ask(format!(
            "SELECT {group}, count(*), {value} AS value FROM t{condition} GROUP BY 1 \
             ORDER BY value IS NULL, value DESC, 1 LIMIT {limit}"
        ))
        .await?;
    let totals = rows
        .ask(format!(
            "SELECT count(*), (SELECT count(*) FROM (SELECT 1 FROM t{condition} GROUP BY {group})) \
             FROM t{condition}"
        ))
        .await?;

    let totals = first_row(totals);
    let bars = answer.rows.into_iter().map(|mut row| {
        let value = row.pop().map_or(Value::Null, safe);
        let count = row.pop().unwrap_or_default();
        (columns::result_cell(&row.pop().unwrap_or_default()), count, value)
    });
    Ok(Bars { rows: totals[0].clone(), groups: totals[1].clone(), bars: bars.collect() })
}

async fn histogram(
    rows: &Rows<'_>,
    chart: &Chart,
    limit: Option<u64>,
) -> Result<Histogram, ToolError> {
    let [name] = &*chart.y else {
        return Err(ToolError::new("y: name the one column of the values."));
    };

    let values =
        format!("WITH v AS (SELECT {} AS y FROM t{}) ", number(&quoted(name)), rows.condition);
    let answer = rows
        .ask(format!(
            "{values}SELECT count(*), sum(typeof(y) = 'real'), count(y), min(y), avg(y), max(y) FROM v"
        ))
        .await?;

    let found = first_row(answer);
    let figures = figures(&chart.y, &found[2..]);
    let low = found.get(3).and_then(Value::as_f64);
    let high = found.get(5).and_then(Value::as_f64);
    let (Some(low), Some(high)) = (low, high) else {
        return Ok(Histogram { rows: found[0].clone(), bins: Vec::new(), whole: true, figures });
    };

    let wanted = limit.unwrap_or(DEFAULT_BINS).clamp(1, MAX_BINS);
    let whole = found[1].as_u64() == Some(0);
    let bins = Bins::over(low, high, whole, wanted);
    let bin = place("y", low, 1.0 / bins.width, bins.count - 1)?;
    let counted = rows
        .ask(format!("{values}SELECT {bin}, count(*) FROM v WHERE y IS NOT NULL GROUP BY 1"))
        .await?;

    let mut counts = vec![0; usize::try_from(bins.count).unwrap_or(0)];
    for row in counted.rows {
        let at = row.first().and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let count = row.get(1).and_then(Value::as_u64);
        if let Some((place, count)) = at.and_then(|at| counts.get_mut(at)).zip(count) {
            *place += count;
        }
    }

    let bins = counts.into_iter().zip(0_u32..).map(|(count, at)| {
        let start = low + bins.width * f64::from(at);
        (start, start + bins.width, count)
    });
    Ok(Histogram { rows: found[0].clone(), bins: bins.collect(), whole, figures })
}

/// Bins of one width.
struct Bins {
    count: u64,
    width: f64,
}

impl Bins {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they are few")]
    fn over(low: f64, high: f64, whole: bool, wanted: u64) -> Self {
        let range = high - low;
        if range <= 0.0 {
            return Self { count: 1, width: 1.0 };
        }

        if whole {
            let values = range + 1.0;
            let width = if values <= SINGLE_BINS { 1.0 } else { (values / real(wanted)).ceil() };
            return Self { count: (values / width).ceil() as u64, width };
        }
        Self { count: wanted, width: range / real(wanted) }
    }
}

/// A count of buckets, which are few.
fn real(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The number of the bucket of a value: 0 for `low`, at most `last`.
fn place(value: &str, low: f64, factor: f64, last: u64) -> Result<String, ToolError> {
    if !(factor.is_finite() && low.is_finite()) {
        return Err(ToolError::new("The values are too far apart to draw."));
    }
    let at = format!("CAST(({value} - ({low:?})) * {factor:?} AS INTEGER)");
    Ok(format!("iif({at} > {last}, {last}, {at})"))
}

/// A column's numbers; in a column of texts, those that are some.
fn number(column: &str) -> String {
    format!(
        "CASE typeof({column}) WHEN 'integer' THEN {column} WHEN 'real' THEN {column} \
         WHEN 'text' THEN try_number({column}) END"
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

fn figures(names: &[String], found: &[Value]) -> Vec<Figures> {
    let figures = names.iter().zip(found.chunks_exact(4));
    figures
        .map(|(name, found)| Figures {
            column: name.clone(),
            count: found[0].clone(),
            min: safe(found[1].clone()),
            mean: safe(found[2].clone()),
            max: safe(found[3].clone()),
        })
        .collect()
}

/// An integer that a page would round, as text.
fn safe(value: Value) -> Value {
    const MAX: u64 = 1 << 53;
    match value.as_i64() {
        Some(number) if number.unsigned_abs() > MAX => Value::String(number.to_string()),
        _ => value,
    }
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
    fn bins_of_whole_numbers_have_whole_widths() {
        for (low, high, whole, wanted, count, width) in [
            (1.0, 5.0, true, 30, 5, 1.0),
            (0.0, 59.0, true, 30, 60, 1.0),
            (0.0, 60.0, true, 30, 21, 3.0),
            (1.0, 1_000.0, true, 30, 30, 34.0),
            (0.0, 1.0, false, 4, 4, 0.25),
            (7.0, 7.0, false, 4, 1, 1.0),
        ] {
            let bins = Bins::over(low, high, whole, wanted);
            assert_eq!((bins.count, bins.width), (count, width), "{low} to {high}");
            assert!(low + bins.width * real(count) >= high, "{low} to {high}");
        }
    }

    #[test]
    fn integers_that_a_page_would_round_are_texts() {
        assert_eq!(safe(7.into()), Value::from(7));
        assert_eq!(safe(9_007_199_254_740_993_i64.into()), Value::from("9007199254740993"));
        assert_eq!(safe(i64::MIN.into()), Value::from("-9223372036854775808"));
        assert_eq!(safe(1e300.into()), Value::from(1e300));
    }
}
