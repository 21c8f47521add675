//! The kinds of response that a client accepts (RFC 9110, 12.5.1).

use http::{HeaderMap, header::ACCEPT};

use crate::era::Accepts;

/// Parses the `Accept` headers. Without any, the client accepts everything, as with `*/*`.
pub(super) fn accepts(headers: &HeaderMap) -> Accepts {
    let mut accepts = Accepts { message: false, stream: false };
    let mut has_accept = false;
    for value in headers.get_all(ACCEPT) {
        has_accept = true;
        // The value that the official clients send.
        if value == "application/json, text/event-stream" {
            return Accepts { message: true, stream: true };
        }
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let excluded = parts.any(|p| {
                p.strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q == 0.0))
            });
            if excluded {
                continue;
            }
            let is = |names: [&str; 2]| names.iter().any(|name| name.eq_ignore_ascii_case(media));
            accepts.message |= media == "*/*" || is(["application/json", "application/*"]);
            accepts.stream |= media == "*/*" || is(["text/event-stream", "text/*"]);
        }
    }
    if has_accept { accepts } else { Accepts { message: true, stream: true } }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

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
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(accepts(&headers), Accepts { message, stream }, "{accept:?}");
        }
    }
}
