//! Lets the server make links to content, and check them.

use std::{sync::Arc, time::Duration};

use larder_server::{
    content_link::{BaseUrl, ContentLinks},
    registry::Registry,
};

use super::{base::Base, place::Places};
use crate::config::ConfigError;

/// Offers links to content, if content is served over HTTP.
pub(super) fn offer(registry: &Registry, base: &Base, places: &Places) -> Result<(), ConfigError> {
    let config = &base.config;
    if !config.content.enabled {
        return Ok(());
    }

    let used = places.slots(base);
    let max_expires = Duration::from_secs(config.content.max_expires);
    let links = ContentLinks::new(places.state_keys(), base.clock(), used, max_expires);
    if let Some(url) = config.public_url()? {
        links.reachable_at(BaseUrl::of_endpoint(url.as_str(), &config.server.path));
    }

    registry.offer_content_links(Arc::new(links));
    Ok(())
}
