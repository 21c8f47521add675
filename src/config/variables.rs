//! Settings of the environment, put into what was read from the file.

use std::{collections::HashMap, ops::Range};

use toml::{
    Spanned,
    de::{DeArray, DeString, DeTable, DeValue, Error},
};

use super::environment::is_setting;

const PREFIX: &str = "LARDER_";
/// Stands between a section and its setting.
const SEPARATOR: &str = "__";

/// The settings whose values are lists. In a variable, commas separate their items.
const LISTS: [&str; 8] = [
    "server.allowed_hosts",
    "server.allowed_origins",
    "server.trusted_proxies",
    "auth.required_scopes",
    "auth.login.scopes",
    "auth.login.allow.domains",
    "auth.login.allow.groups",
    "auth.login.allow.emails",
];

/// The environment variables that are settings. Each gets a position behind the end of the file,
/// by which an error says whose value is wrong.
pub(super) struct Variables {
    variables: Vec<Variable>,
    file_length: usize,
}

/// One setting in the environment.
pub(super) struct Variable {
    name: String,
    path: Vec<String>,
    value: String,
    /// The error of reading the value as a boolean or a number.
    error_as_scalar: Option<Error>,
}

impl Variables {
    /// The settings in the environment, without those whose value is empty.
    pub(super) fn of(environment: HashMap<String, String>, file_length: usize) -> Self {
        let variables = environment.into_iter().filter_map(|(name, value)| {
            let path = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
            (!value.is_empty() && is_setting(&name, &value)).then(|| Variable {
                path: path.split(SEPARATOR).map(str::to_owned).collect(),
                name,
                value,
                error_as_scalar: None,
            })
        });

        let mut variables: Vec<_> = variables.collect();
        variables.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Self { variables, file_length }
    }

    /// Puts each into its section, in place of what the file has.
    pub(super) fn put_into<'a>(&'a self, settings: &mut DeTable<'a>) {
        for (index, variable) in self.variables.iter().enumerate() {
            let position = self.file_length + index;
            variable.put_into(settings, position..position + 1);
        }
    }

    /// The variable that has this position.
    pub(super) fn at(&mut self, position: usize) -> Option<&mut Variable> {
        self.variables.get_mut(position.checked_sub(self.file_length)?)
    }
}

impl Variable {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Takes the value as text from now on, if it was not: `007` may be a number or a password, and
    /// only the type of the setting tells which.
    ///
    /// # Errors
    /// The first error, if it is text already.
    pub(super) fn read_as_text(&mut self, error: Error) -> Result<(), Error> {
        match self.error_as_scalar.take() {
            Some(first) => Err(first),
            None if self.scalar().is_none() => Err(error),
            None => {
                self.error_as_scalar = Some(error);
                Ok(())
            }
        }
    }

    /// The value if it looks like a boolean or a number.
    fn scalar(&self) -> Option<DeValue<'_>> {
        if let Ok(boolean) = self.value.to_ascii_lowercase().parse() {
            return Some(DeValue::Boolean(boolean));
        }
        let value = DeValue::parse(&self.value).ok()?.into_inner();
        (value.is_integer() || value.is_float()).then_some(value)
    }

    fn read(&self, span: &Range<usize>) -> DeValue<'_> {
        if LISTS.contains(&&*self.path.join(".")) {
            let items = self.value.split(',').map(|item| DeValue::String(DeString::Borrowed(item)));
            let mut list = DeArray::new();
            items.for_each(|item| list.push(Spanned::new(span.clone(), item)));
            return DeValue::Array(list);
        }

        let scalar = if self.error_as_scalar.is_none() { self.scalar() } else { None };
        scalar.unwrap_or(DeValue::String(DeString::Borrowed(&self.value)))
    }

    fn put_into<'a>(&'a self, settings: &mut DeTable<'a>, span: Range<usize>) {
        let Some((name, sections)) = self.path.split_last() else { return };
        let mut table = settings;

        for section in sections {
            let entry = table
                .entry(Spanned::new(span.clone(), DeString::Borrowed(section)))
                .or_insert_with(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
            if !entry.get_ref().is_table() {
                *entry = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
            }
            let DeValue::Table(inner) = entry.get_mut() else { return };
            table = inner;
        }

        let key = Spanned::new(span.clone(), DeString::Borrowed(name));
        // A key of the file keeps its position in the file, so it is removed first.
        table.remove(&key);
        table.insert(key, Spanned::new(span.clone(), self.read(&span)));
    }
}
