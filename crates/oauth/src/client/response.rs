//! [`AuthorizationResponse`]: the parameters with which the browser comes back.

use std::fmt;

/// The issuer that authorization responses must name (RFC 9207).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseIssuer {
    /// The issuer; `None` if the server has none, so that any `iss` is refused.
    pub issuer: Option<String>,
    /// Whether each response must name it.
    pub is_required: bool,
}

/// An authorization response whose `state` has found its login.
#[derive(Clone, Copy)]
pub struct AuthorizationResponse<'a> {
    issuer: Option<&'a str>,
    error: Option<&'a str>,
    description: Option<&'a str>,
    code: Option<&'a str>,
}

/// Why an authorization response gives no code. The texts are for the person who logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError<'a> {
    /// Another authorization server has sent it.
    #[error("The response is of another authorization server.")]
    OtherIssuer,
    /// The authorization server refuses the login. Both texts come from the browser, so their
    /// length has no bound.
    #[error("The authorization server has refused the login.")]
    Refused {
        /// The error code.
        error: &'a str,
        /// The description, if there is one.
        description: Option<&'a str>,
    },
    /// The response has neither a code nor an error.
    #[error("The parameter code is missing.")]
    NoCode,
}

impl ResponseIssuer {
    /// Whether a response with this `iss` may be of the issuer.
    fn has_sent(&self, iss: Option<&str>) -> bool {
        match iss {
            Some(iss) => self.issuer.as_deref() == Some(iss),
            None => !self.is_required,
        }
    }
}

impl<'a> AuthorizationResponse<'a> {
    /// Reads the parameters of a response. `parameter` finds one by its name.
    pub fn read(parameter: impl Fn(&str) -> Option<&'a str>) -> Self {
        Self {
            issuer: parameter("iss"),
            error: parameter("error"),
            description: parameter("error_description"),
            code: parameter("code"),
        }
    }

    /// The authorization code.
    ///
    /// # Errors
    /// The response is of another server, is a refusal, or has no code. The issuer is checked
    /// before the rest of the response is used (RFC 9207, section 2.4).
    pub fn code(self, expected: &ResponseIssuer) -> Result<&'a str, ResponseError<'a>> {
        if !expected.has_sent(self.issuer) {
            return Err(ResponseError::OtherIssuer);
        }
        if let Some(error) = self.error {
            return Err(ResponseError::Refused { error, description: self.description });
        }
        self.code.ok_or(ResponseError::NoCode)
    }
}

/// Shows no code.
impl fmt::Debug for AuthorizationResponse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationResponse").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<'a>(
        parameters: &'a [(&'a str, &'a str)],
        issuer: Option<&str>,
        is_required: bool,
    ) -> Result<&'a str, ResponseError<'a>> {
        let parameter = |name: &str| {
            let found = parameters.iter().find(|(found, _)| *found == name);
            found.map(|(_, value)| *value)
        };
        let expected = ResponseIssuer { issuer: issuer.map(str::to_owned), is_required };
        AuthorizationResponse::read(parameter).code(&expected)
    }

    #[test]
    fn a_response_of_another_issuer_gives_nothing() {
        let ours = Some("https://idp.example");
        let own = [("iss", "https://idp.example"), ("code", "c")];
        assert_eq!(code(&own, ours, true), Ok("c"));
        assert_eq!(code(&own, ours, false), Ok("c"));
        assert_eq!(code(&own, None, false), Err(ResponseError::OtherIssuer));

        for other in ["https://evil.example", "https://idp.example/", "https://IDP.example", ""] {
            for rest in [("code", "c"), ("error", "access_denied")] {
                let foreign = [("iss", other), rest];
                assert_eq!(code(&foreign, ours, false), Err(ResponseError::OtherIssuer), "{other}");
            }
        }
    }

    #[test]
    fn a_response_without_an_issuer_is_refused_where_each_names_it() {
        let ours = Some("https://idp.example");
        for unnamed in [("code", "c"), ("error", "access_denied")] {
            assert_eq!(code(&[unnamed], ours, true), Err(ResponseError::OtherIssuer));
        }
        assert_eq!(code(&[("code", "c")], ours, false), Ok("c"));
    }

    #[test]
    fn an_error_counts_even_beside_a_code() {
        let both = [("error", "access_denied"), ("error_description", "no"), ("code", "c")];
        let refused = ResponseError::Refused { error: "access_denied", description: Some("no") };
        assert_eq!(code(&both, None, false), Err(refused));
        assert_eq!(code(&[], None, false), Err(ResponseError::NoCode));
    }
}
