//! Which scopes what a server offers needs, by its definition and by
//! configuration.

use super::{
    Catalog, Registry,
    item::{Item, Listed},
};
use crate::{
    auth::{Grant, Identity, Scopes, audit},
    protocol::{Fault, Method},
};

/// Scopes that the configuration asks for, beside those of the definition.
///
/// ```
/// use larder::{auth::Scopes, registry::Access};
///
/// let scopes = |name| Scopes::required([name]).unwrap();
/// // Everything needs mcp:read; tools and prompts go by name, resources and
/// // templates by URI; a * at the end stands for any ending.
/// let access = Access::new(scopes("mcp:read"))
///     .rule("delete_resource", scopes("mcp:write"))
///     .rule("admin_*", scopes("mcp:admin"))
///     .rule("docs://internal/*", scopes("mcp:staff"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Access {
    everything: Scopes,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    name: String,
    /// Whether it stands for all names that begin with it.
    prefix: bool,
    scopes: Scopes,
}

impl Rule {
    fn is_for(&self, key: &str) -> bool {
        if self.prefix { key.starts_with(&self.name) } else { key == self.name }
    }
}

impl Access {
    /// Whatever is asked for needs those.
    pub fn new(everything: Scopes) -> Self {
        Self { everything, rules: Vec::new() }
    }

    /// What has that name, or a name that begins with what stands before its
    /// `*`, needs those as well.
    #[must_use]
    pub fn rule(mut self, pattern: &str, scopes: Scopes) -> Self {
        let (name, prefix) =
            pattern.strip_suffix('*').map_or((pattern, false), |name| (name, true));
        self.rules.push(Rule { name: name.to_owned(), prefix, scopes });
        self
    }

    /// All that the item of that key needs beside what everything does.
    fn of(&self, key: &str, own: &Scopes) -> Scopes {
        let rules = self.rules.iter().filter(|rule| rule.is_for(key));
        rules.fold(own.clone(), |all, rule| all.union(&rule.scopes))
    }

    fn is_needed(&self, key: &str, own: &Scopes) -> bool {
        !own.is_empty() || self.rules.iter().any(|rule| rule.is_for(key))
    }
}

impl Catalog {
    /// What each item is known by in rules, and the scopes of its definition.
    fn items(&self) -> impl Iterator<Item = (&str, &Scopes)> {
        let tools = self.tools.iter().map(|t| (&*t.listed.name, &t.scopes));
        let prompts = self.prompts.iter().map(|p| (&*p.listed.name, &p.scopes));
        let resources = self.resources.iter().map(|r| (&*r.listed.uri, &r.scopes));
        let templates = self.templates.iter().map(|t| (&*t.listed.uri_template, &t.scopes));
        tools.chain(prompts).chain(resources).chain(templates)
    }
}

impl Registry {
    /// Asks for those scopes from now on.
    ///
    /// # Errors
    /// The rules that no item has a name for: a protection that protects
    /// nothing is a mistake.
    pub fn protect(&mut self, access: Access) -> Result<(), Vec<String>> {
        let catalog = self.catalog();
        let idle =
            access.rules.iter().filter(|rule| !catalog.items().any(|(key, _)| rule.is_for(key)));
        let star = |rule: &Rule| if rule.prefix { "*" } else { "" };
        let idle: Vec<_> = idle.map(|rule| format!("{}{}", rule.name, star(rule))).collect();
        if !idle.is_empty() {
            return Err(idle);
        }
        self.access = access;
        Ok(())
    }

    /// All scopes that a request of that method for that tool, prompt or URI
    /// needs.
    pub fn required(&self, method: Method, target: Option<&str>) -> Scopes {
        let everything = &self.access.everything;
        let Some(target) = target else { return everything.clone() };
        let own = match method {
            Method::CallTool => self.tool_needs(target),
            Method::GetPrompt => self.prompt_needs(target),
            Method::ReadResource | Method::Subscribe => self.uri_needs(target),
            Method::Complete => self.prompt_needs(target).union(&self.template_needs(target)),
            _ => return everything.clone(),
        };
        everything.union(&own)
    }

