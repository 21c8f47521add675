//! A resource template: the client chooses a file by name.

use std::path::{Path, PathBuf};

use larder::{Context, Registry, ResourceError, Template, Variables, store::Content};

/// Reads `.txt` files as text and others as bytes. Joining the name is safe:
/// a template variable matches one path segment, and never `..`.
async fn resource_template(_: Context, variables: Variables) -> Result<Content, ResourceError> {
    let name = Path::new(&variables["filename"]);
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
    let bytes = tokio::fs::read(file).await.map_err(|_| ResourceError::NotFound)?;
    let extension = name.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "txt" => match String::from_utf8(bytes) {
            Ok(text) => Ok(Content::from(text)),
            Err(_) => Err(ResourceError::Failed("The file is not UTF-8 text.".into())),
        },
        "png" => Ok(Content::from(bytes).with_mime_type("image/png")),
        _ => Ok(Content::from(bytes)),
    }
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("resource-template-server")
            .template(
                Template::new("file:///{filename}", "resource_template", resource_template)
                    .description("A resource that loads one of several files by name."),
            )
            .build()
    })
}
