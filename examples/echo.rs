//! A minimal server with one tool, which returns its input.

use larder::prelude::*;

/// Returns the text.
#[tool]
fn echo(
    /** The text to return. */
    text: String,
) -> String {
    text
}

fn main() -> ExitCode {
    larder::server("echo").tool(echo).run()
}
