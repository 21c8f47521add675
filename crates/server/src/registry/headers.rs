//! Arguments that clients mirror into `Mcp-Param-*` headers
//! (2026-07-28, tools: x-mcp-header).

use rmcp::model::JsonObject;
use serde_json::Value;

const KEY: &str = "x-mcp-header";

/// An argument that clients mirror into a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParameter {
    /// The header's full name, in lower case.
    pub header: String,
    path: Vec<String>,
}

impl HeaderParameter {
    /// Whether the argument is at that path or contains it.
    pub(super) fn is_at(&self, path: &[String]) -> bool {
        self.path.starts_with(path) || path.starts_with(&self.path)
    }

    /// The argument's value in a call. `None` if it is missing or null.
    pub fn value<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        let value = self.path.iter().try_fold(arguments, |value, key| value.get(key))?;
        (!value.is_null()).then_some(value)
    }
}

/// The header parameters of an input schema.
///
/// # Errors
/// The reason why a parameter is invalid.
pub(super) fn from_schema(schema: &JsonObject) -> Result<Vec<HeaderParameter>, String> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;

    let reachable = found.len();
    if count(&Value::Object(schema.clone())) != reachable {
        return Err(format!(
            "{KEY} is allowed only on properties that are reached through `properties` alone"
        ));
    }

    for (index, parameter) in found.iter().enumerate() {
        if found[..index].iter().any(|earlier| earlier.header == parameter.header) {
            return Err(format!("two arguments have the header {}", parameter.header));
        }
    }

    Ok(found)
}

/// Finds the parameters that are reached through `properties` alone.
fn collect(
    schema: &JsonObject,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderParameter>,
) -> Result<(), String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };

    for (name, property) in properties {
        let Some(property) = property.as_object() else { continue };
        path.push(name.clone());
        if let Some(header) = property.get(KEY) {
            let header = header.as_str().filter(|h| is_token(h)).ok_or_else(|| {
                format!("the {KEY} of {} is not a valid header name", path.join("."))
            })?;

            if !is_primitive(property.get("type")) {
                return Err(format!(
                    "{} has {KEY}, so its type must be string, integer or boolean",
                    path.join(".")
                ));
            }

            let header = format!("mcp-param-{}", header.to_ascii_lowercase());
            found.push(HeaderParameter { header, path: path.clone() });
        }

        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// The number of times that the keyword occurs in the schema.
fn count(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            // The keys under `properties` are names, not keywords.
            members
                .iter()
                .map(|(key, value)| match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        properties.values().map(count).sum()
                    }
                    (KEY, _) => 1,
                    (_, value) => count(value),
                })
                .sum()
        }
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

/// `token` (RFC 9110, 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn is_primitive(types: Option<&Value>) -> bool {
    let allowed = |t: &Value| {
        t.as_str().is_some_and(|t| matches!(t, "string" | "integer" | "boolean" | "null"))
    };
    match types {
        Some(Value::Array(types)) => types.iter().all(allowed),
        Some(single) => allowed(single) && single != "null",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn of_value(schema: Value) -> Result<Vec<HeaderParameter>, String> {
        let Value::Object(schema) = schema else { panic!("an object") };
        from_schema(&schema)
    }

    #[test]
    fn headers_are_found_by_their_path() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "x-mcp-header": { "type": "string" },
            "deep": { "type": "object", "properties": {
                "n": { "type": ["integer", "null"], "x-mcp-header": "N" },
            } },
        } });

        let found = of_value(schema).unwrap();
        let headers: Vec<_> = found.iter().map(|p| p.header.as_str()).collect();
        assert_eq!(headers, ["mcp-param-region", "mcp-param-n"]);

        assert_eq!(found[1].value(&json!({ "deep": { "n": 3 } })), Some(&json!(3)));
        assert_eq!(found[1].value(&json!({ "deep": { "n": null } })), None);
        assert_eq!(found[1].value(&json!({})), None);
    }

    #[test]
    fn parameters_that_no_client_could_mirror_are_refused() {
        for property in [
            json!({ "type": "number", "x-mcp-header": "N" }),
            json!({ "type": "string", "x-mcp-header": "" }),
            json!({ "type": "string", "x-mcp-header": "a b" }),
            json!({ "type": "string", "x-mcp-header": 1 }),
            json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "A" } }),
        ] {
            assert!(of_value(json!({ "properties": { "p": property } })).is_err(), "{property}");
        }

        let twice = json!({ "properties": {
            "a": { "type": "string", "x-mcp-header": "X" },
            "b": { "type": "string", "x-mcp-header": "x" },
        } });
        assert!(of_value(twice).is_err());
    }
}
