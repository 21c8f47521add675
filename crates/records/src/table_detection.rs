//! Detection of tables that others wrote: with lines above and below, rows that do not fit,
//! comments, other quotes, and without a header.

use std::{collections::HashSet, iter};

use super::{Dialect, Layout, Pointer, RowParser, Scanner};

/// The maximum number of rows that are looked at.
const MAX_ROWS: usize = 500;
/// The maximum number of bytes that are looked at, and of rows at least.
const MAX_BYTES: usize = 64 << 10;
/// The maximum number of bytes of a row that ends below what is looked at. A longer one seems to
/// begin with a quote that is never closed.
const MAX_OPEN: u64 = 32 << 10;
/// The maximum number of lines above a table.
const MAX_ABOVE: usize = 40;
/// The maximum number of rows whose cells are compared with the header.
const MAX_COMPARED: usize = 100;
/// The longest name of a column, in bytes.
const MAX_NAME: usize = 80;
/// The bytes between fields that are tried, in order of preference.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The confidence that a text is a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The text is a table.
    Table(Dialect),
    /// The text may be a table, which only a person or a model can tell.
    Perhaps(Dialect),
    /// The text is no table.
    No,
}

/// How a text seems to be written as a table, if nothing says that it is one. `is_cut`: more
/// follows the text.
pub(crate) fn undeclared(text: &str, is_cut: bool) -> Verdict {
    if let Some(named) = named_delimiter(text) {
        return Verdict::Table(Dialect { skip: 1, ..Dialect::delimited(named) });
    }
    let head = FirstLines::new(text, is_cut);
    if is_log(head.text) {
        return Verdict::No;
    }

    // Reading rows in several ways costs more than a look at the lines.
    let frequent: Vec<u8> =
        DELIMITERS.into_iter().filter(|delimiter| is_frequent(head.text, *delimiter)).collect();
    let Some(fit) = Fit::best(head, &frequent).filter(|fit| !fit.is_prose()) else {
        return Verdict::No;
    };

    let core = fit.good + fit.bad;
    let fits_well = fit.bad == 0 || (fit.bad <= 1 && fit.good >= 3) || fit.bad * 5 <= core;
    let has_header = fit.has_header();
    // Without names, only numbers or dates show that lines are rows.
    let is_typed = has_header || fit.bad == 0;

    if fit.good >= 3 && fits_well && is_typed && fit.first <= MAX_ABOVE {
        return Verdict::Table(fit.dialect(has_header));
    }
    if fit.good >= 2 && fit.good >= fit.bad && fit.good * 2 >= fit.rows.len() {
        return Verdict::Perhaps(fit.dialect(has_header));
    }
    Verdict::No
}

/// How a text that is declared as a table is written. `delimiter` is that of its media type;
/// `is_cut`: more follows the text.
pub(crate) fn declared(text: &str, is_cut: bool, delimiter: u8) -> Dialect {
    if let Some(named) = named_delimiter(text) {
        return Dialect { skip: 1, ..Dialect::delimited(named) };
    }
    let delimiters: &[u8] = if delimiter == b'\t' { b"\t" } else { &DELIMITERS };
    let Some(mut fit) = Fit::best(FirstLines::new(text, is_cut), delimiters) else {
        return Dialect::delimited(delimiter);
    };

    // Few rows do not tell lines above the table from a header that lacks names.
    if fit.good < 3 {
        fit.first = 0;
    }
    let has_header = fit.has_header();
    fit.dialect(has_header)
}

/// The delimiter that a first line `sep=;` names, as Excel reads and writes it.
fn named_delimiter(text: &str) -> Option<u8> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let [s, e, p, b'=', delimiter, b'\n' | b'\r', ..] = text.as_bytes() else { return None };
    let is_mark = *delimiter == b'\t' || delimiter.is_ascii_punctuation();
    (is_mark && [*s, *e, *p].eq_ignore_ascii_case(b"sep")).then_some(*delimiter)
}

/// The first lines, enough for a judgement.
#[derive(Clone, Copy)]
struct FirstLines<'a> {
    text: &'a str,
    /// Whether more follows, so that the last row may be incomplete.
    is_cut: bool,
}

impl<'a> FirstLines<'a> {
    fn new(text: &'a str, is_cut: bool) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let end = text.floor_char_boundary(MAX_BYTES);
        Self { text: &text[..end], is_cut: is_cut || end < text.len() }
    }
}

