//! [`RefreshToken`]: its form as text.

use std::fmt::{self, Display, Formatter};

/// A refresh token, which names its grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RefreshToken<'a> {
    /// The ID of the grant: 32 hexadecimal digits, so that no other text is looked up.
    pub(super) grant: &'a str,
    pub(super) secret: &'a str,
}

impl<'a> RefreshToken<'a> {
    /// Reads a token. `None` if the text is none.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (grant, secret) = text.split_once('.')?;
        let is_id = grant.len() == 32 && grant.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then_some(Self { grant, secret })
    }
}

impl Display for RefreshToken<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.grant, self.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let id = "0123456789abcdef0123456789ABCDEF";
        let text = format!("{id}.a.b");
        let token = RefreshToken { grant: id, secret: "a.b" };
        assert_eq!(RefreshToken::parse(&text), Some(token));
        assert_eq!(token.to_string(), text);

        let long = format!("{text}0.a").replacen('.', "", 1);
        for other in ["", ".", id, "id.secret", "../../0123456789abcdef0123456789.x", &long] {
            assert_eq!(RefreshToken::parse(other), None, "{other}");
        }
    }
}
