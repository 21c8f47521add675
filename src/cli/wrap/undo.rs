//! The servers of a host as they were before Larder.

use super::{
    change::Change,
    each,
    host_files::{HostFiles, common_entry},
};

/// The change that makes the named servers, or all, as they were before.
///
/// # Errors
/// A server that is not in the file, or has no entry of its own.
pub(super) fn undone(files: &HostFiles, names: &[String]) -> Result<Change, String> {
    let mut change = each::unwrapped(&files.document, files.before.as_ref(), names);
    let separate = files.parse(change.text.clone())?;

    let Some(common) = common_entry(&separate) else {
        files.check_names(&files.document, names)?;
        return Ok(change);
    };
    if !names.is_empty() {
        return Err(files.problem(&format!(
            "its servers have one entry, {}: undo all, and wrap the others again",
            common.name
        )));
    }

    let originals = files.originals(&separate)?;
    for original in &originals {
        change.servers.push(original.name.clone());
        change.entries.insert(original.name.clone(), original.value.clone().into());
    }
    change.text = files.separated(&separate, common, &originals);
    Ok(change)
}
