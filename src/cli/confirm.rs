//! Questions before something is deleted for good.

use std::io::{self, Write};

use super::client::ClientError;

/// Asks on standard error, and returns whether the answer on standard input is yes.
pub(super) fn confirm(question: &str) -> Result<bool, ClientError> {
    eprint!("{question} [y/N] ");
    let _ = io::stderr().flush();

    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(|error| ClientError::local("standard input", &error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
