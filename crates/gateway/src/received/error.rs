//! The error of a response.

use larder_protocol::{ErrorResponse, json_exceeds, quote::bounded};
use serde_json::Value;

use super::{MESSAGE_CHARS, object::Object, problem::shown, repair::repair};

/// The code of an error that names none.
const INTERNAL: i64 = -32603;
/// The code of an error that names URLs to visit before the request is sent again (2025-11-25,
/// elicitation).
const URL_REQUIRED: i64 = -32042;
/// The most bytes of an error's data.
const DATA_BYTES: usize = 16 << 10;

/// An error of any shape, bounded.
pub(super) fn read(error: Value) -> ErrorResponse {
    let unclear =
        |error: &Value| format!("The upstream refused and sent as its error: {}", shown(error));
    let what = unclear(&error);
    let (code, message, mut data) = match Object::of(error, "the error") {
        Ok(mut error) => {
            let code = error.take("code").as_ref().and_then(code).unwrap_or(INTERNAL);
            let message = error.take_text("message").filter(|message| !message.trim().is_empty());
            (code, message.unwrap_or(what), error.take("data"))
        }
        Err(_) => (INTERNAL, what, None),
    };

    let mut message = bounded(&message, MESSAGE_CHARS).into_owned();
    if data.as_ref().is_some_and(|data| json_exceeds(data, DATA_BYTES)) {
        data = None;
        message.push_str(&format!(" (Its data is left out: it is over {} KiB.)", DATA_BYTES >> 10));
    }

    ErrorResponse { code, message, data }
}

/// The error in a body that answers a request without naming it.
pub(crate) fn without_id(body: &[u8]) -> Option<ErrorResponse> {
    let (json, _) = repair(body);
    let mut body = Object::of(serde_json::from_str(&json).ok()?, "the body").ok()?;
    body.take("error").filter(Value::is_object).map(read)
}

/// The IDs of the visits that an error asks for.
pub(crate) fn visits_of_error(error: &ErrorResponse) -> impl Iterator<Item = &str> {
    let data = error.data.as_ref().filter(|_| error.code == URL_REQUIRED);
    let visits = data.and_then(|data| data.get("elicitations")).and_then(Value::as_array);
    let ids = visits.into_iter().flatten().filter_map(|visit| visit.get("elicitationId"));
    ids.filter_map(Value::as_str)
}

fn code(code: &Value) -> Option<i64> {
    match code {
        #[allow(clippy::cast_possible_truncation, reason = "a code is a small whole number")]
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|n| n as i64)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_of_any_shape_have_a_code_and_a_bounded_message() {
        for (sent, code, message) in [
            (json!({ "code": -1042, "message": "a" }), -1042, "a"),
            (json!({ "code": "-1000", "message": "a\u{1b}" }), -1000, r"a\u{1b}"),
            (json!({ "message": "a\nb" }), INTERNAL, "a\nb"),
            (json!("boom"), INTERNAL, "The upstream refused and sent as its error: \"boom\""),
            (json!({ "code": 7 }), 7, "The upstream refused and sent as its error: {\"code\":7}"),
        ] {
            let error = read(sent);
            assert_eq!((error.code, &*error.message), (code, message));
        }

        let long = read(json!({ "message": "x".repeat(100_000), "data": "y".repeat(100_000) }));
        assert!(long.message.chars().count() < 2_100 && long.data.is_none());
    }
}
