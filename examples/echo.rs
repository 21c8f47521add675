//! A minimal server with one tool, which returns its input.

use larder::{Context, Registry, Tool};

/// Returns the text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// The text to return.
    text: String,
}

async fn echo(_: Context, args: Echo) -> String {
    args.text
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| Registry::builder("echo").tool(Tool::new(echo)).build())
}
