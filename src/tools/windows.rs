//! Windows by URI, for hosts that read resources and call no tools: some lines,
//! or some bytes, of whatever can be read.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    handler::{Context, ResourceError},
    preview::words::{count, number},
    protocol::Fault,
    registry::Template,
    store::{Content, Found, Kind, Window, WindowEnd},
};

/// The template; no other one of a server's covers what it does.
pub(super) const TEMPLATE: &str = "{+uri}{?lines,bytes,revision}";

/// A window, as its URI names it.
#[derive(Debug, Deserialize, JsonSchema)]
struct WindowParams {
    uri: String,
    lines: Option<String>,
    bytes: Option<String>,
    revision: Option<String>,
}

/// What is asked for a part of.
struct WindowRequest {
    found: Found,
    /// Which revision, where one is named.
    revision: Option<u64>,
    /// The most that is given at once.
    cap: usize,
}

/// A range as it is written: first and last, the last one or none if it goes
/// on to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: u64,
    last: Option<u64>,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let number = |text: &str| text.parse().ok().filter(|_| is_number(text));
        let (first, last) = match text.split_once('-') {
            None => (number(text)?, Some(number(text)?)),
            Some((first, "")) => (number(first)?, None),
            Some((first, last)) => (number(first)?, Some(number(last)?)),
        };
        last.is_none_or(|last| first <= last).then_some(Self { first, last })
    }

    fn len(self) -> u64 {
        self.last.map_or(u64::MAX, |last| (last - self.first).saturating_add(1))
    }
}

pub(super) fn template<S: Send + Sync + 'static>() -> Template<S> {
    Template::typed(TEMPLATE, "window", |ctx: Context<S>, at: WindowParams| async move { read(&ctx, at).await })
        .title("A part of a resource")
        .description(
            "Some lines or some bytes of any resource: URI?lines=1-200 (from line 1, as search results number them) or URI?bytes=0-65535 (from byte 0, cut between characters). Without a last one, to the end. URI?revision=2, by itself or with either (&), is an earlier revision of a stored resource.",
        )
}

async fn read<S>(ctx: &Context<S>, at: WindowParams) -> Result<Content, ResourceError> {
    let range = |what: &str, text: &str, least: u64| {
        Range::parse(text).filter(|range| range.first >= least).ok_or_else(|| {
            let example = if least == 1 { "1-200" } else { "0-65535" };
            invalid(format!(
                "{what}={} is no range: write {what}={example}, counted from {least}, both included.",
                text.chars().take(40).collect::<String>()
            ))
        })
    };
    let range = match (&at.lines, &at.bytes) {
        (Some(lines), None) => Some((true, range("lines", lines, 1)?)),
        (None, Some(bytes)) => Some((false, range("bytes", bytes, 0)?)),
        (None, None) if at.revision.is_some() => None,
        _ => return Err(invalid("Give either lines or bytes, not both.".into())),
    };
    let revision = at.revision.as_deref().map(revision).transpose()?;
    let found = ctx.find_at(&at.uri, revision).await?;
    let cap = usize::try_from(ctx.read_bytes()).unwrap_or(usize::MAX);
    let asked = WindowRequest { found, revision, cap };
    let window = match range {
        Some((true, range)) => asked.lines(range).await?,
        Some((false, range)) => asked.bytes(range).await?,
        None => asked.bytes(Range { first: 0, last: None }).await?,
    };
    let entry = &asked.found.entry;
    let content = match entry.kind {
        // Cut between characters, so that it is text.
        Kind::Text => String::from_utf8(window.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
            .into(),
        Kind::Binary => Content::from(window.bytes),
    };
    Ok(content.with_mime_type(entry.mime_type.clone()))
}

fn revision(text: &str) -> Result<u64, ResourceError> {
    let number = text.parse().ok().filter(|number| *number > 0);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    number.filter(|_| is_number).ok_or_else(|| {
        let text: String = text.chars().take(40).collect();
        invalid(format!("revision={text} is no revision: they are numbered from 1."))
    })
}

impl WindowRequest {
    async fn lines(&self, range: Range) -> Result<Window, ResourceError> {
        let entry = &self.found.entry;
        if entry.kind == Kind::Binary {
            return Err(invalid(format!(
                "{} is binary and has no lines: read {}.",
                entry.uri,
                self.part("bytes=0-65535")
            )));
        }
        if range.first > entry.lines && entry.lines > 0 {
            return Err(self.beyond("lines", 1, entry.lines));
        }
        let window = self.found.lines(range.first - 1, range.len(), self.cap).await;
        let window = window.map_err(Fault::from)?;
        let asked = range.last.unwrap_or(u64::MAX).min(entry.lines);
        match window.end {
            WindowEnd::Line(next) if next < asked => Err(self.too_much(
                &format!("lines {}-{}", number(range.first), number(asked)),
                &format!("lines={}-{next}", range.first),
            )),
            WindowEnd::Byte(_) => Err(self.too_much(
                &format!("line {}", number(range.first)),
                &format!("bytes={}-{}", window.range.start, window.range.end - 1),
            )),
            _ => Ok(window),
        }
    }

    async fn bytes(&self, range: Range) -> Result<Window, ResourceError> {
        let (entry, cap) = (&self.found.entry, self.cap);
        if range.first >= entry.size && entry.size > 0 {
            return Err(self.beyond("bytes", 0, entry.size - 1));
        }
        let wanted = range.len().min(entry.size - range.first.min(entry.size));
        if wanted > cap as u64 {
            let last = range.first + (cap as u64).saturating_sub(1);
            let fits = format!("bytes={}-{last}", range.first);
            return Err(self.too_much(&count(wanted, "byte"), &fits));
        }
        let wanted = usize::try_from(wanted).unwrap_or(cap);
        Ok(self.found.bytes_from(range.first, wanted).await.map_err(Fault::from)?)
    }

    /// The URI of a part of it.
    fn part(&self, range: &str) -> String {
        let uri = &self.found.entry.uri;
        let revision = self.revision.map(|revision| format!("&revision={revision}"));
        format!("{uri}?{range}{}", revision.unwrap_or_default())
    }

    fn beyond(&self, what: &str, first: u64, last: u64) -> ResourceError {
        let from = last.saturating_sub(199).max(first);
        let all = if first == 1 { last } else { last + 1 };
        invalid(format!(
            "{} has {}: that window is behind its end. The last ones are {}.",
            self.found.entry.uri,
            count(all, what.trim_end_matches('s')),
            self.part(&format!("{what}={from}-{last}"))
        ))
    }

    fn too_much(&self, what: &str, fits: &str) -> ResourceError {
        invalid(format!(
            "{what} of {} are more than the {} bytes that are given at once; {} are not.",
            self.found.entry.uri,
            number(self.cap as u64),
            self.part(fits)
        ))
    }
}

fn invalid(message: String) -> ResourceError {
    Fault::invalid_params(message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_exactly() {
        let range = |first, last| Some(Range { first, last });
        for (text, read) in [
            ("1-200", range(1, Some(200))),
            ("7", range(7, Some(7))),
            ("7-", range(7, None)),
            ("7-7", range(7, Some(7))),
            ("7-6", None),
            ("-6", None),
            ("", None),
            ("-", None),
            ("+1-2", None),
            ("1-2-3", None),
            ("a", None),
            ("1,2", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(Range::parse(text), read, "{text:?}");
        }
        assert_eq!(Range { first: 0, last: Some(u64::MAX) }.len(), u64::MAX);
    }
}
