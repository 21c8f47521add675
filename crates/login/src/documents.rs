//! Client ID metadata documents: a client whose identifier is the URL of what it says of itself
//! (2025-11-25, authorization: Client ID Metadata Documents).

use std::{net::IpAddr, sync::Arc, time::Duration};

use larder_network::{PublicNames, is_loopback, may_be_public};
use larder_protocol::quote::quoted;
use larder_runtime::clock::{Clock, Timestamp};
use quick_cache::sync::Cache;
use reqwest::{Client as Http, redirect::Policy};
use url::Url;

use super::{
    ErrorCode, Problem,
    client::{Client, ClientMetadata},
    fetch_slots::FetchSlots,
    redirect::AppSchemes,
};

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 64 << 10;
const MAX_URL: usize = 512;
const CACHED: usize = 1_000;
/// How long a document is used, and how long a failure is not tried again.
const TTL: Duration = Duration::from_secs(300);
const FAILURE_TTL: Duration = Duration::from_secs(10);

/// The client of a document, or what is wrong with it.
type FoundClient = Result<Arc<Client>, Problem>;

/// Fetches documents.
#[derive(Debug)]
pub(super) struct Documents {
    http: Http,
    allow_private: bool,
    schemes: Arc<AppSchemes>,
    clock: Arc<dyn Clock>,
    cached: Cache<String, (FoundClient, Timestamp)>,
    slots: FetchSlots,
}

impl Documents {
    pub(super) fn new(
        allow_private: bool,
        schemes: Arc<AppSchemes>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, reqwest::Error> {
        // No proxy, because it would resolve names itself; no redirects, because the document
        // is at its own URL.
        let mut http = Http::builder()
            .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .redirect(Policy::none())
            .referer(false)
            .no_proxy();
        if !allow_private {
            http = http.dns_resolver(PublicNames);
        }

        Ok(Self {
            http: http.build()?,
            allow_private,
            schemes,
            clock,
            cached: Cache::new(CACHED),
            slots: FetchSlots::default(),
        })
    }

    /// Whether an identifier is a URL.
    pub(super) fn is_url(id: &str) -> bool {
        id.starts_with("https://") || id.starts_with("http://")
    }

    /// The client of a URL, for a request from this address. Of all requests that need the same
    /// document at the same time, one fetches it. A cached document needs no slot.
    pub(super) async fn client(&self, id: &str, peer: Option<IpAddr>) -> FoundClient {
        let url = self.checked(id)?;

        loop {
            let now = self.clock.now();
            match self.cached.get_value_or_guard_async(id).await {
                Ok((found, until)) if until > now => return found,
                Ok(_) => {
                    self.cached.remove_if(id, |(_, until)| *until <= now);
                }
                Err(guard) => {
                    let host = url.host_str().unwrap_or_default();
                    let _slot = self.slots.take(peer, host)?;

                    let found = self.found(id, url).await;
                    let ttl = if found.is_ok() { TTL } else { FAILURE_TTL };
                    // Insertion fails if the entry was removed meanwhile: the next request fetches.
                    let _ = guard.insert((found.clone(), now.saturating_add(ttl)));
                    return found;
                }
            }
        }
    }

    async fn found(&self, id: &str, url: Url) -> FoundClient {
        self.fetch(id, url).await.map(Arc::new).map_err(|problem| {
            tracing::info!(document = id, problem, "a client's metadata document is refused");
            let text = format!("The client metadata document {} {problem}.", quoted(id));
            Problem::refused(ErrorCode::InvalidClient, text)
        })
    }

    fn checked(&self, id: &str) -> Result<Url, Problem> {
        let problem = |text: &str| {
            let text = format!("The client ID {} {text}.", quoted(id));
            Err(Problem::refused(ErrorCode::InvalidClient, text))
        };

        let Ok(url) = Url::parse(id) else { return problem("is not a URL") };
        if id.len() > MAX_URL || url.as_str() != id || url.path() == "/" {
            return problem("is too long, not normalized, or has no path");
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return problem("has credentials or a fragment");
        }

        let is_development = self.allow_private && is_loopback(&url);
        if url.scheme() != "https" && !is_development {
            return problem("is not an https URL");
        }
        if !self.allow_private && !may_be_public(&url) {
            return problem("is not at a public address");
        }

        Ok(url)
    }

    async fn fetch(&self, id: &str, url: Url) -> Result<Client, String> {
        let unreachable = |error: reqwest::Error| {
            // The client learns no reason, so that nobody can look into this server's network.
            tracing::debug!(%error, "a metadata document cannot be fetched");
            "cannot be fetched".to_owned()
        };

        let request = self.http.get(url).header("accept", "application/json");
        let mut response = request.send().await.map_err(unreachable)?;
        if response.status() != 200 {
            return Err("cannot be fetched".to_owned());
        }

        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Err(format!("has more than {} KiB", MAX_BYTES >> 10));
            }
            body.extend_from_slice(&chunk);
        }

