//! [`RawResult`]: the result of a response, before it is read as the answer of its method.

use serde_json::Value;

use super::{object::Object, problem::Problem, repair::Repaired};

/// The result of a response. It has no members: it is read as what the method answers.
#[derive(Debug)]
pub(crate) struct RawResult {
    pub(super) value: Value,
    /// How its message was repaired.
    pub(super) repaired: Repaired,
}

/// What a method answers.
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

impl RawResult {
    pub(super) fn new(value: Value, repaired: Repaired) -> Self {
        Self { value, repaired }
    }

    /// Reads it as the answer of its method.
    pub(crate) fn read<T: Answer>(self) -> Result<T, Problem> {
        T::read(self)
    }

    pub(super) fn object(self) -> Result<Object, Problem> {
        Object::of(self.value, "the result")
    }
}
