//! Where things lie: paths that a person can read, that no name can leave, that
//! lead back to the name, and whose order is the order of names.
//!
//! ```text
//! <owner>/<scheme>=/_<part>/…/_<last part>!/<n>.json        an entry: the n-th change of that owner
//!                                          !/<id>.content   its bytes, as they are kept
//! =ledger/<owner>/<n>.json                                  what the n-th change was, and what it left
//! =due/<hour>/<millisecond>-<hash>.json                     a resource to look at, at that time
//! ```
//!
//! A listing goes from any name on to the next ones, and S3 lists in the order
//! of keys. So keys are in the order of names: letters, digits and `-._~` stand
//! for themselves; anything else is `=XX`, `,XX` or `^XX`, its byte in
//! hexadecimal behind a sign that sorts where the byte does; `=` ends the scheme
//! in the place of `:`; slashes are slashes. `_` begins each part, so that
//! none is empty or dots; `!`, which sorts before all the others, ends a name,
//! so that a resource lies beside what lies below it. A part is cut after so many
//! characters, and goes on behind `/+`. A name that is too long for a path ends
//! in `/=~` and its digest: those that begin alike are not in order.

use std::fmt::Write;

use object_store::path::Path;
use sha2::{Digest, Sha256};

use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{ResourceUri, blocks::hex},
};

/// A file's name may have 255 bytes; some are for what stands around it.
const MOST_PART: usize = 200;

/// Keys of S3 may have 1024 bytes, of which the bucket's prefix, the owner and
/// the file have some.
const MOST_PATH: usize = 600;

/// What is left of a key for what stands before the owner.
pub(super) const MOST_PREFIX: usize = 128;

const HOUR: u64 = 60 * 60 * 1000;

/// Encodes a name for a path. Not percent-encoding, because encoded names must
/// sort as the names themselves do.
fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        let sign = match byte {
            b'-' | b'.' | b'_' | b'~' => None,
            _ if byte.is_ascii_alphanumeric() => None,
            ..b'-' => Some(','),
            b'['..=b'^' => Some('^'),
            _ => Some('='),
        };
        match sign {
            None => encoded.push(char::from(byte)),
            // Writing to a string cannot fail.
            Some(sign) => _ = write!(encoded, "{sign}{byte:02X}"),
        }
    }
    encoded
}

fn decode(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut parts = encoded.split([',', '^', '=']);
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part.get(2..)?.bytes());
    }
    String::from_utf8(bytes).ok()
}

fn digest(name: &str) -> String {
    format!("=~{}", hex(&Sha256::digest(name)))
}

fn path(path: &str) -> Path {
    Path::parse(path).expect("no part is empty, dots, or holds a slash")
}

/// An owner as one part of a path, which no name of ours is.
fn of(owner: &Owner) -> String {
    let encoded = encode(owner.as_str());
    match encoded.strip_prefix('.') {
        // Dots alone mean something to file systems, and in front they hide.
        Some(rest) if encoded.len() <= MOST_PART => format!("=2E{rest}"),
        None if encoded.is_empty() => "=-".to_owned(),
        None if encoded.len() <= MOST_PART => encoded,
        _ => digest(owner.as_str()),
    }
}

/// Under which all that an owner has lies.
pub(super) fn of_owner(owner: &Owner) -> Path {
    path(&of(owner))
}

/// How everything below an owner begins whose name begins like that, without
/// what is too long for a path; and whether something is.
fn beginning(name: &str) -> (String, bool) {
    let Some((scheme, rest)) = name.split_once(':') else { return cut(encode(name)) };
    let mut below = format!("{}=", encode(scheme));
    for part in rest.split('/') {
        below.push_str("/_");
        let mut encoded = &encode(part)[..];
        // Also where it ends there: who goes on sorts behind.
        while encoded.len() >= MOST_PART {
            below.extend([&encoded[..MOST_PART], "/+"]);
            encoded = &encoded[MOST_PART..];
        }
        below.push_str(encoded);
    }
    cut(below)
}

fn cut(mut below: String) -> (String, bool) {
    let is_long = below.len() > MOST_PATH;
    below.truncate(MOST_PATH);
    let whole = below.trim_end_matches('/').len();
    below.truncate(whole);
    (below, is_long)
}

