//! How fields stand in a line of log that people read.

use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{FormatFields, format::Writer},
};

/// `name=value`, a message without its name, and nothing of what is for traces
/// alone (`otel.…`). Spans are made for every call, so this is on its way.
pub(super) struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = Line { writer, first: true, written: Ok(()) };
        fields.record(&mut line);
        line.written
    }
}

struct Line<'writer> {
    writer: Writer<'writer>,
    first: bool,
    written: fmt::Result,
}

impl Line<'_> {
    fn field(&mut self, field: &Field, write: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        let name = field.name();
        if self.written.is_err() || name.starts_with("otel.") || name.starts_with("log.") {
            return;
        }
        self.written = self.begin(name).and_then(|()| write(&mut self.writer));
    }

    fn begin(&mut self, name: &str) -> fmt::Result {
        if !std::mem::take(&mut self.first) {
            self.writer.write_char(' ')?;
        }
        if name == "message" {
            return Ok(());
        }
        // `type` cannot be a field's name by itself.
        self.writer.write_str(name.strip_prefix("r#").unwrap_or(name))?;
        self.writer.write_char('=')
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            return self.record_debug(field, &format_args!("{value}"));
        }
        let is_plain = value.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\');
        self.field(field, |writer| {
            if !is_plain {
                return write!(writer, "{value:?}");
            }
            writer.write_char('"')?;
            writer.write_str(value)?;
            writer.write_char('"')
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.field(field, |writer| write!(OneLine(writer), "{value:?}"));
    }
}

/// Escapes what could end the line, or change how a terminal shows it.
struct OneLine<'a, 'writer>(&'a mut Writer<'writer>);

impl Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(char::is_control) {
            self.0.write_str(&rest[..at])?;
            let mut after = rest[at..].chars();
            after.next().into_iter().try_for_each(|c| write!(self.0, "{}", c.escape_debug()))?;
            rest = after.as_str();
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panicked").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_names_what_it_is_about_and_cannot_be_forged() {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer().without_time().with_ansi(false);
        let lines = lines.fmt_fields(Fields).with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            // Another test may have met these lines while nobody listened.
            tracing::callsite::rebuild_interest_cache();
            let span = tracing::error_span!(
                "call",
                otel.name = "x",
                call = "7",
                tool = tracing::field::Empty
            );
            span.record("tool", "a\nb\"");
            let _in = span.enter();
            tracing::warn!(n = 1, r#type = %"t", "said\u{1b}");
        });
        let written = written.0.lock().expect("nobody panicked").clone();
        let written = String::from_utf8(written).expect("it is text");
        let (spans, event) = written.split_once("}: ").expect("it is within a span");
        assert!(spans.ends_with(r#"call{call="7" tool="a\nb\"""#), "{spans}");
        assert!(event.ends_with(": said\\u{1b} n=1 type=t\n"), "{event}");
    }
}
