//! What tools, prompts, resources and templates have in common: the setters of
//! their builders, their entry in a list, and how their handlers are run.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use rmcp::model;

use crate::auth::Scopes;

/// Setters of every builder. They write to its `listed` and `scopes`.
macro_rules! common_setters {
    () => {
        /// A name for people.
        #[must_use]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.listed.title = Some(title.into());
            self
        }

        /// A picture for people; may be said several times.
        #[must_use]
        pub fn icon(mut self, icon: model::Icon) -> Self {
            self.listed.icons.get_or_insert_default().push(icon);
            self
        }

        /// Data for particular hosts, under their own keys.
        #[must_use]
        pub fn meta(mut self, meta: model::MetaObject) -> Self {
            self.listed.meta = Some(meta);
            self
        }

        /// Only for callers whose token has that scope: to others it is not
        /// listed, and refused with the scopes that it takes. Once for each scope.
        #[must_use]
        pub fn scope(mut self, scope: impl Into<String>) -> Self {
            self.scopes.push(scope.into());
            self
        }
    };
}

/// Setters of what can be read.
macro_rules! annotation_setters {
    () => {
        /// Whom it is for: people, the model, or both.
        #[must_use]
        pub fn audience(mut self, audience: impl IntoIterator<Item = model::Role>) -> Self {
            let annotations = self.listed.annotations.get_or_insert_default();
            annotations.audience = Some(audience.into_iter().collect());
            self
        }

        /// How much it matters, from 0 to 1.
        #[must_use]
        pub fn priority(mut self, priority: f32) -> Self {
            self.listed.annotations.get_or_insert_default().priority = Some(priority);
            self
        }

        /// When it was last changed, such as 2026-01-01T00:00:00Z.
        #[must_use]
        pub fn last_modified(mut self, time: impl Into<String>) -> Self {
            self.listed.annotations.get_or_insert_default().last_modified = Some(time.into());
            self
        }
    };
}

pub(super) use {annotation_setters, common_setters};

/// Something that a server offers: its entry in the list, the scopes of its
/// definition, and what is done when it is used.
pub(super) struct Item<L, B> {
    pub(super) listed: L,
    pub(super) scopes: Scopes,
    pub(super) body: B,
}

impl<L: Listed, B> Item<L, B> {
    /// What it is found by.
    pub(super) fn key(&self) -> &str {
        self.listed.key()
    }
}

/// An entry in a list.
pub(super) trait Listed: Clone {
    /// In faults: `Tool`.
    const WHAT: &'static str;
    /// In cursors: `tools`.
    const LIST: &'static str;
    /// What it is found by.
    fn key(&self) -> &str;
}

impl Listed for model::Tool {
    const WHAT: &'static str = "Tool";
    const LIST: &'static str = "tools";

    fn key(&self) -> &str {
        &self.name
    }
}

impl Listed for model::Prompt {
    const WHAT: &'static str = "Prompt";
    const LIST: &'static str = "prompts";

    fn key(&self) -> &str {
        &self.name
    }
}

impl Listed for model::Resource {
    const WHAT: &'static str = "Resource";
    const LIST: &'static str = "resources";

    fn key(&self) -> &str {
        &self.uri
    }
}

impl Listed for model::ResourceTemplate {
    const WHAT: &'static str = "Resource template";
    const LIST: &'static str = "templates";

    fn key(&self) -> &str {
        &self.uri_template
    }
}

/// 2025-11-25 and later, tools: Tool Names. Prompts keep to it, too.
pub(super) fn check_name(item: &str, name: &str, faults: &mut Vec<String>) {
    if !is_name(name) {
        faults.push(format!("{item}: a name has 1 to 128 of the characters A-Z a-z 0-9 _ - ."));
    }
}

/// Whether that is a name that clients take.
pub(super) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// A handler panicked. That is the failure of what was asked, and of nothing else.
pub(super) struct Panicked;

/// Runs a handler of a server's author: making its future is its own code as
/// well as running it. The log says whose handler it was.
pub(super) async fn guarded<F: Future>(
    what: &str,
    name: &str,
    request_id: &str,
    run: impl FnOnce() -> F,
) -> Result<F::Output, Panicked> {
    AssertUnwindSafe(async { run().await }).catch_unwind().await.map_err(|_| {
        tracing::error!(what, name, request_id, "a handler panicked");
        Panicked
    })
}
