//! Arbitrary bytes as a JSON-RPC message: no panic, and what is read is what serde_json reads.

#![no_main]

use std::fmt;

use bytes::Bytes;
use larder::protocol::{
    Member, Message, Meta, Method, Params, RequestId, has_at_most_values, parse,
};
use libfuzzer_sys::fuzz_target;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

const MEMBERS: [Member; 8] = [
    Member::Meta,
    Member::Name,
    Member::Uri,
    Member::TaskId,
    Member::Arguments,
    Member::InputResponses,
    Member::RequestState,
    Member::Ref,
];

fuzz_target!(|input: &[u8]| {
    let body = Bytes::copy_from_slice(input);
    let expected = serde_json::from_slice::<Value>(input);
    if expected.is_ok() {
        let Ok(Count(count)) = serde_json::from_slice(input) else { panic!("it is JSON") };
        assert!(has_at_most_values(input, count), "{count} values");
        // Short texts are not scanned.
        assert!(input.len() / 2 < count || !has_at_most_values(input, count - 1), "{count} values");
    }
    let Ok(message) = parse(&body) else { return };
    // The depth of unread parameters is not bounded.
    let Ok(Value::Object(json)) = &expected else { return };
    assert_eq!(json["jsonrpc"], "2.0");
    match message {
        Message::Request(request) => {
            assert_eq!(json["method"], request.method);
            assert_eq!(json["id"], id(&request.id));
            let _ = Method::parse(&request.method);
            check_params(json, &request.params);
        }
        Message::Notification { method, params } => {
            assert_eq!(json["method"], method);
            assert!(!json.contains_key("id"));
            let _ = Message::cancelled(&method, &params);
            check_params(json, &params);
        }
        Message::Response { id: read, outcome } => {
            assert_eq!(json["id"], id(&read));
            assert_eq!(outcome.ok().as_ref(), json.get("result"));
        }
    }
});

fn check_params(message: &Map<String, Value>, params: &Params) {
    let expected = match message.get("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params.clone(),
        Some(other) => panic!("parameters that are not an object: {other}"),
    };
    assert_eq!(params.parse::<Map<String, Value>>().as_ref(), Ok(&expected));
    for member in MEMBERS {
        let expected = expected.get(member.name()).filter(|value| !value.is_null());
        assert_eq!(params.read::<Value>(member).as_ref(), Ok(&expected.cloned()));
        if let Ok(text) = params.text(member) {
            assert_eq!(text.as_deref(), expected.and_then(Value::as_str));
        }
    }
    if let Ok(meta) = Meta::read(params) {
        let version =
            &expected.get("_meta").unwrap_or_default()["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(meta.protocol_version.as_deref(), version.as_str());
    }
}

fn id(id: &RequestId) -> Value {
    serde_json::to_value(id).expect("an id is JSON")
}

/// The number of values in JSON. Members that occur twice count twice, so a tree will not do.
struct Count(usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = usize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<usize, E> {
                Ok(1)
            }
            fn visit_bool<E>(self, _: bool) -> Result<usize, E> {
                Ok(1)
            }
            fn visit_i64<E>(self, _: i64) -> Result<usize, E> {
                Ok(1)
            }
            fn visit_u64<E>(self, _: u64) -> Result<usize, E> {
                Ok(1)
            }
            fn visit_f64<E>(self, _: f64) -> Result<usize, E> {
                Ok(1)
            }
            fn visit_str<E>(self, _: &str) -> Result<usize, E> {
                Ok(1)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
                let mut count = 1;
                while let Some(Count(item)) = items.next_element()? {
                    count += item;
                }
                Ok(count)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<usize, A::Error> {
                let mut count = 1;
                while let Some((_, Count(member))) = members.next_entry::<String, Count>()? {
                    count += member;
                }
                Ok(count)
            }
        }
        deserializer.deserialize_any(Values).map(Self)
    }
}
