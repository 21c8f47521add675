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
use larder_runtime::hex::hex;
use object_store::path::Path;
use sha2::{Digest, Sha256};

pub(super) use self::names::{list_start, resource, stem, uri};
use self::names::{owner_of, owner_segment};

/// The maximum length of the configured prefix, in bytes: the rest of an S3 key beside
/// [`names::MAX_PATH`].
pub(super) const MAX_PREFIX: usize = 128;

/// The folder of the due files of resources.
pub(super) const DUE_FOLDER: &str = "=due";

/// The folder of the due files of slots.
pub(super) const SLOTS_DUE_FOLDER: &str = "=vault-due";

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

/// The ID of content in the folder of a resource, from its path.
pub(super) fn shared_content<'p>(resource: &Path, file: &'p Path) -> Option<&'p str> {
    content_id(file).filter(|id| content(resource, id) == *file)
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

/// The key of the due file that checks or removes what is at this path.
pub(super) fn due_key(path: &Path) -> String {
    short_hash(path.as_ref())
}

/// The key of the due file that removes content of an owner.
pub(super) fn removal_key(owner: &Owner, gone: &[String]) -> String {
    format!("{}-{}", short_hash(owner.as_str()), short_hash(&gone.concat()))
}

/// Whether a due file with this key removes content of this owner. Two owners may have the same
/// hash.
pub(super) fn is_removal_of(key: &str, owner: &Owner) -> bool {
    key.split_once('-').is_some_and(|(hash, _)| hash == short_hash(owner.as_str()))
}

/// A short hash of a text, for file names.
fn short_hash(text: &str) -> String {
    hex(&Sha256::digest(text))[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_due_files_never_change() {
        let alice = Owner::new("alice");
        let gone = ["1".to_owned(), "2".to_owned()];

        assert_eq!(due_key(&path("a/x=/_b!")), "9eb3b28228505912");
        assert_eq!(removal_key(&alice, &gone), "2bd806c97f0e00af-6b51d431df5d7f14");
    }

    #[test]
    fn the_removal_of_content_names_its_owner() {
        let alice = Owner::new("alice");
        let key = removal_key(&alice, &["1".to_owned()]);

        assert!(is_removal_of(&key, &alice));
        assert!(!is_removal_of(&key, &Owner::new("bob")));
        assert!(!is_removal_of(&short_hash("alice"), &alice), "the check of a resource");
    }
}
