//! [`AuthorizationRequest`]: the page at which a person logs in.

use url::Url;

/// An authorization request, as far as it belongs to one login.
#[derive(Debug, Clone, Copy)]
pub struct AuthorizationRequest<'a> {
    /// The URI to which the authorization server sends the browser.
    pub redirect_uri: &'a str,
    /// Ties the response to the browser that began.
    pub state: &'a str,
    /// Ties the ID token to this login (OpenID Connect); `None` where no ID token is expected.
    pub nonce: Option<&'a str>,
    /// The PKCE challenge; its method is S256.
    pub code_challenge: &'a str,
}

impl AuthorizationRequest<'_> {
    /// The URL of an authorization endpoint with the parameters that every server takes (RFC 6749,
    /// section 4.1.1, and RFC 7636).
    pub fn url(&self, endpoint: Url, client_id: &str, scope: &str) -> Url {
        let mut url = endpoint;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", client_id)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("state", self.state)
            .append_pair("code_challenge", self.code_challenge)
            .append_pair("code_challenge_method", "S256");

        let optional = [("scope", Some(scope).filter(|s| !s.is_empty())), ("nonce", self.nonce)];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        url.query_pairs_mut().extend_pairs(optional);
        url
    }
}
