//! Windows by URI: lines or bytes of any resource, for hosts that read resources
//! and call no tools.

use larder_protocol::{Fault, quote::shortened};
use larder_records::words::{count, number};
use larder_store::store::{Content, Kind, StoredResource, Window, WindowEnd};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    handler::{Context, ResourceError},
    registry::Template,
};

/// The URI template of windows.
pub(super) const TEMPLATE: &str = "{+uri}{?lines,bytes,revision}";

/// The variables of a window's URI.
#[derive(Debug, Deserialize, JsonSchema)]
struct WindowParams {
    uri: String,
    lines: Option<String>,
    bytes: Option<String>,
    revision: Option<String>,
}

/// A resource, and the limit for one of its windows.
struct WindowRequest {
    found: StoredResource,
    /// The revision that the URI names.
    revision: Option<u64>,
    /// The most bytes in one window.
    max_bytes: usize,
}

/// A range, both ends included. Without a last one it extends to the end.
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
    Template::typed(TEMPLATE, "window", |ctx: Context<S>, params: WindowParams| async move { read(&ctx, params).await })
        .title("A part of a resource")
        .description(
            "Lines or bytes of any resource: URI?lines=1-200 (counted from 1, as in search results) or URI?bytes=0-65535 (counted from 0, cut between characters). Omit the last one to read to the end. URI?revision=2, alone or with either (&), is an earlier revision of a stored resource.",
        )
}

async fn read<S>(ctx: &Context<S>, params: WindowParams) -> Result<Content, ResourceError> {
    let range = |unit: &str, text: &str, min: u64| {
        Range::parse(text).filter(|range| range.first >= min).ok_or_else(|| {
            let example = if min == 1 { "1-200" } else { "0-65535" };
            invalid(format!(
                "{unit}={} is not a range: write {unit}={example}, counted from {min}, both ends included.",
                shortened(text)
            ))
        })
    };

    let range = match (&params.lines, &params.bytes) {
        (Some(lines), None) => Some((true, range("lines", lines, 1)?)),
        (None, Some(bytes)) => Some((false, range("bytes", bytes, 0)?)),
        (None, None) if params.revision.is_some() => None,
        _ => return Err(invalid("Give either lines or bytes, not both.".into())),
    };

    let revision = params.revision.as_deref().map(parse_revision).transpose()?;
    let found = ctx.find_revision(&params.uri, revision).await?;
    let max_bytes = usize::try_from(ctx.read_bytes()).unwrap_or(usize::MAX);
    let request = WindowRequest { found, revision, max_bytes };

    let window = match range {
        Some((true, range)) => request.lines(range).await?,
        Some((false, range)) => request.bytes(range).await?,
        None => request.bytes(Range { first: 0, last: None }).await?,
    };

    let entry = &request.found.entry;
    let content = match entry.kind {
        // Text windows are cut between characters, so the bytes are valid UTF-8.
        Kind::Text => String::from_utf8(window.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
            .into(),
        Kind::Binary => Content::from(window.bytes),
    };

    Ok(content.with_mime_type(entry.mime_type.clone()))
}

fn parse_revision(text: &str) -> Result<u64, ResourceError> {
    let number = text.parse().ok().filter(|number| *number > 0);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());

    number.filter(|_| is_number).ok_or_else(|| {
        invalid(format!(
            "revision={} is not a revision: they are numbered from 1.",
            shortened(text)
        ))
    })
}

impl WindowRequest {
    async fn lines(&self, range: Range) -> Result<Window, ResourceError> {
        let entry = &self.found.entry;
        if entry.kind == Kind::Binary {
            return Err(invalid(format!(
                "{} is binary and has no lines: read {}.",
                entry.uri,
                self.uri_of("bytes=0-65535")
            )));
        }

        if range.first > entry.lines && entry.lines > 0 {
            return Err(self.past_end("lines", 1, entry.lines));
        }

        let window = self.found.lines(range.first - 1, range.len(), self.max_bytes).await;
        let window = window.map_err(Fault::from)?;
        let last = range.last.unwrap_or(u64::MAX).min(entry.lines);

        match window.end {
            WindowEnd::Line(next) if next < last => Err(self.too_large(
                &format!("lines {}-{}", number(range.first), number(last)),
                &format!("lines={}-{next}", range.first),
            )),
            WindowEnd::Byte(_) => Err(self.too_large(
                &format!("line {}", number(range.first)),
                &format!("bytes={}-{}", window.range.start, window.range.end - 1),
            )),
            _ => Ok(window),
        }
    }

    async fn bytes(&self, range: Range) -> Result<Window, ResourceError> {
        let entry = &self.found.entry;
        let max_bytes = self.max_bytes;
        if range.first >= entry.size && entry.size > 0 {
            return Err(self.past_end("bytes", 0, entry.size - 1));
        }

        let length = range.len().min(entry.size - range.first.min(entry.size));
        if length > max_bytes as u64 {
            let last = range.first + (max_bytes as u64).saturating_sub(1);
            let fits = format!("bytes={}-{last}", range.first);
            return Err(self.too_large(&count(length, "byte"), &fits));
        }

        let length = usize::try_from(length).unwrap_or(max_bytes);
        Ok(self.found.bytes_from(range.first, length).await.map_err(Fault::from)?)
    }

    /// The URI of a window of the same resource and revision.
    fn uri_of(&self, range: &str) -> String {
        let uri = &self.found.entry.uri;
        let revision = self.revision.map(|revision| format!("&revision={revision}"));
        format!("{uri}?{range}{}", revision.unwrap_or_default())
    }

    fn past_end(&self, unit: &str, first: u64, last: u64) -> ResourceError {
        let from = last.saturating_sub(199).max(first);
        let total = if first == 1 { last } else { last + 1 };

        invalid(format!(
            "{} has {}: the range starts after the end. The last ones are {}.",
            self.found.entry.uri,
            count(total, unit.trim_end_matches('s')),
            self.uri_of(&format!("{unit}={from}-{last}"))
        ))
    }

    fn too_large(&self, what: &str, fitting: &str) -> ResourceError {
        invalid(format!(
            "{what} of {} are more than the {} bytes of one read. {} fits.",
            self.found.entry.uri,
            number(self.max_bytes as u64),
            self.uri_of(fitting)
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
