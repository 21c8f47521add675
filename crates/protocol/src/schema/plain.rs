//! Schemas of arguments in the subset of JSON Schema that all hosts read: each value has one type,
//! and nothing refers to another place. Some hosts refuse a tool, or all tools of a server, because
//! of a list of types (`["string", "null"]`), `$ref` or `$defs`.

mod union;

use serde_json::{Map, Value, json};

use self::union::union;

/// A keyword of a schema: the form in which the value is listed.
const LISTED: &str = "x-larder-listed";

/// The most subschemas that one schema is read to. References to references multiply.
const MAX_SUBSCHEMAS: usize = 2_000;
/// The most subschemas within each other.
const MAX_DEPTH: usize = 32;

/// Keywords that inform, and restrict nothing.
const ANNOTATIONS: [&str; 9] = [
    "description",
    "title",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "x-mcp-header",
];

/// The list form of the schema of a tool's own arguments, which are read leniently: a member that
/// may be left out is never null, and of alternatives of one type remains the type. A schema that
/// names its dialect by `$schema` is listed as its author has written it.
#[must_use]
pub fn listed_arguments(schema: &Map<String, Value>) -> Map<String, Value> {
    if schema.contains_key("$schema") {
        return schema.clone();
    }
    plain(schema, Tolerance::Lenient).unwrap_or_else(|_| schema.clone())
}

/// The list form of the schema of a tool that reads its arguments itself: it allows the same
/// values. Null disappears where it is the default, because it means there that nothing is given. A
/// schema that refers to itself or to another document keeps its references.
#[must_use]
pub fn listed_as_is(schema: &Map<String, Value>) -> Map<String, Value> {
    plain(schema, Tolerance::Exact)
        .or_else(|Unclear| plain(schema, Tolerance::WithReferences))
        .unwrap_or_else(|_| schema.clone())
}

/// How far a listed schema may differ from its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tolerance {
    /// Null means that nothing is given, and a recursive value is listed as an object.
    Lenient,
    /// Exactly the allowed values stay allowed.
    Exact,
    /// Exactly the allowed values stay allowed, and references stay.
    WithReferences,
}

/// The schema cannot be written without references.
struct Unclear;

fn plain(schema: &Map<String, Value>, reading: Tolerance) -> Result<Map<String, Value>, Unclear> {
    let root = Value::Object(schema.clone());
    let mut writer =
        Writer { root: &root, reading, open: Vec::new(), left: MAX_SUBSCHEMAS, depth: 0 };

    let Value::Object(mut listed) = writer.schema(&root, false)? else { return Err(Unclear) };
    if reading != Tolerance::WithReferences {
        listed.remove("$defs");
        listed.remove("definitions");
    }
    Ok(listed)
}

struct Writer<'a> {
    root: &'a Value,
    reading: Tolerance,
    /// The references that are being followed.
    open: Vec<String>,
    left: usize,
    depth: usize,
}