/// The first part of a table up to the end of its last complete row; `None` if a quote seems to be
/// never closed.
pub(crate) fn complete_rows(text: &str, dialect: Dialect) -> Option<&str> {
    let mut scanner = Scanner::new(Layout::Rows(dialect), Pointer::default());
    // Rows have no faults.
    let _ = scanner.feed(text.as_bytes(), |_| {});

    let Some(open) = scanner.open_record() else { return Some(text) };
    let is_closed = !scanner.is_within_quotes() || text.len() as u64 - open <= MAX_OPEN;
    let end = usize::try_from(open).ok().filter(|_| is_closed)?;
    Some(&text[..end])
}

/// Whether a byte is in many of the first lines.
fn is_frequent(text: &str, byte: u8) -> bool {
    let lines = text.split(['\n', '\r']).filter(|line| !line.trim().is_empty()).take(100);
    let (mut with, mut all) = (0, 0);
    for line in lines {
        all += 1;
        with += usize::from(line.as_bytes().contains(&byte));
    }
    with * 10 >= all * 3
}

/// Whether the lines begin as those of a log do: with a time and a level, or with milliseconds
/// after a comma.
fn is_log(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(20);
    let is_entry = |line: &str| {
        let bytes = line.as_bytes();
        // `12:00:00,123 `
        let has_millis = bytes.windows(8).take(40).any(|w| {
            w[0] == b':'
                && w[1..3].iter().all(u8::is_ascii_digit)
                && w[3] == b','
                && w[4..7].iter().all(u8::is_ascii_digit)
                && matches!(w[7], b' ' | b']' | b'\t')
        });
        has_millis || line.starts_with('[') || line.starts_with('<')
    };

    let (mut entries, mut all) = (0, 0);
    for line in &mut lines {
        all += 1;
        entries += usize::from(is_entry(line));
    }
    entries * 2 > all
}

/// A row of the text.
struct TextRow {
    /// The offset of its first byte.
    start: usize,
    fields: Vec<String>,
}

/// A text that is read as a table in one way.
struct Fit {
    dialect: Dialect,
    rows: Vec<TextRow>,
    /// The number of fields that most rows have.
    width: usize,
    /// The index of the first row of the table, which may be its header.
    first: usize,
    /// The index after its last row.
    end: usize,
    /// The rows of the table with `width` fields, and all others of it.
    good: usize,
    bad: usize,
    /// The number of lines above the table.
    lines_above: u32,
}

/// Why a text is no table in one way.
#[derive(Debug, PartialEq, Eq)]
enum NoFit {
    /// A quote that is never closed takes all rows below it into its field.
    OpenQuote,
    /// Each row has one field.
    OneField,
}

impl Fit {
    /// The way in which most rows have the same number of fields.
    fn best(head: FirstLines<'_>, delimiters: &[u8]) -> Option<Self> {
        let text = head.text;
        // Only a line feed ends a comment; other comments are lines above the table.
        let comment = comment(text).filter(|_| text.contains('\n'));
        let bytes = text.as_bytes();
        let has_quotes = bytes.contains(&b'"');
        let has_escapes = has_quotes && text.contains("\\\"");
        let has_apostrophes = !has_quotes && text.contains('\'');

        let mut best: Option<Self> = None;
        for delimiter in delimiters.iter().copied().filter(|byte| bytes.contains(byte)) {
            let plain = Dialect { comment, ..Dialect::delimited(delimiter) };
            let escaped = Dialect { escape: Some(b'\\'), ..plain };
            let unquoted = Dialect { quote: None, ..plain };
            let single = Dialect { quote: Some(b'\''), ..plain };

            let as_plain = Self::new(head, plain);
            if matches!(as_plain, Err(NoFit::OneField)) {
                // All delimiters are within quotes.
                continue;
            }

            let others =
                [(has_escapes, escaped), (has_quotes, unquoted), (has_apostrophes, single)];
            let others = others.into_iter().filter(|(applies, _)| *applies);
            let others = others.map(|(_, dialect)| Self::new(head, dialect));

            for fit in iter::once(as_plain).chain(others).flatten() {
                if best.as_ref().is_none_or(|best| fit.rank() > best.rank()) {
                    best = Some(fit);
                }
            }
        }
        best
    }

