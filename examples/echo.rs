//! The smallest server: one tool that says back what it is told.

use larder::{Context, Registry, Tool};

/// Says back what it is told.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say.
    text: String,
}

async fn echo(_: Context, args: Echo) -> String {
    args.text
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| Registry::builder("echo").tool(Tool::new(echo)).build())
}
