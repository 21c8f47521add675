//! Larder's own tools over its store.

use larder::{Registry, tools::{ToolOptions, self}};

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("store")
            .with(tools::reading(ToolOptions::default()))
            .with(tools::writing())
            .build()
    })
}
