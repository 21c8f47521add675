//! Where things lie: paths that a person can read, that no name can leave, and
//! that lead back to the name.
//!
//! ```text
//! <owner>/<scheme>/<part>/…/<last part>=/<n>.json    an entry: the n-th change of that owner
//!                                       =/<id>.content  its bytes, as they are kept
//! =ledger/<owner>/<n>.json                           what the n-th change was, and what it left
//! =due/<hour>/<millisecond>-<hash>.json              a resource to look at, at that time
//! ```
//!
//! Of a name, letters, digits and `-._~` stand for themselves, and anything
//! else is `=XX`, its byte in hexadecimal. No byte of a name is below `=20`,
//! so `=` with anything but two such digits is free to be ours: `part=` is the
//! resource itself, beside what lies below it; `=-` is an empty part; `=+` at
//! the end says that the part goes on; `=~` stands before the digest of a name
//! that is too long for a path.

use std::fmt::Write;

use object_store::path::Path;
use sha2::{Digest, Sha256};

use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{ResourceUri, blocks::hex},
};

/// A file's name may have 255 bytes; some are for what stands behind it.
const MOST_PART: usize = 200;

/// Keys of S3 may have 1024 bytes, of which a prefix has some.
const MOST_PATH: usize = 600;

const HOUR: u64 = 60 * 60 * 1000;

/// What of a name is a path.
fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    // Dots alone mean something to file systems, and in front they hide.
    let dots = name.bytes().take_while(|byte| *byte == b'.').count();
    for (at, byte) in name.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) || byte == b'.' && at >= dots {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "={byte:02X}");
        }
    }
    if encoded.is_empty() {
        encoded.push_str("=-");
    }
    encoded
}

fn decode(encoded: &str) -> Option<String> {
    if encoded == "=-" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut parts = encoded.split('=');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part.get(2..)?.bytes());
    }
    String::from_utf8(bytes).ok()
}

/// A name as one part of a path.
fn part(name: &str) -> String {
    let encoded = encode(name);
    if encoded.len() <= MOST_PART { encoded } else { digest(name) }
}

fn digest(name: &str) -> String {
    format!("=~{}", hex(&Sha256::digest(name)))
}

fn path(path: &str) -> Path {
    Path::parse(path).expect("no part is empty, dots, or holds a slash")
}

/// Under which all that an owner has lies.
pub(super) fn of_owner(owner: &Owner) -> Path {
    path(&part(owner.as_str()))
}

/// Under which all that an owner has of a scheme lies.
pub(super) fn of_scheme(owner: &Owner, scheme: &str) -> Path {
    of_owner(owner).join(scheme)
}

/// Where an owner's resource lies.
pub(super) fn resource(owner: &Owner, uri: &ResourceUri) -> Path {
    let (scheme, rest) = uri.as_str().split_once(':').expect("a URI has a scheme");
    let mut parts = Vec::new();
    let rest = rest.strip_prefix("//").unwrap_or_else(|| {
        // Without an authority it is another name.
        parts.push("=:".to_owned());
        rest
    });
    for name in rest.split('/') {
        let mut encoded = &encode(name)[..];
        while encoded.len() > MOST_PART {
            let mut at = MOST_PART;
            while encoded[at - 2..at].contains('=') {
                at -= 1;
            }
            parts.push(format!("{}=+", &encoded[..at]));
            encoded = &encoded[at..];
        }
        parts.push(encoded.to_owned());
    }
    let mut below = parts.join("/");
    if below.len() > MOST_PATH {
        below = digest(uri.as_str());
    }
    path(&format!("{}/{scheme}/{below}=", of_owner(owner)))
}

/// The name of the resource that lies there, if it can be told from that.
pub(super) fn uri(owner: &Owner, resource: &Path) -> Option<ResourceUri> {
    let below = resource.as_ref().strip_prefix(of_owner(owner).as_ref())?.strip_prefix('/')?;
    let (scheme, rest) = below.strip_suffix('=')?.split_once('/')?;
    let (start, rest) = match rest.strip_prefix("=:/") {
        Some(rest) => ("", rest),
        None => ("//", rest),
    };
    let mut uri = format!("{scheme}:{start}");
    let mut parts = rest.split('/').peekable();
    while let Some(encoded) = parts.next() {
        match encoded.strip_suffix("=+") {
            Some(encoded) => uri += &decode(encoded)?,
            None => {
                uri += &decode(encoded)?;
                if parts.peek().is_some() {
                    uri.push('/');
                }
            }
        }
    }
    ResourceUri::parse(&uri).ok()
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

/// Under which an owner's changes lie.
pub(super) fn ledger(owner: &Owner) -> Path {
    path(&format!("=ledger/{}", part(owner.as_str())))
}

/// The n-th change.
pub(super) fn change(ledger: &Path, number: u64) -> Path {
    ledger.clone().join(format!("{number}.json"))
}

/// Under which lies what is to be looked at.
pub(super) fn all_due() -> Path {
    path("=due")
}

/// That a resource is to be looked at then.
pub(super) fn due(owner: &Owner, uri: &ResourceUri, at: Timestamp) -> Path {
    let hash = hex(&Sha256::digest(resource(owner, uri).as_ref()));
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
        assert_eq!(at("local", "results://search/42.json"), "local/results/search/42.json=");
        assert_eq!(at("local", "urn:isbn:0451450523"), "local/urn/=:/isbn=3A0451450523=");
        assert_eq!(at("a b", "x://y?z"), "a=20b/x/y=3Fz=");
        assert_eq!(at("..", "x://../a//.b"), "=2E=2E/x/=2E=2E/a/=-/=2Eb=");
    }

    proptest! {
        #[test]
        fn a_path_leads_back_to_its_name_and_stays_where_it_is(
            owner in "[a-z./:|é= ]{0,300}",
            name in prop::collection::vec(prop::sample::select(vec![
                "a", "B", "/", "//", ".", "..", ":", "=", "%2F", "%00", "~", "-", "+", "?", "#", "=2E",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
            ]), 0..20),
        ) {
            let name = format!("x:{}", name.concat());
            prop_assume!(ResourceUri::parse(&name).is_ok());
            let (owner, name) = (Owner::new(owner), ResourceUri::parse(&name).expect("it is a URI"));
            let path = resource(&owner, &name);
            prop_assert!(path.as_ref().len() < 900);
            for part in path.parts() {
                let part = part.as_ref();
                prop_assert!(!part.is_empty() && part.len() <= 255 && !part.starts_with('.'));
            }
            prop_assert!(path.prefix_matches(&of_owner(&owner)));
            match uri(&owner, &path) {
                Some(back) => prop_assert_eq!(back, name),
                None => prop_assert!(path.as_ref().contains("=~")),
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
        let uri = ResourceUri::parse("x://a").expect("it is a URI");
        let at = Timestamp::from_millis(1_767_225_600_123);
        let path = due(&Owner::new("a"), &uri, at);
        assert_eq!(due_at(&path), Some(at));
        let hour = folder(&path).expect("it lies in one");
        assert!(
            !is_later(&hour, at) && is_later(&hour, Timestamp::from_millis(at.as_millis() - HOUR))
        );
    }
}
