//! File objects: returned by a template's handler, registered as a resource, and
//! added while the server runs.

use std::path::PathBuf;

use larder::prelude::*;

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data")
}

/// A resource that loads one of several files by name.
#[resource("file:///{filename}")]
fn resource_template(filename: String) -> FileResource {
    let is_binary = !filename.to_lowercase().ends_with(".txt");
    FileResource::within(data(), &filename).is_binary(is_binary)
}

/// Adds a file to the list of resources.
#[tool]
fn add_resource(
    ctx: &Context,
    /** The file's name. */
    filename: String,
) -> Result<String> {
    let uri = format!("file:///{filename}");
    ctx.add_resource(FileResource::within(data(), &filename).at(&uri))?;
    Ok(format!("Added {uri}"))
}

fn main() -> ExitCode {
    // Wins over the template, which matches this URI as well.
    let direct = FileResource::new(data().join("1.txt")).at("file:///1.txt");
    larder::server("resource-object-server")
        .resource(direct.description("The first file."))
        .resource(resource_template)
        .tool(add_resource)
        .run()
}
