//! [`Policy`]: who may log in, and with which scopes.

use super::Person;
use crate::auth::Scopes;

/// Who may log in, and which scopes they may have.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Who may log in: any entry that fits lets a user in. Nobody, if it is empty.
    pub allow: Allow,
    /// The scopes, with the rules for who may have each.
    pub grants: Vec<(String, Vec<Rule>)>,
}

/// Who may log in; the entries are alternatives.
#[derive(Debug, Clone, Default)]
pub struct Allow {
    /// Domains of verified email addresses.
    pub domains: Vec<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// Verified email addresses.
    pub emails: Vec<String>,
}

/// Who a rule of `grants` is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Everybody who may log in.
    Everybody,
    /// The members of a group.
    Group(String),
    /// The user of a verified email address.
    Email(String),
    /// The users of a domain of verified email addresses.
    Domain(String),
}

impl Policy {
    /// The scopes that a user may have; `None` if they may not log in.
    pub fn scopes(&self, person: &Person) -> Option<Scopes> {
        let is_allowed = self.allow.domains.iter().any(|domain| is_in_domain(person, domain))
            || self.allow.groups.iter().any(|group| person.groups.contains(group))
            || self.allow.emails.iter().any(|email| has_email(person, email));
        if !is_allowed {
            return None;
        }
        let granted = self.grants.iter().filter(|(_, rules)| rules.iter().any(|r| r.fits(person)));
        let names: Vec<&str> = granted.map(|(scope, _)| scope.as_str()).collect();
        Some(Scopes::granted(&names.join(" ")))
    }
}

impl Rule {
    fn fits(&self, person: &Person) -> bool {
        match self {
            Self::Everybody => true,
            Self::Group(group) => person.groups.contains(group),
            Self::Email(email) => has_email(person, email),
            Self::Domain(domain) => is_in_domain(person, domain),
        }
    }
}

fn verified_email(person: &Person) -> Option<&str> {
    person.email.as_deref().filter(|_| person.email_verified)
}

fn has_email(person: &Person, email: &str) -> bool {
    verified_email(person).is_some_and(|theirs| theirs.eq_ignore_ascii_case(email))
}

fn is_in_domain(person: &Person, domain: &str) -> bool {
    let theirs = verified_email(person).and_then(|email| email.rsplit_once('@'));
    theirs.is_some_and(|(_, theirs)| theirs.eq_ignore_ascii_case(domain))
}
