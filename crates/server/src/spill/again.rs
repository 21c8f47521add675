//! A result that the caller has had before: that it is unchanged, or what has changed. The tool has
//! run; nothing is answered from memory alone.

use larder_runtime::{clock::Timestamp, compute::Compute};
use larder_store::store::{Entry, Kind};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use super::{Spiller, Whole, changes::changes, sizes, tool_calls::type_and_size};
use crate::registry::{CallKey, KnownResult, Registry};

/// Results with fewer bytes are always sent.
const MIN_BYTES: usize = 400;
/// The largest contents that are compared.
const MAX_COMPARED: u64 = 2 << 20;

impl Spiller {
    /// The result; or that it is unchanged, or its changes, since the caller had it last.
    pub(crate) async fn compared(
        &self,
        tool: &str,
        key: CallKey,
        result: CallToolResult,
    ) -> CallToolResult {
        let is_over = sizes::is_over(&result, self.output_bytes, self.media_bytes);
        let is_small = sizes::bytes(&result, MIN_BYTES) < MIN_BYTES;
        if result.is_error == Some(true) || (is_small && !is_over) || !self.is_readable() {
            return self.bounded(tool, result).await;
        }

        let original = (!is_over).then(|| result.clone());
        let whole = match self.store_whole(tool, result).await {
            Ok(whole) => whole,
            Err(unstored) => return unstored,
        };
        let Some(main) = whole.main().cloned() else {
            return original.unwrap_or_else(|| whole.into_preview());
        };

        let results = &Registry::from_scope(&self.scope).results;
        let before = results.get(&key);
        let now = KnownResult {
            uri: main.uri.clone(),
            sha256: main.sha256.as_str().into(),
            at: main.created,
        };

        let single = whole.others() == 0;
        if single && let Some(before) = before {
            let found = self.scope.store.get(self.scope.identity.owner(), &before.uri).await;
            if let Ok(found) = found.map(|found| found.entry).map_err(drop) {
                if *before.sha256 == *now.sha256 && found.sha256 == main.sha256 {
                    self.discard(&main).await;
                    return unchanged(&before, &whole);
                }
                if let Some(changes) = self.changes_of(&found, &main).await {
                    results.insert(key, now);
                    return changed(&before, &main, &changes, &whole);
                }
            }
        }

        results.insert(key, now);
        original.unwrap_or_else(|| whole.into_preview())
    }

    /// Deletes a copy of what is stored already.
    async fn discard(&self, entry: &Entry) {
        // A copy that cannot be deleted expires.
        let _ = self.scope.store.delete(self.scope.identity.owner(), &entry.uri).await;
    }

    /// The changes between two contents, if they are few.
    async fn changes_of(&self, before: &Entry, after: &Entry) -> Option<String> {
        let owner = self.scope.identity.owner();
        let is_comparable = |entry: &Entry| entry.kind == Kind::Text && entry.size <= MAX_COMPARED;
        if !is_comparable(before) || !is_comparable(after) {
            return None;
        }

        let before = self.scope.store.get(owner, &before.uri).await.ok()?.bytes().await.ok()?;
        let after = self.scope.store.get(owner, &after.uri).await.ok()?.bytes().await.ok()?;
        let size = before.len() + after.len();
        let comparing = Compute::run(owner.as_str(), size, move || {
            changes(&String::from_utf8_lossy(&before), &String::from_utf8_lossy(&after))
        });
        comparing.done().await.ok()?
    }
}

/// `14:02 UTC`
fn time_of(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(11..16).map_or(text.clone(), |time| format!("{time} UTC"))
}

fn unchanged(before: &KnownResult, whole: &Whole) -> CallToolResult {
    let text = format!("unchanged since {}: {}", time_of(before.at), before.uri);
    whole.answer(text)
}

fn changed(before: &KnownResult, main: &Entry, changes: &str, whole: &Whole) -> CallToolResult {
    let text = format!(
        "Changed since {} ({}). The whole ({}):\n{}\n\n{changes}",
        time_of(before.at),
        before.uri,
        type_and_size(main),
        main.uri
    );
    whole.answer(text)
}

impl Whole {
    /// A text in place of the result.
    fn answer(&self, text: String) -> CallToolResult {
        let mut result = CallToolResult::success(Vec::new());
        if self.is_structured() {
            let uri = self.main().map(|main| main.uri.to_string());
            result.structured_content = Some(json!({ "spilled": {
                "note": text,
                "complete": false,
                "resources": uri.map(|uri| json!({ "uri": uri })).into_iter().collect::<Vec<_>>(),
            } }));
        }
        result.content.push(ContentBlock::text(text));
        result
    }
}
