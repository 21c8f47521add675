//! [`RawResult`]: the result of a response, before it is read as the answer of its method.

use larder_protocol::exact;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{object::Object, problem::Problem, repair::Repaired};

/// The result of a response. It has no members: it is read as what the method answers.
#[derive(Debug)]
pub(crate) struct RawResult {
    pub(super) value: Value,
    /// How its message was repaired.
    pub(super) repaired: Repaired,
    /// The structured content as it was sent, where the value does not keep its numbers.
    pub(super) exact: Option<Box<RawValue>>,
}

/// A typed answer of a method, read from its result.
pub(crate) trait Answer: Sized {
    /// Reads the result.
    fn read(result: RawResult) -> Result<Self, Problem>;
}

/// The answer of a method whose result says nothing.
pub(crate) struct Done;

impl Answer for Done {
    fn read(_: RawResult) -> Result<Self, Problem> {
        Ok(Self)
    }
}

/// A result as it was sent.
pub(crate) struct Verbatim(pub(crate) Value);

impl Answer for Verbatim {
    fn read(result: RawResult) -> Result<Self, Problem> {
        Ok(Self(result.value))
    }
}

impl RawResult {
    /// Reads the JSON of a result.
    pub(super) fn of_json(json: &str, repaired: Repaired) -> serde_json::Result<Self> {
        let value = serde_json::from_str(json)?;
        let exact = if exact::keeps_numbers(json.as_bytes()) { None } else { exact_content(json) };
        Ok(Self { value, repaired, exact })
    }

    /// Reads it as the answer of its method.
    pub(crate) fn read<T: Answer>(self) -> Result<T, Problem> {
        T::read(self)
    }

    pub(super) fn object(self) -> Result<Object, Problem> {
        Object::of(self.value, "the result")
    }
}

/// The structured content of a result as it was sent, in one line.
fn exact_content(json: &str) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Structured<'a> {
        #[serde(borrow, rename = "structuredContent")]
        content: &'a RawValue,
    }

    let content = serde_json::from_str::<Structured<'_>>(json).ok()?.content.get();
    let line = String::from_utf8(exact::in_one_line(content.as_bytes())).ok()?;
    RawValue::from_string(line).ok()
}
