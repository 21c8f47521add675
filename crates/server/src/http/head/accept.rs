//! The kinds of response that a client accepts (RFC 9110, 12.5.1).

use http::{
    Method,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION},
};

use super::{Head, coding, weight::weight};
use crate::era::Accepts;

impl Head {
    /// The kinds of messages that the client accepts. Without an `Accept` header, it accepts
    /// everything, as with `*/*`.
    pub(in crate::http) fn accepts(&self) -> Accepts {
        let mut message = Preference::default();
        let mut stream = Preference::default();
        let mut has_accept = false;

        for value in self.values(&ACCEPT) {
            has_accept = true;
            // Fast path: the official clients send this value.
            if value == "application/json, text/event-stream" {
                return Accepts { message: true, stream: true };
            }

            for range in value.to_str().unwrap_or_default().split(',') {
                let (media, parameters) = range.split_once(';').unwrap_or((range, ""));
                let media = media.trim();
                // A weight of 0 excludes the media range.
                let is_accepted = weight(parameters) != Some(Ok(0.0));
                message.apply(media, ["*/*", "application/*", "application/json"], is_accepted);
                stream.apply(media, ["*/*", "text/*", "text/event-stream"], is_accepted);
            }
        }

        if !has_accept {
            return Accepts { message: true, stream: true };
        }
        Accepts { message: message.is_accepted, stream: stream.is_accepted }
    }

    /// Whether a person reads the response: browsers ask for pages by name.
    pub(in crate::http) fn accepts_page(&self) -> bool {
        self.text(&ACCEPT).is_some_and(|accept| accept.contains("text/html"))
    }

    /// Whether a person has opened the endpoint in a browser. HTML alone says little: Java's client
    /// accepts it by default.
    pub(in crate::http) fn is_of_person(&self) -> bool {
        let is_read = matches!(*self.method(), Method::GET | Method::HEAD);
        if !is_read || !self.accepts_page() {
            return false;
        }

        let is_stream = |range: &str| range.to_ascii_lowercase().starts_with("text/event-stream");
        let is_client = self.has(&AUTHORIZATION)
            || self.list(&ACCEPT).any(is_stream)
            || self.headers.keys().any(|name| name.as_str().starts_with("mcp-"));
        !is_client
    }

    /// Whether the client accepts the content coding zstd (RFC 8878).
    pub(in crate::http) fn accepts_zstd(&self) -> bool {
        self.list(&ACCEPT_ENCODING).any(coding::is_zstd)
    }
}

/// Whether a media type is accepted, by the most specific range so far.
#[derive(Default)]
struct Preference {
    specificity: usize,
    is_accepted: bool,
}

impl Preference {
    /// Applies a range. `ranges` are those of the media type, the most specific one last.
    fn apply(&mut self, media: &str, ranges: [&str; 3], is_accepted: bool) {
        let Some(specificity) = ranges.iter().position(|r| r.eq_ignore_ascii_case(media)) else {
            return;
        };

        if specificity > self.specificity {
            *self = Self { specificity, is_accepted };
        } else if specificity == self.specificity {
            self.is_accepted |= is_accepted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_ranges_are_read_as_clients_write_them() {
        for (accept, message, stream) in [
            (None, true, true),
            (Some("*/*"), true, true),
            (Some("application/json, text/event-stream"), true, true),
            (Some("Application/JSON; charset=utf-8"), true, false),
            (Some("text/event-stream;q=0.9"), false, true),
            (Some("application/json;q=0, text/event-stream"), false, true),
            (Some("text/html"), false, false),
            // The most specific range decides, in any order.
            (Some("application/json;q=0, */*"), false, true),
            (Some("*/*;q=0.1, text/*; Q=0.0"), true, false),
            (Some("text/event-stream, text/*;q=0, */*;q=0"), false, true),
        ] {
            let headers: Vec<_> = accept.into_iter().map(|accept| (ACCEPT, accept)).collect();
            assert_eq!(Head::of(&headers).accepts(), Accepts { message, stream }, "{accept:?}");
        }
    }
}
