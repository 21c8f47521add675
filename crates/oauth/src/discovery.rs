//! Discovery of an issuer's endpoints (RFC 8414; OpenID Connect Discovery 1.0).

use larder_protocol::quote::{parse_error, quoted};
use reqwest::Url;
use serde::Deserialize;

use super::{fetch::Fetcher, url::safe_url};

/// The endpoints in an issuer's metadata.
#[derive(Debug, Clone)]
pub(super) struct Metadata {
    pub(super) jwks: Url,
    pub(super) introspection: Option<Url>,
}

/// Fetches an issuer's metadata from the first well-known URL that has it.
///
/// # Errors
/// What failed at each URL.
pub(super) async fn discover(fetcher: &Fetcher, issuer: &str) -> Result<Metadata, String> {
    let mut problems = Vec::new();
    for url in metadata_urls(issuer)? {
        let read = match fetcher.get(&url).await {
            Ok(document) => read(&document, issuer),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(metadata) => return Ok(metadata),
            Err(problem) => problems.push(format!("{url}: {problem}")),
        }
    }

    Err(format!("no usable metadata for {issuer}: {}", problems.join("; ")))
}

/// The well-known URLs of metadata, in order of preference (2026-07-28,
/// authorization server discovery: Authorization Server Metadata Discovery).
pub fn metadata_urls(issuer: &str) -> Result<Vec<Url>, String> {
    let base = safe_url(issuer)?;
    let path = base.path().trim_end_matches('/');
    let with_path = |path: String| {
        let mut url = base.clone();
        url.set_path(&path);
        url
    };

    let mut urls = vec![with_path(format!("/.well-known/oauth-authorization-server{path}"))];
    if !path.is_empty() {
        urls.push(with_path(format!("/.well-known/openid-configuration{path}")));
    }
    urls.push(with_path(format!("{path}/.well-known/openid-configuration")));
    Ok(urls)
}

fn read(document: &[u8], issuer: &str) -> Result<Metadata, String> {
    #[derive(Deserialize)]
    struct Document {
        issuer: String,
        jwks_uri: Option<String>,
        introspection_endpoint: Option<String>,
    }

    let document: Document = serde_json::from_slice(document)
        .map_err(|e| format!("not valid metadata: {}", parse_error(&e.to_string())))?;

    // RFC 8414, section 3.3: otherwise one issuer could impersonate another.
    if document.issuer != issuer {
        return Err(format!("it is the metadata of the issuer {}", quoted(&document.issuer)));
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
    fn both_kinds_of_well_known_urls_are_tried() {
        fn urls(issuer: &str) -> Vec<String> {
            metadata_urls(issuer).unwrap().iter().map(ToString::to_string).collect()
        }

        let host = "https://auth.example.com";
        for issuer in [host.to_owned(), format!("{host}/")] {
            assert_eq!(
                urls(&issuer),
                [
                    format!("{host}/.well-known/oauth-authorization-server"),
                    format!("{host}/.well-known/openid-configuration"),
                ]
            );
        }

        assert_eq!(
            urls(&format!("{host}/tenant1")),
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
    fn keys_are_not_fetched_over_plain_http() {
        let ours = "https://a.example";
        let document = format!(r#"{{"issuer":"{ours}","jwks_uri":"http://a.example/jwks"}}"#);
        assert!(read(document.as_bytes(), ours).unwrap_err().contains("https"));
    }
}
