//! Files and directories as resources: read from disk when they are read, and
//! streamed.

use std::{
    fs::Metadata,
    path::{Component, Path, PathBuf},
};

use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::{fs, io};
use tokio_util::io::ReaderStream;

use super::sniff::{is_text, sniff};
use crate::{
    handler::{Context, IntoContent, ResourceError},
    registry::{Resource, ResourceStat},
    store::Content,
};

/// How much is read from disk at a time, in bytes.
const PIECE: usize = 64 << 10;

/// A file, read anew each time. Its media type goes by the name's extension.
///
/// It can be registered as a resource, or returned by the handler of a
/// resource or a template:
///
/// ```
/// use larder::{Context, FileResource, Registry, Template, Variables};
///
/// let files = Template::new("file:///{name}", "file", |_: Context, variables: Variables| async move {
///     // Whatever the name, nothing outside of the folder is read.
///     FileResource::within("/srv/files", &variables["name"])
/// });
/// let registry = Registry::builder("files")
///     .resource(FileResource::new("/srv/files/1.txt").at("file:///1.txt"))
///     .template(files)
///     .build();
/// assert!(registry.is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileResource {
    path: PathBuf,
    /// The folder that it has to lie in.
    within: Option<PathBuf>,
    is_binary: Option<bool>,
    mime_type: Option<String>,
}

impl FileResource {
    /// The file at that path, which the server's author chose.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), within: None, is_binary: None, mime_type: None }
    }

    /// The file of that name in a folder, wherever the name comes from: names
    /// and links that lead out of the folder lead to nothing.
    pub fn within(folder: impl Into<PathBuf>, name: impl AsRef<Path>) -> Self {
        let folder = folder.into();
        Self { within: Some(folder.clone()), ..Self::new(folder.join(name)) }
    }

    /// Whether it becomes `blob` or `text`, instead of what it looks like.
    #[must_use]
    pub fn is_binary(mut self, is_binary: bool) -> Self {
        self.is_binary = Some(is_binary);
        self
    }

    /// Another media type than that of the extension.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The file as a resource of that URI, listed with its size and last change.
    pub fn at<S: Send + Sync + 'static>(self, uri: impl Into<String>) -> Resource<S> {
        let (looked_at, name, mime_type) = (self.clone(), file_name(&self.path), self.media_type());
        let resource = Resource::new(uri, move |_: Context<S>| std::future::ready(self.clone()));
        let resource = match mime_type {
            Some(mime_type) => resource.mime_type(mime_type),
            None => resource,
        };
        resource.name(name).stat(Box::new(move || {
            let file = looked_at.clone();
            async move {
                match file.find().await {
                    Ok((_, metadata)) => facts(&metadata, true),
                    Err(_) => ResourceStat::default(),
                }
            }
            .boxed()
        }))
    }

    fn media_type(&self) -> Option<String> {
        self.mime_type.clone().or_else(|| by_extension(&self.path))
    }

    /// Where the file really is, if there is one.
    async fn find(&self) -> Result<(PathBuf, Metadata), ResourceError> {
        let mut path = self.path.clone();
        if let Some(folder) = &self.within {
            let name = path.strip_prefix(folder).map_err(|_| ResourceError::NotFound)?;
            if !name.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(ResourceError::NotFound);
            }
            let folder = fs::canonicalize(folder).await.map_err(|error| unreadable(&error))?;
            path = fs::canonicalize(&path).await.map_err(|error| unreadable(&error))?;
            if !path.starts_with(folder) {
                return Err(ResourceError::NotFound);
            }
        }
        let metadata = fs::metadata(&path).await.map_err(|error| unreadable(&error))?;
        // A pipe would be waited for when it is opened.
        if !metadata.is_file() {
            return Err(ResourceError::NotFound);
        }
        Ok((path, metadata))
    }
}

impl IntoContent for FileResource {
    async fn into_content(self) -> Result<Content, ResourceError> {
        let (path, _) = self.find().await?;
        let file = fs::File::open(path).await.map_err(|error| unreadable(&error))?;
        let pieces = ReaderStream::with_capacity(file, PIECE);
        let mime_type = self.media_type();
        let content = match self.is_binary {
            Some(true) => Content::byte_stream(pieces),
            Some(false) => Content::text_stream(pieces),
            None => sniff(pieces, mime_type.as_deref().is_none_or(is_text)).await,
        };
        Ok(match mime_type {
            Some(mime_type) => content.with_mime_type(mime_type),
            None => content,
        })
    }
}

/// What lies in a directory, as JSON: `[{"name", "size", "mimeType",
/// "lastModified"}]`, sorted by name; a directory in it has `"directory": true`.
///
/// Links are left out, since they may lead elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryResource {
    path: PathBuf,
}

impl DirectoryResource {
    /// The directory at that path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory as a resource of that URI.
    pub fn at<S: Send + Sync + 'static>(self, uri: impl Into<String>) -> Resource<S> {
        let (name, path) = (file_name(&self.path), self.path.clone());
        Resource::new(uri, move |_: Context<S>| std::future::ready(self.clone()))
            .name(name)
            .mime_type("application/json")
            .stat(Box::new(move || {
                let path = path.clone();
                async move {
                    match fs::metadata(path).await {
                        Ok(metadata) => facts(&metadata, false),
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
            // What has gone since then is left out.
            let Ok(metadata) = entry.metadata().await else { continue };
            let last_modified = facts(&metadata, false).last_modified;
            let shown = if metadata.is_dir() {
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
            entries.push((name, shown));
        }
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        let shown: Vec<Value> = entries.into_iter().map(|(_, shown)| shown).collect();
        Ok(Value::from(shown).into())
    }
}

fn facts(metadata: &Metadata, with_size: bool) -> ResourceStat {
    let modified = metadata.modified().ok().map(DateTime::<Utc>::from);
    ResourceStat {
        size: with_size.then_some(metadata.len()),
        last_modified: modified.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true)),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy().into_owned())
}

fn by_extension(path: &Path) -> Option<String> {
    mime_guess::from_path(path).first_raw().map(str::to_owned)
}

/// Paths and the system's words stay in the log.
fn unreadable(error: &io::Error) -> ResourceError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ResourceError::NotFound,
        _ => {
            tracing::error!(%error, "a file cannot be read");
            ResourceError::Failed("The file cannot be read now.".into())
        }
    }
}
