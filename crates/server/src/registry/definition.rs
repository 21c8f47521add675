//! [`Registry`]: a server's definition, with the items that it offers now.

use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;
use futures_util::{FutureExt, StreamExt, future::join_all, stream};
use larder_protocol::Announcement;
use larder_store::session::SharedParts;
use parking_lot::RwLock;
use rmcp::model;
use serde_json::Value;
use tokio::sync::broadcast;

use super::{
    BuildError, OutputRules,
    catalog::Catalog,
    clients::SessionClients,
    known_results::KnownResults,
    offer::Offer,
    projection::Projector,
    provider::{Instructions, SessionClient, Subscribed, Subscriber},
    providers::Providers,
    scope_rules::ScopeRules,
    tool_set::ToolSet,
};
use crate::content_link::ContentLinks;

/// The number of announcements that a slow listener may lag behind before it loses some.
const CHANNEL_CAPACITY: usize = 64;

/// The most bytes of the instructions of all providers. Those that do not fit are left out, because
/// a half may say the contrary of the whole.
const PROVIDED_INSTRUCTIONS_BYTES: usize = 16_000;

/// The number of resources that a subscriber begins to follow at a time.
const MAX_CONCURRENT_SUBSCRIPTIONS: usize = 16;

/// The definition of a server, and its current items. Built by [`Builder`](super::Builder), shared
/// by all calls.
pub struct Registry {
    pub(super) definition: Definition,
    // Copied on write: a call keeps the catalog that it has read.
    catalog: RwLock<Arc<Catalog>>,
    changes: broadcast::Sender<Announcement>,
    pub(super) scope_rules: ScopeRules,
    pub(super) output: ArcSwap<OutputRules>,
    /// The parts for providers that are added later.
    pub(super) parts: OnceLock<SharedParts>,
    content_links: OnceLock<Arc<ContentLinks>>,
    pub(super) login_site: OnceLock<super::LoginSite>,
    pub(super) clients: OnceLock<Weak<dyn SessionClients>>,
    /// The results that callers have had last.
    pub(crate) results: KnownResults,
}

/// The parts of a registry that do not change while the server runs.
pub(super) struct Definition {
    pub(super) info: model::Implementation,
    pub(super) instructions: Option<String>,
    pub(super) page_size: usize,
    pub(super) fixed_lists: bool,
    pub(super) hides_provided_tools: bool,
    /// Computes parts of results, if callers may ask for them.
    pub(super) projector: Option<Arc<dyn Projector>>,
    /// The built-in tools that are listed.
    pub(super) own_tools: ToolSet,
    pub(super) experimental: model::ExperimentalCapabilities,
    /// The faults by all that was known when the server was built.
    pub(super) warnings: Vec<String>,
    /// The providers in their order, after the catalog.
    pub(super) providers: Providers,
}

impl Registry {
    pub(super) fn new(definition: Definition, catalog: Catalog) -> Self {
        let changes = broadcast::Sender::new(CHANNEL_CAPACITY);
        for provider in &definition.providers {
            provider.announce_to(changes.clone());
        }

        Self {
            definition,
            catalog: RwLock::new(Arc::new(catalog)),
            changes,
            scope_rules: ScopeRules::default(),
            output: ArcSwap::default(),
            parts: OnceLock::new(),
            content_links: OnceLock::new(),
            login_site: OnceLock::new(),
            clients: OnceLock::new(),
            results: KnownResults::default(),
        }
    }

    /// The server's name and version.
    pub fn info(&self) -> &model::Implementation {
        &self.definition.info
    }

    /// The instructions for models that use this server.
    pub fn instructions(&self) -> Option<&str> {
        self.definition.instructions.as_deref()
    }

