//! How output looks: colours and tables on a terminal, plain and stable lines in a pipe.

use std::{
    borrow::Cow,
    io::{self, IsTerminal},
    time::Duration,
};

use console::{Alignment, Style, measure_text_width, pad_str};
use indicatif::HumanBytes;
use larder_protocol::quote::bounded;
use larder_runtime::clock::Timestamp;

/// Whether people read standard output.
pub(in crate::cli) fn is_for_people() -> bool {
    io::stdout().is_terminal()
}

/// Takes the colours from standard output in a pipe, whatever the environment forces.
pub(in crate::cli) fn without_colours_in_pipes() {
    if !is_for_people() {
        console::set_colors_enabled(false);
    }
    if !io::stderr().is_terminal() {
        console::set_colors_enabled_stderr(false);
    }
}

/// Text of another program on standard output: on a terminal, which would obey them, control
/// characters are escaped, but for line breaks and tabs.
pub(in crate::cli) fn shown(text: &str) -> Cow<'_, str> {
    if is_for_people() { bounded(text, usize::MAX) } else { text.into() }
}

/// The colours. Without a terminal, or with `NO_COLOR`, there are none.
pub(in crate::cli) fn heading() -> Style {
    Style::new().underlined()
}

pub(in crate::cli) fn uri() -> Style {
    Style::new().cyan()
}

pub(in crate::cli) fn size() -> Style {
    Style::new().green()
}

pub(in crate::cli) fn dim() -> Style {
    Style::new().dim()
}

pub(in crate::cli) fn matched() -> Style {
    Style::new().red().bold()
}

/// A number of bytes, as people read it.
pub(in crate::cli) fn bytes(count: u64) -> String {
    HumanBytes(count).to_string()
}

/// How long something lives still: `in 23h`.
pub(in crate::cli) fn left(expires: &str, now: Timestamp) -> String {
    let Ok(expires) = chrono::DateTime::parse_from_rfc3339(expires) else {
        return expires.to_owned();
    };

    let expires = Timestamp::from_millis(u64::try_from(expires.timestamp_millis()).unwrap_or(0));
    format!("in {}", short(expires.since(now)))
}

/// A duration in its largest unit.
fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, 'd'), (3600, 'h'), (60, 'm')];
    // From two units on, the smaller one says more.
    let unit = units.into_iter().find(|(length, _)| seconds >= 2 * length);
    unit.map_or_else(
        || format!("{seconds}s"),
        |(length, unit)| format!("{}{unit}", seconds / length),
    )
}

/// A column of a table.
pub(in crate::cli) struct Column {
    pub(in crate::cli) name: &'static str,
    pub(in crate::cli) is_number: bool,
    pub(in crate::cli) style: Style,
}

/// Rows in columns. The last column is as wide as it is.
pub(in crate::cli) struct Table<const N: usize> {
    columns: [Column; N],
    widths: [usize; N],
    has_heading: bool,
}

impl<const N: usize> Table<N> {
    pub(in crate::cli) fn new(columns: [Column; N]) -> Self {
        let widths = columns.each_ref().map(|column| column.name.len());
        Self { columns, widths, has_heading: false }
    }

    /// The lines of these rows, after the heading if they are the first.
    pub(in crate::cli) fn show(&mut self, rows: &[[String; N]]) -> String {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(measure_text_width(cell));
            }
        }

        let mut text = String::new();
        if !self.has_heading && !rows.is_empty() {
            self.has_heading = true;
            let names = self.columns.each_ref().map(|column| column.name.to_owned());
            text += &self.line(&names, |_| heading());
        }
        for row in rows {
            text += &self.line(row, |column| column.style.clone());
        }
        text
    }

    fn line(&self, cells: &[String; N], style: impl Fn(&Column) -> Style) -> String {
        let mut line = String::new();
        for (index, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            let is_last = index + 1 == N;
            let alignment = if column.is_number { Alignment::Right } else { Alignment::Left };
            let width = if is_last { 0 } else { self.widths[index] };
            let padded = pad_str(cell, width, alignment, None);
            // Only the text is underlined.
            let styled = style(column).apply_to(cell).to_string();
            line += &padded.replacen(cell.as_str(), &styled, usize::from(!cell.is_empty()));
            line += if is_last { "\n" } else { "  " };
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_short() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        for (expires, told) in [
            ("2001-09-09T01:47:40Z", "in 60s"),
            ("2001-09-10T01:46:40Z", "in 24h"),
            ("2001-09-29T01:46:40Z", "in 20d"),
            ("2001-09-09T01:46:00Z", "in 0s"),
            ("never", "never"),
        ] {
            assert_eq!(left(expires, now), told);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let column = |name, is_number| Column { name, is_number, style: Style::new() };
        let mut table = Table::new([column("SIZE", true), column("URI", false)]);
        let rows =
            [["8 B".to_owned(), "x:a".to_owned()], ["1.00 KiB".to_owned(), "é:b".to_owned()]];
        // Another test may have turned colours on.
        let shown = table.show(&rows);
        assert_eq!(
            console::strip_ansi_codes(&shown),
            "    SIZE  URI\n     8 B  x:a\n1.00 KiB  é:b\n"
        );
        assert_eq!(table.show(&rows[..1]), "     8 B  x:a\n");
        assert_eq!(table.show(&[]), "");
    }
}
