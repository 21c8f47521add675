//! [`Argument`]: the types that a function under a macro takes from its caller.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// A type that a caller can give as an argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "a caller cannot give this",
    note = "write #[larder::args] above a type of your own, or #[larder::data] if it is a result, too"
)]
pub trait Argument: DeserializeOwned + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {}