/// Where an owner's resource lies.
pub(super) fn resource(owner: &Owner, uri: &ResourceUri) -> Path {
    let end = match beginning(uri.as_str()) {
        (below, false) => format!("{below}!"),
        (below, true) => format!("{below}/{}!", digest(uri.as_str())),
    };
    path(&format!("{}/{end}", of(owner)))
}

/// The name of the resource that lies there, if it can be told from that.
pub(super) fn uri(owner: &Owner, resource: &Path) -> Option<ResourceUri> {
    let below = resource.as_ref().strip_prefix(&of(owner))?.strip_prefix('/')?;
    let (scheme, rest) = below.strip_suffix('!')?.split_once("=/_")?;
    let mut uri = decode(scheme)?;
    uri.push(':');
    let mut parts = rest.split("/_");
    uri += &decode(&parts.next()?.replace("/+", ""))?;
    for part in parts {
        uri.push('/');
        uri += &decode(&part.replace("/+", ""))?;
    }
    // Also where it is a digest, which decodes to nothing.
    ResourceUri::parse(&uri).ok()
}

/// Where those lie that are too long for a path and begin like this one, if it
/// is such a one: among them, order says nothing.
pub(super) fn stem(resource: &Path) -> Option<&str> {
    Some(resource.as_ref().rsplit_once("/=~")?.0)
}

/// After which everything of the owner lies whose name begins with `prefix`
/// and comes after `after`; and perhaps some that does not.
pub(super) fn before(owner: &Owner, prefix: &str, after: Option<&str>) -> Path {
    let prefix = beginning(prefix).0;
    let after = after.map(|after| match beginning(after) {
        // Behind `!/`, and before all that goes on.
        (below, false) => format!("{below}!0"),
        (below, true) => below,
    });
    let before = after.map_or(prefix.clone(), |after| after.max(prefix));
    path(format!("{}/{before}", of(owner)).trim_end_matches('/'))
}

/// The entry that the n-th change of the owner has left there.
pub(super) fn entry(resource: &Path, number: u64) -> Path {
    resource.clone().join(format!("{number}.json"))
}

/// The content of that id.
pub(super) fn content(resource: &Path, id: &str) -> Path {
    resource.clone().join(format!("{id}.content"))
}

/// Which entry or change that file is.
pub(super) fn number(file: &Path) -> Option<u64> {
    file.filename()?.strip_suffix(".json")?.parse().ok()
}

/// Which content that file is.
pub(super) fn content_id(file: &Path) -> Option<&str> {
    file.filename()?.strip_suffix(".content")
}

/// The folder that a file lies in.
pub(super) fn folder(file: &Path) -> Option<Path> {
    Path::parse(file.as_ref().rsplit_once('/')?.0).ok()
}

/// Under which all owners' changes lie.
pub(super) fn ledgers() -> Path {
    path("=ledger")
}

/// Under which an owner's changes lie.
pub(super) fn ledger(owner: &Owner) -> Path {
    path(&format!("=ledger/{}", of(owner)))
}

/// The n-th change.
pub(super) fn change(ledger: &Path, number: u64) -> Path {
    ledger.clone().join(format!("{number}.json"))
}

/// Under which lies what is to be looked at.
pub(super) fn all_due() -> Path {
    path("=due")
}

/// What is to be done at that time about what `key` stands for.
pub(super) fn due(at: Timestamp, key: &str) -> Path {
    let hash = hex(&Sha256::digest(key));
    let (hour, millis) = (at.as_millis() / HOUR, at.as_millis());
    path(&format!("=due/{hour:010}/{millis:016}-{}.json", &hash[..16]))
}

/// Whether all that lies under an hour is due after that time.
pub(super) fn is_later(hour: &Path, than: Timestamp) -> bool {
    let hour = hour.filename().and_then(|hour| hour.parse::<u64>().ok());
    hour.is_none_or(|hour| hour * HOUR > than.as_millis())
}

