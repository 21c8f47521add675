//! Puts a server's definition together and finds all its faults at once.

use std::sync::Arc;

use rmcp::model::{ExperimentalCapabilities, Icon, Implementation, JsonObject};

use super::{
    Catalog, Prompt, Registry, Resource, Template, Tool, catalog::Definition,
    custom::CustomHandlers, marks,
};
use crate::handler::ToolError;

/// How many items a page has where nobody says otherwise.
const PAGE_SIZE: usize = 100;

/// Collects what a server offers. `S` is the state that handlers reach by
/// [`Context::state`](super::Context::state).
pub struct Builder<S = ()> {
    info: Implementation,
    instructions: Option<String>,
    page_size: usize,
    fixed_lists: bool,
    experimental: ExperimentalCapabilities,
    pub(super) state: Arc<S>,
    catalog: Catalog,
    pub(super) custom: CustomHandlers,
    checks: Vec<Check>,
    faults: Vec<String>,
}

/// Something that can be checked only when everything is registered.
type Check = Box<dyn FnOnce(&Catalog, &mut Vec<String>) + Send>;

impl Builder {
    /// A server of that name, with this crate's version until
    /// [`Builder::version`] says otherwise.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, env!("CARGO_PKG_VERSION")),
            instructions: None,
            page_size: PAGE_SIZE,
            fixed_lists: false,
            experimental: ExperimentalCapabilities::new(),
            state: Arc::new(()),
            catalog: Catalog::default(),
            custom: CustomHandlers::default(),
            checks: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Gives the handlers registered from here on a state to share.
    pub fn state<S>(self, state: S) -> Builder<S> {
        Builder {
            info: self.info,
            instructions: self.instructions,
            page_size: self.page_size,
            fixed_lists: self.fixed_lists,
            experimental: self.experimental,
            state: Arc::new(state),
            catalog: self.catalog,
            custom: self.custom,
            checks: self.checks,
            faults: self.faults,
        }
    }
}

impl<S: Send + Sync + 'static> Builder<S> {
    /// The server's own version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// How a model should use this server.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// How many items a page of a listing has at most. 100 by default.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        if items == 0 {
            self.faults.push("page_size must be at least 1".into());
        }
        self.page_size = items.max(1);
        self
    }

    /// A picture of the server, for people; may be said several times.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// Promises that tools and prompts stay as they are while the server runs:
    /// no `listChanged` is declared for them, and adding or removing fails.
    #[must_use]
    pub fn fixed_lists(mut self) -> Self {
        self.fixed_lists = true;
        self
    }

    /// Declares a capability that the protocol does not know.
    #[must_use]
    pub fn experimental(mut self, name: impl Into<String>, capability: JsonObject) -> Self {
        self.experimental.insert(name.into(), capability);
        self
    }

    /// Offers a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool<S>) -> Self {
        let tool = tool.register(&self.state, &mut self.faults);
        self.catalog.tools.add(tool, &mut self.faults);
        self
    }

    /// Offers a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt<S>) -> Self {
        let prompt = prompt.register(&self.state, &mut self.faults);
        self.catalog.prompts.add(prompt, &mut self.faults);
        self
    }

    /// Offers a resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource<S>) -> Self {
        let resource = resource.register(&self.state, &mut self.faults);
        self.catalog.resources.add(resource, &mut self.faults);
        self
    }

    /// Offers whatever resources match a URI template.
    #[must_use]
    pub fn template(mut self, template: Template<S>) -> Self {
        if let Some(template) = template.register(&self.state, &mut self.faults) {
            self.catalog.templates.add(template, &mut self.faults);
        }
        self
    }

    /// Lets somebody else add to the server: `builder.with(tools::reading)`.
    #[must_use]
    pub fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }

    /// Has something checked against all that is registered in the end.
    #[must_use]
    pub fn check(
        mut self,
        check: impl FnOnce(&Catalog, &mut Vec<String>) + Send + 'static,
    ) -> Self {
        self.checks.push(Box::new(check));
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// All that is wrong, each fault with the item's name.
    pub fn build(mut self) -> Result<Registry, BuildError> {
        if self.info.name.trim().is_empty() {
            self.faults.push("The server needs a name".into());
        }
        marks::check_icons(
            "The server",
            self.info.icons.as_deref().unwrap_or_default(),
            &mut self.faults,
        );
        self.custom.check(&self.catalog, &mut self.faults);
        for check in self.checks {
            check(&self.catalog, &mut self.faults);
        }
        if !self.faults.is_empty() {
            return Err(BuildError { faults: self.faults });
        }
        let definition = Definition {
            info: self.info,
            instructions: self.instructions,
            page_size: self.page_size,
            fixed_lists: self.fixed_lists,
            experimental: self.experimental,
            custom: self.custom,
        };
        Ok(Registry::new(definition, self.catalog))
    }
}

/// Everything that is wrong with a server's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError {
    /// One a fault, each naming its item.
    pub faults: Vec<String>,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.faults.len();
        write!(
            f,
            "the server's definition has {count} fault{}",
            if count == 1 { "" } else { "s" }
        )?;
        for fault in &self.faults {
            write!(f, "\n  - {fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

impl From<BuildError> for ToolError {
    fn from(error: BuildError) -> Self {
        Self::new(error.to_string())
    }
}
