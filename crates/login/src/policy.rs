//! [`Policy`]: who may log in, and with which scopes.

use std::str::FromStr;

use larder_oauth::Scopes;
use larder_protocol::quote::quoted;

use super::Person;

/// The rules of who may log in, and with which scopes.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The people who may log in: any entry that fits lets a user in. Nobody, if it is empty.
    pub allow: Allow,
    /// The scopes, with the rules for who may have each.
    pub grants: Vec<(String, Vec<Rule>)>,
}

/// The people who may log in; the entries are alternatives.
#[derive(Debug, Clone, Default)]
pub struct Allow {
    /// Domains of verified email addresses.
    pub domains: Vec<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// Verified email addresses.
    pub emails: Vec<String>,
}

/// The people that a rule of `grants` is about.
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

impl Allow {
    /// Checks what the types do not guarantee.
    ///
    /// # Errors
    /// The list, and what is wrong with an entry.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        type Check = fn(&str) -> Result<(), &'static str>;
        let lists: [(_, _, Check); 3] = [
            ("domains", &self.domains, check_domain),
            ("groups", &self.groups, check_group),
            ("emails", &self.emails, check_email),
        ];

        for (list, entries, check) in lists {
            for entry in entries {
                check(entry).map_err(|problem| (list, format!("{}: {problem}", quoted(entry))))?;
            }
        }

        Ok(())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = |problem: &str| format!("{}: {problem}", quoted(text));
        let (rule, check) = match text.split_once(':') {
            None if text == "*" => return Ok(Self::Everybody),
            Some(("group", group)) => (Self::Group(group.to_owned()), check_group(group)),
            Some(("email", email)) => (Self::Email(email.to_owned()), check_email(email)),
            Some(("domain", domain)) => (Self::Domain(domain.to_owned()), check_domain(domain)),
            _ => return Err(problem("it must be *, group:NAME, email:ADDRESS or domain:NAME")),
        };

        check.map(|()| rule).map_err(problem)
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

fn check_domain(domain: &str) -> Result<(), &'static str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if domain.is_empty() || !domain.chars().all(is_name) || domain.starts_with('.') {
        return Err("it must be a domain such as example.com");
    }
    Ok(())
}

fn check_group(group: &str) -> Result<(), &'static str> {
    if group.trim() != group || group.is_empty() { Err("it must be a group") } else { Ok(()) }
}

