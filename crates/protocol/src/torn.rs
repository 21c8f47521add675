//! Text that is not one JSON value: several values in a row, and requests that break off.

use std::{borrow::Cow, fmt};

use rmcp::model::RequestId;
use serde::{
    Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The values of a text that has at least two, with nothing but white space between them: at most
/// one more than `max`. `None` for any other text.
#[must_use]
pub fn consecutive(text: &str, max: usize) -> Option<Vec<&str>> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let values: Vec<_> = values
        .take(max + 1)
        .map(|value| value.map(RawValue::get))
        .collect::<Result<_, _>>()
        .ok()?;
    (values.len() > 1).then_some(values)
}

/// The id of a request in a body that cannot be read as a whole, as far as it comes before what is
/// wrong. Bytes that are no UTF-8 count as any other text. `None` for anything but a request, such
/// as a response, whose id is another side's.
pub(crate) fn request_id(body: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(body);
    let mut found = FoundMembers::default();
    // An error ends the search.
    let _ = serde_json::Deserializer::from_str(&text).deserialize_map(&mut found);

    let is_whole = |id: &RequestId| match id {
        RequestId::String(id) => !id.contains(char::REPLACEMENT_CHARACTER),
        RequestId::Number(_) => true,
    };
    found.id.filter(|id| found.has_method && is_whole(id))
}

/// The members of a request that were found.
#[derive(Default)]
struct FoundMembers {
    id: Option<RequestId>,
    has_method: bool,
}

impl<'de> Visitor<'de> for &mut FoundMembers {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            match &*name {
                "id" => self.id = members.next_value().ok(),
                "method" => {
                    members.next_value::<String>()?;
                    self.has_method = true;
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_a_row_are_told_apart() {
        for (text, values) in [
            (r#"{"a":1}{"b":2}"#, Some(vec![r#"{"a":1}"#, r#"{"b":2}"#])),
            (" {} \r\n\t[1] 5 ", Some(vec!["{}", "[1]", "5"])),
            (r#"{"a":"}{"}"#, None),
            (r#"{"a":1}{"b""#, None),
            (r#"{"a":1},{"b":2}"#, None),
            ("", None),
        ] {
            assert_eq!(consecutive(text, 9), values, "{text}");
        }
        assert_eq!(consecutive(&"{}".repeat(9), 3).map(|values| values.len()), Some(4));
    }

    #[test]
    fn a_request_that_cannot_be_read_has_its_id() {
        let number = |id: i64| Some(RequestId::Number(id));
        for (body, id) in [
            (&b"{\"id\":7,\"method\":\"m\",\"params\":{\"a\":\"\xff\"}}"[..], number(7)),
            (b"{\"method\":\"m\",\"params\":{\"a\":\"\xff\"},\"id\":7}", number(7)),
            (b"{\"id\":7,\"method\":\"m\",\"params\":{", number(7)),
            (b"{\"id\":7,\"method\":\"m\"}}", number(7)),
            (b"{\"id\":\"q\",\"method\":\"m\\xff\",\"params\":{", None),
            (b"{\"id\":\"q\xff\",\"method\":\"m\"}", None),
            (b"{\"id\":7,\"result\":\"\xff\"}", None),
            (b"{\"id\":7.5,\"method\":\"m\",", None),
            (b"{\"id\":null,\"method\":\"m\",", None),
            (b"[{\"id\":7,\"method\":\"m\"}", None),
            (b"\xff", None),
            (b"", None),
        ] {
            assert_eq!(request_id(body), id, "{}", String::from_utf8_lossy(body));
        }
    }
}
