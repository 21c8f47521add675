//! The `Content-Disposition` header.

use http::HeaderValue;

use crate::content_link::encode_segment;

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
        fn any_name_becomes_a_header(name: String) {
            prop_assert!(content_disposition("inline", &name) != "attachment");
        }
    }
}
