//! [`HostFiles`]: a host's file, the file as it was without Larder, and the configuration file of
//! the servers in one entry.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    change::Change,
    document::{Document, Entry},
};
use crate::cli::{client::say, host_file};

/// The suffix of the file as it was without Larder.
const BACKUP: &str = ".before-larder";
/// The suffix of the configuration file with the servers of the common entry.
const CONFIG: &str = ".larder.toml";

/// The files of a host.
#[derive(Debug)]
pub(super) struct HostFiles {
    path: PathBuf,
    /// The member that has the servers.
    section: &'static str,
    pub(super) document: Document,
    /// The file as it was without Larder, if it was wrapped.
    pub(super) before: Option<Document>,
}

impl HostFiles {
    /// # Errors
    /// A file cannot be read or parsed, or the host has none.
    pub(super) fn read(path: PathBuf, section: &'static str) -> Result<Self, String> {
        let Some(document) = read(&path, section).map_err(|why| unchanged(&path, &why))? else {
            return Err(unchanged(&path, "it does not exist"));
        };

        let backup = beside(&path, BACKUP);
        let before = read(&backup, section)
            .map_err(|problem| format!("{}: {problem}. Move it away.", backup.display()))?;
        Ok(Self { path, section, document, before })
    }

    /// The configuration file of the servers in one entry.
    pub(super) fn config(&self) -> PathBuf {
        beside(&self.path, CONFIG)
    }

    /// An error about the host's file, which is not changed.
    pub(super) fn problem(&self, problem: &str) -> String {
        unchanged(&self.path, problem)
    }

    /// # Errors
    /// The first name that no entry of the document has.
    pub(super) fn check_names(&self, document: &Document, names: &[String]) -> Result<(), String> {
        match names.iter().find(|name| document.entry(name).is_none()) {
            Some(name) => Err(self.problem(&format!("it has no server {name:?}"))),
            None => Ok(()),
        }
    }

    /// The document of a changed text.
    pub(super) fn parse(&self, text: String) -> Result<Document, String> {
        Document::parse(text, self.section).map_err(|problem| self.problem(&problem))
    }

    /// The file in which all servers have entries of their own again.
    pub(super) fn separate(&self) -> Result<Document, String> {
        match common_entry(&self.document) {
            None => Ok(self.document.clone()),
            Some(common) => {
                let originals = self.originals(&self.document)?;
                self.parse(self.separated(&self.document, common, &originals))
            }
        }
    }

    /// The entries of the servers that are in the common entry of a document.
    ///
    /// # Errors
    /// The file as it was is missing.
    pub(super) fn originals(&self, document: &Document) -> Result<Vec<&Entry>, String> {
        let Some(before) = &self.before else {
            let backup = beside(&self.path, BACKUP);
            return Err(self.problem(&format!(
                "{} is missing, which has the servers as they were",
                backup.display()
            )));
        };
        let is_gone = |entry: &&Entry| document.entry(&entry.name).is_none();
        Ok(before.entries.iter().filter(is_gone).collect())
    }

    /// The text with the original entries in place of the common one: the text of the backup if
    /// nothing else has changed since.
    pub(super) fn separated(
        &self,
        document: &Document,
        common: &Entry,
        originals: &[&Entry],
    ) -> String {
        let Some(before) = &self.before else { return document.text().to_owned() };

        let names: Vec<_> = originals.iter().map(|entry| entry.name.as_str()).collect();
        if before.merged(&names, &common.name, document.source(common)) == document.text() {
            return before.text().to_owned();
        }
        let sources = originals.iter().map(|entry| (entry.name.as_str(), before.source(entry)));
        document.split(common, &sources.collect::<Vec<_>>())
    }

    /// Writes a change, and tells of it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn apply(&self, change: &Change) -> Result<(), String> {
        for note in &change.notes {
            say(note);
        }

        let config = self.config();
        let is_same_config =
            change.config.is_none() || fs::read_to_string(&config).ok() == change.config;
        if change.text == self.document.text() && is_same_config {
            say(&format!("{} is unchanged.", self.path.display()));
            return Ok(());
        }

        let backup = beside(&self.path, BACKUP);
        if let Some(without) = &change.without {
            self.write(&backup, without)?;
        }
        if let Some(text) = &change.config {
            self.write(&config, text)?;
        }
        host_file::replace(&self.path, &change.text)
            .map_err(|error| self.problem(&format!("it cannot be written: {error}")))?;

        // A file that no entry names any longer has nothing that the backup does not have.
        if change.config.is_none() && common_entry(&self.document).is_some() {
            let _ = fs::remove_file(&config);
        }
        let is_restored = self.before.as_ref().is_some_and(|before| before.text() == change.text);
        if change.without.is_none() && is_restored {
            let _ = fs::remove_file(&backup);
        }

        self.tell(change, &config, &backup);
        Ok(())
    }

    fn tell(&self, change: &Change, config: &Path, backup: &Path) {
        let file = self.path.display();
        let servers = change.servers.join(", ");
        if change.without.is_none() {
            say(&format!("{file}: {servers} as before Larder."));
        } else {
            say(&format!("{file}: {servers} through Larder now."));
            if change.config.is_some() {
                say(&format!("{} has the servers in one entry.", config.display()));
            }
            say(&format!("{} is the file as it was; --undo turns it back.", backup.display()));
        }
        say("Restart the host if it is running.");
    }

    /// Writes a file with the permissions of the host's.
    fn write(&self, file: &Path, text: &str) -> Result<(), String> {
        let permissions = fs::metadata(&self.path).map(|metadata| metadata.permissions()).ok();
        host_file::write(file, text, permissions).map_err(|error| {
            self.problem(&format!("{} cannot be written: {error}", file.display()))
        })
    }
}

/// The entry of all servers of a host, if there is one.
pub(super) fn common_entry(document: &Document) -> Option<&Entry> {
    document.entries.iter().find(|entry| {
        let arguments = entry.value.get("args").and_then(Value::as_array);
        let mut arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
        arguments.any(|argument| argument.ends_with(CONFIG))
    })
}

fn unchanged(path: &Path, problem: &str) -> String {
    format!("{}: {problem}. It is unchanged.", path.display())
}

/// The file, if it exists.
fn read(file: &Path, section: &str) -> Result<Option<Document>, String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("it cannot be read: {error}")),
        Ok(text) => Document::parse(text, section).map(Some),
    }
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.to_owned().into_os_string();
    name.push(suffix);
    name.into()
}
