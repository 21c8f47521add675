//! Exchanging providers while the server runs, and their counters.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use larder_protocol::Announcement;

use super::{definition::Registry, provider::Provider};

impl Registry {
    /// Replaces the providers that [`Builder::exchangeable`](super::Builder::exchangeable) has
    /// added, and announces that the lists have changed. Calls of removed providers may finish
    /// within `grace`. Needs a Tokio runtime.
    pub fn exchange_providers(&self, new: Vec<Arc<dyn Provider>>, grace: Duration) {
        let known = self.definition.providers.load();
        let is_known = |new: &Arc<dyn Provider>| known.iter().any(|known| Arc::ptr_eq(known, new));

        for provider in new.iter().filter(|provider| !is_known(provider)) {
            provider.announce_to(self.announcements());
            if let Some(parts) = self.parts.get() {
                provider.share_sessions(parts);
            }
            if let Some(site) = self.login_site.get() {
                provider.open_logins(site);
            }
            if let Some(clients) = self.clients.get() {
                provider.reach_clients(Weak::clone(clients));
            }
        }

        self.definition.providers.exchange(new, grace);

        for change in [
            Announcement::ToolListChanged,
            Announcement::PromptListChanged,
            Announcement::ResourceListChanged,
        ] {
            self.announce_declared(change);
        }
    }

    /// Whether all providers that the server requires can serve calls.
    pub fn providers_ready(&self) -> bool {
        self.definition.providers.load().iter().all(|provider| provider.is_ready())
    }

    /// Whether a provider offers only a part of its items.
    pub fn providers_degraded(&self) -> bool {
        self.definition.providers.load().iter().any(|provider| provider.is_degraded())
    }

    /// Tells the provider of a tool how many bytes of a call's result were stored instead of
    /// sent.
    pub fn count_kept_out(&self, tool: &str, bytes: u64) {
        if let Some(provider) = self.provider_of(tool) {
            provider.count_kept_out(bytes);
        }
    }
}
