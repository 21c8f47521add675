//! A result that the caller has had before: that it is unchanged, or what has changed. The tool has
//! run; nothing is answered from memory alone.

use std::sync::Arc;

use larder_runtime::{clock::Timestamp, compute::Compute};
use larder_store::store::{Entry, Kind, ResourceUri, StoredResource};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    Spiller, Whole, changes::changes, left_out::left_out_warning,
    preview_result::structured_resource, received::Received, sizes, tool_calls::type_and_size,
};
use crate::registry::{CallKey, KnownResult, Registry, Spill};

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
        // A result with parts that were stored while they arrived has placeholders of them, which
        // no caller may see.
        let received = Received::new(self.scope.control.take_received());
        let policy = self.policy(tool);
        let is_over =
            !received.is_empty() || sizes::is_over(&result, self.output_bytes, self.media_bytes);
        let is_small = !is_over && sizes::bytes(&result, MIN_BYTES) < MIN_BYTES;

        if is_small || !self.can_compare(policy, &result) {
            return self.bounded_with(tool, result, received).await;
        }

        let is_sent = !is_over && policy == Spill::Auto;
        let original = is_sent.then(|| result.clone());
        let whole = match Box::pin(self.store(tool, result, received, true)).await {
            Ok(whole) => whole,
            Err(unstored) => return unstored,
        };

        match self.told(key, whole).await {
            Ok(answer) => answer,
            Err(whole) => original.unwrap_or_else(|| whole.into_preview()),
        }
    }

    /// Whether results are compared: they are stored, and the caller has a session, without which
    /// nothing shows that it is the conversation that had the result before.
    fn can_compare(&self, policy: Spill, result: &CallToolResult) -> bool {
        policy != Spill::Never
            && result.is_error != Some(true)
            && self.scope.client_session.is_some()
            && self.is_readable()
    }

    /// The answer that tells what has changed. Notes the result.
    ///
    /// # Errors
    /// The result, if the caller did not have it before, or if much has changed, which its preview
    /// says.
    async fn told(&self, key: CallKey, mut whole: Whole) -> Result<CallToolResult, Box<Whole>> {
        let Some(main) = whole.main().cloned() else { return Err(Box::new(whole)) };
        let results = &Registry::from_scope(&self.scope).results;
        let before = results.get(&key).filter(|_| whole.others() == 0);
        let now = KnownResult {
            uri: main.uri.clone(),
            sha256: main.sha256.as_str().into(),
            rest: whole.rest(),
            at: main.created,
        };

        let Some((before, found)) = self.find(before).await else {
            results.insert(key, now);
            return Err(Box::new(whole));
        };

        let is_same = *before.sha256 == *now.sha256
            && found.entry.sha256 == main.sha256
            && before.rest == now.rest;
        if is_same {
            // A resource that expires soon is replaced by its copy.
            let since = time_of(before.at, now.at);
            let kept = if has_half_its_time(&found.entry, main.created) {
                self.discard(&main).await;
                Arc::unwrap_or_clone(found.entry)
            } else {
                main
            };
            results.insert(key, KnownResult { uri: kept.uri.clone(), at: before.at, ..now });
            return Ok(unchanged(&since, &kept, whole));
        }

        let since = time_of(before.at, now.at);
        let changes = self.changes_of(found, &main).await;
        results.insert(key, now);

        match changes {
            Some(changes) => Ok(changed(&since, &before.uri, &main, &changes, whole)),
            None => {
                whole.remark = Some(format!("Since {since} ({}), much has changed.", before.uri));
                Err(Box::new(whole))
            }
        }
    }

    /// The stored content of a known result, if there is any.
    async fn find(&self, known: Option<KnownResult>) -> Option<(KnownResult, StoredResource)> {
        let known = known?;
        let found = self.scope.store.get(self.scope.identity.owner(), &known.uri).await.ok()?;
        Some((known, found))
    }

    /// Deletes a copy of what is stored already.
    async fn discard(&self, entry: &Entry) {
        // A copy that cannot be deleted expires.
        let _ = self.scope.store.delete(self.scope.identity.owner(), &entry.uri).await;
    }

    /// The changes between two contents, if they are few.
    async fn changes_of(&self, before: StoredResource, after: &Entry) -> Option<String> {
        let owner = self.scope.identity.owner();
        let is_comparable = |entry: &Entry| entry.kind == Kind::Text && entry.size <= MAX_COMPARED;
        if !is_comparable(&before.entry) || !is_comparable(after) {
            return None;
        }

        let before = before.bytes().await.ok()?;
        let after = self.scope.store.get(owner, &after.uri).await.ok()?.bytes().await.ok()?;
        let size = before.len() + after.len();
        let comparing = Compute::run(owner.as_str(), size, move || {
            changes(&String::from_utf8_lossy(&before), &String::from_utf8_lossy(&after))
        });
        comparing.done().await.ok()?
    }
}

/// `14:02 UTC`, with its date if that is not the date of `now`: `2026-11-26 14:02 UTC`.
fn time_of(at: Timestamp, now: Timestamp) -> String {
    let text = at.to_string();
    let (Some(date), Some(time)) = (text.get(..10), text.get(11..16)) else { return text };
    if now.to_string().starts_with(date) {
        format!("{time} UTC")
    } else {
        format!("{date} {time} UTC")
    }
}

/// Whether a resource has more than half of its time to live left.
fn has_half_its_time(entry: &Entry, now: Timestamp) -> bool {
    let left = entry.expires.since(now);
    let whole = entry.expires.since(entry.created);
    left > whole / 2
}

fn unchanged(since: &str, kept: &Entry, whole: Whole) -> CallToolResult {
    let text = format!("unchanged since {since}, kept until {}: {}", kept.expires, kept.uri);
    whole.into_answer(text, kept)
}

fn changed(
    since: &str,
    before: &ResourceUri,
    main: &Entry,
    changes: &str,
    whole: Whole,
) -> CallToolResult {
    let text = format!(
        "Changed since {since} ({before}). The whole ({}; expires at {}):\n{}\n\n{changes}",
        type_and_size(main),
        main.expires,
        main.uri
    );
    whole.into_answer(text, main)
}

impl Whole {
    /// The digest of what is sent beside the stored content.
    fn rest(&self) -> [u8; 32] {
        let rest = json!([self.small, self.value, self.meta, self.left_out]);
        Sha256::digest(rest.to_string()).into()
    }

    /// A text in place of what is stored, which is in that resource.
    fn into_answer(self, text: String, entry: &Entry) -> CallToolResult {
        let text = match &self.left_out {
            Some(reason) => format!("{text}\n{}", left_out_warning(reason)),
            None => text,
        };

        let mut content = vec![ContentBlock::text(text.as_str())];
        content.extend(self.small);
        let mut result = CallToolResult::success(content);
        if self.structured {
            let mut spilled = json!({
                "note": text,
                "complete": false,
                "resources": [structured_resource(entry)],
            });
            if let Some(value) = self.value {
                spilled["value"] = value;
            }
            result.structured_content = Some(json!({ "spilled": spilled }));
        }
        result.meta = self.meta;
        result
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_time_of_another_day_has_its_date() {
        let day = Duration::from_secs(86_400);
        let at = Timestamp::from_millis(1_795_701_720_000);
        assert_eq!(time_of(at, at), "14:02 UTC");
        assert_eq!(time_of(at, at.saturating_add(day)), "2026-11-26 14:02 UTC");

        let midnight = at.saturating_add(Duration::from_secs(9 * 3_600 + 58 * 60));
        assert_eq!(time_of(at, midnight), "2026-11-26 14:02 UTC");
    }
}