        read(id, &body, &self.schemes)
    }
}

fn read(id: &str, body: &[u8], schemes: &AppSchemes) -> Result<Client, String> {
    let metadata: ClientMetadata =
        serde_json::from_slice(body).map_err(|_| "is not client metadata".to_owned())?;

    if metadata.client_id.as_deref() != Some(id) {
        return Err("has another client_id than its URL".to_owned());
    }
    if metadata.token_endpoint_auth_method.as_deref().is_some_and(|method| method != "none") {
        return Err("has a token_endpoint_auth_method other than none".to_owned());
    }

    Client::read(id.to_owned(), &metadata, schemes)
        .map_err(|problem| format!("is not valid: {problem}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use larder_runtime::clock::ManualClock;

    fn documents(allow_private: bool) -> Documents {
        Documents::new(allow_private, Arc::default(), Arc::new(ManualClock::new())).unwrap()
    }

    #[test]
    fn documents_are_fetched_from_public_https_urls_only() {
        let public = documents(false);
        let any = documents(true);
        assert!(public.checked("https://a.example/client.json").is_ok());

        for id in ["http://localhost:1/c", "http://127.0.0.1/c"] {
            assert!(any.checked(id).is_ok() && public.checked(id).is_err(), "{id}");
        }
        for id in ["https://127.0.0.1/c", "https://10.0.0.1/c", "https://[::1]/c"] {
            assert!(public.checked(id).is_err(), "{id}");
        }

        for id in [
            "http://a.example/c",
            "https://a.example",
            "https://a.example/",
            "https://u@a.example/c",
            "https://a.example/c#x",
            "https://a.example/x/../c",
            "https://A.example/c",
            &format!("https://a.example/{}", "x".repeat(MAX_URL)),
        ] {
            assert!(public.checked(id).is_err() && any.checked(id).is_err(), "{id}");
        }
    }

    #[test]
    fn a_document_names_its_own_url_and_no_secret() {
        let id = "https://a.example/c";
        let document = |change: serde_json::Value| {
            let mut document =
                json!({ "client_id": id, "redirect_uris": ["https://a.example/cb"] });
            document.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            read(id, document.to_string().as_bytes(), &AppSchemes::default())
        };

        assert_eq!(document(json!({})).unwrap().registered, None);
        assert!(document(json!({ "token_endpoint_auth_method": "none" })).is_ok());
        for wrong in [
            json!({ "client_id": "https://b.example/c" }),
            json!({ "token_endpoint_auth_method": "client_secret_post" }),
            json!({ "redirect_uris": ["javascript:alert(1)"] }),
        ] {
            assert!(document(wrong).is_err());
        }
        assert!(read(id, b"<html>", &AppSchemes::default()).is_err());
    }

    #[tokio::test]
    async fn names_of_private_addresses_are_not_fetched() {
        let refused = documents(false).client("https://localhost/c", None).await.unwrap_err();
        assert!(matches!(refused, Problem::Refused(ErrorCode::InvalidClient, _)), "{refused}");
    }
}
