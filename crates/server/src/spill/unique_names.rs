//! Members of JSON objects that occur twice, which a value does not keep.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

/// Whether no object has a member twice, in valid JSON or in several values one after the other.
/// Of members with one name, a value keeps the last.
pub(crate) fn has_unique_names(json: &str) -> bool {
    serde_json::Deserializer::from_str(json).into_iter::<UniqueNames>().all(|value| value.is_ok())
}

/// Any value whose objects have each name once.
struct UniqueNames;

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for UniqueNames {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON in which no object has a member twice")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if !names.insert(name) {
                return Err(de::Error::custom("a member occurs twice"));
            }
            members.next_value::<Self>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_occurs_twice_is_found_at_any_depth() {
        for unique in [
            "{}",
            r#"{"a": {"a": [1, 1, {"a": null}]}, "b": {"a": 1.5}}"#,
            "{\"a\": 1}\n{\"a\": -2}\n",
            r#"[{"a": true}, {"a": "a"}]"#,
        ] {
            assert!(has_unique_names(unique), "{unique}");
        }
        for twice in [
            r#"{"a": 1, "a": 1}"#,
            r#"[1, {"b": [{"a": 1, "c": {}, "a": 2}]}]"#,
            r#"{"a": 1, "\u0061": 2}"#,
            "{\"a\": 1}\n{\"a\": 1, \"a\": 2}\n",
        ] {
            assert!(!has_unique_names(twice), "{twice}");
        }
    }
}
