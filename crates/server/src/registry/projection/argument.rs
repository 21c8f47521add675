//! The reserved argument as callers write it.

use larder_protocol::{exact, quote::quoted};
use serde_json::{Value, json};

use super::{Form, Projection, RESERVED};

/// The most records or lines that `head` gives.
const MAX_HEAD: u64 = 10_000;
/// The most pages of a list.
const MAX_PAGES: u64 = 100;
/// The most fields.
const MAX_FIELDS: usize = 100;
/// The members of the argument, for errors.
const FORMS: &str = "give one of jq, sql, search, fields and head (into stores the answer of jq, sql or fields), or whole: true; each calls for several arguments, pages for several pages";

/// Numbers that the calls of `each` would not get as they are written.
const INEXACT: &str = "each has numbers that would change, such as 1.10 or 12345678901234567890123: give them as texts";

impl Projection {
    /// Reads the argument. `None` if it wants nothing: hosts that fill in what a schema lists send
    /// `{}`, or members that are null, for a model that has given none.
    ///
    /// # Errors
    /// The fault, for the model.
    pub(in crate::registry) fn read(value: Value) -> Result<Option<Self>, String> {
        let wrong = |problem: &str| format!("{RESERVED}: {problem}: {FORMS}.");
        let is_inexact = value.as_str().is_some_and(|text| !exact::keeps_numbers(text.as_bytes()));
        let value = match value {
            // Some hosts pass objects as text.
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|_| wrong("it is an object, such as {\"jq\": \".items[].name\"}"))?,
            value => value,
        };

        let mut members = match value {
            Value::Null => return Ok(None),
            Value::Object(members) => members,
            _ => return Err(wrong("it is an object, such as {\"jq\": \".items[].name\"}")),
        };
        // Some hosts send null for what is not given.
        members.retain(|_, value| !value.is_null());

        let is_whole = match members.shift_remove("whole") {
            None | Some(Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(_) => return Err(wrong("whole is true or false")),
        };
        let into = into(members.shift_remove("into")).map_err(|problem| wrong(&problem))?;
        let each = each(members.shift_remove("each")).map_err(|problem| wrong(&problem))?;
        let pages = pages(members.shift_remove("pages")).map_err(|problem| wrong(&problem))?;
        if each.is_some() && pages.is_some() {
            return Err(wrong("it has each and pages"));
        }
        if is_inexact && each.is_some() {
            return Err(wrong(INEXACT));
        }
        let repeats = each.is_some() || pages.is_some();

        let mut forms = members.into_iter().map(|(name, value)| form(&name, value));
        let form = forms.next().transpose().map_err(|problem| wrong(&problem))?;
        if let Some(other) = forms.next() {
            other.map_err(|problem| wrong(&problem))?;
            return Err(wrong("it has several of them"));
        }

        let stores = matches!(form, Some(Form::Jq(_) | Form::Sql(_) | Form::Fields(_)));
        match (form, is_whole) {
            (Some(_), true) => Err(wrong("whole is the whole result, without a projection")),
            (_, true) if into.is_some() => Err(wrong("the whole result is stored anyway")),
            (_, _) if into.is_some() && !stores => Err(wrong("into has no answer to store")),
            (Some(form), false) => Ok(Some(Self { form, into, each, pages, is_default: false })),
            (None, _) if repeats => {
                let form = Form::Whole;
                Ok(Some(Self { form, into: None, each, pages, is_default: false }))
            }
            (None, true) => Ok(Some(Self {
                form: Form::Whole,
                into: None,
                each: None,
                pages: None,
                is_default: false,
            })),
            (None, false) => Ok(None),
        }
    }
}

/// The arguments of several calls.
fn each(value: Option<Value>) -> Result<Option<Value>, String> {
    let wrong =
        "each is a list of arguments, such as [{\"id\": 1}, {\"id\": 2}], or the URI of records";
    let value = match value {
        None => return Ok(None),
        // Some hosts pass lists as text.
        Some(Value::String(text)) if text.trim_start().starts_with('[') => {
            if !exact::keeps_numbers(text.as_bytes()) {
                return Err(INEXACT.to_owned());
            }
            serde_json::from_str(&text).map_err(|_| wrong.to_owned())?
        }
        Some(value) => value,
    };

    match &value {
        Value::Array(inputs) if inputs.is_empty() => Err("each is empty".to_owned()),
        Value::Array(inputs) if !inputs.iter().all(Value::is_object) => Err(wrong.to_owned()),
        Value::Array(_) | Value::String(_) => Ok(Some(value)),
        _ => Err(wrong.to_owned()),
    }
}

/// The most pages of a list.
fn pages(value: Option<Value>) -> Result<Option<u64>, String> {
    let Some(value) = value else { return Ok(None) };
    let pages = count(&value).filter(|pages| (1..=MAX_PAGES).contains(pages));
    pages.map(Some).ok_or_else(|| format!("pages is a number from 1 to {MAX_PAGES}"))
}

