//! [`SentType`]: the media type of content as a response has it.

use std::str::FromStr;

use http::HeaderValue;
use larder_store::store::{Entry, Kind};
use mime::Mime;

/// The media types that a browser may show: it runs nothing in them.
const SAFE_INLINE: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "text/plain"];

/// The charsets that a response may name. Each reads the characters of ASCII as they are.
const CHARSETS: [&str; 4] = ["utf-8", "us-ascii", "iso-8859-1", "windows-1252"];

/// A media type that is built from what a stored one means, never a copy of its text: of
/// `text/plain;x=,text/html` browsers take the last type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentType {
    /// The type and the subtype, in lower case.
    essence: String,
    charset: Option<&'static str>,
}

impl SentType {
    /// The media type of a resource; that of any bytes if the stored text is not one.
    pub(super) fn of(entry: &Entry) -> Self {
        Self::read(&entry.mime_type, entry.kind)
    }

    fn read(stored: &str, kind: Kind) -> Self {
        // The parser accepts `text/`, which has no subtype.
        let parsed =
            Mime::from_str(stored).ok().filter(|parsed| !parsed.subtype().as_str().is_empty());
        let Some(parsed) = parsed else {
            return Self { essence: Kind::Binary.default_mime_type().to_owned(), charset: None };
        };

        let named = parsed.get_param(mime::CHARSET);
        let known = CHARSETS.into_iter().find(|known| named.is_some_and(|name| name == *known));
        let is_utf8 = kind == Kind::Text && parsed.type_() == mime::TEXT;

        Self {
            essence: parsed.essence_str().to_ascii_lowercase(),
            charset: known.or(is_utf8.then_some("utf-8")),
        }
    }

    /// Whether a browser runs nothing in such content.
    pub(super) fn is_safe_inline(&self) -> bool {
        SAFE_INLINE.contains(&&*self.essence)
    }

    /// The value of `Content-Type`.
    pub(super) fn header(&self) -> HeaderValue {
        let text = match self.charset {
            Some(charset) => format!("{}; charset={charset}", self.essence),
            None => self.essence.clone(),
        };

        // A parsed type has the characters of a token only.
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("application/octet-stream"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn sent(stored: &str) -> (String, bool) {
        let sent = SentType::read(stored, Kind::Text);
        (sent.header().to_str().unwrap().to_owned(), sent.is_safe_inline())
    }

    #[test]
    fn a_type_is_sent_as_it_is_meant() {
        for (stored, header, is_safe) in [
            ("text/plain", "text/plain; charset=utf-8", true),
            ("TEXT/CSV;Charset=\"WINDOWS-1252\"", "text/csv; charset=windows-1252", false),
            ("text/plain; charset=utf-16", "text/plain; charset=utf-8", true),
            ("application/json", "application/json", false),
            ("application/vnd.a.b+json; x=y", "application/vnd.a.b+json", false),
            ("image/png", "image/png", true),
        ] {
            assert_eq!(sent(stored), (header.to_owned(), is_safe), "{stored}");
        }
    }

    #[test]
    fn what_is_no_type_is_sent_as_bytes() {
        for stored in [
            "",
            "text",
            "text/",
            "/plain",
            "text/plain;x=,text/html",
            "text/plain, text/html",
            "text/plain text/html",
            "text/plain;x=\"",
            "image/png;text/html",
            r"text/plain\r\n",
            "text/plain\u{e9}",
        ] {
            assert_eq!(sent(stored), ("application/octet-stream".to_owned(), false), "{stored}");
        }

        let bytes = SentType::read("text/plain", Kind::Binary);
        assert_eq!((bytes.header().to_str().unwrap(), bytes.charset), ("text/plain", None));
    }

    /// All types that any reader of a header could find in it: those of each part between commas,
    /// whether or not it is in quotes.
    fn readings(header: &str) -> Vec<String> {
        let essence = |part: &str| part.split(';').next().unwrap_or_default().trim().to_lowercase();
        header.split(',').map(essence).collect()
    }

    /// Texts that resemble media types.
    fn stored() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("text/plain".to_owned()),
            Just("image/png".to_owned()),
            Just("text/html".to_owned()),
            Just("image/svg+xml".to_owned()),
            Just("charset=".to_owned()),
            Just("utf-7".to_owned()),
            "[;,=\" \\\\\t/]",
            "[a-zA-Z0-9!#$&^_.+-]{1,4}",
            any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_read_as_a_safe_type_only(stored in stored(), is_text: bool) {
            let kind = if is_text { Kind::Text } else { Kind::Binary };
            let sent = SentType::read(&stored, kind);
            let header = sent.header();
            let header = header.to_str().unwrap();

            let are_safe = readings(header).iter().all(|read| SAFE_INLINE.contains(&&**read));
            prop_assert_eq!(are_safe, sent.is_safe_inline(), "{} from {:?}", header, stored);

            // Nothing but the charset follows the type.
            let (essence, charset) = header.split_once("; charset=").unwrap_or((header, "utf-8"));
            prop_assert!(CHARSETS.contains(&charset), "{}", header);

            let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$&^_.+-%'*`|~".contains(c);
            let (kind, subtype) = essence.split_once('/').unwrap();
            prop_assert!(!kind.is_empty() && kind.chars().all(is_token), "{}", header);
            prop_assert!(!subtype.is_empty() && subtype.chars().all(is_token), "{}", header);
        }
    }
}
