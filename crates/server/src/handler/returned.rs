//! The return types of functions under `#[tool]`, as results of tools.
//!
//! The macro calls `(&&&&Returned::<T>::new()).convert(value)`. Method lookup tries the receiver
//! as it is and then with one `&` less at a time, so the first of the traits below that is
//! implemented for the type converts the value: a result as it is, a `Result` with a value, a
//! value, anything else.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;

use super::{IntoToolResult, Structured, ToolError};

/// The return type of a function.
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// The marker of the type.
    #[allow(clippy::new_without_default, reason = "only the macro makes it")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// Text, content, and other types that are a result by themselves.
pub trait AsItIs<T> {
    /// Converts the value.
    fn convert(&self, value: T) -> T;
}

impl<T: IntoToolResult> AsItIs<T> for &&&Returned<T> {
    fn convert(&self, value: T) -> T {
        value
    }
}

/// A `Result` with a value that has a schema.
pub trait ValueOrError<T, E> {
    /// Converts the value.
    fn convert(&self, value: Result<T, E>) -> Result<Structured<T>, ToolError>;
}

impl<T: Serialize + JsonSchema, E: Into<ToolError>> ValueOrError<T, E>
    for &&Returned<Result<T, E>>
{
    fn convert(&self, value: Result<T, E>) -> Result<Structured<T>, ToolError> {
        value.map(Structured).map_err(Into::into)
    }
}

/// A value that has a schema.
pub trait Value<T> {
    /// Converts the value.
    fn convert(&self, value: T) -> Structured<T>;
}

impl<T: Serialize + JsonSchema> Value<T> for &Returned<T> {
    fn convert(&self, value: T) -> Structured<T> {
        Structured(value)
    }
}

/// All other types, which the tool then refuses by name.
pub trait NoResult<T> {
    /// Returns the value.
    fn convert(&self, value: T) -> T;
}

impl<T> NoResult<T> for Returned<T> {
    fn convert(&self, value: T) -> T {
        value
    }
}
