//! [`Object`]: a JSON object of an upstream, of which members are taken by name.

use larder_protocol::{OtherMembers, Shape};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::problem::Problem;

/// A JSON object of an upstream. Members that are `null` are absent.
pub(crate) struct Object(Map<String, Value>);

impl From<Map<String, Value>> for Object {
    fn from(members: Map<String, Value>) -> Self {
        Self(members)
    }
}

impl Object {
    /// `what` names the value in the problem.
    pub(super) fn of(value: Value, what: &str) -> Result<Self, Problem> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            other => Err(Problem::of(&format!("{what} must be an object"), &other)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.take_present(name).filter(|value| !value.is_null())
    }

    /// A member that may mean something if it is `null`.
    pub(super) fn take_present(&mut self, name: &str) -> Option<Value> {
        self.0.swap_remove(name)
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// A text. Nothing else counts.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    pub(super) fn take_text(&mut self, name: &str) -> Option<String> {
        match self.take(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// A text that is kept. Nothing else counts.
    ///
    /// # Errors
    /// The text has more bytes than `max`.
    pub(super) fn take_short_text(
        &mut self,
        name: &str,
        max: usize,
    ) -> Result<Option<String>, Problem> {
        match self.take_text(name) {
            Some(text) if text.len() > max => {
                let expected = format!("{name} must have at most {max} bytes");
                Err(Problem::of(&expected, &Value::String(text)))
            }
            text => Ok(text),
        }
    }

    /// The items of a list. Without one it has none: languages write an empty list so.
    pub(super) fn take_list(&mut self, name: &str) -> Result<Vec<Value>, Problem> {
        match self.take(name) {
            Some(Value::Array(items)) => Ok(items),
            None => Ok(Vec::new()),
            Some(other) => Err(Problem::of(&format!("{name} must be a list"), &other)),
        }
    }

    /// A truth value, which some languages write as a text or a number.
    pub(super) fn take_flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match &value {
            Value::Bool(flag) => Ok(Some(*flag)),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Value::Number(number) if number.as_u64() == Some(1) => Ok(Some(true)),
            Value::Number(number) if number.as_u64() == Some(0) => Ok(Some(false)),
            other => Err(Problem::of(&format!("{name} must be true or false"), other)),
        }
    }

    /// An object.
    pub(super) fn take_members(&mut self, name: &str) -> Option<Map<String, Value>> {
        match self.take(name) {
            Some(Value::Object(members)) => Some(members),
            _ => None,
        }
    }

    /// Removes a member that only decorates the object, unless it has that type.
    pub(super) fn drop_unfit<T: DeserializeOwned>(&mut self, name: &str) {
        if self.0.get(name).is_some_and(|value| T::deserialize(value).is_err()) {
            tracing::debug!(member = name, "a member of an upstream's object does not fit");
            self.0.swap_remove(name);
        }
    }

    /// Takes the members that the shape does not have.
    pub(super) fn take_others(&mut self, shape: &Shape) -> OtherMembers {
        OtherMembers::take(&mut self.0, shape)
    }

    /// Lets the metadata carry other members to where the object is encoded.
    pub(super) fn carry(&mut self, others: OtherMembers) {
        others.carry_in(&mut self.0);
    }

    /// The object as that type. `what` names it in the problem.
    pub(super) fn parse<T: DeserializeOwned>(self, what: &str) -> Result<T, Problem> {
        serde_json::from_value(Value::Object(self.0)).map_err(|error| {
            Problem::new(format!(
                "{what}: {}",
                larder_protocol::quote::parse_error(&error.to_string())
            ))
        })
    }

    pub(super) fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}
