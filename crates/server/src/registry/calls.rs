//! Calling tools, getting prompts, reading static resources, and completion.

use std::sync::Arc;

use larder_oauth::{Principal, audit};
use larder_protocol::{
    Fault, Method,
    quote::{quoted, shortened},
    uri_template::{UriTemplate, Variables},
};
use rmcp::model;
use serde_json::{Value, json};

use super::{
    apps::is_app_only,
    catalog::Catalog,
    complete::{self, CompletionInput, Suggested},
    definition::Registry,
    headers::HeaderParameter,
    prompt,
    provided_call::call_provided,
    provided_tool::{FoundTool, ListedBy, ProvidedTool, as_object, unknown_tool},
    provider::Provider,
    resource::CacheRule,
    tool_search::rank_tools,
};
use crate::handler::{Contents, Scope};

/// How many tools are named in place of one that does not exist.
const MEANT_TOOLS: usize = 3;
/// The longest URI of a resource that is not stored: servers list longer ones than the store takes.
const MAX_URI_BYTES: usize = 16 << 10;

impl Registry {
    /// The tool's arguments that clients mirror into headers.
    pub fn header_parameters(&self, tool: &str) -> Vec<HeaderParameter> {
        if let Some(registered) = self.catalog().tools.get(tool) {
            return registered.body.headers.clone();
        }
        self.known_tool(tool).map(|known| known.headers.clone()).unwrap_or_default()
    }

    /// The provider's tool of that name, as far as it is known.
    pub(super) fn known_tool(&self, name: &str) -> Option<Arc<ProvidedTool>> {
        self.definition.providers.iter().find_map(|provider| provider.known_tool(name))
    }

    /// The server that lists a tool of that name to somebody, as far as it is known. `None` for a
    /// name that may be a caller's invention.
    pub(crate) fn listed_by(&self, name: &str) -> Option<ListedBy> {
        if self.catalog().tools.get(name).is_some() {
            return Some(ListedBy::Server);
        }

        let mut providers = self.definition.providers.iter();
        let provider = providers.find(|provider| provider.lists_tool(name))?;
        Some(provider.origin().map_or(ListedBy::Server, ListedBy::Upstream))
    }

    /// Whether no tool of that name can be called: this server has none, and nobody else is behind it.
    pub(crate) fn is_unknown_tool(&self, name: &str) -> bool {
        self.has_no_providers() && self.catalog().tools.get(name).is_none()
    }

    /// Whether a tool of that name is for pages only, so that no model gets its results.
    pub(crate) fn is_app_only(&self, name: &str) -> bool {
        self.catalog().tools.get(name).is_some_and(|tool| is_app_only(&tool.listed))
    }

    /// Whether there is anything whose handler may log, store resources or become a task.
    pub fn has_handlers(&self) -> bool {
        let catalog = self.catalog();
        catalog.has_tools()
            || catalog.has_prompts()
            || catalog.resources().len() > 0
            || catalog.templates().len() > 0
            || !self.has_no_providers()
    }

    /// Whether all items are this server's own.
    pub(crate) fn has_no_providers(&self) -> bool {
        self.definition.providers.is_empty()
    }

    /// The name under which the tool is offered that has this name at its server, if no tool is
    /// offered under this name, and one server has such a tool.
    pub(crate) fn offered_tool(&self, own_name: &str) -> Option<String> {
        if self.listed_by(own_name).is_some() {
            return None;
        }
        let mut offered =
            self.definition.providers.iter().filter_map(|each| each.offered_tool(own_name));
        offered.next().filter(|_| offered.next().is_none())
    }

    /// The URI under which the resource is offered that has this URI at its server, if one server
    /// has such a resource.
    fn offered_resource(&self, own_uri: &str) -> Option<String> {
        let mut offered =
            self.definition.providers.iter().filter_map(|each| each.offered_resource(own_uri));
        offered.next().filter(|_| offered.next().is_none())
    }

