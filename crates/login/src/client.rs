//! [`Client`]: who asks for tokens. A registration is sealed into the client's identifier, so it
//! costs nothing to keep and every instance knows it; only clients that a user has allowed are
//! remembered.

use std::time::Duration;

use larder_protocol::quote::quoted;
use larder_runtime::{clock::Timestamp, hex::hex};
use larder_store::vault::Sealer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    ErrorCode, Problem,
    redirect::{self, AppSchemes},
};

/// How long a registration that nobody has used is valid.
pub(super) const UNUSED_TTL: Duration = Duration::from_secs(24 * 3600);
/// The most bytes of a registration.
pub const MAX_REGISTRATION: usize = 16 << 10;
/// The most redirect URIs of a client, and the most bytes of them together.
const MAX_REDIRECTS: usize = 10;
const MAX_REDIRECT_BYTES: usize = 2048;
/// The most characters of a name.
const MAX_NAME: usize = 80;

const CONTEXT: &str = "auth/client";

/// The metadata that clients register (RFC 7591, section 2).
#[derive(Deserialize)]
pub(super) struct ClientMetadata {
    client_name: Option<String>,
    redirect_uris: Option<Vec<String>>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    scope: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) token_endpoint_auth_method: Option<String>,
}

/// A registration, as it is sealed.
#[derive(Serialize, Deserialize)]
struct Sealed {
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "r")]
    redirects: Vec<String>,
    #[serde(rename = "i")]
    issued: Timestamp,
}

/// The client that asks for tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) name: String,
    redirects: Vec<String>,
    /// Whether it is a part of this server, which listens at no other port.
    is_own: bool,
    /// When it was registered; `None` for a client with a metadata document.
    pub(super) registered: Option<Timestamp>,
}

impl Client {
    /// Reads what a client says of itself.
    pub(super) fn read(
        id: String,
        metadata: &ClientMetadata,
        schemes: &AppSchemes,
    ) -> Result<Self, Problem> {
        let name = metadata.client_name.as_deref().map(str::trim).unwrap_or_default();
        // The name is one line of visible characters, because users read it.
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        let name: String = larder_protocol::quote::visible(&name).chars().take(MAX_NAME).collect();

        let redirects = metadata.redirect_uris.clone().unwrap_or_default();
        let invalid = |text: String| Problem::refused(ErrorCode::InvalidRedirectUri, text);
        if redirects.is_empty() || redirects.len() > MAX_REDIRECTS {
            return Err(invalid(format!("redirect_uris needs 1 to {MAX_REDIRECTS} URIs.")));
        }
        if redirects.iter().map(String::len).sum::<usize>() > MAX_REDIRECT_BYTES {
            return Err(invalid(format!("redirect_uris is over {MAX_REDIRECT_BYTES} bytes.")));
        }
        for uri in &redirects {
            schemes
                .check(uri)
                .map_err(|problem| invalid(format!("The URI {} {problem}.", quoted(uri))))?;
        }

        let has = |types: &Option<Vec<String>>, needed: &str| {
            types.as_ref().is_none_or(|types| types.iter().any(|each| each == needed))
        };
        if !has(&metadata.grant_types, "authorization_code")
            || !has(&metadata.response_types, "code")
        {
            let text = "Only the grant type authorization_code with the response type code \
                        is supported.";
            return Err(Problem::refused(ErrorCode::InvalidClientMetadata, text));
        }

        Ok(Self { id, name, redirects, is_own: false, registered: None })
    }

    /// A client that is a part of this server.
    pub(super) fn own(id: &str, name: &str, redirect: &str) -> Self {
        let redirects = vec![redirect.to_owned()];
        Self { id: id.to_owned(), name: name.to_owned(), redirects, is_own: true, registered: None }
    }

