//! Addresses of the network: loopback, and public addresses, to which requests to URLs from outside
//! are confined (server-side request forgery, CWE-918).

mod names;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use url::Url;

pub use self::names::PublicNames;

/// The special-purpose networks of IPv4 (RFC 6890 and its updates), and the anycast network of 6to4
/// relays, which forward to any address.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// The only global unicast network of IPv6.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The special-purpose networks within [`GLOBAL_V6`]: protocol assignments with Teredo,
/// documentation, and 6to4, whose addresses embed any address of IPv4.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// The network of addresses that NAT64 translates to the IPv4 address in their last 32 bits
/// (RFC 6052). In networks without IPv4, public names resolve to them.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

const fn v4(address: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::from_octets(address), prefix)
}

const fn v6(address: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::from_segments(address), prefix)
}

/// Whether an address is public: global unicast, and not in the registries of special-purpose
/// addresses. An address that embeds one of IPv4 is as public as the embedded address.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if NAT64.contains(&address) => {
            let [.., a, b, c, d] = address.octets();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !SPECIAL_V6.iter().any(|net| net.contains(&address))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|net| net.contains(&address))
}

/// Whether a host is this machine: `localhost`, or a loopback address, also in brackets or mapped
/// to IPv6. The unspecified address (`0.0.0.0`) is no loopback address.
pub fn is_loopback_host(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host_address(host).is_some_and(|address| address.to_canonical().is_loopback())
}

/// The address in a host that is no name. IPv6 addresses in URLs have brackets.
pub fn host_address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

/// The network from which one machine can choose its addresses: of IPv6 the first 64 bits of the
/// address, of IPv4 the address itself.
pub fn machine_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Whether the host of a URL is this machine.
pub fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_host)
}

/// Whether the host of a URL is the unspecified address, which many systems take for loopback.
pub fn is_unspecified(url: &Url) -> bool {
    let address = url.host_str().and_then(host_address);
    address.is_some_and(|address| address.to_canonical().is_unspecified())
}

/// Whether the host of a URL is a public address, or a name, whose addresses `PublicNames` checks.
pub fn may_be_public(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        !host.is_empty() && !is_loopback_host(host) && host_address(host).is_none_or(is_public)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_chooses_its_addresses_from_64_bits_of_ipv6() {
        let network =
            |text: &str| text.parse().ok().map(|address| machine_network(address).to_string());
        assert_eq!(network("2001:db8:1:2:3:4:5:6").as_deref(), Some("2001:db8:1:2::"));
        assert_eq!(network("10.1.2.3").as_deref(), Some("10.1.2.3"));
        assert_eq!(network("::ffff:10.1.2.3").as_deref(), Some("10.1.2.3"));
    }

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:0.0.0.0",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:101:101::1",
            "3fff::1",
            "4000::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(special.parse().is_ok_and(|a| !is_public(a)), "{special}");
        }

        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "100.63.0.1",
            "172.32.0.1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2606:4700::1111",
            "2a00::1",
        ] {
            assert!(public.parse().is_ok_and(is_public), "{public}");
        }
    }

    #[test]
    fn loopback_has_many_spellings_and_the_unspecified_address_is_none() {
        for loopback in [
            "localhost",
            "LocalHost",
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "[::1]",
            "::ffff:127.0.0.1",
            "[::ffff:7f00:1]",
        ] {
            assert!(is_loopback_host(loopback), "{loopback}");
        }

        for other in [
            "",
            "0.0.0.0",
            "[::]",
            "[127.0.0.1",
            "127.0.0.1]",
            "[::1]]",
            "128.0.0.1",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ] {
            assert!(!is_loopback_host(other), "{other}");
        }
    }

    #[test]
    fn hosts_of_urls_are_public_addresses_or_names() {
        let may_be = |url: &str| Url::parse(url).is_ok_and(|url| may_be_public(&url));
        for public in ["https://a.example/x", "https://1.1.1.1", "https://[2606:4700::1111]:1/"] {
            assert!(may_be(public), "{public}");
        }

        for other in [
            "https://0.0.0.0",
            "https://[::]",
            "https://[::ffff:127.0.0.1]",
            "https://2130706433",
            "https://0x7f.1",
            "https://10.0.0.1:6379",
            "https://localhost",
            "file:///etc/passwd",
            "mailto:a@b.example",
        ] {
            assert!(!may_be(other), "{other}");
        }
    }
}