/// The place where the answer is stored.
fn into(value: Option<Value>) -> Result<Option<Value>, String> {
    match value {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(json!({}))),
        Some(Value::String(uri)) => Ok(Some(json!({ "uri": uri }))),
        Some(Value::Object(into)) => Ok(Some(Value::Object(into))),
        Some(_) => Err("into is an object {uri?, name?, ttl?, format?}".to_owned()),
    }
}

fn form(name: &str, value: Value) -> Result<Form, String> {
    match (name, value) {
        ("jq", Value::String(filter)) if !filter.trim().is_empty() => Ok(Form::Jq(filter)),
        ("sql", Value::String(sql)) if !sql.trim().is_empty() => Ok(Form::Sql(sql)),
        ("search", Value::String(pattern)) if !pattern.is_empty() => Ok(Form::Search(pattern)),
        ("jq" | "sql" | "search", _) => Err(format!("{name} is a text")),
        ("fields", value) => fields(value).map(Form::Fields),
        ("head", value) => match count(&value).filter(|n| (1..=MAX_HEAD).contains(n)) {
            Some(records) => Ok(Form::Head(records)),
            None => Err(format!("head is a number from 1 to {MAX_HEAD}")),
        },
        (name, _) => Err(format!("there is no {}", quoted(name))),
    }
}

/// The names of members, as a list or separated by commas.
fn fields(value: Value) -> Result<Vec<String>, String> {
    let wrong = || "fields is a list of names, such as [\"id\", \"user.name\"]".to_owned();
    let names: Vec<String> = match value {
        Value::String(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        Value::Array(names) => {
            let names = names.into_iter().map(|name| match name {
                Value::String(name) => Ok(name),
                _ => Err(wrong()),
            });
            names.collect::<Result<_, _>>()?
        }
        _ => return Err(wrong()),
    };

    let is_wrong = names.is_empty() || names.iter().any(String::is_empty);
    if is_wrong || names.len() > MAX_FIELDS { Err(wrong()) } else { Ok(names) }
}

/// A whole number, as hosts send it.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let number = number.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e9).contains(n))?;
            format!("{number:.0}").parse().ok()
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_argument_is_read_as_hosts_send_it() {
        let own = |form| {
            Some(Projection { form, into: None, each: None, pages: None, is_default: false })
        };
        let fields = || own(Form::Fields(vec!["id".into(), "user.name".into()]));

        for (given, wanted) in [
            (json!({ "jq": ".a" }), own(Form::Jq(".a".into()))),
            (json!("{\"jq\": \".a\"}"), own(Form::Jq(".a".into()))),
            (json!({ "jq": ".a", "sql": null, "whole": false }), own(Form::Jq(".a".into()))),
            (json!({ "sql": "SELECT 1" }), own(Form::Sql("SELECT 1".into()))),
            (json!({ "search": " " }), own(Form::Search(" ".into()))),
            (json!({ "fields": ["id", "user.name"] }), fields()),
            (json!({ "fields": "id, user.name" }), fields()),
            (json!({ "head": 3 }), own(Form::Head(3))),
            (json!({ "head": 3.0 }), own(Form::Head(3))),
            (json!({ "head": "3" }), own(Form::Head(3))),
            (json!({ "whole": true }), own(Form::Whole)),
            (json!({}), None),
            (json!({ "into": null }), None),
            (Value::Null, None),
        ] {
            assert_eq!(Projection::read(given.clone()), Ok(wanted), "{given}");
        }

        let stored = Projection::read(json!({ "jq": ".", "into": "x:1" })).unwrap().unwrap();
        assert_eq!(stored.into, Some(json!({ "uri": "x:1" })));
    }

    #[test]
    fn another_argument_is_an_error_that_names_the_forms() {
        for given in [
            json!("."),
            json!(7),
            json!([]),
            json!({ "jq": "." , "sql": "SELECT 1" }),
            json!({ "jq": "" }),
            json!({ "jq": 1 }),
            json!({ "filter": "." }),
            json!({ "head": 0 }),
            json!({ "head": -1 }),
            json!({ "head": 1.5 }),
            json!({ "head": 1e300 }),
            json!({ "fields": [] }),
            json!({ "fields": [1] }),
            json!({ "fields": "a,,b" }),
            json!({ "whole": "yes" }),
            json!({ "whole": true, "jq": "." }),
            json!({ "into": {} }),
            json!({ "head": 1, "into": {} }),
            json!({ "jq": ".", "into": 7 }),
            json!({ "each": "[{\"price\": 1.10}]" }),
            json!("{\"each\": [{\"id\": 12345678901234567890123}]}"),
        ] {
            let problem = Projection::read(given.clone()).unwrap_err();
            assert!(problem.starts_with("_larder: ") && problem.contains(FORMS), "{problem}");
        }
    }
}
