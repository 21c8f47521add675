//! Tables in Markdown as CSV.

use super::{
    Dialect, Layout,
    loose::Converted,
    notes::{Note, NoteKind},
    words::count,
};

/// Whether a text has a table in Markdown: a header, a line of dashes, and a row.
pub(crate) fn seems_table(text: &str) -> bool {
    tables(text).next().is_some_and(|table| table.rows.len() > 1)
}

/// The longest table of the text; `None` if it has none.
pub(crate) fn convert(text: &str) -> Option<Converted> {
    let all: Vec<_> = tables(text).filter(|table| table.rows.len() > 1).collect();
    // Of several that are equally long, the first one.
    let longest = all.iter().rev().max_by_key(|table| table.rows.len())?;

    let mut csv = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for row in &longest.rows {
        csv.write_record(row).ok()?;
    }
    let bytes = csv.into_inner().ok()?;

    let rows = longest.rows.len() as u64 - 1;
    let mut told = format!("read from the Markdown table in line {}", longest.line);
    if all.len() > 1 {
        told += &format!(", the longest of {}", count(all.len() as u64, "table"));
    }
    let note = Note {
        kind: NoteKind::Chosen,
        table: None,
        column: None,
        count: rows,
        first: None,
        text: told,
    };
    let layout = Layout::Rows(Dialect::delimited(b','));
    Some(Converted { layout, bytes, notes: vec![note], is_for_tables: false })
}

/// A table: its header and its rows.
struct MarkdownTable {
    /// The number of the header's line, from 1.
    line: usize,
    rows: Vec<Vec<String>>,
}

/// The tables of a text, in their order.
fn tables(text: &str) -> impl Iterator<Item = MarkdownTable> {
    let mut lines = text.lines().enumerate().peekable();
    std::iter::from_fn(move || {
        loop {
            let (number, line) = lines.next()?;
            let is_header = line.contains('|')
                && lines.peek().is_some_and(|(_, next)| is_rule(next))
                && !is_rule(line);
            if !is_header {
                continue;
            }

            let header = cells(line);
            let (_, rule) = lines.next()?;
            if cells(rule).len() != header.len() {
                continue;
            }

            let mut rows = vec![header];
            while let Some((_, row)) =
                lines.next_if(|(_, row)| row.contains('|') && !row.trim().is_empty())
            {
                rows.push(cells(row));
            }
            return Some(MarkdownTable { line: number + 1, rows });
        }
    })
}

/// Whether a line separates the header from the rows: `|---|:---:|`.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('-')
        && line.contains('|')
        && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '+'))
        && cells(line).iter().all(|cell| cell.contains('-'))
}

/// The cells of a line. A pipe after a backslash belongs to its cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);

    let mut cells = vec![String::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'|') => {
                chars.next();
                if let Some(cell) = cells.last_mut() {
                    cell.push('|');
                }
            }
            '|' => cells.push(String::new()),
            other => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(other);
                }
            }
        }
    }

    // The pipe at the end of the line begins no cell.
    if line.ends_with('|') && !line.ends_with("\\|") {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn tables_in_markdown_become_csv() {
        for (text, csv) in [
            ("| a | b |\n|---|:-:|\n| 1 | x |\n| 2 | y, z |\n", "a,b\n1,x\n2,\"y, z\"\n"),
            ("# Title\n\nname | n\n--- | ---\nA\\|B | 1\n\nText.\n", "name,n\nA|B,1\n"),
            ("|a|b|\n|-|-|\n|1||\n", "a,b\n1,\n"),
            ("|a|\n|---|\n|1|\n\n|b|\n|---|\n|1|\n|2|\n", "b\n1\n2\n"),
            ("|a|b|\r\n|---|---|\r\n|1|2|\r\n", "a,b\n1,2\n"),
        ] {
            assert!(seems_table(text), "{text}");
            assert_eq!(String::from_utf8(convert(text).unwrap().bytes).unwrap(), csv, "{text}");
        }
    }

    #[test]
    fn other_texts_have_no_table() {
        for text in [
            "a | b\n1 | 2\n",
            "Title\n-----\ntext\n",
            "|a|b|\n|---|\n|1|2|\n",
            "a|b\n---|---\n",
            "",
        ] {
            assert!(!seems_table(text), "{text}");
            assert_eq!(convert(text), None, "{text}");
        }
    }
}