    fn new(head: FirstLines<'_>, dialect: Dialect) -> Result<Self, NoFit> {
        let FirstLines { text, .. } = head;
        let rows = rows(head, dialect)?;

        let width = usual_width(&rows).ok_or(NoFit::OneField)?;
        let has_width = |row: &TextRow| row.fields.len() == width;
        let mut first = rows.iter().position(has_width).ok_or(NoFit::OneField)?;
        let end = rows.iter().rposition(has_width).ok_or(NoFit::OneField)? + 1;
        let good = rows[first..end].iter().filter(|row| has_width(row)).count();
        let bad = end - first - good;

        // A header may lack names, or have names of columns that are always empty.
        if let Some(above) = first.checked_sub(1)
            && rows[above].fields.len() * 2 > width
            && rows[above].fields.len() > 1
            && !rows[above].fields.iter().any(|field| field.starts_with(' '))
            && lines(&text.as_bytes()[rows[above].start..rows[first].start]) == 1
        {
            first = above;
        }

        let above = lines(&text.as_bytes()[..rows[first].start]);
        let lines_above = u32::try_from(above).unwrap_or(u32::MAX);
        Ok(Self { dialect, rows, width, first, end, good, bad, lines_above })
    }

    /// Better ways have a higher rank: a larger share of rows that fit, then more fields.
    fn rank(&self) -> (usize, usize) {
        (self.good * 1_000 / self.rows.len().max(1), self.width)
    }

    fn dialect(&self, header: bool) -> Dialect {
        // Blank lines and comments above the first row are passed over anyway.
        let skip = if self.first > 0 { self.lines_above } else { 0 };
        Dialect { skip, header, ..self.dialect }
    }

    fn header(&self) -> &[String] {
        &self.rows[self.first].fields
    }

    /// The rows below the first one.
    fn body(&self) -> impl Iterator<Item = &TextRow> {
        let rows = &self.rows[self.first + 1..self.end.max(self.first + 1)];
        rows.iter().take(MAX_COMPARED)
    }

    /// Whether the fields are parts of sentences.
    fn is_prose(&self) -> bool {
        let is_part = |field: &String| {
            let field = field.trim();
            field.len() > MAX_NAME
                || field.split_whitespace().count() > 6
                || (field.ends_with(['.', '!', '?', ':']) && field.contains(' '))
        };
        let with_spaces = self.header().iter().skip(1).filter(|field| field.starts_with(' '));
        let is_spaced = with_spaces.count() + 1 == self.header().len();
        let is_uneven = self.bad > 0 || !self.has_typed_column();

        self.header().iter().any(is_part) || (is_spaced && is_uneven)
    }

    /// Whether a column below the first row has only numbers or dates.
    fn has_typed_column(&self) -> bool {
        (0..self.width)
            .any(|column| self.column_type(column).is_some_and(|kind| kind != CellType::Text))
    }

    /// The type of all cells of a column below the first row that are not empty.
    fn column_type(&self, column: usize) -> Option<CellType> {
        let fields = self.body().filter_map(|row| row.fields.get(column));
        let mut kinds =
            fields.map(|field| CellType::of(field)).filter(|kind| *kind != CellType::Empty);
        let first = kinds.next()?;
        if kinds.all(|kind| kind == first) { Some(first) } else { Some(CellType::Text) }
    }

    /// Whether the first row has names.
    fn has_header(&self) -> bool {
        let header = self.header();
        let kinds: Vec<_> = header.iter().map(|field| CellType::of(field)).collect();
        let columns = || kinds.iter().copied().enumerate();

        let years = columns().filter(|(_, kind)| *kind == CellType::Number);
        let years: Vec<_> = years.map(|(column, _)| header[column].trim()).collect();
        let are_years = !years.is_empty()
            && years.iter().all(|year| is_year(year))
            && years.iter().collect::<HashSet<_>>().len() == years.len();

        let names = columns().filter(|(_, kind)| *kind == CellType::Text).count();
        if names == 0 {
            return are_years && years.len() > 1;
        }

        // A name stands above values of another type.
        let mut of_type =
            columns().filter_map(|(column, kind)| Some((kind, self.column_type(column)?)));
        if of_type.clone().any(|(kind, below)| kind == CellType::Text && below != CellType::Text) {
            return true;
        }
        if of_type.any(|(kind, below)| kind != CellType::Text && kind == below) {
            return are_years;
        }

        // A value comes again below; a name does so only where the whole header is repeated.
        let comes_again = |column: usize| {
            !header[column].trim().is_empty()
                && self.body().any(|row| {
                    row.fields.get(column) == Some(&header[column]) && row.fields != header
                })
        };
        kinds.iter().all(|kind| *kind != CellType::Date) && !(0..header.len()).any(comes_again)
    }
}

