//! A result that the caller has had before: that it is unchanged, or what has changed. The tool has
//! run; nothing is answered from memory alone.

use std::sync::Arc;

use larder_runtime::{clock::Timestamp, compute::Compute};
use larder_store::store::{Entry, Kind};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    Spiller, Whole, changes::changes, left_out::left_out_warning, received::Received, sizes,
    tool_calls::type_and_size,
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
    /// The result, if the caller did not have it before, or if much has changed.
    async fn told(&self, key: CallKey, whole: Whole) -> Result<CallToolResult, Box<Whole>> {
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

        let is_same =
            *before.sha256 == *now.sha256 && found.sha256 == main.sha256 && before.rest == now.rest;
        if is_same {
            // A resource that expires soon is replaced by its copy.
            let kept = if has_half_its_time(&found, main.created) {
                self.discard(&main).await;
                found
            } else {
                main
            };
            results.insert(key, KnownResult { uri: kept.uri.clone(), at: before.at, ..now });
            return Ok(unchanged(before.at, &kept, whole));
        }

        let changes = self.changes_of(&found, &main).await;
        results.insert(key, now);
        match changes {
            Some(changes) => Ok(changed(&before, &main, &changes, whole)),
            None => Err(Box::new(whole)),
        }
    }

    /// The stored content of a known result, if there is any.
    async fn find(&self, known: Option<KnownResult>) -> Option<(KnownResult, Entry)> {
        let known = known?;
        let found = self.scope.store.get(self.scope.identity.owner(), &known.uri).await.ok()?;
        Some((known, Arc::unwrap_or_clone(found.entry)))
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

/// Whether a resource has more than half of its time to live left.
fn has_half_its_time(entry: &Entry, now: Timestamp) -> bool {
    let left = entry.expires.since(now);
    let whole = entry.expires.since(entry.created);
    left > whole / 2
}

fn unchanged(since: Timestamp, kept: &Entry, whole: Whole) -> CallToolResult {
    let text =
        format!("unchanged since {}, kept until {}: {}", time_of(since), kept.expires, kept.uri);
    whole.into_answer(text, kept)
}

fn changed(before: &KnownResult, main: &Entry, changes: &str, whole: Whole) -> CallToolResult {
    let text = format!(
        "Changed since {} ({}). The whole ({}; expires at {}):\n{}\n\n{changes}",
        time_of(before.at),
        before.uri,
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
                "resources": [{
                    "uri": entry.uri,
                    "name": entry.name,
                    "mime_type": entry.mime_type,
                    "size": entry.size,
                    "expires": entry.expires.to_string(),
                    "next": [],
                }],
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
