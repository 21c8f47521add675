//! The scopes that a request needs, and the items that a caller may see.

use std::fmt::Display;

use larder_oauth::{Grant, Identity, Scopes, audit};
use larder_protocol::{Fault, Method};
use rmcp::model::Reference;

use super::{
    apps::has_app,
    definition::Registry,
    item::{Item, Listed},
    scope_rules::ScopeRules,
};

impl Registry {
    /// Sets the rules of the configuration.
    ///
    /// # Errors
    /// The patterns that match no item: such a rule is a mistake, because it
    /// protects nothing.
    pub fn set_scope_rules(&mut self, rules: ScopeRules) -> Result<(), Vec<String>> {
        // The items of providers are not known yet.
        if !self.definition.providers.is_empty() {
            self.scope_rules = rules;
            return Ok(());
        }

        let catalog = self.catalog();
        let keys: Vec<_> = catalog.scopes().map(|(key, _)| key).collect();
        let unmatched = rules.unmatched(&keys);
        if !unmatched.is_empty() {
            return Err(unmatched);
        }

        self.scope_rules = rules;
        Ok(())
    }

    /// All scopes that a request needs. `target` is the tool, prompt or URI.
    pub fn required_scopes(&self, method: Method, target: Option<&str>) -> Scopes {
        let everything = self.scope_rules.for_everything();
        let Some(target) = target else { return everything.clone() };

        let own = match method {
            Method::CallTool => self.tool_scopes(target),
            Method::GetPrompt => self.prompt_scopes(target),
            Method::ReadResource | Method::Subscribe => self.uri_scopes(target),
            Method::Complete => self.prompt_scopes(target).union(&self.template_scopes(target)),
            _ => return everything.clone(),
        };

        everything.union(&own)
    }

    pub(super) fn tool_scopes(&self, name: &str) -> Scopes {
        let tool = self.catalog().tools.get(name).cloned();
        match tool {
            Some(tool) => self.scope_rules.for_item(name, &tool.scopes),
            None => self.provided_scopes(name),
        }
    }

    pub(super) fn prompt_scopes(&self, name: &str) -> Scopes {
        let prompt = self.catalog().prompts.get(name).cloned();
        match prompt {
            Some(prompt) => self.scope_rules.for_item(name, &prompt.scopes),
            None => self.provided_scopes(name),
        }
    }

    pub(super) fn template_scopes(&self, uri_template: &str) -> Scopes {
        let template = self.catalog().templates.get(uri_template).cloned();
        match template {
            Some(template) => self.scope_rules.for_item(uri_template, &template.scopes),
            None => self.provided_scopes(uri_template),
        }
    }

    /// The scopes of the prompt or template whose arguments are completed.
    pub(super) fn reference_scopes(&self, reference: &Reference) -> Scopes {
        match (reference.as_prompt_name(), reference.as_resource_uri()) {
            (Some(name), _) => self.prompt_scopes(name),
            (None, Some(uri)) => self.template_scopes(uri),
            (None, None) => Scopes::default(),
        }
    }

    /// The scopes of an item that only a provider can have.
    fn provided_scopes(&self, key: &str) -> Scopes {
        if self.definition.providers.is_empty() {
            return Scopes::default();
        }
        self.scope_rules.for_item(key, &Scopes::default())
    }

    /// The scopes for reading a static URI: the scopes of the resource, or else of
    /// the first template that matches. Rules apply to a template as a whole,
    /// because one URI can be written in many ways: a rule for some of its URIs
    /// could be bypassed.
    pub(super) fn uri_scopes(&self, uri: &str) -> Scopes {
        let catalog = self.catalog();
        if let Some(resource) = catalog.resource(uri) {
            return self.scope_rules.for_item(&resource.listed.uri, &resource.scopes);
        }

        let matched = catalog
            .templates
            .iter()
            .find_map(|t| t.body.template.matches(uri).map(|variables| (t, variables)));
        let Some((template, variables)) = matched else { return self.provided_scopes(uri) };
        let scopes = self.scope_rules.for_item(&template.listed.uri_template, &template.scopes);

        // A URI inside the URI needs its own scopes as well.
        let inner = template.body.template.base_uri_variable().and_then(|name| variables.get(name));
        inner.map_or(scopes.clone(), |uri| scopes.union(&self.uri_scopes(uri)))
    }

    /// Refuses a caller that lacks scopes. Every use of an item calls this
    /// method, so that calls within calls are checked as well. `what` is the use, for
    /// the audit log.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`].
    pub(super) fn check_scopes(
        &self,
        identity: &Identity,
        what: &dyn Display,
        needed: impl FnOnce() -> Scopes,
    ) -> Result<(), Fault> {
        if *identity.grant() == Grant::All {
            return Ok(());
        }

        let needed = self.scope_rules.for_everything().union(&needed());
        if identity.allows(&needed) {
            return Ok(());
        }

        let fault =
            Fault::InsufficientScope { required: needed.names().map(str::to_owned).collect() };
        audit::refused(identity, what, &fault);
        Err(fault)
    }

    /// Refuses a caller that lacks the scopes of a tool: for its call, or for another tool
    /// that does the same.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`].
    pub(crate) fn check_tool_scopes(&self, identity: &Identity, tool: &str) -> Result<(), Fault> {
        self.check_scopes(identity, &format_args!("tools/call {tool}"), || self.tool_scopes(tool))
    }

    /// Whether a caller with that grant may see the item in a list.
    pub(super) fn is_shown<L: Listed, B>(&self, grant: &Grant, item: &Item<L, B>) -> bool {
        match grant {
            Grant::All => true,
            Grant::Scopes(_) => grant.allows(&self.scope_rules.for_item(item.key(), &item.scopes)),
        }
    }

    /// Whether a caller with that grant may see the static resource in a list.
    pub fn can_list_resource(&self, grant: &Grant, uri: &str) -> bool {
        match self.catalog().resources.get(uri) {
            Some(item) => self.is_shown(grant, &**item),
            None => self.has_provided_resources() && self.is_granted(grant, uri),
        }
    }

    /// Whether a caller with that grant may see the template in a list.
    pub fn can_list_template(&self, grant: &Grant, uri_template: &str) -> bool {
        match self.catalog().templates.get(uri_template) {
            Some(item) => self.is_shown(grant, &**item),
            None => self.has_provided_resources() && self.is_granted(grant, uri_template),
        }
    }

    /// Whether a caller with that grant may see a provider's item in a list.
    pub(super) fn is_granted(&self, grant: &Grant, key: &str) -> bool {
        grant.allows(&self.scope_rules.for_item(key, &Scopes::default()))
    }

    /// Whether a caller with that grant may use the tool.
    pub(crate) fn offers(&self, grant: &Grant, tool: &str) -> bool {
        self.catalog().tools.get(tool).is_some_and(|tool| self.is_shown(grant, &**tool))
    }

    /// Whether lists depend on the caller, or on whether its client shows MCP Apps.
    pub fn lists_depend_on_caller(&self) -> bool {
        !self.scope_rules.for_everything().is_empty()
            || self.catalog().tools.iter().any(|tool| has_app(&tool.listed))
            || self.catalog().scopes().any(|(key, own)| self.scope_rules.restricts(key, own))
    }
}