/// When what that file names is due.
pub(super) fn due_at(file: &Path) -> Option<Timestamp> {
    let (millis, _) = file.filename()?.split_once('-')?;
    millis.parse().ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn at(owner: &str, name: &str) -> String {
        let uri = ResourceUri::parse(name).expect("it is a URI");
        resource(&Owner::new(owner), &uri).to_string()
    }

    #[test]
    fn a_person_finds_it() {
        assert_eq!(at("local", "results://search/42.json"), "local/results=/_/_/_search/_42.json!");
        assert_eq!(at("local", "urn:isbn:0451450523"), "local/urn=/_isbn=3A0451450523!");
        assert_eq!(at("a b", "x://y?z+"), "a,20b/x=/_/_/_y=3Fz,2B!");
        assert_eq!(at("..", "x://../a//.b"), "=2E./x=/_/_/_../_a/_/_.b!");
    }

    /// Names that have everything in them that is special in a path, long and short.
    fn names() -> impl Strategy<Value = ResourceUri> {
        let pieces = vec![
            "a",
            "B",
            "0",
            "/",
            "//",
            ".",
            "..",
            ":",
            "=",
            "%2F",
            "%00",
            "~",
            "-",
            "+",
            "?",
            "#",
            "_",
            "!",
            ",",
            "=2E",
            "[",
            "]",
            "@",
            "$",
            "'",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ];
        let rest = prop::collection::vec(prop::sample::select(pieces), 0..12);
        (prop::sample::select(vec!["x", "x-", "x.y", "x+", "X", "xy", "x1"]), rest)
            .prop_filter_map("some are no URIs", |(scheme, rest)| {
                ResourceUri::parse(&format!("{scheme}:{}", rest.concat())).ok()
            })
    }

    proptest! {
        #[test]
        fn a_path_leads_back_to_its_name_and_stays_where_it_is(
            owner in "[a-z./:|é= ]{0,300}", name in names(),
        ) {
            let owner = Owner::new(owner);
            let path = resource(&owner, &name);
            prop_assert!(path.as_ref().len() + MOST_PREFIX < 1000);
            for part in path.parts() {
                let part = part.as_ref();
                prop_assert!(!part.is_empty() && part.len() <= 220 && !part.starts_with('.'));
            }
            prop_assert!(path.prefix_matches(&of_owner(&owner)));
            match uri(&owner, &path) {
                Some(back) => prop_assert_eq!(back, name),
                None => prop_assert!(stem(&path).is_some()),
            }
        }

        #[test]
        fn paths_are_in_the_order_of_names(one in names(), other in names(), cut in 0..400_usize) {
            let owner = Owner::new("a");
            let file = |name| entry(&resource(&owner, name), 1).to_string();
            let paths = [&one, &other].map(|name| resource(&owner, name));
            let same_stem = stem(&paths[0]).is_some() && stem(&paths[0]) == stem(&paths[1]);
            prop_assert!(same_stem || one.cmp(&other) == file(&one).cmp(&file(&other)));
            let prefix = &one.as_str()[..cut.min(one.as_str().len())];
            prop_assert!(before(&owner, prefix, None).as_ref() < &file(&one)[..]);
            if one > other {
                let after = before(&owner, prefix, Some(other.as_str()));
                prop_assert!(after.as_ref() < &file(&one)[..]);
                prop_assert!(same_stem || stem(&paths[1]).is_some() || after.as_ref() > &file(&other)[..]);
            }
        }
    }

    #[test]
    fn owners_have_places_of_their_own() {
        let long = "a".repeat(300);
        let owners = [
            "",
            "a",
            "A",
            "a/b",
            "a=2Fb",
            "=ledger",
            "=due",
            "..",
            ".",
            &long,
            &format!("{long}b"),
        ];
        let places: HashSet<String> =
            owners.iter().map(|owner| of_owner(&Owner::new(*owner)).to_string()).collect();
        assert_eq!(places.len(), owners.len());
        assert!(places.iter().all(|place| place != "=ledger" && place != "=due"));
    }

    #[test]
    fn what_is_due_is_read_from_its_path() {
        let at = Timestamp::from_millis(1_767_225_600_123);
        let path = due(at, "a");
        assert_eq!(due_at(&path), Some(at));
        let hour = folder(&path).expect("it lies in one");
        assert!(
            !is_later(&hour, at) && is_later(&hour, Timestamp::from_millis(at.as_millis() - HOUR))
        );
    }
}
