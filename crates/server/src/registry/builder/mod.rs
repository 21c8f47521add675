//! [`Builder`]: collects a server's definition, and reports all its problems at
//! once.

mod custom;

use std::{collections::BTreeSet, sync::Arc};

use rmcp::model::{ExperimentalCapabilities, Icon, Implementation, JsonObject};
use schemars::JsonSchema;

use super::{
    annotations::check_icons,
    build_error::BuildError,
    catalog::Catalog,
    custom::CustomHandlers,
    definition::{Definition, Registry},
    known::{Findings, KnownItems},
    projection::Projector,
    prompt::Prompt,
    provider::Provider,
    providers::Providers,
    resource::Resource,
    template::Template,
    tool::Tool,
    tool_set::ToolSet,
};
use crate::handler::form;

/// The default page size of lists.
const DEFAULT_PAGE_SIZE: usize = 100;

/// Collects a server's definition. `S` is the state that handlers get from
/// [`Context::state`](crate::Context::state).
pub struct Builder<S = ()> {
    info: Implementation,
    instructions: Option<String>,
    page_size: usize,
    fixed_lists: bool,
    hides_provided_tools: bool,
    projector: Option<Arc<dyn Projector>>,
    own_tools: ToolSet,
    experimental: ExperimentalCapabilities,
    state: Arc<S>,
    catalog: Catalog,
    custom: CustomHandlers,
    providers: Vec<Arc<dyn Provider>>,
    exchangeable: Vec<Arc<dyn Provider>>,
    checks: Vec<Check>,
    problems: Vec<String>,
}

/// A check that runs when everything is registered.
type Check = Box<dyn FnOnce(&KnownItems<'_>, &mut Findings) + Send>;

impl Registry {
    /// Starts a server's definition.
    ///
    /// ```
    /// use larder_server::{Context, Registry, Tool};
    ///
    /// /// Returns the text.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Echo {
    ///     /// The text to return.
    ///     text: String,
    /// }
    ///
    /// async fn echo(_: Context, args: Echo) -> String {
    ///     args.text
    /// }
    ///
    /// let registry = Registry::builder("echo").tool(Tool::new(echo)).build()?;
    /// let tool = &registry.tools(None)?.items[0];
    /// assert_eq!(tool.name, "echo");
    /// assert_eq!(tool.description.as_deref(), Some("Returns the text."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name)
    }
}

impl Builder {
    /// A server with this name. Its version is the version of this crate, unless
    /// [`Builder::version`] sets another one.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, env!("CARGO_PKG_VERSION")),
            instructions: None,
            page_size: DEFAULT_PAGE_SIZE,
            fixed_lists: false,
            hides_provided_tools: false,
            projector: None,
            own_tools: ToolSet::default(),
            experimental: ExperimentalCapabilities::new(),
            state: Arc::new(()),
            catalog: Catalog::default(),
            custom: CustomHandlers::default(),
            providers: Vec::new(),
            exchangeable: Vec::new(),
            checks: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Sets the state of the handlers that are registered after this call.
    pub fn state<S>(self, state: S) -> Builder<S> {
        self.shared_state(Arc::new(state))
    }

    /// Sets the state as [`Builder::state`] does, to a state that other code shares.
    pub fn shared_state<S>(self, state: Arc<S>) -> Builder<S> {
        Builder {
            info: self.info,
            instructions: self.instructions,
            page_size: self.page_size,
            fixed_lists: self.fixed_lists,
            hides_provided_tools: self.hides_provided_tools,
            projector: self.projector,
            own_tools: self.own_tools,
            experimental: self.experimental,
            state,
            catalog: self.catalog,
            custom: self.custom,
            providers: self.providers,
            exchangeable: self.exchangeable,
            checks: self.checks,
            problems: self.problems,
        }
    }
}

