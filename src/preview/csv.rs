//! Tables: columns, what is in them, and how many rows.

use super::{
    Sample, estimate,
    words::{count, cut},
};

/// How many rows are looked at.
const ROWS: usize = 500;
/// How many columns are named.
const COLUMNS: usize = 60;

/// What stands between the fields, if all rows that are seen have as many of
/// them, and more than one.
pub(super) fn delimiter(sample: &Sample<'_>) -> Option<u8> {
    let text = sample.text();
    [b',', b'\t', b';', b'|'].into_iter().find(|delimiter| {
        let rows = rows(sample, text, *delimiter);
        let Some((header, rest)) = rows.split_first() else { return false };
        let is_name = |field: &str| {
            // After a comma prose has a space.
            !field.starts_with(' ')
                && (1..=80).contains(&field.trim().len())
                && field.trim().parse::<f64>().is_err()
        };
        // Prose has commas, too: two rows below the names have to agree.
        header.len() > 1
            && rest.len() > 1
            && header.iter().all(is_name)
            && rest.iter().all(|row| row.len() == header.len())
    })
}

/// The whole rows at the beginning.
fn rows(sample: &Sample<'_>, text: &str, delimiter: u8) -> Vec<csv::StringRecord> {
    let whole = if sample.is_whole() { text } else { text.rsplit_once('\n').map_or("", |t| t.0) };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(whole.as_bytes());
    reader.records().take(ROWS).map_while(Result::ok).collect()
}

pub(super) fn facts(sample: &Sample<'_>, delimiter: u8, budget: usize) -> Vec<String> {
    let text = sample.text();
    let rows = rows(sample, text, delimiter);
    let Some((header, rest)) = rows.split_first() else { return Vec::new() };
    let end = rows.last().and_then(|row| row.position()).map_or(0, csv::Position::byte);
    let names = header.iter().map(|name| cut(name, 80)).enumerate().take(COLUMNS);
    let columns: Vec<_> = names.map(|(at, name)| format!("{name}: {}", kind(rest, at))).collect();
    let mut listed = columns.join(", ");
    if header.len() > COLUMNS {
        listed += &format!(", … {} more", header.len() - COLUMNS);
    }
    if listed.len() > budget {
        listed = format!("{}…", cut(&listed, budget));
    }
    let types = match rest.len() {
        _ if sample.is_whole() && rest.len() < ROWS - 1 => "types from all rows".to_owned(),
        seen => format!("types from the first {}", count(seen as u64, "row")),
    };
    // A field in quotes may hold a line feed; then a row is more than a line.
    let multiline = rest.iter().any(|row| row.iter().any(|field| field.contains('\n')));
    let rows = match sample.lines {
        _ if sample.is_whole() && rest.len() < ROWS - 1 => count(rest.len() as u64, "row"),
        Some(lines) if !multiline => count(lines.saturating_sub(1), "row"),
        _ => {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            format!("{} rows", estimate(rest.len(), end, sample.size))
        }
    };
    vec![
        format!("Table: {rows} below a line of names, {}", count(header.len() as u64, "column")),
        format!("Columns ({types}): {listed}"),
    ]
}

type Is = fn(&str) -> bool;

/// What all fields of a column are that are not empty.
fn kind(rows: &[csv::StringRecord], column: usize) -> String {
    let fields = || rows.iter().filter_map(|row| row.get(column)).map(str::trim);
    let given = || fields().filter(|field| !field.is_empty());
    if given().next().is_none() {
        return "empty".into();
    }
    let kinds: [(&str, Is); 4] = [
        ("integer", |f| f.parse::<i64>().is_ok()),
        ("number", |f| f.parse::<f64>().is_ok_and(f64::is_finite)),
        ("boolean", |f| matches!(&*f.to_ascii_lowercase(), "true" | "false")),
        ("date", is_date),
    ];
    let kind = kinds.iter().find(|(_, is)| given().all(*is)).map_or("text", |(name, _)| name);
    if fields().any(str::is_empty) { format!("{kind} or empty") } else { kind.to_owned() }
}

/// `2026-01-31`, perhaps with a time after it.
fn is_date(field: &str) -> bool {
    let bytes = field.as_bytes();
    bytes.len() >= 10
        && bytes.len() <= 40
        && bytes[..10].iter().enumerate().all(|(at, b)| match at {
            4 | 7 => *b == b'-',
            _ => b.is_ascii_digit(),
        })
        && bytes.get(10).is_none_or(|b| matches!(b, b'T' | b' '))
}