    pub(super) fn tool_needs(&self, name: &str) -> Scopes {
        let tool = self.catalog().tools.get(name).cloned();
        tool.map(|tool| self.access.of(name, &tool.scopes)).unwrap_or_default()
    }

    pub(super) fn prompt_needs(&self, name: &str) -> Scopes {
        let prompt = self.catalog().prompts.get(name).cloned();
        prompt.map(|prompt| self.access.of(name, &prompt.scopes)).unwrap_or_default()
    }

    pub(super) fn template_needs(&self, uri_template: &str) -> Scopes {
        let template = self.catalog().templates.get(uri_template).cloned();
        template.map(|t| self.access.of(uri_template, &t.scopes)).unwrap_or_default()
    }

    /// What reading that URI from the server's definition needs: what the
    /// resource does, or else the first template that covers it. A template as
    /// a whole: one URI can be written in many ways, so that a rule for some
    /// of what it covers could be got around.
    pub(super) fn uri_needs(&self, uri: &str) -> Scopes {
        let catalog = self.catalog();
        if let Some(resource) = catalog.resource(uri) {
            return self.access.of(&resource.listed.uri, &resource.scopes);
        }
        let matched = catalog
            .templates
            .iter()
            .find_map(|t| t.body.template.matches(uri).map(|variables| (t, variables)));
        let Some((template, variables)) = matched else { return Scopes::default() };
        let needs = self.access.of(&template.listed.uri_template, &template.scopes);
        // What is read through another URI needs what that does.
        let within = template.body.template.whole_uri().and_then(|name| variables.get(name));
        within.map_or(needs.clone(), |uri| needs.union(&self.uri_needs(uri)))
    }

    /// Refuses what the caller has not the scopes for. Asked wherever something
    /// of the server's is used, so that no way round leads to it.
    pub(super) fn admit(
        &self,
        identity: &Identity,
        needed: impl FnOnce() -> Scopes,
    ) -> Result<(), Fault> {
        if *identity.grant() == Grant::All {
            return Ok(());
        }
        let needed = self.access.everything.union(&needed());
        if identity.allows(&needed) {
            return Ok(());
        }
        let fault =
            Fault::InsufficientScope { required: needed.names().map(str::to_owned).collect() };
        // Whatever led here, it was not the request itself: that was let in.
        audit::refused(identity, &"something within a call", &fault);
        Err(fault)
    }

    /// Whether an item is listed for a caller with that grant.
    pub(super) fn shows<L: Listed, B>(&self, grant: &Grant, item: &Item<L, B>) -> bool {
        match grant {
            Grant::All => true,
            Grant::Scopes(_) => grant.allows(&self.access.of(item.key(), &item.scopes)),
        }
    }

    /// Whether the server's own resource of that URI is listed for a caller
    /// with that grant.
    pub fn shows_resource(&self, grant: &Grant, uri: &str) -> bool {
        // A handler lists what each caller may see.
        self.has_custom_resources()
            || self.catalog().resources.get(uri).is_some_and(|item| self.shows(grant, &**item))
    }

    /// The same for a template.
    pub fn shows_template(&self, grant: &Grant, uri_template: &str) -> bool {
        self.has_custom_resources()
            || self
                .catalog()
                .templates
                .get(uri_template)
                .is_some_and(|item| self.shows(grant, &**item))
    }

    /// Whether what is listed depends on who asks.
    pub fn varies(&self) -> bool {
        let access = &self.access;
        !access.everything.is_empty()
            || self.catalog().items().any(|(key, own)| access.is_needed(key, own))
    }
}

/// Reads the scopes that a definition asks for; what is none is a fault.
pub(super) fn read(item: &str, names: &[String], faults: &mut Vec<String>) -> Scopes {
    Scopes::required(names).unwrap_or_else(|error| {
        faults.push(format!("{item}: {error}"));
        Scopes::default()
    })
}