    /// The instructions for models that use this server, with those of its providers.
    pub async fn instructions_for(&self, client: &SessionClient<'_>) -> Option<String> {
        let providers = self.definition.providers.load();
        let told = join_all(providers.iter().map(|provider| provider.instructions(client))).await;

        let mut text = self.definition.instructions.clone().unwrap_or_default();
        let mut left = PROVIDED_INSTRUCTIONS_BYTES;
        for Instructions { name, text: told } in told.into_iter().flatten() {
            if told.len() > left {
                continue;
            }
            left -= told.len();

            if !text.is_empty() {
                text.push_str("\n\n");
            }
            if let Some(name) = name {
                text.push_str(&format!("{name} (its tools are {name}__…): "));
            }
            text.push_str(&told);
        }
        (!text.is_empty()).then_some(text)
    }

    /// The most items on one page of a list.
    pub fn page_size(&self) -> usize {
        self.definition.page_size
    }

    /// Whether tools and prompts cannot change while the server runs.
    pub fn has_fixed_lists(&self) -> bool {
        self.definition.fixed_lists
    }

    /// Whether tools of providers are not listed, but found and called by other tools.
    pub fn hides_provided_tools(&self) -> bool {
        self.definition.hides_provided_tools
    }

    /// The experimental capabilities.
    pub fn experimental(&self) -> &model::ExperimentalCapabilities {
        &self.definition.experimental
    }

    /// The faults of the definition by all that was known when it was built, which may be out of
    /// date: workflows that name an item which an upstream did not have when it was listed last.
    pub fn warnings(&self) -> &[String] {
        &self.definition.warnings
    }

    /// Lets tools make links to content.
    pub fn offer_content_links(&self, links: Arc<ContentLinks>) {
        // Set once, at the start.
        let _ = self.content_links.set(links);
    }

    /// Makes and checks links to content, if the server offers them.
    pub fn content_links(&self) -> Option<&Arc<ContentLinks>> {
        self.content_links.get()
    }

    /// Whether the tokens of callers are exchanged for a provider's server.
    pub fn exchanges_tokens(&self) -> bool {
        self.definition.providers.iter().any(|provider| provider.exchanges_tokens())
    }

    /// The states of the servers behind this one, for operators.
    pub fn provider_states(&self) -> Vec<super::ProviderState> {
        self.definition.providers.iter().filter_map(|provider| provider.state()).collect()
    }

    /// The servers behind this one whose tools may be missing in a list, and why: `None` if there
    /// are none.
    pub fn troubled_providers(&self) -> Option<Value> {
        let states = self.provider_states();
        let troubled = states.iter().filter(|state| state.may_lack_tools());
        let troubled: Vec<_> = troubled.map(super::ProviderState::trouble).collect();
        (!troubled.is_empty()).then(|| troubled.into())
    }

    /// Whether callers log in at a provider's server.
    pub fn has_logins(&self) -> bool {
        self.definition.providers.iter().any(|provider| provider.has_logins())
    }

    /// Gives the providers the site of their logins.
    pub fn open_logins(&self, site: &super::LoginSite) {
        let _ = self.login_site.set(site.clone());
        self.definition.providers.iter().for_each(|provider| provider.open_logins(site));
    }

    /// The logins of the provider with this name.
    pub fn login(&self, name: &str) -> Option<Arc<dyn super::ProviderLogin>> {
        let mut logins = self.definition.providers.iter().filter_map(|provider| provider.login());
        logins.find(|login| login.name() == name)
    }

    /// Shares the state of sessions with the other instances that serve the same sessions.
    pub fn share_sessions(&self, parts: &SharedParts) {
        let _ = self.parts.set(parts.clone());
        self.definition.providers.iter().for_each(|provider| provider.share_sessions(parts));
    }

    /// Lets the providers reach the clients of sessions.
    pub fn reach_clients(&self, clients: Weak<dyn SessionClients>) {
        for provider in &self.definition.providers {
            provider.reach_clients(Weak::clone(&clients));
        }
        // Set once, at the start.
        let _ = self.clients.set(clients);
    }

    /// The roots of a session's client have changed. Returns whether a provider works for the
    /// session.
    pub fn roots_changed(&self, session: &str) -> bool {
        let providers = self.definition.providers.load();
        // All of them are told.
        providers.iter().filter(|provider| provider.roots_changed(session)).count() > 0
    }

