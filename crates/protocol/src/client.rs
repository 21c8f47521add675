//! [`ClientFacts`]: what a client declares about itself.

use std::{cell::RefCell, sync::Arc};

use rmcp::model::{ClientCapabilities, Implementation};
use serde_json::{Value, json};

/// Name and capabilities of a client, as it declares them: in `initialize`
/// (legacy era) or in each request (modern era). Never verified.
#[derive(Debug, Clone, Default)]
pub struct ClientFacts {
    /// Name and version.
    pub info: Option<Implementation>,
    /// Declared capabilities.
    pub capabilities: ClientCapabilities,
}

impl ClientFacts {
    /// Whether the client declares this protocol extension.
    pub fn has_extension(&self, name: &str) -> bool {
        let declared = serde_json::to_value(&self.capabilities).unwrap_or_default();
        declared.get("extensions").and_then(|extensions| extensions.get(name)).is_some()
    }

    /// Reads the params of `initialize`, in which hosts declare odd things: a name or a capability
    /// that cannot be read is not declared.
    pub fn of_initialize(info: Option<Value>, capabilities: Option<Value>) -> Self {
        let info = info.and_then(|info| serde_json::from_value(info).ok());
        let Some(Value::Object(declared)) = capabilities else {
            return Self { info, ..Self::default() };
        };

        let readable = declared.into_iter().filter_map(|(name, value)| {
            let value = if value == Value::Bool(true) { json!({}) } else { value };
            let alone = json!({ (name.as_str()): value });
            let is_read = serde_json::from_value::<ClientCapabilities>(alone).is_ok();
            is_read.then_some((name, value))
        });
        let readable = Value::Object(readable.collect());
        let capabilities = serde_json::from_value(readable).unwrap_or_default();
        Self { info, capabilities }
    }

    /// Parses the JSON of name and capabilities. Modern clients repeat both with each request, so
    /// each thread caches the declarations that it parsed last.
    pub(super) fn read(
        info: Option<&[u8]>,
        capabilities: Option<&[u8]>,
    ) -> serde_json::Result<Arc<Self>> {
        let json = [info, capabilities].map(Option::unwrap_or_default);

        RECENT.with_borrow_mut(|recent| {
            if let Some(cached) = recent
                .iter()
                .find(|cached| *cached.json[0] == *json[0] && *cached.json[1] == *json[1])
            {
                return Ok(Arc::clone(&cached.facts));
            }

            let info = info.map(serde_json::from_slice).transpose()?;
            let capabilities =
                capabilities.map(serde_json::from_slice).transpose()?.unwrap_or_default();
            let facts = Arc::new(Self { info, capabilities });

            if json.iter().map(|part| part.len()).sum::<usize>() <= MAX_CACHED_BYTES {
                recent.truncate(MAX_CACHED - 1);
                let cached = CachedFacts { json: json.map(Box::from), facts: Arc::clone(&facts) };
                recent.insert(0, cached);
            }

            Ok(facts)
        })
    }
}

/// The maximum number of clients that a thread caches.
const MAX_CACHED: usize = 8;
/// The maximum size of a declaration that is cached, in bytes.
const MAX_CACHED_BYTES: usize = 4 << 10;

/// A declaration, and the facts parsed from it.
struct CachedFacts {
    json: [Box<[u8]>; 2],
    facts: Arc<ClientFacts>,
}

thread_local! {
    static RECENT: RefCell<Vec<CachedFacts>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(info: &str, capabilities: &str) -> serde_json::Result<Arc<ClientFacts>> {
        ClientFacts::read(Some(info.as_bytes()), Some(capabilities.as_bytes()))
    }

    #[test]
    fn each_client_gets_its_own_facts() {
        let info = |n: usize| format!(r#"{{"name":"client {n}","version":"1"}}"#);
        for n in [0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1] {
            let facts = read(&info(n), "{}").unwrap();
            assert_eq!(facts.info.as_ref().unwrap().name, format!("client {n}"));
            assert!(facts.capabilities.roots.is_none());

            let facts = read(&info(n), r#"{"roots":{}}"#).unwrap();
            assert!(facts.capabilities.roots.is_some());
        }

        assert!(ClientFacts::read(None, None).unwrap().info.is_none());
        RECENT.with_borrow(|recent| assert_eq!(recent.len(), MAX_CACHED));
    }

    #[test]
    fn what_cannot_be_read_at_initialize_is_not_declared() {
        let name = json!({ "name": "host", "version": "1" });
        for info in [Value::Null, json!({}), json!("host"), json!({ "name": 7, "version": "1" })] {
            let facts = ClientFacts::of_initialize(Some(info), None);
            assert!(facts.info.is_none());
        }
        for none in [Value::Null, json!([]), json!(true), json!("roots"), json!({})] {
            let facts = ClientFacts::of_initialize(Some(name.clone()), Some(none));
            assert_eq!(facts.info.as_ref().map(|info| &*info.name), Some("host"));
            assert_eq!(facts.capabilities, ClientCapabilities::default());
        }

        let declared = json!({
            "roots": true,
            "sampling": 7,
            "elicitation": { "form": {} },
            "experimental": [],
            "other": [1],
        });
        let facts = ClientFacts::of_initialize(None, Some(declared));
        assert!(facts.capabilities.roots.is_some());
        assert!(facts.capabilities.sampling.is_none());
        assert!(facts.capabilities.elicitation.is_some_and(|asked| asked.form.is_some()));
        assert!(facts.capabilities.experimental.is_none());
    }

    #[test]
    fn malformed_and_long_declarations_are_not_cached() {
        assert!(read("7", "{}").is_err());
        assert!(read(r#"{"name":"a","version":"1"}"#, "[]").is_err());

        let long = format!(r#"{{"name":"{}","version":"1"}}"#, "x".repeat(MAX_CACHED_BYTES));
        assert!(read(&long, "{}").is_ok());
        RECENT.with_borrow(|recent| assert!(recent.is_empty()));
    }
}
