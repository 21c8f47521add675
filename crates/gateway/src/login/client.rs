//! Larder as a client of an authorization server: as the settings say, by a Client ID Metadata
//! Document, or registered dynamically (RFC 7591).

use larder_network::is_loopback;
use larder_oauth::{
    Fetcher,
    client::{self, ClientIdentity, or_default},
    safe_url,
};
use larder_protocol::quote::quoted;
use larder_runtime::clock::Timestamp;
use larder_server::registry::{LoginProblem, LoginSite};
use reqwest::{
    Method, Request, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{super::settings::OAuthClient, Login, discovery::ServerMetadata};

/// A dynamic registration.
#[derive(Serialize, Deserialize)]
struct Registration {
    client: ClientIdentity,
    redirect_uri: String,
    expires: Option<Timestamp>,
}

impl Login {
    /// The URL to which authorization servers send the browser back.
    pub(super) fn redirect_uri(&self, site: &LoginSite) -> String {
        format!("{}/upstreams/{}/callback", site.base_url, self.name)
    }

    fn document_url(&self, site: &LoginSite) -> String {
        format!("{}/upstreams/{}/client.json", site.base_url, self.name)
    }

    /// The metadata of the client, with its URL as client ID.
    pub(super) fn document(&self, site: &LoginSite) -> Value {
        let mut document = self.registration(site, "none");
        if let Value::Object(members) = &mut document {
            members.insert("client_id".into(), json!(self.document_url(site)));
        }
        document
    }

    fn registration(&self, site: &LoginSite, method: &str) -> Value {
        let redirect_uri = self.redirect_uri(site);
        let is_native = safe_url(&redirect_uri).is_ok_and(|url| is_loopback(&url));

        json!({
            "client_name": "Larder",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": if is_native { "native" } else { "web" },
        })
    }

    /// The client for an authorization server, registered if necessary.
    pub(super) async fn client(
        &self,
        site: &LoginSite,
        server: &ServerMetadata,
    ) -> Result<ClientIdentity, LoginProblem> {
        let metadata = &server.document;
        let is_secret_in_body = metadata.is_secret_in_body();

        if let Some(OAuthClient { id, secret }) = self.settings.issuer.client() {
            return Ok(ClientIdentity { id, secret, is_secret_in_body });
        }

        let document_url = self.document_url(site);
        // Authorization servers must be able to fetch the document.
        let is_public = document_url.starts_with("https://")
            && safe_url(&document_url).is_ok_and(|url| !is_loopback(&url));
        if metadata.client_id_metadata_document_supported && is_public {
            return Ok(ClientIdentity { id: document_url, secret: None, is_secret_in_body });
        }

        let endpoint = match &server.registration_endpoint {
            Ok(Some(endpoint)) => endpoint,
            Ok(None) => {
                let issuer = quoted(&metadata.issuer);
                return Err(LoginProblem::NoClient(format!("{issuer} does not register clients")));
            }
            Err(problem) => {
                let issuer = quoted(&metadata.issuer);
                return Err(LoginProblem::NoClient(format!(
                    "{issuer} cannot register clients ({problem})"
                )));
            }
        };

        let slot = self.client_slot(&metadata.issuer);
        let redirect_uri = self.redirect_uri(site);
        let (known, version) = site.vault.read::<Registration>(&slot).await.map_err(unavailable)?;
        if let Some(known) = known
            && known.redirect_uri == redirect_uri
            && known.expires.is_none_or(|expires| expires > site.clock.now())
        {
            return Ok(known.client);
        }

        let method = match (metadata.accepts_client_by("none"), is_secret_in_body) {
            (true, _) => "none",
            (false, false) => "client_secret_basic",
            (false, true) => "client_secret_post",
        };

        let fetcher = self.fetcher(&metadata.issuer);
        let registration = register(fetcher, endpoint, &self.registration(site, method)).await?;

        let client =
            ClientIdentity { id: registration.id, secret: registration.secret, is_secret_in_body };
        let expires = registration.expires.filter(|seconds| *seconds > 0);
        let expires = expires.map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1000)));
        let registration = Registration { client: client.clone(), redirect_uri, expires };

        // Another instance may have registered meanwhile: both registrations are valid.
        site.vault.replace(&slot, version, Some(&registration)).await.map_err(unavailable)?;
        Ok(client)
    }

    /// The slot of a dynamic registration.
    fn client_slot(&self, issuer: &str) -> String {
        format!("client/{}/{issuer}", self.name)
    }

    /// Forgets a dynamic registration that the authorization server does not know any more, so
    /// that the next login registers anew.
    pub(super) async fn forget_client(
        &self,
        site: &LoginSite,
        issuer: &str,
        client: &ClientIdentity,
    ) {
        let slot = self.client_slot(issuer);
        let forgotten = async {
            let (known, version) = site.vault.read::<Registration>(&slot).await?;
            // Another login may have registered meanwhile.
            match known.filter(|known| known.client == *client) {
                Some(_) => site.vault.replace::<Registration>(&slot, version, None).await,
                None => Ok(false),
            }
        };

        match forgotten.await {
            Ok(true) => tracing::warn!(
                upstream = %self.name,
                "the authorization server has forgotten the client: the next login registers anew"
            ),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(upstream = %self.name, %error, "a registration cannot be forgotten");
            }
        }
    }
}

/// Registers Larder as a client.
async fn register(
    fetcher: &Fetcher,
    endpoint: &Url,
    metadata: &Value,
) -> Result<Registered, LoginProblem> {
    let refused = |problem: &str| {
        LoginProblem::Refused(format!("the registration as a client failed: {problem}"))
    };

    let mut request = Request::new(Method::POST, endpoint.clone());
    for name in [CONTENT_TYPE, ACCEPT] {
        request.headers_mut().insert(name, HeaderValue::from_static("application/json"));
    }
    *request.body_mut() = Some(metadata.to_string().into());

    let sent = fetcher.send(request).await;
    let (status, body) = sent.map_err(|error| LoginProblem::Unavailable(error.to_string()))?;

    match status {
        200 | 201 => client::document(&body).map_err(|_| refused("the response is not valid")),
        _ => Err(refused(&format!("status {status}"))),
    }
}

#[derive(Deserialize)]
struct Registered {
    #[serde(rename = "client_id")]
    id: String,
    #[serde(rename = "client_secret", default, deserialize_with = "or_default")]
    secret: Option<String>,
    #[serde(rename = "client_secret_expires_at", default, deserialize_with = "or_default")]
    expires: Option<u64>,
}

pub(super) fn unavailable(error: impl std::fmt::Display) -> LoginProblem {
    LoginProblem::Unavailable(error.to_string())
}
