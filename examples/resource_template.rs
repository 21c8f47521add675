//! A resource template: the client chooses a file by name.

use std::path::{Path, PathBuf};

use larder::{prelude::*, store::Content};

/// A resource that loads one of several files by name.
#[resource("file:///{filename}")]
async fn resource_template(filename: String) -> Result<Content, ResourceError> {
    // Joining the name is safe: no value of a variable has a segment `..` or begins with a slash.
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(&filename);
    let bytes = tokio::fs::read(file).await.map_err(|_| ResourceError::NotFound)?;
    let extension = Path::new(&filename).extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "txt" => match String::from_utf8(bytes) {
            Ok(text) => Ok(Content::from(text)),
            Err(_) => Err(ResourceError::Failed("The file is not UTF-8 text.".into())),
        },
        "png" => Ok(Content::from(bytes).with_mime_type("image/png")),
        _ => Ok(Content::from(bytes)),
    }
}

fn main() -> ExitCode {
    larder::server("resource-template-server").resource(resource_template).run()
}
