//! The metadata of an authorization server (RFC 8414; OpenID Connect Discovery 1.0).

use larder_network::is_loopback;
use larder_protocol::quote::quoted;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

use super::lenient::{self, or_default};
use crate::{FetchError, Fetcher, safe_url};

/// The metadata that an authorization server publishes. The URLs of its endpoints are texts: a user
/// reads those that it needs by [`Metadata::required`] and [`Metadata::optional`], with its own
/// rule of which URLs the server may name.
#[derive(Debug, Clone, Deserialize)]
pub struct Metadata {
    /// The issuer, which is the one that was asked for.
    pub issuer: String,

    #[serde(default, deserialize_with = "or_default")]
    authorization_endpoint: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    token_endpoint: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    userinfo_endpoint: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    jwks_uri: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    registration_endpoint: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    revocation_endpoint: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    introspection_endpoint: Option<String>,

    /// The scopes that the server knows, as far as it lists them.
    #[serde(default, deserialize_with = "or_default")]
    pub scopes_supported: Vec<String>,
    #[serde(default, deserialize_with = "none_but_listed")]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "none_but_listed")]
    code_challenge_methods_supported: Option<Vec<String>>,

    /// Whether the URL of a metadata document is a client ID.
    #[serde(default, deserialize_with = "or_default")]
    pub client_id_metadata_document_supported: bool,
    /// Whether each authorization response names the issuer (RFC 9207).
    #[serde(default, deserialize_with = "unless_false")]
    #[serde(rename = "authorization_response_iss_parameter_supported")]
    pub names_issuer: bool,
    /// Entra: the host of Microsoft Graph in this cloud.
    #[serde(default, deserialize_with = "or_default")]
    pub msgraph_host: Option<String>,
}

/// An endpoint in metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// The page at which people log in.
    Authorization,
    /// The token endpoint.
    Token,
    /// The claims about a user (OpenID Connect).
    Userinfo,
    /// The public keys.
    Keys,
    /// The registration of clients (RFC 7591).
    Registration,
    /// The revocation of tokens (RFC 7009).
    Revocation,
    /// The introspection of tokens (RFC 7662).
    Introspection,
}

/// The well-known URLs at which metadata is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WellKnown {
    /// All of an authorization server.
    Any,
    /// The one of OpenID Connect.
    OpenId,
}

/// Why there is no usable metadata.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The document cannot be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The document is no metadata.
    #[error("not valid metadata: {0}")]
    Malformed(String),
    /// The document has another issuer.
    #[error("it is the metadata of the issuer {}", quoted(.0))]
    OtherIssuer(String),
    /// The server cannot be used, or names what it must not.
    #[error("{0}")]
    Unfit(String),
}

/// Why an issuer has no usable metadata.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The issuer is no URL that metadata may be fetched from.
    #[error("{0}")]
    Issuer(&'static str),
    /// The problem of each well-known URL.
    #[error("{}", by_url(.0))]
    Documents(Vec<(Url, MetadataError)>),
}

impl DiscoveryError {
    /// The problem for people who may not see documents: the last one apart from documents that do
    /// not exist.
    pub fn decisive(&self) -> String {
        let Self::Documents(problems) = self else { return self.to_string() };
        let mut problems = problems.iter().rev().map(|(_, problem)| problem);

        match problems.find(|problem| !problem.is_missing_document()) {
            Some(MetadataError::Malformed(_)) => "its metadata is not valid".to_owned(),
            Some(problem) => problem.to_string(),
            None => "it has no metadata".to_owned(),
        }
    }
}

impl MetadataError {
    fn is_missing_document(&self) -> bool {
        matches!(self, Self::Fetch(FetchError::Status(400..=499)))
    }
}

fn by_url(problems: &[(Url, MetadataError)]) -> String {
    let problems = problems.iter().map(|(url, problem)| format!("{url}: {problem}"));
    problems.collect::<Vec<_>>().join("; ")
}

