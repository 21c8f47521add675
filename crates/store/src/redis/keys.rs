//! The names of keys, in one module so that no two kinds of key can collide.
//!
//! Example: `larder:{17}:entry:alice:results://search/42`, which is the prefix of this installation,
//! the shard, the kind, the owner and the name. The shard is a hash tag in braces, so that in a
//! cluster all keys of one owner share a slot and one script can change them together. The shard is
//! a number rather than the owner, so that the script can also change indexes of several owners
//! (such as the owners whose resources expire next), and Larder can enumerate the shards without
//! scanning all keys.

use std::sync::Arc;

use larder_protocol::uri_template::percent;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use sha2::{Digest, Sha256};

use super::RedisError;

/// The number of shards over which owners are distributed. Part of the layout.
pub const SHARDS: u8 = 64;

/// Builds the key names of one installation.
#[derive(Debug, Clone)]
pub struct Keys {
    prefix: Arc<str>,
}

/// A shard, one of [`SHARDS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    number: u8,
    start: String,
}

impl Keys {
    /// The names of keys with `prefix`.
    ///
    /// # Errors
    /// [`RedisError::Setting`] if the prefix is empty or contains characters other
    /// than letters, digits, `-`, `_`, `.` and `:`.
    pub fn new(prefix: &str) -> Result<Self, RedisError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if prefix.is_empty() || !prefix.bytes().all(is_allowed) {
            return Err(RedisError::Setting(format!(
                "redis.prefix: {prefix:?} must be non-empty and contain only letters, digits, - _ . and :"
            )));
        }

        Ok(Self { prefix: prefix.into() })
    }

    /// The prefix of all keys and channels.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The shard of an owner.
    pub fn shard_of(&self, name: &str) -> Shard {
        self.shard(Sha256::digest(name.as_bytes())[0] % SHARDS)
    }

    /// All shards.
    pub fn shards(&self) -> impl Iterator<Item = Shard> {
        (0..SHARDS).map(|number| self.shard(number))
    }

    /// The key of a kind that has one key in the installation.
    pub fn single(&self, kind: &str) -> String {
        format!("{}:{kind}", self.prefix)
    }

    /// The name of a channel. Channels do not belong to a shard.
    pub fn channel(&self, kind: &str) -> String {
        self.single(kind)
    }

    fn shard(&self, number: u8) -> Shard {
        Shard { number, start: format!("{}:{{{number}}}:", self.prefix) }
    }
}

impl Shard {
    /// The shard's number, from 0.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The prefix of all keys of the shard.
    pub fn start(&self) -> &str {
        &self.start
    }

    /// The key of a kind that has one key in the shard.
    pub fn single(&self, kind: &str) -> String {
        format!("{}{kind}", self.start)
    }

    /// The key of a kind for `name`, which may contain any characters.
    ///
    /// ```
    /// use larder_store::redis::Keys;
    ///
    /// let shard = Keys::new("larder")?.shard_of("a:{b}");
    /// let start = shard.start();
    /// assert_eq!(shard.key("names", "a:{b}"), format!("{start}names:a%3A%7Bb%7D"));
    /// # Ok::<(), larder_store::redis::RedisError>(())
    /// ```
    pub fn key(&self, kind: &str, name: &str) -> String {
        format!("{}{kind}:{}", self.start, escape(name))
    }

    /// The key of a kind for `name`, with `rest` as its end. `rest` is not escaped, because nothing
    /// follows it.
    pub fn key_with(&self, kind: &str, name: &str, rest: &str) -> String {
        format!("{}{kind}:{}:{rest}", self.start, escape(name))
    }
}

/// The characters that are encoded in names. Part of the layout of keys.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/')
    .remove(b'|')
    .remove(b'@');

/// Percent-encodes a name, so that it contains no colon, brace, space or control character.
pub(crate) fn escape(name: &str) -> String {
    percent::encode(name, ENCODED)
}

/// Decodes a name that [`escape`] encoded; `None` if it is malformed.
pub(crate) fn unescape(escaped: &str) -> Option<String> {
    percent::decode(escaped)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_name_is_escaped_and_read_back(name in ".*") {
            let escaped = escape(&name);
            prop_assert!(!escaped.contains([':', '{', '}', ' ', '*', '\n']), "{escaped}");
            prop_assert_eq!(unescape(&escaped), Some(name));
        }

        #[test]
        fn keys_of_different_names_differ(a in "[a:{}%]{0,4}", b in "[a:{}%]{0,4}", c in "[a:{}%]{0,4}", d in "[a:{}%]{0,4}") {
            let keys = Keys::new("larder").expect("the prefix is valid");
            let key = |name: &str, rest: &str| keys.shard_of(name).key_with("entry", name, rest);
            prop_assert_eq!(key(&a, &b) == key(&c, &d), (&a, &b) == (&c, &d));
        }
    }

    /// Changes of the encoding would make the keys that exist in Redis unreadable.
    #[test]
    fn the_encoding_of_names_is_part_of_the_layout() {
        for (name, escaped) in [
            ("", ""),
            ("results://search/42.json?q=a&b#c", "results%3A//search/42.json%3Fq%3Da%26b%23c"),
            ("user-_.~/|@", "user-_.~/|@"),
            ("a:{b} c*%\n\0\x7f", "a%3A%7Bb%7D%20c%2A%25%0A%00%7F"),
            ("é€😀", "%C3%A9%E2%82%AC%F0%9F%98%80"),
            ("!\"$'()+,;<>[\\]^`", "%21%22%24%27%28%29%2B%2C%3B%3C%3E%5B%5C%5D%5E%60"),
        ] {
            assert_eq!(escape(name), escaped);
            assert_eq!(unescape(escaped).as_deref(), Some(name));
        }

        assert_eq!(unescape("%c3%a9").as_deref(), Some("é"));

        for malformed in ["%", "a%4", "%zz", "%%41", "%+1", "%C3"] {
            assert_eq!(unescape(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn names_spread_over_the_shards() {
        let keys = Keys::new("larder").expect("the prefix is valid");
        let shards: HashSet<_> =
            (0..1000).map(|n| keys.shard_of(&n.to_string()).number()).collect();

        assert_eq!(shards.len(), usize::from(SHARDS));
        assert_eq!(keys.shards().count(), usize::from(SHARDS));
    }

    #[test]
    fn an_ambiguous_prefix_is_refused() {
        for prefix in ["", "a{b}", "a b", "a*"] {
            let error = Keys::new(prefix).expect_err("the prefix is invalid").to_string();
            assert!(error.contains("redis.prefix"), "{error}");
        }
    }
}
