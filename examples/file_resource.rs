//! A resource with a handler function, which runs for each read but not for
//! lists.

use std::path::PathBuf;

use larder::{Context, Registry, Resource, ResourceError};
use rmcp::model::{Icon, Role};

/// The directory of `knowledge.txt`; the variable `EXAMPLE_DATA` overrides it.
fn data() -> PathBuf {
    std::env::var_os("EXAMPLE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data"),
        PathBuf::from,
    )
}

async fn knowledge_base(_: Context) -> Result<String, ResourceError> {
    tokio::fs::read_to_string(data().join("knowledge.txt")).await.map_err(|error| {
        eprintln!("knowledge.txt: {error}");
        ResourceError::NotFound
    })
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("basic-resource-server")
            .resource(
                Resource::new("file://knowledge.txt", knowledge_base)
                    .name("knowledge_base")
                    .title("Knowledge base")
                    .description("A resource that loads a text-based knowledge base.")
                    .mime_type("text/plain")
                    .audience([Role::User, Role::Assistant])
                    .priority(0.8)
                    .icon(Icon::new("https://example.com/shelf.png").with_mime_type("image/png")),
            )
            .build()
    })
}