/// Fetches the metadata of an issuer from the first well-known URL whose document is of that issuer
/// and can be read by `read`, which says what the user of the metadata needs.
///
/// # Errors
/// [`DiscoveryError`].
pub async fn discover<T>(
    fetcher: &Fetcher,
    issuer: &str,
    well_known: WellKnown,
    read: impl Fn(Metadata) -> Result<T, String>,
) -> Result<T, DiscoveryError> {
    let base = safe_url(issuer).map_err(DiscoveryError::Issuer)?;

    let mut problems = Vec::new();
    for url in well_known.urls(&base) {
        let metadata = match fetcher.get(&url).await {
            Ok(document) => Metadata::read(&document, issuer),
            Err(error) => Err(error.into()),
        };

        match metadata.and_then(|metadata| read(metadata).map_err(MetadataError::Unfit)) {
            Ok(found) => return Ok(found),
            Err(problem) => problems.push((url, problem)),
        }
    }
    Err(DiscoveryError::Documents(problems))
}

impl WellKnown {
    /// The URLs of metadata, in order of preference (2026-07-28, authorization server discovery:
    /// Authorization Server Metadata Discovery).
    fn urls(self, issuer: &Url) -> Vec<Url> {
        let path = issuer.path().trim_end_matches('/');
        let with_path = |path: String| {
            let mut url = issuer.clone();
            url.set_path(&path);
            url
        };

        let mut urls = Vec::new();
        if self == Self::Any {
            urls.push(with_path(format!("/.well-known/oauth-authorization-server{path}")));
            if !path.is_empty() {
                urls.push(with_path(format!("/.well-known/openid-configuration{path}")));
            }
        }
        urls.push(with_path(format!("{path}/.well-known/openid-configuration")));
        urls
    }
}

impl Metadata {
    /// Reads the document of an issuer.
    ///
    /// # Errors
    /// The document is no metadata, or that of another issuer.
    pub fn read(document: &[u8], issuer: &str) -> Result<Self, MetadataError> {
        let metadata: Self = lenient::document(document).map_err(MetadataError::Malformed)?;

        // RFC 8414, section 3.3: with another issuer, one server could impersonate another.
        if metadata.issuer != issuer {
            return Err(MetadataError::OtherIssuer(metadata.issuer));
        }
        Ok(metadata)
    }

    /// The URL of an endpoint, parsed by `url`, which refuses those that the server must not name.
    ///
    /// # Errors
    /// The endpoint is missing or refused.
    pub fn required(
        &self,
        endpoint: Endpoint,
        url: impl Fn(&str) -> Result<Url, String>,
    ) -> Result<Url, String> {
        self.optional(endpoint, url)?.ok_or_else(|| format!("{} is missing", endpoint.name()))
    }

    /// The URL of an endpoint that need not be there, parsed as by [`Metadata::required`].
    ///
    /// # Errors
    /// The endpoint is refused.
    pub fn optional(
        &self,
        endpoint: Endpoint,
        url: impl Fn(&str) -> Result<Url, String>,
    ) -> Result<Option<Url>, String> {
        let text = match endpoint {
            Endpoint::Authorization => &self.authorization_endpoint,
            Endpoint::Token => &self.token_endpoint,
            Endpoint::Userinfo => &self.userinfo_endpoint,
            Endpoint::Keys => &self.jwks_uri,
            Endpoint::Registration => &self.registration_endpoint,
            Endpoint::Revocation => &self.revocation_endpoint,
            Endpoint::Introspection => &self.introspection_endpoint,
        };

        let Some(text) = text else { return Ok(None) };
        url(text).map(Some).map_err(|problem| format!("{}: {problem}", endpoint.name()))
    }

    /// Whether the server supports PKCE with S256; `None` if it does not say.
    pub fn supports_pkce(&self) -> Option<bool> {
        let methods = self.code_challenge_methods_supported.as_ref()?;
        Some(methods.iter().any(|method| method == "S256"))
    }

    /// Whether the token endpoint accepts a method of client authentication.
    pub fn accepts_client_by(&self, method: &str) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        // RFC 8414, section 2: `client_secret_basic` is the default.
        methods.map_or(method == "client_secret_basic", |known| known.iter().any(|m| m == method))
    }

    /// Whether the client secret is sent in the body, not in a header.
    pub fn is_secret_in_body(&self) -> bool {
        !self.accepts_client_by("client_secret_basic")
    }
}

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Self::Authorization => "authorization_endpoint",
            Self::Token => "token_endpoint",
            Self::Userinfo => "userinfo_endpoint",
            Self::Keys => "jwks_uri",
            Self::Registration => "registration_endpoint",
            Self::Revocation => "revocation_endpoint",
            Self::Introspection => "introspection_endpoint",
        }
    }
}

