//! Where an issuer keeps its keys and introspects tokens (RFC 8414; OpenID
//! Connect Discovery 1.0).

use reqwest::Url;
use serde::Deserialize;

use super::fetch::{Fetcher, safe_url};

/// What we need of an issuer's metadata.
#[derive(Debug, Clone)]
pub(super) struct Metadata {
    pub(super) jwks: Url,
    pub(super) introspection: Option<Url>,
}

/// Asks the issuer for its metadata at all places where it may be.
///
/// # Errors
/// Says for each place why it did not help.
pub(super) async fn discover(fetcher: &Fetcher, issuer: &str) -> Result<Metadata, String> {
    let mut problems = Vec::new();
    for url in locations(issuer)? {
        let read = match fetcher.get(&url).await {
            Ok(document) => read(&document, issuer),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(metadata) => return Ok(metadata),
            Err(problem) => problems.push(format!("{url}: {problem}")),
        }
    }
    Err(format!("no usable metadata of {issuer}: {}", problems.join("; ")))
}

/// Where metadata may be, most likely first (2026-07-28, authorization server
/// discovery: Authorization Server Metadata Discovery).
fn locations(issuer: &str) -> Result<Vec<Url>, String> {
    let base = safe_url(issuer)?;
    let path = base.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = base.clone();
        url.set_path(&path);
        url
    };
    let mut locations = vec![at(format!("/.well-known/oauth-authorization-server{path}"))];
    if !path.is_empty() {
        locations.push(at(format!("/.well-known/openid-configuration{path}")));
    }
    locations.push(at(format!("{path}/.well-known/openid-configuration")));
    Ok(locations)
}

fn read(document: &[u8], issuer: &str) -> Result<Metadata, String> {
    #[derive(Deserialize)]
    struct Document {
        issuer: String,
        jwks_uri: Option<String>,
        introspection_endpoint: Option<String>,
    }
    let document: Document =
        serde_json::from_slice(document).map_err(|e| format!("no metadata: {e}"))?;
    // RFC 8414, 3.3: otherwise one issuer could speak for another.
    if document.issuer != issuer {
        let other: String = document.issuer.chars().take(200).collect();
        return Err(format!("it is the metadata of the issuer {other:?}"));
    }
    let url = |name: &str, text: String| safe_url(&text).map_err(|p| format!("{name}: {p}"));
    let jwks = document.jwks_uri.ok_or("jwks_uri is missing")?;
    Ok(Metadata {
        jwks: url("jwks_uri", jwks)?,
        introspection: match document.introspection_endpoint {
            Some(text) => Some(url("introspection_endpoint", text)?),
            None => None,
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn both_kinds_of_locations_are_tried() {
        fn places(issuer: &str) -> Vec<String> {
            locations(issuer).unwrap().iter().map(ToString::to_string).collect()
        }
        let host = "https://auth.example.com";
        for issuer in [host.to_owned(), format!("{host}/")] {
            assert_eq!(
                places(&issuer),
                [
                    format!("{host}/.well-known/oauth-authorization-server"),
                    format!("{host}/.well-known/openid-configuration"),
                ]
            );
        }
        assert_eq!(
            places(&format!("{host}/tenant1")),
            [
                format!("{host}/.well-known/oauth-authorization-server/tenant1"),
                format!("{host}/.well-known/openid-configuration/tenant1"),
                format!("{host}/tenant1/.well-known/openid-configuration"),
            ]
        );
    }

    #[test]
    fn the_issuer_must_match_exactly() {
        let document = |issuer: &str| {
            format!(r#"{{"issuer":"{issuer}","jwks_uri":"https://a.example/jwks"}}"#)
        };
        let ours = "https://a.example";
        assert!(read(document(ours).as_bytes(), ours).is_ok());
        for other in ["https://a.example/", "https://A.example", "https://b.example", ""] {
            assert!(read(document(other).as_bytes(), ours).is_err(), "{other}");
        }
    }

    #[test]
    fn keys_are_not_fetched_over_an_open_line() {
        let ours = "https://a.example";
        let document = format!(r#"{{"issuer":"{ours}","jwks_uri":"http://a.example/jwks"}}"#);
        assert!(read(document.as_bytes(), ours).unwrap_err().contains("https"));
    }
}