fn check_email(email: &str) -> Result<(), &'static str> {
    match email.rsplit_once('@') {
        Some((name, domain)) if !name.is_empty() => check_domain(domain),
        _ => Err("it must be an email address"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn person() -> impl Strategy<Value = Person> {
        let email = prop::option::of("[aB]@(x|X|y)\\.example");
        let groups = prop::collection::vec("(g|h|G|acme/g)", 0..3);

        (email, any::<bool>(), groups).prop_map(|(email, email_verified, groups)| Person {
            issuer: "https://idp.example".into(),
            subject: "s".into(),
            email,
            email_verified,
            name: Some("ceo@x.example".into()),
            groups,
            organization: Some("x.example".into()),
        })
    }

    fn allow() -> impl Strategy<Value = Allow> {
        let list = |entry| prop::collection::vec(entry, 0..2);
        (list("(x|Y)\\.example"), list("(g|acme/g|acme)"), list("(a|b)@x\\.example"))
            .prop_map(|(domains, groups, emails)| Allow { domains, groups, emails })
    }

    fn policy(allow: Allow, grants: &[(&str, &[&str])]) -> Policy {
        let rules = |rules: &[&str]| rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let grants = grants.iter().map(|(scope, list)| ((*scope).to_owned(), rules(list)));
        Policy { allow, grants: grants.collect() }
    }

    const GRANTS: &[(&str, &[&str])] = &[
        ("all", &["*"]),
        ("group", &["group:acme/g", "group:h"]),
        ("email", &["email:A@X.example"]),
        ("domain", &["domain:Y.example"]),
        ("nobody", &[]),
    ];

    proptest! {
        #[test]
        fn any_list_lets_a_user_in_and_no_other_reason_does(person in person(), allow in allow()) {
            let alone = |change: fn(&mut Allow)| {
                let mut allow = allow.clone();
                change(&mut allow);
                policy(allow, GRANTS).scopes(&person).is_some()
            };

            let domains = alone(|a| { a.groups.clear(); a.emails.clear(); });
            let groups = alone(|a| { a.domains.clear(); a.emails.clear(); });
            let emails = alone(|a| { a.domains.clear(); a.groups.clear(); });

            prop_assert_eq!(alone(|_| {}), domains || groups || emails);
            prop_assert!(policy(Allow::default(), GRANTS).scopes(&person).is_none());
            prop_assert_eq!(groups, allow.groups.iter().any(|g| person.groups.contains(g)));

            if !person.email_verified || person.email.is_none() {
                prop_assert!(!domains && !emails);
            }
        }

        #[test]
        fn addresses_are_compared_without_case(person in person(), allow in allow()) {
            let mut other = person.clone();
            other.email = other.email.map(|email| email.to_ascii_uppercase());
            let policy = policy(allow, GRANTS);

            prop_assert_eq!(policy.scopes(&person), policy.scopes(&other));
        }

        #[test]
        fn each_scope_goes_to_whom_its_rules_name(person in person()) {
            let mut groups = person.groups.clone();
            groups.push("here".into());
            let person = Person { groups, ..person };
            let allow = Allow { groups: vec!["here".into()], ..Allow::default() };

            let scopes = policy(allow, GRANTS).scopes(&person).unwrap();
            let has = |name: &str| scopes.names().any(|scope| scope == name);
            let email = person.email.clone().unwrap_or_default().to_lowercase();

            prop_assert!(has("all") && !has("nobody"));
            let in_group = person.groups.iter().any(|g| g == "acme/g" || g == "h");
            prop_assert_eq!(has("group"), in_group);
            prop_assert_eq!(has("email"), person.email_verified && email == "a@x.example");
            prop_assert_eq!(has("domain"), person.email_verified && email.ends_with("@y.example"));
        }

        #[test]
        fn any_rule_is_read_or_refused(text in "(group|email|domain|[a-z*]{0,3}):?[a-z@.* ]{0,9}") {
            if let Ok(rule) = text.parse::<Rule>() {
                let (kind, value) = match &rule {
                    Rule::Everybody => ("*", None),
                    Rule::Group(group) => ("group:", Some(group)),
                    Rule::Email(email) => ("email:", Some(email)),
                    Rule::Domain(domain) => ("domain:", Some(domain)),
                };

                prop_assert_eq!(text, format!("{kind}{}", value.cloned().unwrap_or_default()));
            }
        }
    }

    #[test]
    fn a_domain_is_no_ending() {
        let allow = Allow { domains: vec!["example.com".into()], ..Allow::default() };
        let policy = policy(allow, &[]);

        let is_in = |email: &str| {
            let person = Person {
                issuer: String::new(),
                subject: "s".into(),
                email: Some(email.into()),
                email_verified: true,
                name: None,
                groups: vec!["example.com".into()],
                organization: Some("example.com".into()),
            };
            policy.scopes(&person).is_some()
        };

        assert!(is_in("a@example.com") && is_in("a@EXAMPLE.com"));
        for other in ["a@evilexample.com", "a@b.example.com", "a@example.com.evil", "example.com"] {
            assert!(!is_in(other), "{other}");
        }
        assert!(!is_in("a@example.com@evil.example"));
    }

    #[test]
    fn settings_that_fit_nobody_are_refused() {
        for bad in
            ["", "everybody", "group:", "email:a", "email:@x", "domain:@x", "domain:", "Group:a"]
        {
            assert!(bad.parse::<Rule>().is_err(), "{bad}");
        }

        let allow = |list: &str, entry: &str| {
            let entries = vec![entry.to_owned()];
            let mut allow = Allow::default();
            *match list {
                "domains" => &mut allow.domains,
                "groups" => &mut allow.groups,
                _ => &mut allow.emails,
            } = entries;
            allow.check()
        };

        assert_eq!(allow("domains", "@example.com").unwrap_err().0, "domains");
        assert_eq!(allow("groups", " ").unwrap_err().0, "groups");
        assert_eq!(allow("emails", "example.com").unwrap_err().0, "emails");
        assert!(allow("domains", "example.com").is_ok());
        assert!(allow("groups", "acme/core team").is_ok());
    }
}
