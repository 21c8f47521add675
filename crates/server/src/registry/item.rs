//! The common parts of tools, prompts, resources and templates: setters, list
//! entries, and running handlers.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use larder_oauth::Scopes;
use larder_runtime::panics::PanicSite;
use rmcp::model;

/// Setters of all items. They write to the fields `listed`, `scopes` and `origin`.
macro_rules! common_setters {
    () => {
        /// The path of the function that the item comes from, for error messages.
        #[doc(hidden)]
        #[must_use]
        pub fn origin(mut self, function: &'static str) -> Self {
            self.origin = Some(function);
            self
        }

        /// The name to display.
        #[must_use]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.listed.title = Some(title.into());
            self
        }

        /// An icon. Can be called several times.
        #[must_use]
        pub fn icon(mut self, icon: model::Icon) -> Self {
            self.listed.icons.get_or_insert_default().push(icon);
            self
        }

        /// The `_meta` object: data for particular hosts.
        #[must_use]
        pub fn meta(mut self, meta: model::MetaObject) -> Self {
            self.listed.meta = Some(meta);
            self
        }

        /// A scope that the caller's token must have. Other callers do not see
        /// the item in lists, and get an error that names the required scopes.
        /// Can be called several times.
        #[must_use]
        pub fn scope(mut self, scope: impl Into<String>) -> Self {
            self.scopes.push(scope.into());
            self
        }
    };
}

/// Setters of resources and templates.
macro_rules! annotation_setters {
    () => {
        /// The time for which clients may cache the result of a read, and whether callers
        /// may share it (2026-07-28, utilities: Caching). By default clients may not cache
        /// it. Content that needs scopes is never shared.
        #[must_use]
        pub fn cache(mut self, ttl: std::time::Duration, scope: model::CacheScope) -> Self {
            self.cache = Some(crate::registry::CacheRule { ttl, scope });
            self
        }

        /// The audience: the user, the model, or both.
        #[must_use]
        pub fn audience(mut self, audience: impl IntoIterator<Item = model::Role>) -> Self {
            let annotations = self.listed.annotations.get_or_insert_default();
            annotations.audience = Some(audience.into_iter().collect());
            self
        }

        /// The importance, from 0 to 1.
        #[must_use]
        pub fn priority(mut self, priority: f32) -> Self {
            self.listed.annotations.get_or_insert_default().priority = Some(priority);
            self
        }

        /// The time of the last change, such as 2026-01-01T00:00:00Z.
        #[must_use]
        pub fn last_modified(mut self, time: impl Into<String>) -> Self {
            self.listed.annotations.get_or_insert_default().last_modified = Some(time.into());
            self
        }
    };
}

pub(super) use {annotation_setters, common_setters};

/// A registered item: its list entry, the scopes of its definition, and its
/// handler.
pub(super) struct Item<L, B> {
    pub(super) listed: L,
    pub(super) scopes: Scopes,
    /// The path of the function that the item comes from, if known.
    pub(super) origin: Option<&'static str>,
    pub(super) body: B,
}

impl<L: Listed, B> Item<L, B> {
    /// The unique key.
    pub(super) fn key(&self) -> &str {
        self.listed.key()
    }
}

/// A list entry.
pub(super) trait Listed: Clone {
    /// The kind for messages: `Tool`.
    const KIND: &'static str;

    /// The list's name in cursors: `tools`.
    const LIST: &'static str;

    /// The unique key.
    fn key(&self) -> &str;
}

impl Listed for model::Tool {
    const KIND: &'static str = "Tool";
    const LIST: &'static str = "tools";

    fn key(&self) -> &str {
        &self.name
    }
}

impl Listed for model::Prompt {
    const KIND: &'static str = "Prompt";
    const LIST: &'static str = "prompts";

    fn key(&self) -> &str {
        &self.name
    }
}

impl Listed for model::Resource {
    const KIND: &'static str = "Resource";
    const LIST: &'static str = "resources";

    fn key(&self) -> &str {
        &self.uri
    }
}

impl Listed for model::ResourceTemplate {
    const KIND: &'static str = "Resource template";
    const LIST: &'static str = "templates";

    fn key(&self) -> &str {
        &self.uri_template
    }
}

/// Reports an invalid name of a tool (2025-11-25 and later, tools: Tool Names)
/// or a prompt.
pub(super) fn check_name(item: &str, name: &str, problems: &mut Vec<String>) {
    if !is_name(name) {
        problems.push(format!("{item}: a name has 1 to 128 of the characters A-Z a-z 0-9 _ - ."));
    }
}

/// Whether clients accept the name.
pub(super) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// A handler panicked. Only its own request fails.
pub(super) struct Panicked;

/// Runs a handler and catches a panic, also one while the future is created.
/// `kind` and `name` identify the handler in the log.
pub(super) async fn catch_panic<F: Future>(
    kind: &str,
    name: &str,
    request_id: &str,
    run: impl FnOnce() -> F,
) -> Result<F::Output, Panicked> {
    AssertUnwindSafe(async { run().await }).catch_unwind().await.map_err(|_| {
        PanicSite::Handler.count();
        tracing::error!(what = kind, name, request_id, "a handler panicked");
        Panicked
    })
}
