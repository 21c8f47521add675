//! Formats the fields of text log lines.

use std::{
    cell::Cell,
    fmt::{self, Debug, Write},
};

use tracing::field::{Field, Visit};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{FormatFields, format::Writer},
};

/// Formats fields as `name=value` and a message without its name. Omits `otel.…` fields,
/// which are for traces. Runs for every call's span.
pub(super) struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        // Writes the line at once, because the buffer of a span's fields grows with each write.
        let mut line = LineVisitor { text: LINE.take(), written: Ok(()) };
        fields.record(&mut line);
        let written = line.written.and_then(|()| writer.write_str(&line.text));

        if line.text.capacity() <= MAX_KEPT_CAPACITY {
            line.text.clear();
            LINE.set(line.text);
        }

        written
    }
}

thread_local! {
    /// A buffer that is used again for the next fields.
    static LINE: Cell<String> = const { Cell::new(String::new()) };
}

/// The largest buffer that is kept, in bytes.
const MAX_KEPT_CAPACITY: usize = 4 << 10;

struct LineVisitor {
    text: String,
    written: fmt::Result,
}

impl LineVisitor {
    fn field(&mut self, field: &Field, write: impl FnOnce(&mut String) -> fmt::Result) {
        let name = field.name();
        if self.written.is_err() || name.starts_with("otel.") || name.starts_with("log.") {
            return;
        }

        if !self.text.is_empty() {
            self.text.push(' ');
        }
        if name != "message" {
            // A field named `type` is written as `r#type` in code.
            self.text.push_str(name.strip_prefix("r#").unwrap_or(name));
            self.text.push('=');
        }

        self.written = write(&mut self.text);
    }
}

impl Visit for LineVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            return self.record_debug(field, &format_args!("{value}"));
        }

        self.field(field, |text| {
            if !is_plain(value) {
                return write!(text, "{value:?}");
            }

            text.push('"');
            text.push_str(value);
            text.push('"');
            Ok(())
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.field(field, |text| write!(OneLine(text), "{value:?}"));
    }
}

/// Whether a value needs no escaping. Checks all bytes without a branch, which the compiler
/// vectorizes.
fn is_plain(value: &str) -> bool {
    let is_unescaped = |b| matches!(b, b' ' | b'!' | b'#'..=b'[' | b']'..=b'~');
    value.bytes().fold(true, |all, b| all & is_unescaped(b))
}

/// Escapes control characters, which could end the line or change the terminal.
struct OneLine<'a>(&'a mut String);

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if is_plain(text) {
            self.0.push_str(text);
            return Ok(());
        }

        let mut rest = text;
        while let Some(index) = rest.find(char::is_control) {
            self.0.push_str(&rest[..index]);
            let mut after = rest[index..].chars();
            self.0.extend(after.next().into_iter().flat_map(char::escape_debug));
            rest = after.as_str();
        }

        self.0.push_str(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::{io, sync::Arc};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_names_its_spans_and_cannot_be_forged() {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer().without_time().with_ansi(false);
        let lines = lines.fmt_fields(Fields).with_writer(move || writer.clone());

        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            // Another test may have cached that nobody listens to these callsites.
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

        let written = written.0.lock().clone();
        let written = String::from_utf8(written).expect("it is text");
        let (spans, event) = written.split_once("}: ").expect("it is within a span");
        assert!(spans.ends_with(r#"call{call="7" tool="a\nb\"""#), "{spans}");
        assert!(event.ends_with(": said\\u{1b} n=1 type=t\n"), "{event}");
    }
}
