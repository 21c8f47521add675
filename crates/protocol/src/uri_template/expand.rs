//! Expands one variable (RFC 6570, levels 1 and 2).

use super::{percent, value_problem};

/// The value of a variable, percent-encoded for a URI. With `multi_segment`, slashes
/// and other characters of a path are not encoded.
///
/// # Errors
/// The reason why the value is not safe in a URI.
pub fn expand(value: &str, multi_segment: bool) -> Result<String, &'static str> {
    match value_problem(value, multi_segment) {
        Some(problem) => Err(problem),
        None if multi_segment => Ok(percent::encode(value, percent::PATH)),
        None => Ok(percent::encode(value, percent::SEGMENT)),
    }
}
