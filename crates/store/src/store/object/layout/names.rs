//! Owners and URIs as paths: readable, reversible, in byte order of the URI,
//! and never outside the store's folder.
//!
//! A listing continues from any URI, and S3 lists in the order of keys, so paths
//! must sort as the URIs do:
//!
//! - Letters, digits and `-._~` stay as they are. Any other byte is `=XX`, `,XX`
//!   or `^XX`: its hexadecimal value after a sign that sorts where the byte does.
//! - `=` replaces the colon after the scheme. Slashes stay slashes.
//! - `_` begins each segment, so that no segment is empty or dots.
//! - `!` ends a URI. It sorts before all other characters, so a resource is
//!   separate from resources below it.
//! - A segment longer than [`MAX_SEGMENT`] continues after `/+`.
//! - A URI too long for a path ends in `/=~` and its digest. URIs with the same
//!   path before the digest (the [`stem`]) are not in order.

use std::fmt::Write;

use larder_identity::Owner;
use larder_runtime::hex::hex;
use object_store::path::Path;
use sha2::{Digest, Sha256};

use super::path;
use crate::store::ResourceUri;

/// The maximum length of a segment, in bytes. File names are limited to 255 bytes;
/// the rest is for prefixes and suffixes.
const MAX_SEGMENT: usize = 200;

/// The maximum length of a resource's path below its owner, in bytes. Keys of S3
/// are limited to 1024 bytes, which include the prefix, the owner and the file name.
pub(super) const MAX_PATH: usize = 600;

/// Encodes a name for a path. Percent-encoding would not do, because encoded names must
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

/// The inverse of [`encode`].
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

/// A segment for a name that is too long for a path.
fn digest(name: &str) -> String {
    format!("=~{}", hex(&Sha256::digest(name)))
}

/// An owner as the first segment of a path.
pub(super) fn owner_segment(owner: &Owner) -> String {
    let encoded = encode(owner.as_str());

    match encoded.strip_prefix('.') {
        // File systems treat `.` and `..` specially, and hide names that begin with a dot.
        Some(rest) if encoded.len() <= MAX_SEGMENT => format!("=2E{rest}"),
        None if encoded.is_empty() => "=-".to_owned(),
        None if encoded.len() <= MAX_SEGMENT => encoded,
        _ => digest(owner.as_str()),
    }
}

/// The inverse of [`owner_segment`]. `None` if the segment is a digest.
pub(super) fn owner_of(segment: &str) -> Option<Owner> {
    let name = if segment == "=-" { String::new() } else { decode(segment)? };
    Some(Owner::new(name))
}

/// The encoded form of a URI or of its beginning, and whether it was cut off because it is
/// too long for a path.
fn encode_uri(name: &str) -> (String, bool) {
    let Some((scheme, rest)) = name.split_once(':') else { return truncate(encode(name)) };

    let mut encoded_uri = format!("{}=", encode(scheme));
    for segment in rest.split('/') {
        encoded_uri.push_str("/_");
        let mut encoded = &encode(segment)[..];
        // Cut also at exactly the maximum, so that longer URIs sort after this URI.
        while encoded.len() >= MAX_SEGMENT {
            encoded_uri.extend([&encoded[..MAX_SEGMENT], "/+"]);
            encoded = &encoded[MAX_SEGMENT..];
        }
        encoded_uri.push_str(encoded);
    }

    truncate(encoded_uri)
}

/// Cuts an encoded URI off at [`MAX_PATH`], and returns whether it was longer.
fn truncate(mut encoded: String) -> (String, bool) {
    let is_long = encoded.len() > MAX_PATH;
    encoded.truncate(MAX_PATH);

    let len = encoded.trim_end_matches('/').len();
    encoded.truncate(len);
    (encoded, is_long)
}

/// The folder of a resource.
pub(in crate::store::object) fn resource(owner: &Owner, uri: &ResourceUri) -> Path {
    let end = match encode_uri(uri.as_str()) {
        (encoded, false) => format!("{encoded}!"),
        (encoded, true) => format!("{encoded}/{}!", digest(uri.as_str())),
    };

    path(&format!("{}/{end}", owner_segment(owner)))
}

