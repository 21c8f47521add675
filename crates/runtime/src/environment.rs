//! Variables of the process's environment. An empty variable counts as unset: Compose and unit
//! files set one where a person has left it out.

use std::{ffi::OsString, path::PathBuf};

/// The value of a variable, if it is set, not empty, and Unicode.
pub fn variable(name: &str) -> Option<String> {
    variable_os(name)?.into_string().ok()
}

/// The value of a variable, if it is set and not empty.
pub fn variable_os(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The absolute path in a variable. Others count as not set, as the XDG base directories demand.
pub fn absolute_path(name: &str) -> Option<PathBuf> {
    variable_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether a variable is set to an empty value.
pub fn is_empty(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value.is_empty())
}

/// All variables as they are, empty ones as well.
pub fn variables_os() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// All variables that are not empty and whose names and values are Unicode.
pub fn variables() -> impl Iterator<Item = (String, String)> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(_, value)| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unset_variable_has_no_value_and_none_of_all_is_empty() {
        assert_eq!(variable("LARDER_TEST_UNSET"), None);
        assert!(variable("PATH").is_some(), "tests run with a path");
        assert!(variables().all(|(_, value)| !value.is_empty()));
    }
}