    /// Follows resources of the providers for a subscriber.
    pub async fn subscribe(&self, uris: &[&str], subscriber: &Subscriber) -> Subscribed {
        let providers = self.definition.providers.load();
        let mut asked = Vec::new();
        for uri in uris {
            asked.extend(
                providers.iter().map(|provider| {
                    provider.subscribe(uri, subscriber).map(|answer| (*uri, answer))
                }),
            );
        }

        let mut answers = stream::iter(asked).buffer_unordered(MAX_CONCURRENT_SUBSCRIPTIONS);
        let mut subscribed = Subscribed::default();
        while let Some((uri, answer)) = answers.next().await {
            match answer {
                Some(Ok(followed)) => subscribed.followed.push(followed),
                Some(Err(refusal)) => subscribed.refused.push((uri.to_owned(), refusal)),
                None => {}
            }
        }
        subscribed
    }

    /// Stops following a resource for a subscriber.
    pub fn unsubscribe(&self, uri: &str, subscriber: &Subscriber) {
        self.definition.providers.iter().for_each(|each| each.unsubscribe(uri, subscriber));
    }

    /// Ends the work that the providers have started for a client's session.
    pub fn end_session(&self, id: &str) {
        self.definition.providers.iter().for_each(|provider| provider.end_session(id));
    }

    /// Ends all work that the providers have started.
    pub async fn close(&self) {
        self.definition.providers.close().await;
    }

    /// The items that the server offers now.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }

    /// Whether the server declares that it announces changes of a list: whether it has the
    /// list, and the list can change.
    pub fn announces(&self, announcement: &Announcement) -> bool {
        let changes = !self.definition.fixed_lists;
        match announcement {
            Announcement::ToolListChanged => changes && self.has_tools(),
            Announcement::PromptListChanged => changes && self.has_prompts(),
            // Any call may store a resource.
            _ => true,
        }
    }

    /// The sender of the announcements of changed lists.
    pub(super) fn announcements(&self) -> broadcast::Sender<Announcement> {
        self.changes.clone()
    }

    /// Announcements of list changes from now on.
    pub fn listen(&self) -> broadcast::Receiver<Announcement> {
        self.changes.subscribe()
    }

    /// Edits the catalog and announces the change. With an error, nothing
    /// changes.
    ///
    /// # Errors
    /// The problems that `edit` reports, or that the lists are fixed.
    pub(super) fn edit(
        &self,
        announcement: Announcement,
        edit: impl FnOnce(&mut Catalog, &mut Vec<String>),
    ) -> Result<(), BuildError> {
        if self.definition.fixed_lists && announcement != Announcement::ResourceListChanged {
            let problem =
                "This server's lists of tools and prompts are fixed (Builder::fixed_lists)";
            return BuildError::check(vec![problem.into()]);
        }

        // Custom handlers decide on their lists, which never have registered items.
        let (what, kind) = match announcement {
            Announcement::ToolListChanged => (Offer::Tools, "tools"),
            Announcement::PromptListChanged => (Offer::Prompts, "prompts"),
            _ => (Offer::Resources, "resources"),
        };

        if self.definition.providers.iter().any(|provider| provider.replaces(what)) {
            return BuildError::check(vec![format!(
                "Handlers of this server list its {kind}, so that none can be added or removed: announce a change with ctx.{kind}_changed()"
            )]);
        }

        {
            let mut problems = Vec::new();
            let mut current = self.catalog.write();
            let mut next = Catalog::clone(&current);
            edit(&mut next, &mut problems);
            BuildError::check(problems)?;
            *current = Arc::new(next);
        }

        self.announce(announcement);
        Ok(())
    }

    /// Announces a change, unless the server declares that it never does.
    pub(super) fn announce_declared(&self, announcement: Announcement) {
        if self.announces(&announcement) {
            self.announce(announcement);
        }
    }

    pub(super) fn announce(&self, announcement: Announcement) {
        // An error means that there are no listeners.
        let _ = self.changes.send(announcement);
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("info", self.info()).finish_non_exhaustive()
    }
}