impl Writer<'_> {
    /// Writes a schema. `is_optional` says whether null may disappear from it.
    fn schema(&mut self, schema: &Value, is_optional: bool) -> Result<Value, Unclear> {
        let members = match schema {
            Value::Bool(true) => return Ok(json!({})),
            Value::Object(members) => members,
            other => return Ok(other.clone()),
        };
        if let Some(listed) = members.get(LISTED) {
            return Ok(with_annotations(listed.clone(), members));
        }
        if self.left == 0 || self.depth > MAX_DEPTH {
            return Err(Unclear);
        }
        self.left -= 1;

        self.depth += 1;
        let written = self.members(members, is_optional);
        self.depth -= 1;
        written
    }

    fn members(
        &mut self,
        members: &Map<String, Value>,
        is_optional: bool,
    ) -> Result<Value, Unclear> {
        if let Some(Value::String(reference)) = members.get("$ref")
            && self.reading != Tolerance::WithReferences
        {
            return self.referenced(reference, members, is_optional);
        }
        let moves_references = ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"];
        if self.reading == Tolerance::Exact
            && moves_references.iter().any(|k| members.contains_key(*k))
        {
            return Err(Unclear);
        }

        let drops_null = match self.reading {
            // Clients send no header for null.
            _ if is_optional && members.contains_key("x-mcp-header") => true,
            Tolerance::Lenient => is_optional,
            Tolerance::Exact | Tolerance::WithReferences => {
                is_optional && members.get("default").is_some_and(Value::is_null)
            }
        };

        let mut written = Map::with_capacity(members.len());
        for (keyword, value) in members {
            let value = self.keyword(keyword, value, members)?;
            written.insert(keyword.clone(), value);
        }

        if drops_null {
            drop_null(&mut written);
        }
        Self::one_type(&mut written);
        self.alternatives(&mut written);
        if self.reading == Tolerance::Lenient {
            name_constant(&mut written);
        }
        Ok(Value::Object(written))
    }

    /// Writes the schemas in a keyword.
    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        siblings: &Map<String, Value>,
    ) -> Result<Value, Unclear> {
        match (keyword, value) {
            ("properties", Value::Object(properties)) => {
                let required = siblings.get("required").and_then(Value::as_array);
                let is_required =
                    |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));

                let mut written = Map::with_capacity(properties.len());
                for (name, property) in properties {
                    let property = self.schema(property, !is_required(name))?;
                    written.insert(name.clone(), property);
                }
                Ok(Value::Object(written))
            }
            ("patternProperties" | "dependentSchemas", Value::Object(schemas)) => {
                self.named(schemas)
            }
            ("$defs" | "definitions", Value::Object(schemas))
                if self.reading == Tolerance::WithReferences =>
            {
                self.named(schemas)
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                let written = schemas.iter().map(|schema| self.schema(schema, false));
                Ok(Value::Array(written.collect::<Result<_, _>>()?))
            }
            // `true` and `false` stay: they say whether further members are allowed.
            (
                "items"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "additionalProperties"
                | "unevaluatedProperties",
                schema,
            ) if schema.is_object() => self.schema(schema, false),
            (_, other) => Ok(other.clone()),
        }
    }

    /// Writes schemas that have names.
    fn named(&mut self, schemas: &Map<String, Value>) -> Result<Value, Unclear> {
        let written =
            schemas.iter().map(|(name, schema)| Ok((name.clone(), self.schema(schema, false)?)));
        Ok(Value::Object(written.collect::<Result<_, _>>()?))
    }

    /// Writes the schema that a reference names in its place.
    fn referenced(
        &mut self,
        reference: &str,
        members: &Map<String, Value>,
        is_optional: bool,
    ) -> Result<Value, Unclear> {
        let Some(target) = target_of(self.root, reference) else { return Err(Unclear) };

        if self.open.iter().any(|open| open == reference) {
            return match self.reading {
                Tolerance::Lenient => Ok(with_annotations(opaque(target), members)),
                Tolerance::Exact | Tolerance::WithReferences => Err(Unclear),
            };
        }

        let target = target.clone();
        self.open.push(reference.to_owned());
        let written = self.schema(&target, is_optional);
        self.open.pop();

        // Definitions of the target are written where they are referred to.
        let Value::Object(mut written) = written? else { return Err(Unclear) };
        written.remove("$defs");
        written.remove("definitions");

        let mut rest = members.clone();
        rest.remove("$ref");
        rest.remove("$defs");
        rest.remove("definitions");
        let restricts = rest.keys().any(|keyword| !ANNOTATIONS.contains(&&**keyword));
        if !restricts {
            return Ok(with_annotations(Value::Object(written), &rest));
        }

        let Value::Object(mut rest) = self.schema(&Value::Object(rest), is_optional)? else {
            return Err(Unclear);
        };
        if written
            .keys()
            .any(|keyword| rest.contains_key(keyword) && !ANNOTATIONS.contains(&&**keyword))
        {
            let parts = [rest.remove("allOf"), Some(json!([written]))];
            let all: Vec<_> = parts
                .into_iter()
                .flatten()
                .flat_map(|part| match part {
                    Value::Array(parts) => parts,
                    other => vec![other],
                })
                .collect();
            rest.insert("allOf".into(), all.into());
        } else {
            for (keyword, value) in written {
                rest.entry(keyword).or_insert(value);
            }
        }
        Ok(Value::Object(rest))
    }

    /// Writes a list of types as one type, or as alternatives of one type each.
    fn one_type(schema: &mut Map<String, Value>) {
        let Some(Value::Array(types)) = schema.get("type") else { return };
        let mut types: Vec<String> =
            types.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if types.iter().any(|name| name == "number") {
            types.retain(|name| name != "integer");
        }

        match types.as_slice() {
            [] => {}
            [only] => {
                let only = only.as_str().into();
                schema.insert("type".into(), only);
            }
            _ if schema.contains_key("anyOf") => {
                // Both must hold, and the alternatives have types of their own.
                let typed = schema.get("anyOf").and_then(Value::as_array);
                if typed.is_some_and(|all| all.iter().all(|each| each.get("type").is_some())) {
                    schema.remove("type");
                }
            }
            names => {
                let mut alternatives: Vec<Value> = Vec::with_capacity(names.len());
                for name in names {
                    alternatives.push(Value::Object(of_type(schema, name)));
                }
                schema.retain(|keyword, _| ANNOTATIONS.contains(&&**keyword));
                schema.insert("anyOf".into(), alternatives.into());
            }
        }
    }

    /// Writes alternatives as one schema, where that is clear.
    fn alternatives(&self, schema: &mut Map<String, Value>) {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(options)) = schema.get(keyword) else { continue };
            let one = match (options.as_slice(), keyword) {
                ([Value::Object(only)], _) if self.reading != Tolerance::WithReferences => {
                    Some(only.clone())
                }
                (_, "anyOf" | "oneOf") if self.reading == Tolerance::Lenient => union(options),
                _ => None,
            };
            let Some(one) = one else { continue };

            let clashes =
                one.keys().any(|key| schema.contains_key(key) && !ANNOTATIONS.contains(&&**key));
            let same_type = || {
                one.iter().all(|(key, value)| {
                    ANNOTATIONS.contains(&&**key) || schema.get(key).is_none_or(|own| own == value)
                })
            };
            if clashes && !same_type() {
                continue;
            }

            schema.remove(keyword);
            for (key, value) in one {
                schema.entry(key).or_insert(value);
            }
        }
    }
}

