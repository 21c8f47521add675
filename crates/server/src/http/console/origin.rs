//! Whether a request comes from the console's own page. A cookie alone does not show that.

use http::{header, uri::Authority};
use larder_network::is_loopback_host;

use super::Console;
use crate::http::head::Head;

/// The origin of the page that sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageOrigin {
    pub(super) is_https: bool,
    pub(super) is_loopback: bool,
    /// Whether it is that of `server.public_url`.
    pub(super) is_public: bool,
}

impl Console {
    /// The origin of a request that the console's own page sent; None for any other. Browsers send
    /// the header with every POST.
    pub(super) fn page_origin(&self, head: &Head) -> Option<PageOrigin> {
        if head.is_from_another_site() {
            return None;
        }

        let origin = head.only(&header::ORIGIN).ok()??.to_str().ok()?;
        let (scheme, authority) = origin.split_once("://")?;

        let is_public =
            self.public_origin.as_deref().is_some_and(|public| public.eq_ignore_ascii_case(origin));
        let own_scheme = if self.is_tls { "https" } else { "http" };
        let is_direct = scheme == own_scheme
            && head.host_and_port().is_some_and(|host| host.eq_ignore_ascii_case(authority));

        let name = authority.parse::<Authority>().ok()?;
        let is_loopback = is_loopback_host(name.host());
        (is_public || is_direct).then_some(PageOrigin {
            is_https: scheme == "https",
            is_loopback,
            is_public,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{sync::Arc, time::Duration};

    use super::*;
    use larder_runtime::{clock::ManualClock, random::Random};
    use larder_store::vault::MemorySlots;

    use crate::http::console::SessionOptions;

    fn console(public_origin: Option<&str>) -> Console {
        let clock = Arc::new(ManualClock::new());
        let slots = Arc::new(MemorySlots::new(clock.clone(), 1));
        let options = SessionOptions { lifetime: Duration::from_secs(1), per_principal: 1 };
        let public_origin = public_origin.map(str::to_owned);
        Console::new("/console", public_origin, false, options, slots, clock, Random::system())
    }

    fn head(headers: &[(&str, &str)]) -> Head {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), *value)).collect();
        Head::of(&headers)
    }

    #[test]
    fn only_the_own_page_counts() {
        let public = console(Some("https://larder.example"));
        let found = |host: &str, origin: &str| {
            public.page_origin(&head(&[("host", host), ("origin", origin)]))
        };

        let own = found("larder.example", "https://larder.example");
        assert_eq!(own, Some(PageOrigin { is_https: true, is_loopback: false, is_public: true }));

        let local = found("127.0.0.1:8000", "http://127.0.0.1:8000");
        assert_eq!(
            local,
            Some(PageOrigin { is_https: false, is_loopback: true, is_public: false })
        );

        for (host, origin) in [
            ("larder.example", "https://evil.example"),
            ("larder.example", "https://larder.example.evil.example"),
            ("larder.example", "https://other.larder.example"),
            ("larder.example", "https://larder.example:444"),
            ("127.0.0.1:8000", "http://127.0.0.1:9000"),
            ("127.0.0.1:8000", "https://127.0.0.1:8000"),
            ("larder.example", "null"),
        ] {
            assert_eq!(found(host, origin), None, "{host} {origin}");
        }

        let own = [("host", "localhost:8000"), ("origin", "http://localhost:8000")];
        assert!(public.page_origin(&head(&own)).is_some());
        assert!(public.page_origin(&head(&own[..1])).is_none(), "without the header");

        for site in ["cross-site", "same-site"] {
            let given = [own[0], own[1], ("sec-fetch-site", site)];
            assert!(public.page_origin(&head(&given)).is_none(), "{site}");
        }

        let twice = [own[0], own[1], ("origin", "http://evil.example")];
        assert!(public.page_origin(&head(&twice)).is_none());
    }
}
