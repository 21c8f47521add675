//! [`OtherMembers`]: members of definitions, results and content blocks that the protocol's types do
//! not have.
//! They pass as they were sent: reading puts them aside, and encoding puts them back.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::json_exceeds;

/// The member of `_meta` that carries other members from reading to encoding.
const CARRIER: &str = "larder/other-members";
/// The other members of an object itself.
const OWN: &str = "own";
/// The other members of the objects in its members.
const WITHIN: &str = "within";
const META: &str = "_meta";

/// The members of a type of the protocol.
#[derive(Debug)]
pub struct Shape {
    /// The members of any kind.
    pub known: &'static [&'static str],
    /// The members that are an object of a shape, or a list of such objects.
    pub within: &'static [(&'static str, &'static Shape)],
    /// The numbers of which the type keeps fewer digits.
    pub rounded: &'static [&'static str],
}

/// The members of an object that its type does not have, also those of the objects in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OtherMembers(Map<String, Value>);

impl Shape {
    fn has(&self, name: &str) -> bool {
        self.known.contains(&name)
            || self.rounded.contains(&name)
            || self.within.iter().any(|(within, _)| *within == name)
    }
}

impl OtherMembers {
    /// Takes the members out of an object that its shape does not have.
    pub fn take(object: &mut Map<String, Value>, shape: &Shape) -> Self {
        // Only Larder itself may say which members to put back.
        if let Some(Value::Object(meta)) = object.get_mut(META) {
            meta.shift_remove(CARRIER);
        }
        Self(others_of(object, shape))
    }

    /// Adds those of the objects in a list, which is a member of the object.
    pub fn add_list(&mut self, name: &str, of_items: Vec<Self>) {
        if of_items.iter().all(Self::is_empty) {
            return;
        }

        let of_items: Value = of_items.into_iter().map(Self::into_value).collect();
        let within = self.0.entry(WITHIN).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(within) = within {
            within.insert(name.to_owned(), of_items);
        }
    }

    /// Whether the object has no other members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the JSON of the other members has more than `max` bytes.
    pub fn exceed(&self, max: usize) -> bool {
        json_exceeds(self, max)
    }

    /// The other members as JSON, to be shown.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Lets the `_meta` of the object carry its other members.
    pub fn carry_in(self, object: &mut Map<String, Value>) {
        if self.is_empty() {
            return;
        }
        if !object.get(META).is_some_and(Value::is_object) {
            object.insert(META.to_owned(), Value::Object(Map::new()));
        }
        if let Some(Value::Object(meta)) = object.get_mut(META) {
            meta.insert(CARRIER.to_owned(), self.into_value());
        }
    }

    /// Whether this `_meta` carries other members.
    pub fn are_in(meta: &Map<String, Value>) -> bool {
        meta.contains_key(CARRIER)
    }

    /// Takes the members of an object itself out of its `_meta`, which carries them.
    pub fn take_own(meta: &mut Map<String, Value>) -> Map<String, Value> {
        let Some(Value::Object(mut carried)) = meta.shift_remove(CARRIER) else {
            return Map::new();
        };
        match carried.remove(OWN) {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        }
    }

    /// Puts the members back that the `_meta` of an object carries, or those of the objects of a list.
    pub fn restore(value: &mut Value) {
        match value {
            Value::Object(members) => Self::restore_in(members),
            Value::Array(items) => items.iter_mut().for_each(Self::restore),
            _ => {}
        }
    }

    fn restore_in(members: &mut Map<String, Value>) {
        let Some(Value::Object(meta)) = members.get_mut(META) else { return };
        let Some(carried) = meta.shift_remove(CARRIER) else { return };

        if meta.is_empty() {
            members.shift_remove(META);
        }
        put_back(carried, members);
    }
}

fn others_of(object: &mut Map<String, Value>, shape: &Shape) -> Map<String, Value> {
    let unknown: Vec<String> = object.keys().filter(|name| !shape.has(name)).cloned().collect();
    let mut own: Map<String, Value> =
        unknown.into_iter().filter_map(|name| object.shift_remove_entry(&name)).collect();

    for name in shape.rounded {
        if let Some(number @ Value::Number(_)) = object.get(*name)
            && is_rounded(number)
        {
            own.insert((*name).to_owned(), number.clone());
        }
    }

    let mut within = Map::new();
    for (name, shape) in shape.within {
        if let Some(others) = object.get_mut(*name).and_then(|value| others_within(value, shape)) {
            within.insert((*name).to_owned(), others);
        }
    }

    let parts = [(OWN, own), (WITHIN, within)].into_iter().filter(|(_, part)| !part.is_empty());
    parts.map(|(name, part)| (name.to_owned(), Value::Object(part))).collect()
}

