//! Responses of token endpoints that are not quite those of RFC 6749, section 5.1.

use larder_protocol::quote::parse_error;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Number, Value};

/// Members that are numbers of seconds.
const SECONDS: [&str; 4] = ["expires_in", "exp", "iat", "nbf"];

/// The response as `oauth2` reads it: numbers that came as text are numbers, a list of scopes is a
/// text, what is null is absent, and a token without a type is a bearer token. Anything else stays.
pub(super) fn response(body: Vec<u8>) -> Vec<u8> {
    let Ok(Value::Object(mut members)) = document::<Value>(&body) else {
        return body;
    };

    members.retain(|_, value| !value.is_null());
    for name in SECONDS {
        seconds(&mut members, name);
    }
    if let Some(Value::Array(scopes)) = members.get("scope") {
        let scopes: Vec<_> = scopes.iter().filter_map(Value::as_str).collect();
        members.insert("scope".into(), scopes.join(" ").into());
    }
    for name in ["scope", "refresh_token", "id_token"] {
        if members.get(name).is_some_and(|value| value == "") {
            members.remove(name);
        }
    }
    if members.contains_key("access_token") {
        let kind = members.entry("token_type").or_insert_with(|| "bearer".into());
        if kind == "" {
            *kind = "bearer".into();
        }
    }

    Value::Object(members).to_string().into_bytes()
}

/// Reads a number of seconds. One that is none says nothing.
fn seconds(members: &mut Map<String, Value>, name: &str) {
    let whole = |number: &Number| match (number.as_u64(), number.as_f64()) {
        (Some(seconds), _) => Some(seconds),
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is bounded")]
        (None, Some(seconds)) if (0.0..1e15).contains(&seconds) => Some(seconds as u64),
        _ => None,
    };
    let read = match members.get(name) {
        None => return,
        Some(Value::Number(number)) => whole(number),
        Some(Value::String(text)) => {
            serde_json::from_str::<Number>(text.trim()).ok().as_ref().and_then(whole)
        }
        Some(_) => None,
    };

    match read {
        Some(seconds) => members.insert(name.to_owned(), seconds.into()),
        None => members.remove(name),
    };
}

/// Reads a member that counts as absent if its value is null or of another type, so that it fails
/// only those who need it.
pub fn or_default<'de, D, T>(value: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(value)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Reads a document of JSON, which may begin with a byte order mark.
///
/// # Errors
/// Why it cannot be read, without its content.
pub fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| parse_error(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_clear_is_read() {
        for (sent, read) in [
            (json!({ "expires_in": "3600" }), json!({ "expires_in": 3600 })),
            (json!({ "expires_in": " 3600 " }), json!({ "expires_in": 3600 })),
            (json!({ "expires_in": 3599.9 }), json!({ "expires_in": 3599 })),
            (json!({ "expires_in": "1h" }), json!({})),
            (json!({ "expires_in": -1 }), json!({})),
            (json!({ "expires_in": null, "refresh_token": null }), json!({})),
            (json!({ "refresh_token": "", "scope": "" }), json!({})),
            (json!({ "scope": ["a", "b"] }), json!({ "scope": "a b" })),
            (json!({ "scope": [] }), json!({})),
            (
                json!({ "access_token": "a" }),
                json!({ "access_token": "a", "token_type": "bearer" }),
            ),
            (
                json!({ "access_token": "a", "token_type": null }),
                json!({ "access_token": "a", "token_type": "bearer" }),
            ),
            (
                json!({ "access_token": "a", "token_type": "N_A" }),
                json!({ "access_token": "a", "token_type": "N_A" }),
            ),
            (
                json!({ "active": true, "exp": "1700000000" }),
                json!({ "active": true, "exp": 1_700_000_000 }),
            ),
        ] {
            let body = response(sent.to_string().into_bytes());
            assert_eq!(serde_json::from_slice::<Value>(&body).ok(), Some(read), "{sent}");
        }

        let marked = "\u{feff}{\"token_type\":\"N_A\"}".as_bytes().to_vec();
        assert_eq!(response(marked), b"{\"token_type\":\"N_A\"}");
        assert_eq!(response(b"<html>".to_vec()), b"<html>");
        assert_eq!(response(b"[]".to_vec()), b"[]");
    }
}
