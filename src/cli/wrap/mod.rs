//! `larder wrap`: makes the servers of a host's configuration go through Larder, and turns
//! that back.

mod document;
mod entry;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde_json::{Map, Value, json};

use self::document::{Document, Entry};
use super::{
    ServeArgs,
    client::say,
    host_file::{self, Client},
};

/// The suffix of the file as it was without Larder.
const BACKUP: &str = ".before-larder";

#[derive(Debug, Args)]
pub(super) struct WrapArgs {
    /// The host.
    #[arg(long)]
    client: Client,
    /// The servers; all by default.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Make them as they were before.
    #[arg(long)]
    undo: bool,
    /// Only print the changed entries.
    #[arg(long)]
    print: bool,
    /// The configuration file, if it is not the host's default one.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
}

/// The change of one file.
#[derive(Default)]
struct Plan {
    changes: Vec<Change>,
    /// Why other entries stay as they are.
    unchanged: Vec<(String, &'static str)>,
}

/// A new entry.
struct Change {
    name: String,
    value: Map<String, Value>,
    /// The value as it is written to the file.
    text: String,
}

impl Plan {
    fn names(&self) -> String {
        self.changes.iter().map(|change| change.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The file with the changes.
    fn apply_to(&self, document: &Document) -> String {
        document.with(self.changes.iter().map(|change| (change.name.as_str(), &*change.text)))
    }

    /// Prints the changed entries as they would be in a file of their own.
    fn print(&self, section: &str) {
        let entries = self.changes.iter().map(|change| (change.name.clone(), json!(change.value)));
        say(&format!("{:#}", json!({ section: entries.collect::<Map<_, _>>() })));
    }
}

pub(super) fn run(args: &WrapArgs) -> Result<ExitCode, String> {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => args.client.file()?,
    };

    let of_file = |problem: String| format!("{}: {problem}. It is unchanged.", file.display());
    let section = args.client.section();
    let Some(document) = read(&file, section).map_err(of_file)? else {
        return Err(of_file("it does not exist".into()));
    };

    for name in &args.names {
        if document.entry(name).is_none() {
            return Err(of_file(format!("it has no server {name:?}")));
        }
    }

    let backup = backup_of(&file);
    let before = read(&backup, section)
        .map_err(|problem| format!("{}: {problem}. Move it away.", backup.display()))?;

    let plan = if args.undo {
        undo(&document, before.as_ref(), &args.names)
    } else {
        wrap(&document, &args.names, &command_line(&args.serve)?)
    };

    // A server that was named and cannot be wrapped is an error before anything changes.
    let named = |name: &String| !args.undo && args.names.contains(name);
    let refused = plan.unchanged.iter().find(|(name, why)| named(name) && *why != entry::DONE);
    if let Some((name, why)) = refused {
        return Err(of_file(format!("{name}: {why}")));
    }

    if args.print {
        plan.print(section);
        return Ok(ExitCode::SUCCESS);
    }

    for (name, why) in &plan.unchanged {
        say(&format!("{name} stays as it is: {why}."));
    }
    if plan.changes.is_empty() {
        say(&format!("{} is unchanged.", file.display()));
        return Ok(ExitCode::SUCCESS);
    }

    if !args.undo {
        write_backup(&file, &backup, &document, before.as_ref()).map_err(of_file)?;
    }
    let text = plan.apply_to(&document);
    host_file::replace(&file, &text)
        .map_err(|error| of_file(format!("it cannot be written: {error}")))?;

    if args.undo {
        say(&format!("{}: {} as before Larder.", file.display(), plan.names()));
        if before.is_some_and(|before| before.text() == text) {
            let _ = fs::remove_file(&backup);
        }
    } else {
        say(&format!("{}: {} through Larder now.", file.display(), plan.names()));
        say(&format!("{} is the file as it was; --undo turns it back.", backup.display()));
    }

    say("Restart the host if it is running.");
    Ok(ExitCode::SUCCESS)
}

/// Writes the backup: the file without Larder, because earlier changes may be Larder's own.
fn write_backup(
    file: &Path,
    backup: &Path,
    document: &Document,
    before: Option<&Document>,
) -> Result<(), String> {
    let without = before.map(|_| undo(document, before, &[]).apply_to(document));
    let without = without.as_deref().unwrap_or(document.text());

    let permissions = fs::metadata(file).map(|metadata| metadata.permissions()).ok();
    host_file::write(backup, without, permissions)
        .map_err(|error| format!("{} cannot be written: {error}", backup.display()))
}

/// Larder's command line in front of each server.
fn command_line(serve: &ServeArgs) -> Result<Vec<String>, String> {
    let config = serve.configure().map_err(|error| error.to_string())?;
    if !config.upstreams.is_empty() {
        return Err("the configuration has [[upstreams]], so the tools of the host's servers would get other names: give another --config".into());
    }

    let line = serve.stdio_command_line(&["serve"])?.into_iter();
    line.map(|part| part.into_string().map_err(|part| format!("{} is not Unicode", part.display())))
        .collect()
}

/// Puts Larder in front of the named servers, or of all.
fn wrap(document: &Document, names: &[String], larder: &[String]) -> Plan {
    let mut plan = Plan::default();
    for entry in chosen(document, names) {
        match entry::wrap(&entry.value, larder) {
            Ok(value) => {
                let name = entry.name.clone();
                let text = document.format(entry, &value);
                plan.changes.push(Change { name, value, text });
            }
            Err(why) => plan.unchanged.push((entry.name.clone(), why)),
        }
    }
    plan
}

/// Restores the named servers, or all, with the bytes that they had unless they have been
/// changed since. What goes through Larder in the backup as well stays, unless it is named.
fn undo(document: &Document, before: Option<&Document>, names: &[String]) -> Plan {
    let mut plan = Plan::default();

    for entry in chosen(document, names) {
        let Some(derived) = entry::unwrap(&entry.value) else { continue };
        let original = before.and_then(|before| Some((before, before.entry(&entry.name)?)));
        let (value, text) = match original {
            Some((before, original)) if entry::is_wrapped_from(&entry.value, &original.value) => {
                (original.value.clone(), before.source(original).to_owned())
            }
            Some((_, original)) if original.value == entry.value && names.is_empty() => {
                plan.unchanged.push((entry.name.clone(), "it was so before"));
                continue;
            }
            _ => {
                let text = document.format(entry, &derived);
                (derived, text)
            }
        };

        plan.changes.push(Change { name: entry.name.clone(), value, text });
    }

    plan
}

fn chosen<'a>(document: &'a Document, names: &'a [String]) -> impl Iterator<Item = &'a Entry> {
    let is_chosen = |entry: &&Entry| names.is_empty() || names.contains(&entry.name);
    document.entries.iter().filter(is_chosen)
}

/// The file, if it exists.
fn read(file: &Path, section: &str) -> Result<Option<Document>, String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("it cannot be read: {error}")),
        Ok(text) => Document::parse(text, section).map(Some),
    }
}

fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.to_owned().into_os_string();
    name.push(BACKUP);
    name.into()
}
