//! Tables of HTML as CSV.

use html5gum::{Token, Tokenizer};
use larder_records::{Converted, Dialect, Layout, words::count};

use super::{chosen, csv, part_name};

/// The most columns that a cell spans, and rows.
const MAX_SPAN: usize = 100;

/// A table: the one with the number that is named, from 0, or the one with the most cells. `None`
/// if there is none.
pub(super) fn convert(bytes: &[u8], part: Option<&str>) -> Option<Converted> {
    let mut found = Tables::default();
    let text = String::from_utf8_lossy(bytes);
    for token in Tokenizer::new(&*text).flatten() {
        found.token(token);
    }
    found.end_table();

    let tables: Vec<_> = found.ended.into_iter().filter(|table| table.rows.len() > 1).collect();
    let size = |table: &Table| table.rows.iter().map(Vec::len).sum::<usize>();
    let chosen_index = match part.filter(|part| !part.is_empty()) {
        Some(part) => part_name(part).parse().ok().filter(|index| *index < tables.len())?,
        // Of several that are equally large, the first one.
        None => (0..tables.len()).rev().max_by_key(|index| size(&tables[*index]))?,
    };

    let table = &tables[chosen_index];
    let mut told = "read from a table of HTML".to_owned();
    if tables.len() > 1 {
        told = format!(
            "read from table {chosen_index} of {} of HTML, counted from 0; rows names another one, such as \"/{}\"",
            count(tables.len() as u64, "table"),
            usize::from(chosen_index == 0),
        );
    }

    let dialect = Dialect { header: table.has_header(), ..Dialect::delimited(b',') };
    let bytes = csv(table.rows.iter().cloned())?;
    Some(Converted { layout: Layout::Rows(dialect), bytes, notes: vec![chosen(told)] })
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    /// Whether the first row has cells of a header.
    heads: bool,
}

impl Table {
    /// A first row without cells of a header has names all the same, unless it has numbers.
    fn has_header(&self) -> bool {
        let is_number = |field: &String| field.replace(',', "").parse::<f64>().is_ok();
        self.heads || !self.rows.first().is_some_and(|row| row.iter().any(is_number))
    }
}

/// Collects the tables of a page. A table within another one is a table of its own.
#[derive(Default)]
struct Tables {
    ended: Vec<Table>,
    /// The tables that are open, the innermost last.
    open: Vec<OpenTable>,
    /// The depth of elements whose text is not shown.
    hidden: usize,
}

#[derive(Default)]
struct OpenTable {
    table: Table,
    row: Option<Vec<String>>,
    cell: Option<(String, usize)>,
}

impl Tables {
    fn token(&mut self, token: Token) {
        match token {
            Token::StartTag(tag) => {
                let span = tag.attributes.get(&b"colspan"[..]);
                let span =
                    span.and_then(|span| std::str::from_utf8(&span.value).ok()?.parse().ok());
                self.start(&tag.name, span.unwrap_or(1).clamp(1, MAX_SPAN), tag.self_closing);
            }
            Token::EndTag(tag) => self.end(&tag.name),
            Token::String(text) if self.hidden == 0 => {
                if let Some((cell, _)) = self.open.last_mut().and_then(|open| open.cell.as_mut()) {
                    cell.push_str(&String::from_utf8_lossy(&text.value));
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, name: &[u8], span: usize, is_empty: bool) {
        match name {
            b"script" | b"style" if !is_empty => self.hidden += 1,
            b"table" => self.open.push(OpenTable::default()),
            b"tr" => {
                if let Some(open) = self.open.last_mut() {
                    open.end_row();
                    open.row = Some(Vec::new());
                }
            }
            b"td" | b"th" => {
                if let Some(open) = self.open.last_mut() {
                    open.end_cell();
                    open.row.get_or_insert_default();
                    open.table.heads |= name == b"th" && open.table.rows.is_empty();
                    open.cell = Some((String::new(), span));
                }
            }
            b"br" | b"p" | b"div" | b"li" => {
                if let Some((cell, _)) = self.open.last_mut().and_then(|open| open.cell.as_mut()) {
                    cell.push(' ');
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        match name {
            b"script" | b"style" => self.hidden = self.hidden.saturating_sub(1),
            b"table" => self.end_table(),
            b"tr" => {
                if let Some(open) = self.open.last_mut() {
                    open.end_row();
                }
            }
            b"td" | b"th" => {
                if let Some(open) = self.open.last_mut() {
                    open.end_cell();
                }
            }
            _ => {}
        }
    }

    fn end_table(&mut self) {
        if let Some(mut open) = self.open.pop() {
            open.end_row();
            self.ended.push(open.table);
        }
    }
}

impl OpenTable {
    fn end_cell(&mut self) {
        let Some((text, span)) = self.cell.take() else { return };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let row = self.row.get_or_insert_default();
        row.push(text);
        row.extend(std::iter::repeat_n(String::new(), span - 1));
    }

    fn end_row(&mut self) {
        self.end_cell();
        if let Some(row) = self.row.take().filter(|row| !row.is_empty()) {
            self.table.rows.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn tables_of_html_become_csv() {
        for (html, csv) in [
            ("<table><tr><th>a<th>b<tr><td>1<td>x &amp; y</table>", "a,b\n1,x & y\n"),
            (
                "<p>x<table><thead><tr><th>a</th></tr></thead><tbody><tr><td> 1\n2 </td></tr></tbody></table>",
                "a\n1 2\n",
            ),
            (
                "<table><tr><td>a</td><td>b</td></tr><tr><td colspan=2>1</td></tr></table>",
                "a,b\n1,\n",
            ),
            (
                "<table><tr><td>a<tr><td>1</table><table><tr><td>b<tr><td>1<tr><td>2</table>",
                "b\n1\n2\n",
            ),
            ("<TABLE><TR><TH>a<br>b<TR><TD><b>1</b><script>x</script></TABLE>", "a b\n1\n"),
        ] {
            let converted = convert(html.as_bytes(), None).unwrap();
            assert_eq!(String::from_utf8(converted.bytes).unwrap(), csv, "{html}");
        }
        assert!(convert(b"<p>no table</p>", None).is_none());

        let two = b"<table><tr><td>a<tr><td>1</table><table><tr><td>b<tr><td>1<tr><td>2</table>";
        assert_eq!(convert(two, Some("/0")).unwrap().bytes, b"a\n1\n");
        assert!(convert(two, Some("/7")).is_none());
    }
}
