//! The paths of all objects of a store.
//!
//! ```text
//! <owner>/<scheme>=/_<part>/…/_<last part>!/<n>.json        an entry, written by the owner's n-th change
//!                                          !/<n>.gone     in its place, for a minute after the n-th change removed it
//!                                          !/<id>.content   its content, as stored, unless the entry holds it
//! =ledger/<owner>/<n>.json                                  the record of the n-th change, with the owner's totals
//! =due/<hour>/<millisecond>-<hash>.json                     a resource to check at that time
//! =due/<hour>/<millisecond>-<hash>-<hash>.json              content of an owner to remove at that time
//! =vault/<hash>/<n>                                         the n-th version of a slot of the vault
//! =vault-due/<hour>/<hash>                                  a slot that may have expired after that hour
//! =reserve/<number>.space                                   files that take space, on a disk only
//! ```
//!
//! [`names`] encodes owners and URIs. No encoded owner begins with `=ledger`,
//! `=due`, `=probe`, `=reserve` or `=vault`.

mod names;

use larder_identity::Owner;
use larder_runtime::{clock::Timestamp, hex::hex};
use object_store::path::Path;
use sha2::{Digest, Sha256};

pub(super) use self::names::{list_start, resource, stem, uri};
use self::names::{owner_of, owner_segment};

/// The maximum length of the configured prefix, in bytes: the rest of an S3 key beside
/// [`names::MAX_PATH`].
pub(super) const MAX_PREFIX: usize = 128;

const HOUR: u64 = 60 * 60 * 1000;

/// Parses a path that this module has composed.
fn path(path: &str) -> Path {
    Path::parse(path).expect("no part is empty or dots, or has a slash")
}

/// The folder of an owner's resources.
pub(super) fn owner_folder(owner: &Owner) -> Path {
    path(&owner_segment(owner))
}

/// The entry that the owner's n-th change wrote for a resource.
pub(super) fn entry(resource: &Path, number: u64) -> Path {
    resource.clone().join(format!("{number}.json"))
}

/// The tombstone that the owner's n-th change left where it removed a resource.
pub(super) fn tombstone(resource: &Path, number: u64) -> Path {
    resource.clone().join(format!("{number}.gone"))
}

/// The change number of a tombstone, from its path.
pub(super) fn tombstone_number(file: &Path) -> Option<u64> {
    file.filename()?.strip_suffix(".gone")?.parse().ok()
}

/// The content of a resource with the given ID.
pub(super) fn content(resource: &Path, id: &str) -> Path {
    resource.clone().join(format!("{id}.content"))
}

/// The change number of an entry or ledger record, from its path.
pub(super) fn number(file: &Path) -> Option<u64> {
    file.filename()?.strip_suffix(".json")?.parse().ok()
}

/// The ID of content, from its path.
pub(super) fn content_id(file: &Path) -> Option<&str> {
    file.filename()?.strip_suffix(".content")
}

/// The folder that contains a file.
pub(super) fn folder(file: &Path) -> Option<Path> {
    Path::parse(file.as_ref().rsplit_once('/')?.0).ok()
}

/// The folder of all ledgers.
pub(super) fn ledgers() -> Path {
    path("=ledger")
}

/// A path after all records of the ledger with this folder, and before the next ledger.
pub(super) fn ledgers_after(folder: &str) -> Result<Path, object_store::path::Error> {
    // `0` is the character after the slash.
    Path::parse(format!("=ledger/{folder}0"))
}

/// The owner of a ledger, from its folder. `None` if the name is too long for a path.
pub(super) fn owner(ledger: &Path) -> Option<Owner> {
    owner_of(ledger.filename()?)
}

/// The folder of an owner's ledger.
pub(super) fn ledger(owner: &Owner) -> Path {
    path(&format!("=ledger/{}", owner_segment(owner)))
}

/// The record of the n-th change in a ledger.
pub(super) fn ledger_record(ledger: &Path, number: u64) -> Path {
    ledger.clone().join(format!("{number}.json"))
}

/// The folder of all due files.
pub(super) fn due_folder() -> Path {
    path("=due")
}

/// The due file for a time and a key. The same time and key give the same path.
pub(super) fn due_file(at: Timestamp, key: &str) -> Path {
    let hash = hex(&Sha256::digest(key));
    let millis = at.as_millis();
    let hour = millis / HOUR;
    path(&format!("=due/{hour:010}/{millis:016}-{}.json", &hash[..16]))
}

/// The due file for the removal of an owner's content.
pub(super) fn removal_file(at: Timestamp, owner: &Owner, key: &str) -> Path {
    let hash = hex(&Sha256::digest(key));
    let owner = owner_mark(owner);
    let millis = at.as_millis();
    let hour = millis / HOUR;
    path(&format!("=due/{hour:010}/{millis:016}-{owner}-{}.json", &hash[..16]))
}

/// Whether a due file removes content of this owner. Two owners may have the same mark.
pub(super) fn is_removal_of(file: &Path, owner: &Owner) -> bool {
    let mut parts = file.filename().unwrap_or_default().split('-');
    parts.nth(1).is_some_and(|mark| mark == owner_mark(owner)) && parts.next().is_some()
}

/// A short hash of an owner's name, for file names.
fn owner_mark(owner: &Owner) -> String {
    hex(&Sha256::digest(owner.as_str()))[..16].to_owned()
}

/// Whether all files in an hour's folder are due after `than`.
pub(super) fn is_later(hour: &Path, than: Timestamp) -> bool {
    let hour = hour.filename().and_then(|hour| hour.parse::<u64>().ok());
    hour.is_none_or(|hour| hour * HOUR > than.as_millis())
}

/// The time of a due file, from its path.
pub(super) fn due_at(file: &Path) -> Option<Timestamp> {
    let (millis, _) = file.filename()?.split_once('-')?;
    millis.parse().ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_due_file_is_read_from_its_path() {
        let at = Timestamp::from_millis(1_767_225_600_123);
        let path = due_file(at, "a");

        assert_eq!(due_at(&path), Some(at));

        let hour = folder(&path).expect("it is in a folder");
        assert!(
            !is_later(&hour, at) && is_later(&hour, Timestamp::from_millis(at.as_millis() - HOUR))
        );
    }
}
