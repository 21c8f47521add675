//! The preset for Google accounts.

use larder_protocol::quote::quoted;

use super::claims::{Claims, refused};
use crate::ProviderError;

pub(super) const ISSUER: &str = "https://accounts.google.com";

/// The specifics of Google.
#[derive(Debug)]
pub(super) struct Google {
    pub(super) hosted_domain: Option<String>,
}

impl Google {
    /// Google has no scope `offline_access`; it gives a refresh token with a consent.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters =
            vec![("access_type", "offline".to_owned()), ("prompt", "consent".to_owned())];
        // `hd` only preselects the account; `organization` checks the claim.
        parameters.extend(self.hosted_domain.clone().map(|domain| ("hd", domain)));
        parameters
    }

    /// The domain of the user's organization.
    ///
    /// # Errors
    /// If it is not the configured one.
    pub(super) fn organization(&self, claims: &Claims) -> Result<Option<String>, ProviderError> {
        let theirs = claims.text("hd");

        match (&self.hosted_domain, theirs) {
            (Some(ours), Some(theirs)) if theirs.eq_ignore_ascii_case(ours) => {}
            (Some(_), Some(theirs)) => {
                let problem = format!(
                    "the account is of {}, not of auth.login.hosted_domain",
                    quoted(theirs)
                );
                return Err(ProviderError::Refused(problem));
            }
            (Some(_), None) => {
                return Err(refused(
                    "the account is of no organization (auth.login.hosted_domain)",
                ));
            }
            (None, _) => {}
        }

        Ok(theirs.map(str::to_owned))
    }

    /// Whether the address is surely the user's. Google vouches for the addresses of Gmail and
    /// of organizations; others were verified once and may belong to somebody else by now.
    pub(super) fn is_email_verified(claims: &Claims) -> bool {
        let is_gmail = claims.text("email").is_some_and(|email| {
            let email = email.to_ascii_lowercase();
            email.ends_with("@gmail.com") || email.ends_with("@googlemail.com")
        });
        claims.is_true("email_verified") && (is_gmail || claims.text("hd").is_some())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_addresses_that_google_vouches_for_are_verified() {
        for (token, is_verified) in [
            (json!({ "email": "a@gmail.com", "email_verified": true }), true),
            (json!({ "email": "a@gmail.com", "email_verified": false }), false),
            (json!({ "email": "a@example.com", "email_verified": true }), false),
            (
                json!({ "email": "a@example.com", "email_verified": true, "hd": "example.com" }),
                true,
            ),
            (json!({ "email": "a@evilgmail.com", "email_verified": true }), false),
        ] {
            assert_eq!(Google::is_email_verified(&Claims::of(&token)), is_verified, "{token}");
        }
    }

    #[test]
    fn the_hosted_domain_is_that_of_the_claim() {
        let google = Google { hosted_domain: Some("example.com".into()) };
        let organization = |token: Value| google.organization(&Claims::of(&token)).is_ok();
        assert!(organization(json!({ "hd": "Example.com" })));
        assert!(!organization(json!({ "hd": "other.example" })));
        assert!(!organization(json!({ "email": "a@example.com", "email_verified": true })));
        assert!(Google { hosted_domain: None }.organization(&Claims::of(&json!({}))).is_ok());
    }
}