impl<S: Send + Sync + 'static> Builder<S> {
    /// The server's version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// The name to display.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// The instructions for models that use this server.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// The most items on one page of a list. Default: 100.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        if items == 0 {
            self.problems.push("page_size must be at least 1".into());
        }
        self.page_size = items.max(1);
        self
    }

    /// An icon of the server. Can be called several times.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// Fixes the lists of tools and prompts: the server does not declare
    /// `listChanged` for them, and adding or removing one fails.
    #[must_use]
    pub fn fixed_lists(mut self) -> Self {
        self.fixed_lists = true;
        self
    }

    /// The tools of this crate that are listed. Default: all that are added.
    #[must_use]
    pub fn own_tools(mut self, set: ToolSet) -> Self {
        self.own_tools = set;
        self
    }

    /// Declares an experimental capability.
    #[must_use]
    pub fn experimental(mut self, name: impl Into<String>, capability: JsonObject) -> Self {
        self.experimental.insert(name.into(), capability);
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool<S>) -> Self {
        let tool = tool.register(&self.state, &mut self.problems);
        self.catalog.tools.add(tool, &mut self.problems);
        self
    }

    /// Adds a prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt<S>) -> Self {
        let prompt = prompt.register(&self.state, &mut self.problems);
        self.catalog.prompts.add(prompt, &mut self.problems);
        self
    }

    /// Adds a static resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource<S>) -> Self {
        let resource = resource.register(&self.state, &mut self.problems);
        self.catalog.resources.add(resource, &mut self.problems);
        self
    }

    /// Adds a resource template.
    #[must_use]
    pub fn template(mut self, template: Template<S>) -> Self {
        if let Some(template) = template.register(&self.state, &mut self.problems) {
            self.catalog.templates.add(template, &mut self.problems);
        }
        self
    }

    /// Checks that clients can show a struct as a form, for handlers that ask with
    /// [`Context::elicit`](crate::Context::elicit). Functions under `#[tool]` that name the
    /// struct there are checked without this call.
    ///
    /// ```
    /// use larder_server::Registry;
    ///
    /// #[derive(schemars::JsonSchema)]
    /// struct Person {
    ///     name: Vec<Vec<String>>,
    /// }
    ///
    /// let built = Registry::builder("forms").form::<Person>().build();
    /// assert!(built.unwrap_err().problems[0].contains("name"));
    /// ```
    #[must_use]
    pub fn form<T: JsonSchema>(mut self) -> Self {
        self.problems.extend(form::problem_of::<T>());
        self
    }

    /// Adds a provider of items, after everything that is registered.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// Adds providers after all others, which [`Registry::exchange_providers`] replaces.
    #[must_use]
    pub fn exchangeable(mut self, providers: Vec<Arc<dyn Provider>>) -> Self {
        self.exchangeable.extend(providers);
        self
    }

    /// Does not list the tools of providers, which the tools of
    /// [`tools::finding`](crate::tools::finding) find and call.
    #[must_use]
    pub(crate) fn hide_provided_tools(mut self) -> Self {
        self.hides_provided_tools = true;
        self
    }

    /// Computes the parts of results that callers ask for.
    #[cfg(feature = "query")]
    #[must_use]
    pub(crate) fn projector(mut self, projector: Arc<dyn Projector>) -> Self {
        self.projector = Some(projector);
        self
    }

    /// The names of the tools that are registered so far.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.catalog.tools.iter().map(|tool| &*tool.listed.name)
    }

    /// Applies a function that adds items: `builder.with(tools::writing())`.
    #[must_use]
    pub fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }

    /// Adds a check that [`Builder::build`] runs on all registered items. The
    /// check reports problems to the list.
    #[must_use]
    pub fn check(self, check: impl FnOnce(&Catalog, &mut Vec<String>) + Send + 'static) -> Self {
        self.check_known(|known, findings| check(known.catalog, &mut findings.problems))
    }

    /// Adds a check that [`Builder::build`] runs on all that is known, with the items of providers.
    #[must_use]
    pub(crate) fn check_known(
        mut self,
        check: impl FnOnce(&KnownItems<'_>, &mut Findings) + Send + 'static,
    ) -> Self {
        self.checks.push(Box::new(check));
        self
    }

    /// Notes the tools that the tool of a workflow calls, so that a cycle is found.
    #[must_use]
    pub(crate) fn workflow_calls(mut self, tool: &str, calls: BTreeSet<String>) -> Self {
        Arc::make_mut(&mut self.catalog.workflow_calls).insert(tool.to_owned(), calls);
        self
    }

    /// Validates the definition.
    ///
    /// # Errors
    /// All problems of the definition.
    pub fn build(mut self) -> Result<Registry, BuildError> {
        if self.info.name.trim().is_empty() {
            self.problems.push("The server needs a name".into());
        }

        check_icons(
            "The server",
            self.info.icons.as_deref().unwrap_or_default(),
            &mut self.problems,
        );
        let has_tools = self.catalog.has_tools();
        let has_prompts = self.catalog.has_prompts();
        self.custom.check(has_tools, has_prompts, &mut self.problems);

        let mut providers: Vec<Arc<dyn Provider>> = Vec::new();
        if self.custom.is_defined() {
            providers.push(Arc::new(self.custom));
        }
        providers.extend(self.providers);

        let known = KnownItems {
            catalog: &self.catalog,
            providers: providers.iter().chain(&self.exchangeable).cloned().collect(),
        };
        let mut findings = Findings { problems: self.problems, warnings: Vec::new() };
        for check in self.checks {
            check(&known, &mut findings);
        }
        BuildError::check(findings.problems)?;

        let definition = Definition {
            info: self.info,
            instructions: self.instructions,
            page_size: self.page_size,
            fixed_lists: self.fixed_lists,
            hides_provided_tools: self.hides_provided_tools,
            projector: self.projector,
            own_tools: self.own_tools,
            experimental: self.experimental,
            warnings: findings.warnings,
            providers: Providers::new(providers, self.exchangeable),
        };

        Ok(Registry::new(definition, self.catalog))
    }
}
