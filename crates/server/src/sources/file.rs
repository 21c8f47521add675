//! Files and directories as resources. Each read streams from disk.

use std::{
    fs::Metadata,
    path::{Component, Path, PathBuf},
};

use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::FutureExt;
use larder_protocol::{
    Fault,
    quote::{quoted, visible, visible_json},
};
use larder_store::store::Content;
use serde_json::{Value, json};
use tokio::{fs, io};
use tokio_util::io::ReaderStream;

use super::{
    file_ranges,
    sniff::{is_text, sniff},
};
use crate::{
    handler::{Context, IntoContent, ResourceError, below_root},
    registry::{Resource, ResourceStat},
};

/// The size of one read from disk, in bytes.
const READ_BYTES: usize = 64 << 10;

/// A file that is read for each request. Its media type depends on the file
/// extension.
///
/// A `FileResource` can be registered as a resource, or returned by the handler of a
/// resource or a template:
///
/// ```
/// use larder_protocol::uri_template::Variables;
/// use larder_server::{Context, FileResource, Registry, Template};
///
/// let files = Template::new(
///     "file:///{name}",
///     "file",
///     // Never reads a file outside of the directory.
///     |_: Context, variables: Variables| async move {
///         FileResource::within("/srv/files", &variables["name"])
///     },
/// );
/// let registry = Registry::builder("files")
///     .resource(FileResource::new("/srv/files/1.txt").at("file:///1.txt"))
///     .template(files)
///     .build();
/// assert!(registry.is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileResource {
    path: PathBuf,
    /// The directory that must contain the file.
    within: Option<PathBuf>,
    is_binary: Option<bool>,
    mime_type: Option<String>,
}

impl FileResource {
    /// The file at a trusted path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), within: None, is_binary: None, mime_type: None }
    }

    /// The file of that name in a directory. The name can come from a client: a
    /// name or symbolic link that leads out of the directory is not found.
    pub fn within(directory: impl Into<PathBuf>, name: impl AsRef<Path>) -> Self {
        let directory = directory.into();
        Self { within: Some(directory.clone()), ..Self::new(directory.join(name)) }
    }

    /// The file of a `file:` URI, if it is in one of the client's roots. Asks the client for
    /// them under that key. A symbolic link that leads out of the root is not found.
    ///
    /// # Errors
    /// The client has no roots, or the file is in none of them.
    pub async fn in_roots<S>(
        ctx: &Context<S>,
        key: &str,
        uri: &str,
    ) -> Result<Self, ResourceError> {
        let roots = ctx.roots(key).await;
        let roots = roots.map_err(|error| ResourceError::Failed(error.to_string()))?;

        let Some((root, name)) = below_root(&roots, uri) else {
            let message = format!("{} is in none of the client's roots.", quoted(uri));
            return Err(Fault::invalid_params(message).into());
        };

        Ok(Self::within(root, name))
    }

    /// Whether the content is sent as `blob` or as `text`. Default: detected from
    /// media type and content.
    #[must_use]
    pub fn is_binary(mut self, is_binary: bool) -> Self {
        self.is_binary = Some(is_binary);
        self
    }

    /// The media type. Default: that of the file extension.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Makes the file a resource of that URI. Lists show its size and last change.
    pub fn at<S: Send + Sync + 'static>(self, uri: impl Into<String>) -> Resource<S> {
        let file = self.clone();
        let name = file_name(&self.path);
        let mime_type = self.media_type();

        let resource = Resource::new(uri, move |_: Context<S>| std::future::ready(self.clone()));
        let resource = match mime_type {
            Some(mime_type) => resource.mime_type(mime_type),
            None => resource,
        };

        resource.name(name).stat(Box::new(move || {
            let file = file.clone();
            async move {
                match file.find().await {
                    Ok((_, metadata)) => stat(&metadata, true),
                    Err(_) => ResourceStat::default(),
                }
            }
            .boxed()
        }))
    }

    fn media_type(&self) -> Option<String> {
        self.mime_type.clone().or_else(|| by_extension(&self.path))
    }

    /// The file's canonical path and metadata.
    async fn find(&self) -> Result<(PathBuf, Metadata), ResourceError> {
        let mut path = self.path.clone();
        if let Some(directory) = &self.within {
            let name = path.strip_prefix(directory).map_err(|_| ResourceError::NotFound)?;
            if !name.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(ResourceError::NotFound);
            }

            let directory =
                fs::canonicalize(directory).await.map_err(|error| unreadable(&error))?;
            path = fs::canonicalize(&path).await.map_err(|error| unreadable(&error))?;

            if !path.starts_with(directory) {
                return Err(ResourceError::NotFound);
            }
        }

        let metadata = fs::metadata(&path).await.map_err(|error| unreadable(&error))?;
        // Opening a named pipe would block.
        if !metadata.is_file() {
            return Err(ResourceError::NotFound);
        }

        Ok((path, metadata))
    }
}

