//! An instance of Larder in the entry of each server.

use super::{
    change::Change,
    document::{Document, Entry},
    entry,
    host_files::{HostFiles, common_entry},
    larder_line::command_line,
};
use crate::cli::ServeArgs;

/// The change that puts Larder into the entry of each named server, or of all.
///
/// # Errors
/// A server that was named and cannot be wrapped.
pub(super) fn wrapped(
    files: &HostFiles,
    names: &[String],
    serve: &ServeArgs,
) -> Result<Change, String> {
    if common_entry(&files.document).is_some() {
        return Err(files.problem("its servers have one entry: --undo that first"));
    }
    files.check_names(&files.document, names)?;

    let larder = command_line(serve, false)?;
    let mut change = Change::default();
    let mut texts = Vec::new();
    for entry in chosen(&files.document, names) {
        match entry::wrap(&entry.value, &larder) {
            Ok(value) => {
                texts.push((entry.name.as_str(), files.document.format(entry, &value)));
                change.entries.insert(entry.name.clone(), value.into());
                change.servers.push(entry.name.clone());
            }
            Err(why) if names.contains(&entry.name) && why != entry::DONE => {
                return Err(files.problem(&format!("{}: {why}", entry.name)));
            }
            Err(why) => change.keep(&entry.name, why),
        }
    }

    change.text = files.document.with(texts.iter().map(|(name, text)| (*name, &**text)));
    change.without = Some(match &files.before {
        // Earlier changes of the file may be Larder's own.
        Some(before) => unwrapped(&files.document, Some(before), &[]).text,
        None => files.document.text().to_owned(),
    });
    Ok(change)
}

/// Restores the named servers, or all, with the bytes that they had unless they have been
/// changed since. A server that goes through Larder in the backup as well stays, unless it is named.
pub(super) fn unwrapped(
    document: &Document,
    before: Option<&Document>,
    names: &[String],
) -> Change {
    let mut change = Change::default();
    let mut texts = Vec::new();

    for entry in chosen(document, names) {
        let Some(derived) = entry::unwrap(&entry.value) else { continue };
        let original = before.and_then(|before| Some((before, before.entry(&entry.name)?)));

        let (value, text) = match original {
            Some((before, original)) if entry::is_wrapped_from(&entry.value, &original.value) => {
                (original.value.clone(), before.source(original).to_owned())
            }
            Some((_, original)) if original.value == entry.value && names.is_empty() => {
                change.keep(&entry.name, "it was so before");
                continue;
            }
            _ => {
                let text = document.format(entry, &derived);
                (derived, text)
            }
        };
        texts.push((entry.name.as_str(), text));
        change.entries.insert(entry.name.clone(), value.into());
        change.servers.push(entry.name.clone());
    }

    change.text = document.with(texts.iter().map(|(name, text)| (*name, &**text)));
    change
}

pub(super) fn chosen<'a>(
    document: &'a Document,
    names: &'a [String],
) -> impl Iterator<Item = &'a Entry> {
    let is_chosen = |entry: &&Entry| names.is_empty() || names.contains(&entry.name);
    document.entries.iter().filter(is_chosen)
}