/// The byte with which lines begin that are comments.
fn comment(text: &str) -> Option<u8> {
    let is_blank = |line: &&str| line.trim().is_empty();
    let lines = || text.lines().filter(|line| !is_blank(line)).take(MAX_ROWS);

    [b'#', b'%'].into_iter().find(|byte| {
        let is_comment = |line: &&str| line.as_bytes().first() == Some(byte);
        let above: Vec<_> = lines().take_while(|line| is_comment(line)).collect();
        let count = lines().filter(is_comment).count();
        let all = lines().count();

        // `#chrom<tab>start` above `chr1<tab>1` is a header, unless a name follows it.
        let is_header = above.last().zip(lines().nth(above.len())).is_some_and(|(last, next)| {
            let fields = |line: &str, byte: u8| line.bytes().filter(|b| *b == byte).count();
            let alike =
                |byte: &u8| fields(last, *byte) > 0 && fields(last, *byte) == fields(next, *byte);
            DELIMITERS.iter().any(alike)
                && next
                    .split(['\t', ',', ';', '|'])
                    .any(|field| CellType::of(field) == CellType::Number)
        });

        count > 0 && count * 2 <= all.max(2 * above.len()) && count < all && !is_header
    })
}

/// The complete rows of a text.
fn rows(head: FirstLines<'_>, dialect: Dialect) -> Result<Vec<TextRow>, NoFit> {
    let FirstLines { text, is_cut } = head;
    let every_row = Dialect { header: false, skip: 0, ..dialect };
    let mut scanner = Scanner::new(Layout::Rows(every_row), Pointer::default());
    let mut parser = RowParser::new(every_row);
    let mut rows = Vec::new();

    let mut sink = |record: super::Record| {
        let (Ok(start), Ok(end)) = (usize::try_from(record.start), usize::try_from(record.end))
        else {
            return;
        };
        if rows.len() < MAX_ROWS
            && let Some(fields) = parser.fields(&text.as_bytes()[start..end])
        {
            rows.push(TextRow { start, fields: fields.map(str::to_owned).collect() });
        }
    };

    // Rows have no faults.
    let _ = scanner.feed(text.as_bytes(), &mut sink);
    if scanner.is_within_quotes() {
        let open = scanner.open_record().unwrap_or_default();
        let may_be_closed_below = is_cut && text.len() as u64 - open <= MAX_OPEN;
        return if may_be_closed_below { Ok(rows) } else { Err(NoFit::OpenQuote) };
    }
    if !is_cut {
        let _ = scanner.finish(&mut sink);
    }
    Ok(rows)
}

/// The number of fields that most rows with several fields have; the larger of two that are
/// equally frequent.
fn usual_width(rows: &[TextRow]) -> Option<usize> {
    let widths = || rows.iter().map(|row| row.fields.len()).filter(|width| *width > 1);
    let mut counted: Vec<(usize, usize)> = Vec::new();
    for width in widths() {
        match counted.iter_mut().find(|(_, known)| *known == width) {
            Some((count, _)) => *count += 1,
            None => counted.push((1, width)),
        }
    }
    counted.into_iter().max().map(|(_, width)| width)
}

/// The number of line breaks.
fn lines(bytes: &[u8]) -> usize {
    let mut after_return = false;
    let is_break = |byte: &&u8| {
        let is_break = **byte == b'\r' || (**byte == b'\n' && !after_return);
        after_return = **byte == b'\r';
        is_break
    };
    bytes.iter().filter(is_break).count()
}

/// The type that a field seems to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellType {
    Empty,
    Number,
    Date,
    Text,
}

impl CellType {
    fn of(field: &str) -> Self {
        let field = field.trim();
        if field.is_empty() {
            return Self::Empty;
        }

        let digits = field.bytes().filter(u8::is_ascii_digit).count();
        let is_number = digits > 0
            && field.chars().all(|c| c.is_ascii_digit() || " .,+-eE%$€£".contains(c))
            && !field.starts_with(['e', 'E']);
        let separators = field.bytes().filter(|b| b"-/.:T Z+".contains(b)).count();
        let is_date = digits >= 4
            && separators >= 2
            && digits + separators == field.len()
            && field.starts_with(|c: char| c.is_ascii_digit())
            && field.contains(['-', '/', ':']);

        match () {
            () if is_date => Self::Date,
            () if is_number => Self::Number,
            () => Self::Text,
        }
    }
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && text.parse().is_ok_and(|year: u16| (1800..=2100).contains(&year))
}

#[cfg(test)]
mod tests;
