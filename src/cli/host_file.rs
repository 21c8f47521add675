//! The configuration files of hosts: where they are, and how they are replaced.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
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
    let directory = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
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
    temporary.push(format!(".{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    // A new one only for this user: servers' environments are written to it, with secrets.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.write(true).create(true).truncate(true).open(&temporary);
    let written = opened.and_then(|mut created| {
        // Before there is anything to read.
        if let Some(permissions) = permissions {
            created.set_permissions(permissions)?;
        }
        created.write_all(text.as_bytes())?;
        created.sync_all()?;
        fs::rename(&temporary, file)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