/// The URI of a resource, from its folder. `None` if the path has a digest.
pub(in crate::store::object) fn uri(owner: &Owner, resource: &Path) -> Option<ResourceUri> {
    let encoded = resource.as_ref().strip_prefix(&owner_segment(owner))?.strip_prefix('/')?;
    let (scheme, rest) = encoded.strip_suffix('!')?.split_once("=/_")?;

    let mut uri = decode(scheme)?;
    uri.push(':');

    // A digest is no valid encoding, so decoding fails for it.
    let mut parts = rest.split("/_");
    uri += &decode(&parts.next()?.replace("/+", ""))?;
    for part in parts {
        uri.push('/');
        uri += &decode(&part.replace("/+", ""))?;
    }

    ResourceUri::parse(&uri).ok()
}

/// The path before the digest, if the path has a digest. Resources with the same stem
/// are not in order.
pub(in crate::store::object) fn stem(resource: &Path) -> Option<&str> {
    Some(resource.as_ref().rsplit_once("/=~")?.0)
}

/// An exclusive lower bound for a listing of URIs that begin with `prefix` and come
/// after `after`. The listing may include other URIs.
pub(in crate::store::object) fn list_start(
    owner: &Owner,
    prefix: &str,
    after: Option<&str>,
) -> Path {
    let prefix = encode_uri(prefix).0;
    let after = after.map(|after| match encode_uri(after) {
        // Sorts after the files of the resource itself (`!/`), and before all longer URIs.
        (encoded, false) => format!("{encoded}!0"),
        (encoded, true) => encoded,
    });

    let start = after.map_or(prefix.clone(), |after| after.max(prefix));
    path(format!("{}/{start}", owner_segment(owner)).trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::{
        super::{MAX_PREFIX, entry, owner_folder},
        *,
    };

    fn resource_path(owner: &str, name: &str) -> String {
        let uri = ResourceUri::parse(name).expect("it is a URI");
        resource(&Owner::new(owner), &uri).to_string()
    }

    #[test]
    fn paths_are_readable() {
        assert_eq!(
            resource_path("local", "results://search/42.json"),
            "local/results=/_/_/_search/_42.json!"
        );
        assert_eq!(resource_path("local", "urn:isbn:0451450523"), "local/urn=/_isbn=3A0451450523!");
        assert_eq!(resource_path("a b", "x://y?z+"), "a,20b/x=/_/_/_y=3Fz,2B!");
        assert_eq!(resource_path("..", "x://../a//.b"), "=2E./x=/_/_/_../_a/_/_.b!");
    }

    /// Long and short URIs with all characters that are special in a path.
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
        fn a_path_decodes_to_its_uri_and_stays_in_its_folder(
            owner in "[a-z./:|é= ]{0,300}", name in names(),
        ) {
            let owner = Owner::new(owner);
            let owner_back = owner_of(&owner_segment(&owner));
            prop_assert!(owner_back.is_none_or(|back| back == owner));

            let path = resource(&owner, &name);
            prop_assert!(path.as_ref().len() + MAX_PREFIX < 1000);

            for part in path.parts() {
                let part = part.as_ref();
                prop_assert!(!part.is_empty() && part.len() <= 220 && !part.starts_with('.'));
            }

            prop_assert!(path.prefix_matches(&owner_folder(&owner)));
            match uri(&owner, &path) {
                Some(back) => prop_assert_eq!(back, name),
                None => prop_assert!(stem(&path).is_some()),
            }
        }

        #[test]
        fn paths_are_in_the_order_of_uris(one in names(), other in names(), cut in 0..400_usize) {
            let owner = Owner::new("a");
            let file = |name| entry(&resource(&owner, name), 1).to_string();
            let paths = [&one, &other].map(|name| resource(&owner, name));
            let same_stem = stem(&paths[0]).is_some() && stem(&paths[0]) == stem(&paths[1]);

            prop_assert!(same_stem || one.cmp(&other) == file(&one).cmp(&file(&other)));

            let prefix = &one.as_str()[..cut.min(one.as_str().len())];
            prop_assert!(list_start(&owner, prefix, None).as_ref() < &file(&one)[..]);

            if one > other {
                let after = list_start(&owner, prefix, Some(other.as_str()));
                prop_assert!(after.as_ref() < &file(&one)[..]);
                prop_assert!(same_stem || stem(&paths[1]).is_some() || after.as_ref() > &file(&other)[..]);
            }
        }
    }

    #[test]
    fn each_owner_has_its_own_folder() {
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

        let folders: HashSet<String> =
            owners.iter().map(|owner| owner_folder(&Owner::new(*owner)).to_string()).collect();

        assert_eq!(folders.len(), owners.len());
        assert!(folders.iter().all(|folder| folder != "=ledger" && folder != "=due"));
    }
}