    /// Registers a client. Returns the response (RFC 7591, section 3.2.1).
    pub(super) fn register(
        body: &[u8],
        schemes: &AppSchemes,
        sealer: &Sealer,
        now: Timestamp,
    ) -> Result<(Self, Value), Problem> {
        let invalid = |text: String| Problem::refused(ErrorCode::InvalidClientMetadata, text);
        if body.len() > MAX_REGISTRATION {
            return Err(invalid(format!("The registration is over {MAX_REGISTRATION} bytes.")));
        }

        let metadata: ClientMetadata = serde_json::from_slice(body)
            .map_err(|error| invalid(larder_protocol::quote::parse_error(&error.to_string())))?;
        let client = Self::read(String::new(), &metadata, schemes)?;

        let Self { name, redirects, .. } = client;
        let sealed = Sealed { name, redirects, issued: now };
        let id = sealer.seal_text(CONTEXT, &sealed);
        let Sealed { name, redirects, issued } = sealed;

        let mut response = json!({
            "client_id": id,
            "client_id_issued_at": issued.as_millis() / 1000,
            "redirect_uris": redirects,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        if !name.is_empty() {
            response["client_name"] = json!(name);
        }
        if let Some(scope) = metadata.scope.filter(|scope| scope.len() <= 1024) {
            response["scope"] = json!(scope);
        }

        let client = Self { id, name, redirects, is_own: false, registered: Some(issued) };
        Ok((client, response))
    }

    /// The client of an identifier that [`Client::register`] made.
    pub(super) fn registered(id: &str, sealer: &Sealer) -> Option<Self> {
        let Sealed { name, redirects, issued } = sealer.open_text(CONTEXT, id)?;
        let id = id.to_owned();
        Some(Self { id, name, redirects, is_own: false, registered: Some(issued) })
    }

    /// A short name for records and logs, different for each client.
    pub(super) fn key(&self) -> String {
        key(&self.id)
    }

    /// The name to show to users. Anybody can choose it.
    pub(super) fn title(&self) -> String {
        if self.name.is_empty() { "An unnamed client".to_owned() } else { self.name.clone() }
    }

    /// For logs: the URL of a metadata document, or a part of the key.
    pub(super) fn label(&self) -> String {
        match self.registered {
            Some(_) => format!("{} ({})", self.title(), &self.key()[..16]),
            None => self.id.clone(),
        }
    }

    /// The redirect URI of a request. Registrations are older than the settings, so their URIs are
    /// checked again.
    pub(super) fn redirect(
        &self,
        requested: Option<&str>,
        schemes: &AppSchemes,
    ) -> Result<String, Problem> {
        let uri = self.registered_redirect(requested)?;
        schemes.check(&uri).map_err(|problem| {
            Problem::request(format!("The redirect URI {} {problem}.", quoted(&uri)))
        })?;
        Ok(uri)
    }

    fn registered_redirect(&self, requested: Option<&str>) -> Result<String, Problem> {
        match (requested, self.redirects.as_slice()) {
            (None, [only]) => Ok(only.clone()),
            (None, _) => Err(Problem::request("The parameter redirect_uri is missing.")),
            (Some(requested), registered) => {
                let is_registered = registered.iter().any(|uri| {
                    if self.is_own { uri == requested } else { redirect::fits(uri, requested) }
                });
                let unknown = || {
                    let text = format!(
                        "The redirect URI {} is not one that the client has registered.",
                        quoted(requested)
                    );
                    Problem::request(text)
                };

                is_registered.then(|| requested.to_owned()).ok_or_else(unknown)
            }
        }
    }
}

/// A hash of an identifier, which may be long.
pub(super) fn key(id: &str) -> String {
    hash(id)
}

/// The SHA-256 of a text, in hexadecimal.
pub(super) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn register(body: &Value) -> Result<(Client, Value), Problem> {
        let now = Timestamp::from_millis(1_000);
        let schemes = AppSchemes::default();
        Client::register(body.to_string().as_bytes(), &schemes, &Sealer::new(b"key"), now)
    }

    #[test]
    fn a_registration_is_in_its_identifier() {
        let uris = ["http://127.0.0.1/cb", "https://a.example/cb"];
        let body = json!({ "client_name": " A\u{202e}\nB ", "redirect_uris": uris, "scope": "x" });
        let (client, response) = register(&body).unwrap();

        assert_eq!(response["client_id"], client.id);
        assert_eq!(
            (&response["scope"], &response["client_id_issued_at"]),
            (&json!("x"), &json!(1))
        );
        assert!(client.id.len() < 400, "{}", client.id.len());

        let found = Client::registered(&client.id, &Sealer::new(b"key")).unwrap();
        assert_eq!(found, client);
        assert!(!found.name.contains('\u{202e}') && !found.name.contains('\n'), "{}", found.name);
        assert!(Client::registered(&client.id, &Sealer::new(b"other")).is_none());

        let redirect = |requested| found.redirect(requested, &AppSchemes::default());
        assert_eq!(redirect(Some(uris[1])).unwrap(), uris[1]);
        assert_eq!(redirect(Some("http://127.0.0.1:9/cb")).unwrap(), "http://127.0.0.1:9/cb");
        assert!(redirect(None).is_err() && redirect(Some("https://b.example")).is_err());

        // Two registrations of one document are two clients.
        assert_ne!(register(&body).unwrap().0.id, client.id);
    }

    #[test]
    fn a_client_of_this_server_has_one_redirect_uri() {
        let uri = "http://127.0.0.1:8080/console/callback";
        let client = Client::own("own", "The console", uri);
        let redirect = |requested| client.redirect(requested, &AppSchemes::default());
        assert_eq!(redirect(Some(uri)).unwrap(), uri);
        assert_eq!(redirect(None).unwrap(), uri);

        for other in [
            "http://127.0.0.1:8081/console/callback",
            "http://127.0.0.1/console/callback",
            "http://localhost:8080/console/callback",
            "http://127.0.0.1:8080/console/callback/",
            "http://127.0.0.1:8080/console/callback?x",
            "",
        ] {
            assert!(redirect(Some(other)).is_err(), "{other}");
        }
    }

    #[test]
    fn a_scheme_that_is_no_longer_allowed_is_refused_to_older_clients() {
        let client = Client {
            id: "a".to_owned(),
            name: String::new(),
            redirects: vec!["myapp://cb".to_owned()],
            is_own: false,
            registered: Some(Timestamp::from_millis(1_000)),
        };

        assert!(client.redirect(None, &AppSchemes::new(&["myapp".to_owned()])).is_ok());
        assert!(client.redirect(None, &AppSchemes::default()).is_err());
    }

    #[test]
    fn what_no_client_needs_cannot_be_registered() {
        for body in [
            json!({}),
            json!([]),
            json!({ "redirect_uris": [] }),
            json!({ "redirect_uris": ["javascript:alert(1)"] }),
            json!({ "redirect_uris": vec!["https://a.example"; MAX_REDIRECTS + 1] }),
            json!({ "redirect_uris": [format!("https://a.example/{}", "x".repeat(3000))] }),
            json!({ "redirect_uris": ["https://a.example"], "grant_types": ["password"] }),
            json!({ "redirect_uris": ["https://a.example"], "response_types": ["token"] }),
            json!({ "redirect_uris": ["https://a.example"], "x": "x".repeat(MAX_REGISTRATION) }),
        ] {
            assert!(register(&body).is_err(), "{}", quoted(&body.to_string()));
        }
    }
}
