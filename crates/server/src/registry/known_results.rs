//! The results that callers have had last, of tools that tell what has changed.

use std::sync::Arc;

use larder_runtime::clock::Timestamp;
use larder_store::store::ResourceUri;
use quick_cache::sync::Cache;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::handler::Scope;

/// The number of results that are known, of all callers together.
const KNOWN_RESULTS: usize = 4_096;

/// The identity of a call: the caller, its session, the tool and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallKey([u8; 32]);

impl CallKey {
    /// The key of a call. The order of members does not matter, unless the arguments are passed on
    /// as they were written, because a value does not keep their numbers.
    pub(crate) fn new(scope: &Scope, tool: &str, arguments: Option<&Value>) -> Self {
        let mut digest = Sha256::new();
        for part in
            [scope.identity.owner().as_str(), scope.client_session.as_deref().unwrap_or(""), tool]
        {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        if let Some(arguments) = arguments {
            add(arguments, &mut digest);
        }
        if let Some(exact) = scope.control.exact_arguments() {
            digest.update(exact);
        }
        Self(digest.finalize().into())
    }
}

/// Adds a value, with the members of objects in one order.
fn add(value: &Value, digest: &mut Sha256) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            digest.update(b"{");
            for (name, value) in members {
                digest.update(Value::from(name.as_str()).to_string());
                add(value, digest);
            }
            digest.update(b"}");
        }
        Value::Array(items) => {
            digest.update(b"[");
            for item in items {
                add(item, digest);
            }
            digest.update(b"]");
        }
        scalar => {
            digest.update(scalar.to_string());
            digest.update(b",");
        }
    }
}

/// A result that a caller has had.
#[derive(Debug, Clone)]
pub(crate) struct KnownResult {
    pub(crate) uri: ResourceUri,
    /// The digest of its content.
    pub(crate) sha256: Arc<str>,
    /// The digest of what was sent beside it: links, metadata, a warning.
    pub(crate) rest: [u8; 32],
    /// When the caller had it first.
    pub(crate) at: Timestamp,
}

/// The results that callers have had last, by call.
pub(crate) struct KnownResults(Cache<CallKey, KnownResult>);

impl Default for KnownResults {
    fn default() -> Self {
        Self(Cache::new(KNOWN_RESULTS))
    }
}

impl KnownResults {
    /// The result that the caller had last.
    pub(crate) fn get(&self, key: &CallKey) -> Option<KnownResult> {
        self.0.get(key)
    }

    /// Notes a result.
    pub(crate) fn insert(&self, key: CallKey, result: KnownResult) {
        self.0.insert(key, result);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_the_same_in_any_order_and_never_run_together() {
        let digest = |value: &Value| {
            let mut digest = Sha256::new();
            add(value, &mut digest);
            digest.finalize()
        };
        assert_eq!(digest(&json!({ "a": 1, "b": [2] })), digest(&json!({ "b": [2], "a": 1 })));
        for (left, right) in [
            (json!([1, 2]), json!([12])),
            (json!([[1], 2]), json!([1, [2]])),
            (json!({ "a": "b" }), json!({ "a": ["b"] })),
            (json!(1), json!("1")),
        ] {
            assert_ne!(digest(&left), digest(&right), "{left} {right}");
        }
    }
}
