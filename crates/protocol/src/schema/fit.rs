//! Arguments as hosts send them, changed into what a schema expects, where that is clear: null for
//! what is not given, `2.0` for an integer, and numbers, booleans and JSON as text.

use std::cell::Cell;

use serde_json::{Map, Number, Value};

use super::target_of;
use crate::count_values;

/// The most references that are followed to one schema.
const MAX_DEPTH: usize = 16;
/// The most alternatives of one value that are read.
const MAX_ALTERNATIVES: usize = 64;
/// The most values in the texts of one call that are parsed: each takes far more memory than its
/// few bytes.
const MAX_PARSED: usize = 100_000;

/// Changes arguments into what the schema expects. Values that do not fit stay, and fail
/// validation.
pub(super) fn fit(schema: &Map<String, Value>, arguments: &mut Value) {
    let root = Value::Object(schema.clone());
    let left = Cell::new(MAX_PARSED);
    ExpectedTypes::of(&root, &left, [&root]).fit(arguments);
}

/// The types that schemas expect of a value, which may fit any of them.
struct ExpectedTypes<'a> {
    root: &'a Value,
    /// How many values of texts may still be parsed.
    left: &'a Cell<usize>,
    /// The schemas, without those that only refer to others.
    schemas: Vec<&'a Map<String, Value>>,
    types: Types,
}

/// The types of values that are allowed. None of them: the schemas do not say.
#[derive(Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "one for each type")]
struct Types {
    null: bool,
    boolean: bool,
    integer: bool,
    number: bool,
    string: bool,
    array: bool,
    object: bool,
}

impl<'a> ExpectedTypes<'a> {
    fn of(
        root: &'a Value,
        left: &'a Cell<usize>,
        schemas: impl IntoIterator<Item = &'a Value>,
    ) -> Self {
        let mut shape = Self { root, left, schemas: Vec::new(), types: Types::default() };
        let mut says_all = true;
        for schema in schemas {
            says_all &= shape.add(schema, 0);
        }

        if !says_all {
            // Any value fits one of them.
            shape.types = Types::default();
        }
        shape
    }

    /// Adds a schema. Returns whether it says which types it allows.
    fn add(&mut self, schema: &'a Value, depth: usize) -> bool {
        let Some(members) = schema.as_object() else { return false };
        if depth > MAX_DEPTH || self.schemas.len() >= MAX_ALTERNATIVES {
            return false;
        }

        self.schemas.push(members);
        let mut says = self.types.add(members);

        if let Some(reference) = members.get("$ref").and_then(Value::as_str)
            && let Some(target) = target_of(self.root, reference)
        {
            says |= self.add(target, depth + 1);
        }
        for schema in alternatives(members, "allOf") {
            says |= self.add(schema, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut all = alternatives(members, keyword).peekable();
            if all.peek().is_some() {
                let mut each_says = true;
                for schema in all {
                    each_says &= self.add(schema, depth + 1);
                }
                says |= each_says;
            }
        }
        says
    }

    fn fit(&self, value: &mut Value) {
        if let Some(fitting) = self.types.fitting(value, self.left) {
            *value = fitting;
        }

        match value {
            Value::Object(members) => self.fit_members(members),
            Value::Array(items) => self.fit_items(items),
            _ => {}
        }
    }

    fn fit_members(&self, members: &mut Map<String, Value>) {
        let has_members = ["properties", "additionalProperties"];
        if !self.schemas.iter().any(|schema| has_members.iter().any(|k| schema.contains_key(*k))) {
            return;
        }

        for (name, value) in members.iter_mut() {
            let known: Vec<_> = self.property(name).collect();
            if known.is_empty() {
                let others = self.schemas.iter().filter_map(|s| s.get("additionalProperties"));
                let others: Vec<_> = others.filter(|schema| schema.is_object()).collect();
                if !others.is_empty() {
                    Self::of(self.root, self.left, others).fit(value);
                }
            } else {
                Self::of(self.root, self.left, known).fit(value);
            }
        }

        members.retain(|name, value| !value.is_null() || self.may_be_null(name));
    }

    /// Whether null says something as the value of a member: it must be given, or is one of any
    /// name.
    fn may_be_null(&self, name: &str) -> bool {
        let is_closed = |schema: &&Map<String, Value>| {
            schema.get("additionalProperties") == Some(&Value::Bool(false))
        };
        match self.property(name).next() {
            Some(_) => self.schemas.iter().any(|schema| requires(schema, name)),
            None => !self.schemas.iter().any(is_closed),
        }
    }

    fn property(&self, name: &str) -> impl Iterator<Item = &'a Value> {
        self.schemas.iter().filter_map(move |schema| schema.get("properties")?.get(name))
    }

