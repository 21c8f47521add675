//! The scopes that the configuration requires for items.

use larder_oauth::Scopes;

/// Scopes that the configuration requires in addition to the scopes of the
/// definition.
///
/// ```
/// use larder_oauth::Scopes;
/// use larder_server::registry::ScopeRules;
///
/// let scopes = |name| Scopes::required([name]).unwrap();
/// // Every request needs mcp:read. Rules match tools and prompts by name, and
/// // resources and templates by URI; a * at the end matches any suffix.
/// let rules = ScopeRules::new(scopes("mcp:read"))
///     .rule("delete_resource", scopes("mcp:write"))
///     .rule("admin_*", scopes("mcp:admin"))
///     .rule("docs://internal/*", scopes("mcp:staff"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScopeRules {
    everything: Scopes,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    key: String,
    is_prefix: bool,
    scopes: Scopes,
}

impl Rule {
    fn matches(&self, key: &str) -> bool {
        if self.is_prefix { key.starts_with(&self.key) } else { key == self.key }
    }

    fn pattern(&self) -> String {
        format!("{}{}", self.key, if self.is_prefix { "*" } else { "" })
    }
}

impl ScopeRules {
    /// Rules that require these scopes for every request.
    pub fn new(everything: Scopes) -> Self {
        Self { everything, rules: Vec::new() }
    }

    /// Requires these scopes for items whose key is the pattern. With a `*` at
    /// its end, the pattern is a prefix.
    #[must_use]
    pub fn rule(mut self, pattern: &str, scopes: Scopes) -> Self {
        let prefix = pattern.strip_suffix('*');
        let key = prefix.unwrap_or(pattern).to_owned();
        self.rules.push(Rule { key, is_prefix: prefix.is_some(), scopes });
        self
    }

    /// The scopes that every request needs.
    pub(super) fn for_everything(&self) -> &Scopes {
        &self.everything
    }

    /// The scopes that an item needs in addition: the scopes of its definition
    /// (`own`) and of the rules that match its key.
    pub(super) fn for_item(&self, key: &str, own: &Scopes) -> Scopes {
        let rules = self.rules.iter().filter(|rule| rule.matches(key));
        rules.fold(own.clone(), |all, rule| all.union(&rule.scopes))
    }

    /// Whether that item needs more scopes than every request does.
    pub(super) fn restricts(&self, key: &str, own: &Scopes) -> bool {
        !own.is_empty() || self.rules.iter().any(|rule| rule.matches(key))
    }

    /// The patterns that match none of the keys.
    pub(super) fn unmatched(&self, keys: &[&str]) -> Vec<String> {
        let unmatched = self.rules.iter().filter(|rule| !keys.iter().any(|key| rule.matches(key)));
        unmatched.map(Rule::pattern).collect()
    }
}

/// Parses the scopes of a definition, and reports an invalid name.
pub(super) fn parse(item: &str, names: &[String], problems: &mut Vec<String>) -> Scopes {
    Scopes::required(names).unwrap_or_else(|error| {
        problems.push(format!("{item}: {error}"));
        Scopes::default()
    })
}
