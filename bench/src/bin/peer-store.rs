//! A Larder server with the tools over the store.

use larder::{
    Registry,
    tools::{self, ToolOptions},
};

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("store")
            .with(tools::reading(ToolOptions::default()))
            .with(tools::writing())
            .build()
    })
}
