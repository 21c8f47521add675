//! The names under which an upstream's tools are offered.

use std::{collections::HashSet, sync::LazyLock};

use larder_runtime::metric::{Label, LabelNames};
use sha2::{Digest, Sha256};

/// The names of upstreams that metrics have had. The names come from the configuration, which may
/// be replaced many times.
static LABELS: LazyLock<LabelNames> = LazyLock::new(LabelNames::default);

/// The label of an upstream in metrics.
pub(super) fn label(upstream: &str) -> Label {
    LABELS.label(upstream)
}

/// The most bytes of a name that clients accept.
const MAX_NAME_BYTES: usize = 64;
/// The most bytes of a name with a prefix: hosts put a prefix of their own before it.
const NAME_BYTES: usize = 50;
/// The length of `_` and the digits of the digest.
const DIGEST_BYTES: usize = 7;

/// How one upstream's tools are named.
#[derive(Debug, Clone)]
pub(super) struct Naming {
    pub(super) upstream: String,
    /// Whether all names have a prefix, because there are several upstreams.
    pub(super) is_prefixed: bool,
    /// The names of Larder's own tools.
    pub(super) reserved: HashSet<String>,
}

impl Naming {
    /// The label of the upstream in metrics.
    pub(super) fn label(&self) -> Label {
        label(&self.upstream)
    }

    /// Whether a tool of that name can be the upstream's.
    pub(super) fn may_offer(&self, name: &str) -> bool {
        let has_prefix =
            || name.strip_prefix(&self.upstream).is_some_and(|rest| rest.starts_with("__"));
        !self.is_prefixed || has_prefix()
    }

    /// The name under which a tool is offered. `taken` are the names of the
    /// upstream's tools before it.
    pub(super) fn offered(&self, own: &str, taken: impl Fn(&str) -> bool) -> String {
        let is_free = |name: &str| !self.reserved.contains(name) && !taken(name);
        if !self.is_prefixed && is_valid(own) && is_free(own) {
            return own.to_owned();
        }

        let full = format!("{}__{own}", self.upstream);
        let plain = full.replace(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c), "_");
        if plain.len() <= NAME_BYTES && is_free(&plain) {
            return plain;
        }

        let digest = Sha256::digest(full.as_bytes());
        let kept = &plain[..plain.len().min(NAME_BYTES - DIGEST_BYTES)];
        format!("{kept}_{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2])
    }
}

/// Whether all clients accept the name: some refuse all tools of a server because of one.
fn is_valid(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(is_prefixed: bool) -> Naming {
        let reserved = HashSet::from(["read_resource".to_owned()]);
        Naming { upstream: "fs".into(), is_prefixed, reserved }
    }

    #[test]
    fn names_stay_unless_they_must_differ() {
        let one = naming(false);
        assert_eq!(one.offered("read_file", |_| false), "read_file");
        assert_eq!(one.offered("read_resource", |_| false), "fs__read_resource");
        assert_eq!(one.offered("read file", |_| false), "fs__read_file");

        let several = naming(true);
        assert_eq!(several.offered("read_file", |_| false), "fs__read_file");

        let long = "x".repeat(60);
        let name = several.offered(&long, |_| false);
        let other = several.offered(&format!("{long}y"), |_| false);
        assert_eq!(name.len(), NAME_BYTES);
        assert!(name.starts_with("fs__xxx") && name != other, "{name} {other}");
        assert_eq!(name, several.offered(&long, |_| false));

        for own in ["calendar.read", "café", "a/b", &"x".repeat(65), "", "日本語"] {
            for naming in [&one, &several] {
                let name = naming.offered(own, |_| false);
                assert!(is_valid(&name) && name.starts_with("fs__"), "{own}: {name}");
            }
        }
        let longest = "x".repeat(64);
        assert_eq!(one.offered(&longest, |_| false), longest);

        let taken = several.offered("read file", |name| name == "fs__read_file");
        assert!(taken.starts_with("fs__read_file_"), "{taken}");
    }
}
