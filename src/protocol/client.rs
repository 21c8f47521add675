//! What a client says of itself.

use std::{cell::RefCell, sync::Arc};

use rmcp::model::{ClientCapabilities, Implementation};

/// Who the client says it is and what it can do: from `initialize` in the
/// legacy era, from each request in the modern one. Never verified.
#[derive(Debug, Clone, Default)]
pub struct ClientFacts {
    /// Name and version.
    pub info: Option<Implementation>,
    /// Declared capabilities.
    pub capabilities: ClientCapabilities,
}

impl ClientFacts {
    /// Whether the client declares that extension of the protocol.
    pub fn has_extension(&self, name: &str) -> bool {
        let declared = serde_json::to_value(&self.capabilities).unwrap_or_default();
        declared.get("extensions").and_then(|extensions| extensions.get(name)).is_some()
    }

    /// Reads both. Modern clients say the same with each request: so what was
    /// read last is at hand.
    pub(super) fn read(
        info: Option<&[u8]>,
        capabilities: Option<&[u8]>,
    ) -> serde_json::Result<Arc<Self>> {
        let said = [info, capabilities].map(Option::unwrap_or_default);
        RECENT.with_borrow_mut(|recent| {
            if let Some(known) =
                recent.iter().find(|known| *known.said[0] == *said[0] && *known.said[1] == *said[1])
            {
                return Ok(Arc::clone(&known.facts));
            }
            let info = info.map(serde_json::from_slice).transpose()?;
            let capabilities = capabilities.map(serde_json::from_slice).transpose()?;
            let capabilities = capabilities.unwrap_or_default();
            let facts = Arc::new(Self { info, capabilities });
            if said.iter().map(|said| said.len()).sum::<usize>() <= MOST_BYTES {
                recent.truncate(MOST - 1);
                let known = Known { said: said.map(Box::from), facts: Arc::clone(&facts) };
                recent.insert(0, known);
            }
            Ok(facts)
        })
    }
}

/// How many clients a thread remembers.
const MOST: usize = 8;
/// How much one may say to be remembered.
const MOST_BYTES: usize = 4 << 10;

struct Known {
    said: [Box<[u8]>; 2],
    facts: Arc<ClientFacts>,
}

thread_local! {
    static RECENT: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(info: &str, capabilities: &str) -> serde_json::Result<Arc<ClientFacts>> {
        ClientFacts::read(Some(info.as_bytes()), Some(capabilities.as_bytes()))
    }

    #[test]
    fn each_client_is_told_from_the_others() {
        let info = |n: usize| format!(r#"{{"name":"client {n}","version":"1"}}"#);
        for n in [0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1] {
            let facts = read(&info(n), "{}").unwrap();
            assert_eq!(facts.info.as_ref().unwrap().name, format!("client {n}"));
            assert!(facts.capabilities.roots.is_none());
            let facts = read(&info(n), r#"{"roots":{}}"#).unwrap();
            assert!(facts.capabilities.roots.is_some());
        }
        assert!(ClientFacts::read(None, None).unwrap().info.is_none());
        RECENT.with_borrow(|recent| assert_eq!(recent.len(), MOST));
    }

    #[test]
    fn what_is_wrong_or_long_is_not_remembered() {
        assert!(read("7", "{}").is_err());
        assert!(read(r#"{"name":"a","version":"1"}"#, "[]").is_err());
        let long = format!(r#"{{"name":"{}","version":"1"}}"#, "x".repeat(MOST_BYTES));
        assert!(read(&long, "{}").is_ok());
        RECENT.with_borrow(|recent| assert!(recent.is_empty()));
    }
}
