//! The Authorization header (RFC 9110, section 11.6.2; RFC 6750, section 2.1).

use super::AuthError;

/// The maximum length of a token in bytes. Longer ones are not parsed.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The bearer token in the values of a request's Authorization headers.
///
/// ```
/// use larder_oauth::{AuthError, bearer_token};
///
/// assert_eq!(bearer_token([&b"bEARER abc.def"[..]]), Ok("abc.def"));
/// assert_eq!(bearer_token([]), Err(AuthError::Missing));
/// assert!(matches!(bearer_token([&b"Bearer a"[..], b"Bearer b"]), Err(AuthError::Malformed(_))));
/// ```
///
/// # Errors
/// [`AuthError::Missing`] without a header or with another scheme than Bearer;
/// [`AuthError::Malformed`], [`AuthError::TooLong`].
pub fn bearer_token<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<&'a str, AuthError> {
    let mut values = values.into_iter();
    let value = values.next().ok_or(AuthError::Missing)?;
    if values.next().is_some() {
        return Err(AuthError::Malformed("the request has several Authorization headers"));
    }

    let value = value.trim_ascii();
    let end = value.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(value.len());
    let (scheme, token) = value.split_at(end);
    if scheme.is_empty() {
        return Err(AuthError::Malformed("the Authorization header is empty"));
    }
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        // Credentials of another scheme count as none.
        return Err(AuthError::Missing);
    }

    let token = token.trim_ascii();
    if token.is_empty() {
        return Err(AuthError::Malformed("the Authorization header has no token"));
    }
    if token.len() > MAX_TOKEN_BYTES {
        return Err(AuthError::TooLong);
    }

    // RFC 6750, section 2.1: a b64token has padding only at its end.
    let unpadded = token.iter().rposition(|b| *b != b'=').map_or(0, |last| last + 1);
    // Checks all bytes without a branch, which the compiler vectorizes.
    let is_plain =
        |b: u8| b.is_ascii_alphanumeric() | matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
    let plain = token[..unpadded].iter().fold(true, |all, b| all & is_plain(*b));
    let is_token = unpadded > 0 && plain;

    match std::str::from_utf8(token) {
        Ok(token) if is_token => Ok(token),
        _ => Err(AuthError::Malformed("the token has invalid characters")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_scheme_is_read_in_any_case_and_the_token_as_it_is() {
        for (value, token) in [
            ("Bearer abc", Ok("abc")),
            ("BEARER abc", Ok("abc")),
            ("bearer  abc ", Ok("abc")),
            ("Bearer\tabc", Ok("abc")),
            ("Bearer aB-._~+/0==", Ok("aB-._~+/0==")),
            ("Basic YTpi", Err(AuthError::Missing)),
            ("Bearerabc", Err(AuthError::Missing)),
        ] {
            assert_eq!(bearer_token([value.as_bytes()]), token, "{value:?}");
        }
    }

    #[test]
    fn unreadable_headers_are_malformed() {
        let bad: [&[u8]; 9] = [
            b"",
            b" ",
            b"Bearer",
            b"Bearer ",
            b"Bearer a b",
            b"Bearer a,b",
            b"Bearer \"a\"",
            b"Bearer ==",
            b"Bearer \xff",
        ];

        for value in bad {
            let refused = bearer_token([value]);
            assert!(matches!(refused, Err(AuthError::Malformed(_))), "{value:?} {refused:?}");
        }
    }

    #[test]
    fn a_token_over_the_maximum_length_is_not_parsed() {
        let value = |n| [b"Bearer ", &*vec![b'a'; n]].concat();
        let longest = value(MAX_TOKEN_BYTES);
        assert!(bearer_token([&*longest]).is_ok());

        let longer = value(MAX_TOKEN_BYTES + 1);
        let refused = bearer_token([&*longer]);
        assert_eq!(refused, Err(AuthError::TooLong));
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_refused(value: Vec<u8>, prefix in "[Bb]earer ?|") {
            let value = [prefix.as_bytes(), &value].concat();
            if let Ok(token) = bearer_token([&*value]) {
                prop_assert!(!token.is_empty() && token.is_ascii());
            }
        }
    }
}