/// Reads a list of what the server supports. One of another type names nothing, so that no check is
/// left out because of it.
fn none_but_listed<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<String>>, D::Error> {
    let value = Value::deserialize(value)?;
    if value.is_null() {
        return Ok(None);
    }

    Ok(Some(serde_json::from_value(value).unwrap_or_default()))
}

/// Reads a flag that makes a check stricter: every value sets it but `false` and null.
fn unless_false<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(value)?;
    Ok(!matches!(value, Value::Null | Value::Bool(false)))
}

/// Parses a URL that the server at `namer` names: it is safe for secrets, and on this machine only
/// if `namer` is there, too.
///
/// # Errors
/// Why the URL must not be used.
pub fn url_named_by(namer: &Url, text: &str) -> Result<Url, &'static str> {
    let url = safe_url(text)?;
    if is_loopback(&url) && !is_loopback(namer) {
        return Err("a remote server must not name this machine");
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://idp.example";

    fn metadata(change: impl FnOnce(&mut Value)) -> Result<Metadata, MetadataError> {
        let mut document =
            json!({ "issuer": ISSUER, "token_endpoint": "https://idp.example/token" });
        change(&mut document);
        Metadata::read(document.to_string().as_bytes(), ISSUER)
    }

    fn url(text: &str) -> Result<Url, String> {
        url_named_by(&ISSUER.parse().unwrap(), text).map_err(str::to_owned)
    }

    #[test]
    fn a_member_of_another_type_fails_only_those_who_need_it() {
        let odd = metadata(|document| {
            document["jwks_uri"] = json!(["https://idp.example/keys"]);
            document["scopes_supported"] = json!("openid");
            document["code_challenge_methods_supported"] = json!(null);
        });
        let odd = odd.unwrap();

        assert!(odd.required(Endpoint::Token, url).is_ok());
        assert!(odd.required(Endpoint::Keys, url).is_err());
        assert!(odd.scopes_supported.is_empty());

        let strict = metadata(|document| {
            document["authorization_response_iss_parameter_supported"] = json!("true");
        });
        assert!(strict.unwrap().names_issuer);

        let plain = metadata(|document| {
            document["code_challenge_methods_supported"] = json!("plain");
        });
        assert_eq!(plain.unwrap().supports_pkce(), Some(false));
    }

    #[test]
    fn both_kinds_of_well_known_urls_are_tried() {
        let urls = |issuer: &str, well_known: WellKnown| -> Vec<String> {
            let urls = well_known.urls(&issuer.parse().unwrap());
            urls.iter().map(ToString::to_string).collect()
        };

        let host = "https://auth.example.com";
        for issuer in [host.to_owned(), format!("{host}/")] {
            let openid = format!("{host}/.well-known/openid-configuration");
            let oauth = format!("{host}/.well-known/oauth-authorization-server");
            assert_eq!(urls(&issuer, WellKnown::Any), [oauth, openid.clone()]);
            assert_eq!(urls(&issuer, WellKnown::OpenId), [openid]);
        }

        let tenant = format!("{host}/tenant1");
        let openid = format!("{host}/tenant1/.well-known/openid-configuration");
        assert_eq!(
            urls(&tenant, WellKnown::Any),
            [
                format!("{host}/.well-known/oauth-authorization-server/tenant1"),
                format!("{host}/.well-known/openid-configuration/tenant1"),
                openid.clone(),
            ]
        );
        assert_eq!(urls(&tenant, WellKnown::OpenId), [openid]);
    }

    #[test]
    fn the_issuer_must_match_exactly() {
        assert!(metadata(|_| {}).is_ok());
        for other in ["https://idp.example/", "https://IDP.example", "https://b.example", ""] {
            let read = metadata(|document| document["issuer"] = json!(other));
            assert!(matches!(read, Err(MetadataError::OtherIssuer(_))), "{other}");
        }
        let unnamed = metadata(|document| *document = json!({}));
        assert!(matches!(unnamed, Err(MetadataError::Malformed(_))));
    }

    #[test]
    fn endpoints_are_encrypted_and_not_on_this_machine() {
        let token = metadata(|_| {}).unwrap().required(Endpoint::Token, url).unwrap();
        assert_eq!(token.as_str(), "https://idp.example/token");

        for (endpoint, name) in [
            (Endpoint::Authorization, "authorization_endpoint"),
            (Endpoint::Token, "token_endpoint"),
            (Endpoint::Userinfo, "userinfo_endpoint"),
            (Endpoint::Keys, "jwks_uri"),
            (Endpoint::Registration, "registration_endpoint"),
            (Endpoint::Revocation, "revocation_endpoint"),
            (Endpoint::Introspection, "introspection_endpoint"),
        ] {
            for bad in ["http://idp.example/x", "http://127.0.0.1/x", "https://[::1]/x", "x", ""] {
                let metadata = metadata(|document| document[name] = json!(bad)).unwrap();
                let refused = metadata.optional(endpoint, url).unwrap_err();
                assert!(refused.starts_with(&format!("{name}: ")), "{refused}");
            }

            let without = metadata(|document| document[name] = json!(null)).unwrap();
            assert_eq!(without.optional(endpoint, url), Ok(None));
            assert_eq!(without.required(endpoint, url), Err(format!("{name} is missing")));
        }
    }

    #[test]
    fn members_that_are_null_are_as_if_they_were_missing() {
        let metadata = metadata(|document| {
            for name in [
                "scopes_supported",
                "token_endpoint_auth_methods_supported",
                "client_id_metadata_document_supported",
                "authorization_response_iss_parameter_supported",
                "msgraph_host",
            ] {
                document[name] = json!(null);
            }
        });

        let metadata = metadata.unwrap();
        assert!(metadata.scopes_supported.is_empty() && !metadata.is_secret_in_body());
        assert!(!metadata.names_issuer && !metadata.client_id_metadata_document_supported);
    }

    #[test]
    fn servers_on_this_machine_name_this_machine() {
        let namer = "http://127.0.0.1:1".parse().unwrap();
        assert!(url_named_by(&namer, "http://localhost:2/token").is_ok());
        assert!(url_named_by(&namer, "http://idp.example/token").is_err());
    }

    #[test]
    fn pkce_may_be_supported_ruled_out_or_not_mentioned() {
        let supports = |methods: Value| {
            metadata(|d| d["code_challenge_methods_supported"] = methods).unwrap().supports_pkce()
        };
        assert_eq!(supports(json!(["plain", "S256"])), Some(true));
        assert_eq!(supports(json!(["plain"])), Some(false));
        assert_eq!(supports(json!([])), Some(false));
        assert_eq!(supports(json!(null)), None);
    }

    #[test]
    fn the_secret_is_sent_as_the_server_wants_it() {
        let in_body = |methods: Value| {
            let read = metadata(|d| d["token_endpoint_auth_methods_supported"] = methods);
            read.unwrap().is_secret_in_body()
        };
        assert!(!in_body(json!(null)));
        assert!(!in_body(json!(["client_secret_post", "client_secret_basic"])));
        assert!(in_body(json!(["private_key_jwt", "client_secret_post"])));
    }

    #[test]
    fn the_decisive_problem_is_no_missing_document() {
        let at = |problem| (ISSUER.parse::<Url>().unwrap(), problem);
        let missing = || at(FetchError::Status(404).into());
        let error = DiscoveryError::Documents(vec![missing(), missing()]);
        assert_eq!(error.decisive(), "it has no metadata");

        let malformed = at(MetadataError::Malformed("the text hush".to_owned()));
        let error = DiscoveryError::Documents(vec![malformed, missing()]);
        assert_eq!(error.decisive(), "its metadata is not valid");

        let unfit = at(MetadataError::Unfit("bad".to_owned()));
        let error = DiscoveryError::Documents(vec![unfit, missing()]);
        assert_eq!(error.decisive(), "bad");
        assert!(error.to_string().contains("status 404"), "{error}");
    }
}