/// The part of a schema that concerns values of a type.
fn of_type(schema: &Map<String, Value>, name: &str) -> Map<String, Value> {
    let concerns = |keyword: &str| match keyword {
        "type" => false,
        "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding"
        | "contentMediaType" => name == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(name, "number" | "integer")
        }
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => {
            name == "array"
        }
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties" => name == "object",
        other => !ANNOTATIONS.contains(&other),
    };

    let mut part = Map::new();
    part.insert("type".into(), name.into());
    for (keyword, value) in schema.iter().filter(|(keyword, _)| concerns(keyword)) {
        let value = match (keyword.as_str(), value) {
            ("enum", Value::Array(values)) => {
                values.iter().filter(|value| is_of_type(value, name)).cloned().collect()
            }
            (_, value) => value.clone(),
        };
        part.insert(keyword.clone(), value);
    }
    if name == "null" {
        part.remove("enum");
    }
    part
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && !number.is_f64()),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// Removes null from the values of a member that may be left out.
fn drop_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type")
        && types.iter().any(|name| name != "null")
    {
        types.retain(|name| name != "null");
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && values.iter().any(|value| !value.is_null())
    {
        values.retain(|value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(options)) = schema.get_mut(keyword)
            && options.iter().any(|option| !is_null(option))
        {
            options.retain(|option| !is_null(option));
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

/// Whether only null fits the schema.
fn is_null(schema: &Value) -> bool {
    let has = |keyword: &str, wanted: &Value| schema.get(keyword) == Some(wanted);
    has("type", &json!("null")) || has("const", &Value::Null) || has("enum", &json!([null]))
}

/// Writes `const` as a list of one value, with its type.
fn name_constant(schema: &mut Map<String, Value>) {
    let Some(value) = schema.remove("const") else { return };
    let name = ["string", "integer", "number", "boolean", "array", "object", "null"]
        .into_iter()
        .find(|name| is_of_type(&value, name));
    if let Some(name) = name {
        schema.entry("type").or_insert_with(|| name.into());
    }
    schema.insert("enum".into(), json!([value]));
}

/// A value of a recursive type, whose members the list does not repeat.
fn opaque(target: &Value) -> Value {
    let mut opaque = Map::new();
    if let Some(Value::String(name)) = target.get("type") {
        opaque.insert("type".into(), name.as_str().into());
        if name == "array" {
            opaque.insert("items".into(), json!({}));
        }
    }
    opaque.extend(target.get("description").map(|text| ("description".into(), text.clone())));
    Value::Object(opaque)
}

/// The schema with the annotations of another one, which win.
fn with_annotations(mut schema: Value, other: &Map<String, Value>) -> Value {
    if let Value::Object(members) = &mut schema {
        for keyword in ANNOTATIONS {
            if let Some(value) = other.get(keyword) {
                members.insert(keyword.to_owned(), value.clone());
            }
        }
    }
    schema
}

/// The schema that a reference within its document names. `None` for one to elsewhere.
#[must_use]
pub fn target_of<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&percent_decoded(reference.strip_prefix('#')?)?)
}

/// A fragment of a URI as a JSON Pointer (RFC 6901, section 6).
fn percent_decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
