//! The configuration files of hosts: where they are, and how they are replaced.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use larder_runtime::{environment::variable_os, random::Random};
use serde_json::{Value, json};

/// A host whose configuration file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// .mcp.json, for the project in this directory.
    ClaudeCode,
    /// claude_desktop_config.json, for this user.
    ClaudeDesktop,
    /// .vscode/mcp.json, for the workspace in this directory.
    Vscode,
    /// .cursor/mcp.json, for the project in this directory.
    Cursor,
}

impl Client {
    /// The member of the file that has the servers.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor => "mcpServers",
        }
    }

    /// The default configuration file.
    pub(super) fn file(self) -> Result<PathBuf, String> {
        Ok(match self {
            Self::ClaudeCode => ".mcp.json".into(),
            Self::Vscode => ".vscode/mcp.json".into(),
            Self::Cursor => ".cursor/mcp.json".into(),
            Self::ClaudeDesktop => settings_directory()?.join("Claude/claude_desktop_config.json"),
        })
    }

    /// The entry for a running server.
    pub(super) fn remote_entry(self, url: &str) -> Result<Value, String> {
        match self {
            Self::ClaudeCode | Self::Vscode => Ok(json!({ "type": "http", "url": url })),
            Self::Cursor => Ok(json!({ "url": url })),
            Self::ClaudeDesktop => Err(
                "Claude Desktop's file has only servers that it starts. Add the URL under Settings, Connectors; or omit --url.".into(),
            ),
        }
    }
}

/// The directory of a user's application settings.
fn settings_directory() -> Result<PathBuf, String> {
    let directory = |name: &str| variable_os(name).map(PathBuf::from);
    let found = if cfg!(windows) {
        directory("APPDATA")
    } else if cfg!(target_os = "macos") {
        directory("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))
    };

    found.ok_or_else(|| "The user's directory is not known: give --file.".to_owned())
}

/// Replaces a file atomically, with the permissions that it has: hosts keep other settings
/// in it, too, and secrets.
pub(super) fn replace(file: &Path, text: &str) -> io::Result<()> {
    // Writes to the target of a symbolic link, so that the link stays.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let permissions = fs::metadata(&file).map(|metadata| metadata.permissions()).ok();
    write(&file, text, permissions)
}

/// Writes a file atomically.
pub(super) fn write(
    file: &Path,
    text: &str,
    permissions: Option<fs::Permissions>,
) -> io::Result<()> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::create_dir_all(directory)?;
    }

    let mut temporary = file.to_owned().into_os_string();
    // Other users may write in the directory, so the name must not be guessable.
    temporary.push(format!(".{}", Random::system().id()));

    let mut options = fs::OpenOptions::new();
    // A new file is only for this user, because the environments of servers contain secrets.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut created = options.write(true).create_new(true).open(&temporary)?;

    // Permissions are set before there is content to read.
    let permitted = permissions.map_or(Ok(()), |permissions| created.set_permissions(permissions));
    let written = permitted
        .and_then(|()| created.write_all(text.as_bytes()))
        .and_then(|()| created.sync_all())
        .and_then(|()| fs::rename(&temporary, file));

    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts/mcp.json");
        write(&file, "one", None).unwrap();

        replace(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_somebody_put_beside_the_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, victim] = ["mcp.json", "victim"].map(|name| folder.path().join(name));
        fs::write(&victim, "kept").unwrap();

        let guessed = folder.path().join(format!("mcp.json.{}", std::process::id()));
        std::os::unix::fs::symlink(&victim, &guessed).unwrap();

        write(&file, "secret", None).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(fs::read_to_string(&file).unwrap(), "secret");
    }
}