    fn fit_items(&self, items: &mut [Value]) {
        let schemas = self.schemas.iter().filter_map(|schema| schema.get("items"));
        let schemas: Vec<_> = schemas.filter(|schema| schema.is_object()).collect();
        let rest = (!schemas.is_empty()).then(|| Self::of(self.root, self.left, schemas));

        for (index, item) in items.iter_mut().enumerate() {
            let tuples = self.schemas.iter().filter_map(|s| s.get("prefixItems")?.get(index));
            let tuple: Vec<_> = tuples.collect();
            if tuple.is_empty() {
                match &rest {
                    Some(rest) => rest.fit(item),
                    None => return,
                }
            } else {
                Self::of(self.root, self.left, tuple).fit(item);
            }
        }
    }
}

fn alternatives<'a>(
    schema: &'a Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn requires(schema: &Map<String, Value>, name: &str) -> bool {
    alternatives(schema, "required").any(|required| required == name)
}

impl Types {
    /// Adds the types of a schema, without those of schemas in it. Returns whether it has any.
    fn add(&mut self, schema: &Map<String, Value>) -> bool {
        match schema.get("type") {
            Some(Value::String(name)) => self.add_name(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).for_each(|name| self.add_name(name));
            }
            _ => {
                let values = alternatives(schema, "enum").chain(schema.get("const"));
                values.for_each(|value| self.add_value(value));
            }
        }
        ["type", "enum", "const"].iter().any(|keyword| schema.contains_key(*keyword))
    }

    fn add_name(&mut self, name: &str) {
        match name {
            "null" => self.null = true,
            "boolean" => self.boolean = true,
            "integer" => self.integer = true,
            "number" => self.number = true,
            "string" => self.string = true,
            "array" => self.array = true,
            "object" => self.object = true,
            _ => {}
        }
    }

    fn add_value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null = true,
            Value::Bool(_) => self.boolean = true,
            Value::Number(number) if number.is_f64() => self.number = true,
            Value::Number(_) => self.integer = true,
            Value::String(_) => self.string = true,
            Value::Array(_) => self.array = true,
            Value::Object(_) => self.object = true,
        }
    }

    fn is_known(self) -> bool {
        self.null
            || self.boolean
            || self.integer
            || self.number
            || self.string
            || self.array
            || self.object
    }

    /// The value of an allowed type that is clearly meant.
    fn fitting(self, value: &Value, left: &Cell<usize>) -> Option<Value> {
        match value {
            Value::String(text) if self.is_known() && !self.string => self.parsed(text, left),
            Value::Number(number) if number.is_f64() && self.integer && !self.number => {
                whole(number).map(Value::Number)
            }
            // Digits behind the point may have been lost: 1.10 arrives as 1.1.
            Value::Number(number) if self.is_text_alone() && !number.is_f64() => {
                Some(number.to_string().into())
            }
            Value::Bool(flag) if self.is_text_alone() => Some(flag.to_string().into()),
            _ => None,
        }
    }

    fn is_text_alone(self) -> bool {
        let Self { boolean, integer, number, string, array, object, .. } = self;
        string && !(boolean || integer || number || array || object)
    }

    /// The value in a text, if it has an allowed type.
    fn parsed(self, text: &str, left: &Cell<usize>) -> Option<Value> {
        let text = text.trim();
        if self.boolean {
            match text {
                "True" | "TRUE" => return Some(true.into()),
                "False" | "FALSE" => return Some(false.into()),
                _ => {}
            }
        }

        let values = count_values(text.as_bytes(), left.get())?;
        left.set(left.get().checked_sub(values)?);
        let parsed: Value = serde_json::from_str(text).ok()?;
        match &parsed {
            // The member is left out where it may be.
            Value::Null => Some(parsed),
            Value::Bool(_) => self.boolean.then_some(parsed),
            Value::Number(_) if self.number => Some(parsed),
            Value::Number(number) if self.integer => {
                if number.is_f64() {
                    whole(number).map(Value::Number)
                } else {
                    Some(parsed)
                }
            }
            Value::Array(_) => self.array.then_some(parsed),
            Value::Object(_) => self.object.then_some(parsed),
            Value::Number(_) | Value::String(_) => None,
        }
    }
}

