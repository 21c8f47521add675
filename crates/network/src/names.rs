//! [`PublicNames`]: a resolver of host names for `reqwest`.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::is_public;

/// Resolves host names to public addresses only. Refuses a name that has both public and other
/// addresses, which is a sign of an attack. The connection uses the checked addresses, so a second
/// resolution cannot differ.
#[derive(Debug, Clone, Copy)]
pub struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let resolved: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if resolved.iter().any(|address| !is_public(address.ip())) {
                return Err("the host name does not resolve to public addresses".into());
            }

            let addresses: Addrs = Box::new(resolved.into_iter());
            Ok(addresses)
        })
    }
}
