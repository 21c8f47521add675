//! The origin that a host gives a page: hosts name it each in their own way.

use larder_protocol::ClientFacts;
use sha2::{Digest, Sha256};

use super::AppOptions;
use crate::registry::is_match;

/// The value that stands for what the host expects.
const AUTO: &str = "auto";

/// The domain for this client's host, if one is configured or known. The longest matching
/// pattern wins.
pub(super) fn of(options: &AppOptions, client: &ClientFacts) -> Option<String> {
    let name = client.info.as_ref()?.name.to_lowercase();
    let matching = options.domains.iter().filter(|(pattern, _)| is_match(pattern, &name));
    let (_, domain) = matching.max_by_key(|(pattern, _)| pattern.len())?;

    match domain.as_str() {
        AUTO => automatic(&name, options.endpoint.as_deref()?),
        domain => Some(domain.to_owned()),
    }
}

/// Claude derives a page's origin from the URL of the server.
fn automatic(client: &str, endpoint: &str) -> Option<String> {
    if !client.starts_with("claude") {
        return None;
    }

    let digest = Sha256::digest(endpoint);
    let hash = digest.iter().take(16).fold(0_u128, |hash, byte| (hash << 8) | u128::from(*byte));
    Some(format!("{hash:032x}.claudemcpcontent.com"))
}

#[cfg(test)]
mod tests {
    use rmcp::model::Implementation;

    use super::*;

    fn domain(name: &str, endpoint: Option<&str>) -> Option<String> {
        let domains = [("claude*", "auto"), ("claude-code", "own.example"), ("other*", "auto")];
        let options = AppOptions {
            domains: domains.map(|(name, domain)| (name.to_owned(), domain.to_owned())).into(),
            endpoint: endpoint.map(str::to_owned),
            ..AppOptions::default()
        };

        let client =
            ClientFacts { info: Some(Implementation::new(name, "1")), ..ClientFacts::default() };
        of(&options, &client)
    }

    #[test]
    fn a_host_gets_the_domain_that_it_expects() {
        let url = Some("https://larder.example/mcp");
        let found = domain("Claude-AI", url).unwrap_or_default();
        let hash = found.strip_suffix(".claudemcpcontent.com").unwrap_or_default();

        assert_eq!(hash.len(), 32, "{found}");
        assert_ne!(domain("Claude-AI", Some("https://other.example/mcp")), Some(found));

        assert_eq!(domain("claude-code", url).as_deref(), Some("own.example"));
        assert_eq!(domain("Claude-AI", None), None);
        assert_eq!(domain("other host", url), None);
        assert_eq!(domain("unknown", url), None);
    }
}