/// A whole number that was written with a point or an exponent, unless digits of it are lost.
fn whole(number: &Number) -> Option<Number> {
    /// From here on, neighbours of a float are more than one apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;

    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)?;
    #[allow(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    Some(Number::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fitted(schema: &Value, mut arguments: Value) -> Value {
        let members = schema.as_object().expect("an object");
        fit(members, &mut arguments);
        arguments
    }

    /// The argument `p` after it was fitted to that schema. `None` if it is left out.
    fn argument(property: impl Into<Value>, value: impl Into<Value>) -> Option<Value> {
        let schema = json!({ "type": "object", "properties": { "p": property.into() } });
        fitted(&schema, json!({ "p": value.into() })).get("p").cloned()
    }

    #[test]
    fn what_is_clearly_meant_is_taken() {
        let int = json!({ "type": "integer" });
        let flag = json!({ "type": "boolean" });
        let list = json!({ "type": "array", "items": { "type": "integer" } });

        for (property, sent, taken) in [
            (&int, json!(2.0), json!(2)),
            (&int, json!(-0.0), json!(0)),
            (&int, json!(1e3), json!(1000)),
            (&int, json!("5"), json!(5)),
            (&int, json!(" 5.0 "), json!(5)),
            (&json!({ "type": ["integer", "null"] }), json!(2.0), json!(2)),
            (&json!({ "type": "number" }), json!("2.5"), json!(2.5)),
            (&json!({ "type": "number" }), json!(2.0), json!(2.0)),
            (&flag, json!("true"), json!(true)),
            (&flag, json!("False"), json!(false)),
            (&list, json!("[1, 2.0]"), json!([1, 2])),
            (&list, json!(["1", 2.0]), json!([1, 2])),
            (&json!({ "type": "object" }), json!("{\"a\":1}"), json!({ "a": 1 })),
            (&json!({ "type": "string" }), json!(404), json!("404")),
            (&json!({ "type": "string" }), json!(true), json!("true")),
            (&json!({ "enum": [1, 2] }), json!("1"), json!(1)),
            (
                &json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
                json!("7"),
                json!(7),
            ),
        ] {
            assert_eq!(argument(property.clone(), sent.clone()), Some(taken), "{property} {sent}");
        }
    }

    #[test]
    fn what_may_mean_something_else_stays() {
        for (property, sent) in [
            (json!({ "type": "integer" }), json!(2.5)),
            (json!({ "type": "integer" }), json!(1e300)),
            (json!({ "type": "integer" }), json!("2.5")),
            (json!({ "type": "integer" }), json!("five")),
            (json!({ "type": "integer" }), json!(true)),
            (json!({ "type": "boolean" }), json!("yes")),
            (json!({ "type": "boolean" }), json!(1)),
            (json!({ "type": "string" }), json!("5")),
            (json!({ "type": "string" }), json!(1.1)),
            (json!({ "type": "string" }), json!({ "a": 1 })),
            (json!({ "type": ["string", "integer"] }), json!("5")),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] }), json!("{}")),
            (json!({ "anyOf": [{}, { "type": "integer" }] }), json!("5")),
            (json!({}), json!("5")),
            (json!({ "type": "array" }), json!("{}")),
        ] {
            assert_eq!(argument(property.clone(), sent.clone()), Some(sent), "{property}");
        }
    }

    #[test]
    fn null_is_not_given_wherever_a_member_may_be_left_out() {
        let inner = json!({
            "type": "object",
            "properties": { "a": { "type": "integer" }, "must": { "type": ["integer", "null"] } },
            "required": ["must"],
        });
        let schema = json!({
            "type": "object",
            "properties": {
                "plain": { "type": "string" }, "any": {}, "nullable": { "type": ["string", "null"] },
                "needed": { "type": "string" },
                "inner": { "$ref": "#/$defs/inner" },
                "list": { "type": "array", "items": { "$ref": "#/$defs/inner" } },
                "free": { "type": "object" },
                "map": { "type": "object", "additionalProperties": { "type": ["integer", "null"] } },
                "text": { "type": "integer" },
            },
            "required": ["needed"],
            "$defs": { "inner": inner },
        });
        let sent = json!({
            "plain": null, "any": null, "nullable": null, "needed": null, "unknown": null, "text": "null",
            "inner": { "a": null, "must": null },
            "list": [{ "a": null, "must": 1.0 }, null],
            "free": { "a": null },
            "map": { "a": null, "b": 2.0 },
        });

        assert_eq!(
            fitted(&schema, sent),
            json!({
                "needed": null, "unknown": null,
                "inner": { "must": null },
                "list": [{ "must": 1 }, null],
                "free": { "a": null },
                "map": { "a": null, "b": 2 },
            })
        );
    }
}
