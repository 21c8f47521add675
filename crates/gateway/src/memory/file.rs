//! [`MemoryFile`]: a file with what an upstream offers. It is a cache: a file that cannot be read
//! is ignored, and one that cannot be written is missed by nobody but the next start.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use larder_runtime::hex::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalogue::{Recorded, digest},
    link::Era,
    settings::{Command, Remote, Target},
};

/// The most bytes of a file.
const MAX_BYTES: u64 = 4 << 20;
/// The most files in the folder. Beyond them, the oldest ones are removed.
const MAX_FILES: usize = 256;
/// The end of the name of each file. Counts the layouts of files.
const EXTENSION: &str = "v1.json";

/// A file with what an upstream offers to one kind of client.
pub(crate) struct MemoryFile {
    folder: PathBuf,
    path: PathBuf,
}

/// The content of a file.
#[derive(Deserialize)]
pub(crate) struct RememberedContent {
    pub(crate) era: Era,
    #[serde(flatten)]
    pub(crate) lists: Recorded,
}

/// The part before the lists.
#[derive(Serialize)]
struct Head {
    era: Era,
}

impl MemoryFile {
    pub(super) fn new(folder: &Path, target: &Target, client: &Value) -> Self {
        let name = format!("{}.{EXTENSION}", name(target, client));
        Self { folder: folder.to_owned(), path: folder.join(name) }
    }

    /// The content. `None` if there is none that can be used.
    pub(crate) fn read(&self) -> Option<RememberedContent> {
        let file = File::open(&self.path).ok()?;
        let mut text = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut text).ok()?;
        if text.len() as u64 > MAX_BYTES {
            return None;
        }

        let content = serde_json::from_slice(&text);
        content
            .inspect_err(|error| {
                let file = self.path.display();
                tracing::debug!(%file, %error, "what an upstream offers is not remembered");
            })
            .ok()
    }

    /// Replaces the content.
    pub(crate) fn write(&self, lists: &str, era: Era) {
        let head = serde_json::to_string(&Head { era }).unwrap_or_default();
        let (Some(head), Some(lists)) = (head.strip_suffix('}'), lists.strip_prefix('{')) else {
            return;
        };

        let text = format!("{head},{lists}");
        if text.len() as u64 > MAX_BYTES
            || fs::read(&self.path).is_ok_and(|old| old == text.as_bytes())
        {
            return;
        }
        if let Err(error) = self.replace(text.as_bytes()) {
            let file = self.path.display();
            tracing::debug!(%file, %error, "what an upstream offers cannot be remembered");
        }
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        create_folder(&self.folder)?;
        self.remove_oldest()?;

        // Another process may write the same file, so each has one of its own until it is complete.
        let new = self.path.with_extension(format!("{}.new", std::process::id()));
        // An earlier process with this ID may have left one.
        let _ = fs::remove_file(&new);
        let written = create_private(&new).and_then(|mut file| file.write_all(text));
        let renamed = written.and_then(|()| fs::rename(&new, &self.path));
        if renamed.is_err() {
            let _ = fs::remove_file(&new);
        }
        renamed
    }

    /// Makes room for another file.
    fn remove_oldest(&self) -> io::Result<()> {
        let mut files: Vec<_> = fs::read_dir(&self.folder)?
            .flatten()
            .filter(|entry| entry.path().extension() == self.path.extension())
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if files.len() < MAX_FILES {
            return Ok(());
        }

        files.sort();
        for (_, path) in &files[..=files.len() - MAX_FILES] {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

/// Tells upstreams and kinds of clients apart. Environment and headers have secrets, so the name
/// shows none of it.
fn name(target: &Target, client: &Value) -> String {
    let mut parts = vec![env!("CARGO_PKG_VERSION").to_owned(), client.to_string()];
    match target {
        Target::Command(Command { line, env, .. }) => {
            let folder = std::env::current_dir().unwrap_or_default();
            parts.extend(["command".to_owned(), folder.display().to_string()]);
            parts.push(line.len().to_string());
            parts.extend(line.iter().cloned());
            parts.extend(env.iter().flat_map(|(name, value)| [name.clone(), value.clone()]));
        }
        Target::Remote(Remote { url, headers, .. }) => {
            parts.extend(["url".to_owned(), url.clone()]);
            parts.extend(headers.iter().flat_map(|(name, value)| [name.clone(), value.clone()]));
        }
    }

    hex(&digest(parts.iter().map(String::as_bytes))[..16])
}

#[cfg(unix)]
fn create_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// A new file that nobody else can read.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    const LISTS: &str = r#"{"tools":[{"name":"a"}],"prompts":[],"resources":[],"templates":[]}"#;

    fn command(line: &[&str], env: &[(&str, &str)]) -> Target {
        let line = line.iter().map(|part| (*part).to_owned()).collect();
        let env = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Target::Command(Command { line, env, ..Command::default() })
    }

    #[test]
    fn what_is_written_is_read_and_nobody_else_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        let file = MemoryFile::new(&below, &command(&["x"], &[]), &json!({}));
        assert!(file.read().is_none());

        for era in [Era::Legacy, Era::Modern] {
            file.write(LISTS, era);
            let read = file.read().unwrap();
            assert_eq!(read.era, era);
        }
        assert_eq!(fs::read_dir(&below).unwrap().count(), 1);

        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&file.path), mode(&below)), (0o600, 0o700));
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let file = MemoryFile::new(folder.path(), &command(&["x"], &[]), &json!({}));
        let long = format!("[{}]", "0,".repeat(3 << 20));
        for text in ["", "{", "null", "[]", r#"{"era":"legacy"}"#, "\u{0}", &LISTS[..40], &long] {
            fs::write(&file.path, text).unwrap();
            assert!(file.read().is_none(), "{} bytes", text.len());
        }

        fs::remove_file(&file.path).unwrap();
        fs::create_dir(&file.path).unwrap();
        assert!(file.read().is_none());
        file.write(LISTS, Era::Legacy);
        assert!(file.read().is_none());
    }

    #[test]
    fn files_are_told_apart_by_all_that_changes_the_lists() {
        let targets = [
            command(&["x"], &[]),
            command(&["x", ""], &[]),
            command(&["x", "y"], &[]),
            command(&["xy"], &[]),
            command(&["x"], &[("y", "")]),
            command(&["x"], &[("y", "1")]),
            Target::Remote(Remote { url: "x".into(), ..Remote::default() }),
        ];
        let clients = [json!({}), json!({ "roots": {} })];
        let names = targets.iter().flat_map(|target| clients.iter().map(|c| name(target, c)));
        let names: std::collections::HashSet<_> = names.collect();
        assert_eq!(names.len(), targets.len() * clients.len());
        assert!(names.iter().all(|name| name.len() == 32));
    }

    #[test]
    fn the_folder_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MAX_FILES + 20 {
            let target = command(&[&number.to_string()], &[]);
            let file = MemoryFile::new(folder.path(), &target, &json!({}));
            file.write(LISTS, Era::Legacy);
            assert!(file.read().is_some());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MAX_FILES);
    }
}
