//! File objects: returned by a template's handler, registered as a resource, and
//! added while the server runs.

use std::path::PathBuf;

use larder::{Context, FileResource, Registry, Template, Tool, ToolError, Variables};

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data")
}

async fn resource_template(_: Context, variables: Variables) -> FileResource {
    let name = &variables["filename"];
    let is_binary = !name.to_lowercase().ends_with(".txt");
    FileResource::within(data(), name).is_binary(is_binary)
}

/// Adds a file to the list of resources.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct AddResource {
    /// The file's name.
    filename: String,
}

async fn add_resource(ctx: Context, args: AddResource) -> Result<String, ToolError> {
    let uri = format!("file:///{}", args.filename);
    ctx.add_resource(FileResource::within(data(), &args.filename).at(&uri))?;
    Ok(format!("Added {uri}"))
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        // Wins over the template, which matches this URI as well.
        let direct = FileResource::new(data().join("1.txt")).at("file:///1.txt");
        Registry::builder("resource-object-server")
            .resource(direct.description("The first file."))
            .template(
                Template::new("file:///{filename}", "resource_template", resource_template)
                    .description("A resource that loads one of several files by name."),
            )
            .tool(Tool::new(add_resource))
            .build()
    })
}