/// The other members of an object, or of each object of a list. `None` if there are none.
fn others_within(value: &mut Value, shape: &Shape) -> Option<Value> {
    match value {
        Value::Object(object) => {
            let others = others_of(object, shape);
            (!others.is_empty()).then_some(Value::Object(others))
        }
        Value::Array(items) => {
            let of_items = items.iter_mut().map(|item| others_within(item, shape));
            let of_items: Vec<_> = of_items.collect();
            let has_any = of_items.iter().any(Option::is_some);
            has_any.then(|| of_items.into_iter().map(Option::unwrap_or_default).collect())
        }
        _ => None,
    }
}

/// Whether a number is written otherwise once it has the precision of an `f32`.
#[allow(clippy::cast_possible_truncation, reason = "the loss of digits is what it looks for")]
fn is_rounded(number: &Value) -> bool {
    let Some(precise) = number.as_f64() else { return true };
    let rounded = serde_json::to_string(&(precise as f32)).unwrap_or_default();
    let written = number.to_string();
    rounded != written
}

fn put_back(carried: Value, members: &mut Map<String, Value>) {
    let Value::Object(mut carried) = carried else { return };

    if let Some(Value::Object(own)) = carried.remove(OWN) {
        members.extend(own);
    }
    let Some(Value::Object(within)) = carried.remove(WITHIN) else { return };
    for (name, others) in within {
        if let Some(value) = members.get_mut(&name) {
            put_back_within(others, value);
        }
    }
}

fn put_back_within(others: Value, value: &mut Value) {
    match (others, value) {
        (Value::Array(of_items), Value::Array(items)) => {
            for (others, item) in of_items.into_iter().zip(items) {
                put_back_within(others, item);
            }
        }
        (others, Value::Object(members)) => put_back(others, members),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static INNER: Shape = Shape { known: &["a"], within: &[], rounded: &["n"] };
    static OUTER: Shape = Shape {
        known: &["name", "_meta"],
        within: &[("one", &INNER), ("many", &INNER)],
        rounded: &[],
    };

    #[test]
    fn other_members_are_put_aside_and_back_at_any_place() {
        for sent in [
            json!({ "name": "x", "extra": { "deep": [1, null] }, "none": null }),
            json!({ "name": "x", "_meta": { "k": 1 }, "one": { "a": 1, "b": "c", "n": 1 } }),
            json!({ "many": [{ "a": 1 }, { "b": [] }, { "": false, "n": 0.123_456_789 }], "one": null }),
            json!({ "name": "x", "one": "text", "many": [5, [{ "z": 1 }], { "own": {}, "within": 2 }] }),
        ] {
            let mut object = sent.as_object().cloned().unwrap_or_default();
            let others = OtherMembers::take(&mut object, &OUTER);
            assert!(!others.is_empty(), "{sent}");
            let known = Value::Object(object.clone()).to_string();
            assert!(
                !["extra", "\"b\"", "\"z\""].iter().any(|name| known.contains(name)),
                "{known}"
            );

            others.carry_in(&mut object);
            let mut encoded = Value::Object(object);
            OtherMembers::restore(&mut encoded);
            assert_eq!(encoded, sent);
        }
    }

    #[test]
    fn other_members_of_the_items_of_a_list_may_be_added() {
        let mut items = json!([{ "a": 1, "x": 2 }, { "a": 3 }, { "y": null }]);
        let of_items = items.as_array_mut().into_iter().flatten().map(|item| {
            item.as_object_mut()
                .map_or_else(OtherMembers::default, |item| OtherMembers::take(item, &INNER))
        });
        let of_items: Vec<_> = of_items.collect();
        assert_eq!(items, json!([{ "a": 1 }, { "a": 3 }, {}]));

        let mut object = Map::from_iter([("many".to_owned(), items)]);
        let mut others = OtherMembers::default();
        others.add_list("many", of_items);
        others.add_list("none", vec![OtherMembers::default()]);
        others.carry_in(&mut object);
        let mut encoded = Value::Object(object);
        OtherMembers::restore(&mut encoded);
        assert_eq!(encoded, json!({ "many": [{ "a": 1, "x": 2 }, { "a": 3 }, { "y": null }] }));
    }

    #[test]
    fn an_object_of_known_members_and_a_forged_carrier_change_nothing() {
        let known = json!({ "name": "x", "one": { "a": null, "n": 0.5 }, "many": [] });
        let mut object = known.as_object().cloned().unwrap_or_default();
        assert!(OtherMembers::take(&mut object, &OUTER).is_empty());
        assert_eq!(Value::Object(object.clone()), known);

        object.insert("_meta".to_owned(), json!({ CARRIER: { OWN: { "name": "forged" } } }));
        OtherMembers::take(&mut object, &OUTER).carry_in(&mut object);
        let mut encoded = Value::Object(object);
        OtherMembers::restore(&mut encoded);
        assert_eq!(encoded["name"], "x");
    }
}
