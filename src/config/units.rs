//! Durations and sizes with a unit: `"5m"`, `"64MiB"`. A bare number counts
//! seconds or bytes.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const DURATIONS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZES: [(&str, u64); 7] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// A duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

/// The number in the smallest unit.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The number in the largest unit that divides it.
fn show(value: u64, units: &[(&str, u64)]) -> String {
    let dividing =
        units.iter().filter(|(_, factor)| value >= *factor && value.is_multiple_of(*factor));

    match dividing.max_by_key(|(_, factor)| *factor) {
        Some((name, factor)) => format!("{}{name}", value / factor),
        None => format!("{value}{}", units[0].0),
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX), &DURATIONS))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.0, &SIZES))
    }
}

/// Reads a number or a text, whichever the file has.
struct Visitor<T> {
    expected: &'static str,
    number: fn(u64) -> T,
    text: fn(&str) -> Option<T>,
}

impl<T> de::Visitor<'_> for Visitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Ok((self.number)(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        let number = u64::try_from(number);
        number.map(self.number).map_err(|_| E::custom("it must not be negative"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.text)(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Visitor {
            expected: "a duration such as \"30s\", \"5m\" or \"1h\"",
            number: |seconds| Self(Duration::from_secs(seconds)),
            text: |text| parse(text, &DURATIONS).map(|ms| Self(Duration::from_millis(ms))),
        })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Visitor {
            expected: "a size such as \"64MiB\"",
            number: Self,
            text: |text| parse(text, &SIZES).map(Self),
        })
    }
}

macro_rules! as_text {
    ($($type:ident),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string" })
            }
        }
    )*};
}

as_text!(Span, Size);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn durations_and_sizes_have_units() {
        for (text, seconds) in [("30s", 30), ("5m", 300), ("1h", 3600), ("2d", 172_800)] {
            let span: Span = serde_json::from_value(json!(text)).unwrap();
            assert_eq!((span.0, span.to_string()), (Duration::from_secs(seconds), text.to_owned()));
        }

        assert_eq!(serde_json::from_value::<Span>(json!(90)).unwrap().to_string(), "90s");

        for (text, bytes) in [("64MiB", 64 << 20), ("1500B", 1500), ("2MB", 2_000_000)] {
            let size: Size = serde_json::from_value(json!(text)).unwrap();
            assert_eq!((size.0, size.to_string()), (bytes, text.to_owned()));
        }

        for bad in [json!("5"), json!("m"), json!("5 parsecs"), json!(-1), json!("99999999999d999")]
        {
            assert!(serde_json::from_value::<Span>(bad.clone()).is_err(), "{bad}");
        }
    }
}
