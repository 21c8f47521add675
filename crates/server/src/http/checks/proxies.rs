//! [`TrustedProxies`]: whose `X-Forwarded-For` is believed.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use larder_network::host_address;

use crate::http::head::Head;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies in front of the server. By default there is none, and the header is ignored.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// The proxies at these addresses and in these networks (CIDR).
    ///
    /// # Errors
    /// The entry that is neither.
    pub fn parse(networks: &[String]) -> Result<Self, String> {
        let parsed = |text: &String| {
            let problem = || format!("{text:?} is neither an address nor a network (10.0.0.0/8)");
            network(text.trim()).ok_or_else(problem)
        };
        networks.iter().map(parsed).collect::<Result<_, _>>().map(Self)
    }

    /// The client's address of a request that arrived from `peer`: the rightmost forwarded
    /// address that is not a trusted proxy's. Addresses left of it, anybody could have sent.
    pub(in crate::http) fn client(&self, peer: IpAddr, head: &Head) -> IpAddr {
        let mut client = peer.to_canonical();
        // Fast path: most servers have no trusted proxy.
        if !self.trusts(client) {
            return client;
        }

        let values = head.values(&FORWARDED_FOR).rev().map(HeaderValue::as_bytes);
        let mut forwarded = values.flat_map(|value| value.rsplit(|byte| *byte == b','));
        while self.trusts(client) {
            let Some(before) = forwarded.next().and_then(address) else { break };
            client = before;
        }

        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// A network, or an address as a network. Addresses of IPv4 that are mapped to IPv6 are those of
/// IPv4, as the addresses of clients are.
fn network(text: &str) -> Option<IpNet> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical().into());
    }

    let network: IpNet = text.parse().ok()?;
    let mapped = network.prefix_len().checked_sub(128 - 32);

    match (network.addr().to_canonical(), mapped) {
        (address @ IpAddr::V4(_), Some(prefix)) if network.addr().is_ipv6() => {
            IpNet::new(address, prefix).ok()
        }
        _ => Some(network),
    }
}

/// A forwarded address, which some proxies send with the port.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?.trim();
    let address =
        host_address(text).or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn client(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let trusted: Vec<_> = trusted.iter().map(ToString::to_string).collect();
        let headers: Vec<_> = forwarded.iter().map(|value| (FORWARDED_FOR, *value)).collect();
        let proxies = TrustedProxies::parse(&trusted).unwrap();
        proxies.client(peer.parse().unwrap(), &Head::of(&headers)).to_string()
    }

    #[test]
    fn only_what_a_trusted_proxy_has_added_is_believed() {
        let nets = ["10.0.0.0/8", "2001:db8::/32"];
        for (peer, forwarded, expected) in [
            ("203.0.113.9", &["198.51.100.1"][..], "203.0.113.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("2001:db8::1", &["2001:db9::1"], "2001:db9::1"),
            // Addresses that the client sent itself are further left.
            ("10.0.0.1", &["1.2.3.4, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["1.2.3.4", "198.51.100.1, 10.2.3.4"], "198.51.100.1"),
            ("10.0.0.1", &["10.0.0.2,10.0.0.3"], "10.0.0.2"),
            ("10.0.0.1", &["1.2.3.4, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4,"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.0.0.1", &["[2001:db9::1]:4711"], "2001:db9::1"),
            ("10.0.0.1", &["[2001:db9::1]"], "2001:db9::1"),
        ] {
            assert_eq!(client(&nets, peer, forwarded), expected, "{peer} {forwarded:?}");
        }

        assert_eq!(client(&[], "10.0.0.1", &["1.2.3.4"]), "10.0.0.1");
        assert_eq!(client(&["10.0.0.1"], "10.0.0.2", &["1.2.3.4"]), "10.0.0.2");
        assert_eq!(client(&["10.0.0.9/8"], "10.0.0.2", &["1.2.3.4"]), "1.2.3.4");

        for mapped in ["::ffff:10.0.0.0/104", "::ffff:10.0.0.2"] {
            assert_eq!(client(&[mapped], "10.0.0.2", &["1.2.3.4"]), "1.2.3.4", "{mapped}");
            assert_eq!(client(&[mapped], "11.0.0.2", &["1.2.3.4"]), "11.0.0.2", "{mapped}");
        }

        assert_eq!(client(&["0.0.0.0/0"], "10.0.0.2", &["1.2.3.4"]), "1.2.3.4");
    }

    #[test]
    fn other_texts_are_no_networks() {
        for text in ["", "10.0.0.0/33", "10.0.0.0/x", "::/129", "proxy.example", "10.0.0.0/-1"] {
            let problem = TrustedProxies::parse(&[text.to_owned()]).unwrap_err();
            assert!(problem.contains("10.0.0.0/8"), "{text}: {problem}");
        }
    }
}
