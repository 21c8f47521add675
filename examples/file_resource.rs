//! A resource with a handler function, which runs for each read but not for
//! lists.

use std::path::PathBuf;

use larder::prelude::*;
use model::{Icon, Role};

/// The directory of `knowledge.txt`; the variable `EXAMPLE_DATA` overrides it.
fn data() -> PathBuf {
    std::env::var_os("EXAMPLE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data"),
        PathBuf::from,
    )
}

/// A resource that loads a text-based knowledge base.
#[resource(
    "file://knowledge.txt",
    title = "Knowledge base",
    mime_type = "text/plain",
    priority = 0.8
)]
async fn knowledge_base() -> Result<String, ResourceError> {
    tokio::fs::read_to_string(data().join("knowledge.txt")).await.map_err(|error| {
        eprintln!("knowledge.txt: {error}");
        ResourceError::NotFound
    })
}

fn main() -> ExitCode {
    let icon = Icon::new("https://example.com/shelf.png").with_mime_type("image/png");
    // What the attribute has no option for is a method of what it makes.
    let knowledge_base = knowledge_base().audience([Role::User, Role::Assistant]).icon(icon);
    larder::server("basic-resource-server").resource(knowledge_base).run()
}