    /// The tool's arguments that it stores as they are, not parsed.
    pub(crate) fn stored_arguments(&self, tool: &str) -> Vec<&'static str> {
        self.catalog().tools.get(tool).map(|tool| tool.body.stored.clone()).unwrap_or_default()
    }

    /// Calls a tool. Invalid arguments, an error of the handler and a panic give
    /// a result with `isError`, not a protocol error (2026-07-28, tools: Error
    /// Handling).
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] if the tool does not exist.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<Value>,
        scope: Arc<Scope>,
    ) -> Result<model::CallToolResult, Fault> {
        let registered = self.catalog().tools.get(name).cloned();
        if let Some(tool) = registered {
            self.check_tool_scopes(&scope.identity, name)?;
            return Ok(tool.call(arguments, scope).await);
        }

        for provider in &self.definition.providers {
            let Some(found) = provider.tool(name, &scope).await? else { continue };
            self.check_tool_scopes(&scope.identity, name)?;
            return match found {
                FoundTool::Listed(tool) => {
                    Box::pin(call_provided(&*provider, &tool, arguments, scope)).await
                }
                FoundTool::Unlisted => {
                    let arguments = as_object(arguments.unwrap_or_else(|| json!({})))?;
                    provider.call_unlisted(name, arguments, scope).await
                }
            };
        }

        let fault = if self.hides_provided_tools() {
            self.unknown_provided_tool(name, &scope).await
        } else {
            unknown_tool(name)
        };
        // Without authentication there is nobody to tell apart.
        if *scope.identity.principal() != Principal::Local {
            let what = format!("{} {name}", Method::CallTool.as_str());
            audit::refused(&scope.identity, &what, &fault);
        }
        Err(fault)
    }

    /// The fault of a call of a tool that does not exist, with those that may have been meant.
    async fn unknown_provided_tool(&self, name: &str, scope: &Arc<Scope>) -> Fault {
        let name = shortened(name).to_string();
        let tools = Arc::new(self.unlisted_tools(scope).await.unwrap_or_default());

        let ranked = rank_tools(&scope.identity, &name, &tools).await.unwrap_or_default();
        let meant: Vec<_> =
            ranked.iter().take(MEANT_TOOLS).map(|index| &*tools[*index].name).collect();
        let hint = match meant.as_slice() {
            [] => String::new(),
            names => format!(" Did you mean {}?", names.join(", ")),
        };
        Fault::invalid_params(format!("Unknown tool: {name}.{hint} Look for it with find_tools."))
    }

    /// Gets a prompt's messages.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] if the prompt does not exist or the arguments
    /// are invalid; [`Fault::Internal`] if the handler fails.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: model::JsonObject,
        scope: Arc<Scope>,
    ) -> Result<model::GetPromptResult, Fault> {
        let registered = self.catalog().prompts.get(name).cloned();
        let check = || {
            let what = format_args!("prompts/get {name}");
            self.check_scopes(&scope.identity, &what, || self.prompt_scopes(name))
        };

        if let Some(found) = registered {
            check()?;
            return found.get(arguments, scope).await;
        }

        if !self.definition.providers.is_empty() {
            check()?;
        }
        for provider in &self.definition.providers {
            if let Some(result) = provider.get_prompt(name, &arguments, &scope).await {
                return result;
            }
        }

        Err(prompt::unknown(name))
    }

    /// Suggests values for an argument of a prompt or of a template.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] if the prompt, template or argument does not
    /// exist; [`Fault::Internal`] if the completer panics.
    pub async fn complete(
        &self,
        reference: &model::Reference,
        argument: &str,
        input: CompletionInput,
        scope: Arc<Scope>,
    ) -> Result<model::CompleteResult, Fault> {
        let catalog = self.catalog();
        if !catalog.has_reference(reference) {
            let what = &"completion/complete";
            self.check_scopes(&scope.identity, what, || self.reference_scopes(reference))?;
            for provider in &self.definition.providers {
                let suggested = provider.complete(reference, argument, &input, &scope).await;
                if let Some(suggested) = suggested {
                    return suggested;
                }
            }
        }

        let suggested = match reference.as_prompt_name() {
            Some(name) => self.suggest_for_prompt(&catalog, name, argument, input, scope).await?,
            None => {
                let uri = reference.as_resource_uri().unwrap_or_default();
                self.suggest_for_template(&catalog, uri, argument, &input, &scope).await?
            }
        };

        Ok(model::CompleteResult::new(complete::completion_info(suggested)))
    }

    async fn suggest_for_prompt(
        &self,
        catalog: &Catalog,
        name: &str,
        argument: &str,
        input: CompletionInput,
        scope: Arc<Scope>,
    ) -> Result<Suggested, Fault> {
        self.check_scopes(&scope.identity, &"completion/complete", || self.prompt_scopes(name))?;

        let prompt = catalog.prompts.get(name).ok_or_else(|| prompt::unknown(name))?;
        if !prompt.listed.arguments.iter().flatten().any(|a| a.name == argument) {
            return Err(no_argument(&format!("The prompt {name}"), argument));
        }

        let values = prompt.body.completers.suggest(argument, input, scope).await?;
        Ok(values.unwrap_or_default().into())
    }

    async fn suggest_for_template(
        &self,
        catalog: &Catalog,
        uri: &str,
        argument: &str,
        input: &CompletionInput,
        scope: &Arc<Scope>,
    ) -> Result<Suggested, Fault> {
        self.check_scopes(&scope.identity, &"completion/complete", || self.template_scopes(uri))?;

        let unknown =
            || Fault::invalid_params(format!("Unknown resource template: {}", shortened(uri)));
        let template = &catalog.templates.get(uri).ok_or_else(unknown)?.body;
        if !template.template.variables().any(|v| v == argument) {
            return Err(no_argument(&format!("The template {uri}"), argument));
        }

        match template.completers.suggest(argument, input.clone(), Arc::clone(scope)).await? {
            Some(values) => Ok(values.into()),
            None => complete::from_resources(&template.template, argument, input, scope)
                .await
                .map_err(|error| Fault::Unavailable(error.to_string())),
        }
    }

    /// Whether a resource of the definition has that URI or a template of it
    /// matches the URI.
    pub fn is_static(&self, uri: &str) -> bool {
        self.catalog().covers(uri)
    }

    /// The rule by which clients may cache the contents that [`Registry::read`] returns for this
    /// URI.
    pub fn cache_rule(&self, uri: &str) -> Option<CacheRule> {
        let catalog = self.catalog();
        let rule = match catalog.resource(uri) {
            Some(resource) => resource.body.cache,
            None if catalog.templates.iter().all(|t| t.body.cache.is_none()) => None,
            None => {
                let mut templates = catalog.templates.iter();
                templates.find(|t| t.body.template.matches(uri).is_some())?.body.cache
            }
        };

        let needs_scopes = !self.uri_scopes(uri).is_empty();
        let scope = if needs_scopes { model::CacheScope::Private } else { rule?.scope };
        Some(CacheRule { scope, ..rule? })
    }

    /// Reads a static resource, or through the first template that matches.
    /// `None` if neither exists.
    ///
    /// # Errors
    /// The handler's error, as the caller may see it.
    pub async fn read(&self, uri: &str, scope: Arc<Scope>) -> Option<Result<Contents, Fault>> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }

        let catalog = self.catalog();
        let checked =
            self.check_scopes(&scope.identity, &"resources/read", || self.uri_scopes(uri));
        if let Err(refused) = checked {
            return Some(Err(refused)).filter(|_| self.is_static(uri));
        }

        if let Some(resource) = catalog.resource(uri) {
            return Some(resource.read(uri, scope).await);
        }

        for template in catalog.templates.iter() {
            let Some(variables) = template.body.template.matches(uri) else { continue };
            if let Some(provider) = self.provider_of_part(&template.body.template, uri, &variables)
                && let Some(read) = provider.read(uri, &scope).await
            {
                scope.store.add_origins(provider.origin());
                return Some(read);
            }
            return Some(template.read(uri, variables, scope).await);
        }

        for provider in &self.definition.providers {
            if let Some(read) = provider.read(uri, &scope).await {
                scope.store.add_origins(provider.origin());
                return Some(read);
            }
        }

        // Pages of a server behind this one read its resources by its own URIs.
        let offered = self.offered_resource(uri)?;
        Box::pin(self.read(&offered, scope)).await
    }
}

impl Registry {
    /// The provider that itself has the part of a resource that this URI selects. A template of
    /// parts of any resource does not hide resources whose own URIs have such a query.
    fn provider_of_part(
        &self,
        template: &UriTemplate,
        uri: &str,
        variables: &Variables,
    ) -> Option<Arc<dyn Provider>> {
        let base = template.base_uri_variable()?;
        let parameters = variables.keys().map(String::as_str).filter(|name| *name != base);
        let parameters: Vec<_> = parameters.collect();
        self.definition.providers.iter().find(|provider| provider.has_part(uri, &parameters))
    }
}

fn no_argument(item: &str, argument: &str) -> Fault {
    Fault::invalid_params(format!("{item} has no argument {}", quoted(argument)))
}