impl IntoContent for FileResource {
    async fn into_content(self) -> Result<Content, ResourceError> {
        let (path, metadata) = self.find().await?;
        let ranges = file_ranges::of_file(&path, &metadata).await;
        let ranges = ranges.map_err(|error| unreadable(&error))?;

        let file = fs::File::open(path).await.map_err(|error| unreadable(&error))?;
        let pieces = ReaderStream::with_capacity(file, READ_BYTES);
        let mime_type = self.media_type();

        let content = match self.is_binary {
            Some(true) => Content::byte_stream(pieces),
            Some(false) => Content::text_stream(pieces),
            None => sniff(pieces, mime_type.as_deref().is_none_or(is_text)).await,
        };

        let content = match mime_type {
            Some(mime_type) => content.with_mime_type(mime_type),
            None => content,
        };

        Ok(match ranges {
            Some(ranges) => content.with_ranges(ranges),
            None => content,
        })
    }
}

/// The listing of a directory as JSON: `[{"name", "size", "mimeType",
/// "lastModified"}]`, sorted by name; a subdirectory has `"directory": true`.
///
/// Symbolic links are left out, because they can lead out of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryResource {
    path: PathBuf,
}

impl DirectoryResource {
    /// The directory at that path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Makes the directory a resource of that URI.
    pub fn at<S: Send + Sync + 'static>(self, uri: impl Into<String>) -> Resource<S> {
        let name = file_name(&self.path);
        let path = self.path.clone();

        Resource::new(uri, move |_: Context<S>| std::future::ready(self.clone()))
            .name(name)
            .mime_type("application/json")
            .stat(Box::new(move || {
                let path = path.clone();
                async move {
                    match fs::metadata(path).await {
                        Ok(metadata) => stat(&metadata, false),
                        Err(_) => ResourceStat::default(),
                    }
                }
                .boxed()
            }))
    }
}

impl IntoContent for DirectoryResource {
    async fn into_content(self) -> Result<Content, ResourceError> {
        let mut entries = Vec::new();
        let mut directory = fs::read_dir(&self.path).await.map_err(|error| unreadable(&error))?;

        while let Some(entry) = directory.next_entry().await.map_err(|error| unreadable(&error))? {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A file deleted in the meantime is left out.
            let Ok(metadata) = entry.metadata().await else { continue };
            let last_modified = stat(&metadata, false).last_modified;

            let json = if metadata.is_dir() {
                json!({ "name": name, "directory": true, "lastModified": last_modified })
            } else if metadata.is_file() {
                json!({
                    "name": name,
                    "size": metadata.len(),
                    "mimeType": by_extension(Path::new(&name)),
                    "lastModified": last_modified,
                })
            } else {
                continue;
            };

            entries.push((name, json));
        }

        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let entries: Vec<Value> = entries.into_iter().map(|(_, json)| json).collect();
        let json = visible_json(&Value::from(entries).to_string());
        Ok(Content::from(json).with_mime_type("application/json"))
    }
}

fn stat(metadata: &Metadata, with_size: bool) -> ResourceStat {
    let modified = metadata.modified().ok().map(DateTime::<Utc>::from);
    ResourceStat {
        size: with_size.then_some(metadata.len()),
        last_modified: modified.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true)),
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.map_or_else(|| "file".into(), |name| visible(&name).into_owned())
}

fn by_extension(path: &Path) -> Option<String> {
    mime_guess::from_path(path).first_raw().map(str::to_owned)
}

/// Logs the error. Callers do not get paths or system messages.
fn unreadable(error: &io::Error) -> ResourceError {
    match error.kind() {
        // No file has a name that the file system refuses, such as one that is too long.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            ResourceError::NotFound
        }
        _ => {
            tracing::error!(%error, "a file cannot be read");
            ResourceError::Failed("The file cannot be read now.".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_file_has_a_name_that_the_file_system_refuses() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = FileResource::within(directory.path(), "x".repeat(1_000));

        assert_eq!(file.into_content().await.err(), Some(ResourceError::NotFound));
    }
}
