//! [`Change`]: what `larder wrap` makes of a host's file.

use serde_json::{Map, Value, json};

use super::super::client::say;

/// The change of a host's file, before it is written.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// The new text.
    pub(super) text: String,
    /// The text of the file without Larder, which becomes the backup. `None` if the change takes
    /// Larder away.
    pub(super) without: Option<String>,
    /// The new or changed entries, by name.
    pub(super) entries: Map<String, Value>,
    /// The configuration file with the servers of the common entry. `None` if there is no such entry.
    pub(super) config: Option<String>,
    /// The servers that go through Larder now, or no longer do.
    pub(super) servers: Vec<String>,
    /// Sentences about servers that stay as they are, and about parts that are left out.
    pub(super) notes: Vec<String>,
}

impl Change {
    /// Prints the changed entries as they would be in a file of their own, then the configuration
    /// file.
    pub(super) fn print(&self, section: &str) {
        say(&format!("{:#}", json!({ section: self.entries })));
        if let Some(config) = &self.config {
            say(&format!("\n{}", config.trim_end()));
        }
    }

    /// Notes that a server stays as it is.
    pub(super) fn keep(&mut self, name: &str, why: &str) {
        self.notes.push(format!("{name} stays as it is: {why}."));
    }
}
