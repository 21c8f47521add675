//! The name under which a client saves content.

use http::HeaderValue;

use crate::{content_link::encode_segment, quote::is_deceptive};

/// The most bytes of a name, so that file systems accept it.
const MAX_BYTES: usize = 200;
/// The most bytes of an extension, which a shortened name keeps.
const MAX_EXTENSION: usize = 16;
/// The name of content without one.
const DEFAULT: &str = "download";

/// The name as a file name: without control characters, separators and bidirectional overrides,
/// and not hidden.
pub(super) fn file_name(name: &str) -> String {
    let replaced: String = name
        .chars()
        .map(|c| if is_deceptive(c) || matches!(c, '/' | '\\') { '_' } else { c })
        .collect();
    let trimmed = replaced.trim().trim_start_matches('.').trim_end_matches(['.', ' ']);
    if trimmed.is_empty() { DEFAULT.to_owned() } else { shortened(trimmed) }
}

fn shortened(name: &str) -> String {
    if name.len() <= MAX_BYTES {
        return name.to_owned();
    }
    let extension = name.rfind('.').map(|dot| &name[dot..]);
    let extension = extension.filter(|extension| extension.len() <= MAX_EXTENSION);
    let extension = extension.unwrap_or_default();
    let end = name.floor_char_boundary(MAX_BYTES - extension.len());
    format!("{}{extension}", &name[..end])
}

/// The `Content-Disposition` of a file name (RFC 6266, RFC 8187): the name in UTF-8, and a similar
/// one in ASCII for clients that know no other.
pub(super) fn content_disposition(kind: &str, file_name: &str) -> HeaderValue {
    let is_plain = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\' | '%');
    let plain: String = file_name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let encoded = encode_segment(file_name);
    let value = format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_becomes_a_file_name() {
        for (name, expected) in [
            ("report.csv", "report.csv"),
            ("a \"b\" c", "a \"b\" c"),
            ("a\r\nset-cookie: x", "a__set-cookie: x"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("C:\\temp\\x", "C:_temp_x"),
            (".bashrc", "bashrc"),
            ("Größe 漢字", "Größe 漢字"),
            ("fdp\u{202e}cod.exe", "fdp_cod.exe"),
            (" ... ", DEFAULT),
            ("", DEFAULT),
        ] {
            assert_eq!(file_name(name), expected);
        }
        let long = file_name(&format!("{}.csv", "ä".repeat(300)));
        assert!(long.len() <= MAX_BYTES && long.ends_with("ä.csv"), "{long}");
    }

    #[test]
    fn the_header_has_the_name_in_both_forms() {
        let header = content_disposition("attachment", "a\"b\" Größe%.csv");
        assert_eq!(
            header.to_str().unwrap(),
            "attachment; filename=\"a_b_ Gr__e_.csv\"; \
             filename*=UTF-8''a%22b%22%20Gr%C3%B6%C3%9Fe%25.csv"
        );
    }

    proptest! {
        #[test]
        fn any_name_is_harmless(name: String) {
            let name = file_name(&name);
            prop_assert!(!name.is_empty() && name.len() <= MAX_BYTES && !name.starts_with('.'));
            prop_assert!(!name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\')));
            prop_assert!(content_disposition("inline", &name) != "attachment");
        }
    }
}
