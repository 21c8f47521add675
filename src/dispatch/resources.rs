//! `resources/list` and `resources/read`: dynamic resources first, then those
//! of the server's definition.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, future::try_join_all};
use rmcp::model::ListResourcesResult;
use serde_json::json;

use super::{CacheHint, Dispatcher, ReadReply, Reply, cursor_of};
use crate::{
    auth::Owner,
    handler::Scope,
    protocol::{Fault, Member, Params},
    registry::Cursor,
    store::{Entry, Found, Kind, ResourceUri, StoreError},
};

/// The listing that its cursors name.
const LIST: &str = "resources";

impl Dispatcher {
    pub(super) async fn list_resources(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        let identity = scope.identity.clone();
        let owner = identity.owner();
        let size = self.registry.page_size();
        let mut cursor = Cursor::decode(LIST, cursor_of(params)?.as_deref())?;
        let mut resources = Vec::new();
        let catalog = self.registry.catalog();
        // One of the two is empty.
        let custom = self.registry.custom_resources(scope).await?;
        let defined = catalog.resources().chain(&custom).enumerate().skip(cursor.done);
        let mut defined = defined
            .filter(|(_, resource)| self.registry.shows_resource(identity.grant(), &resource.uri));
        while resources.len() < size {
            let next: Vec<_> = defined.by_ref().take(size - resources.len()).collect();
            let Some((last, _)) = next.last() else { break };
            cursor.done = last + 1;
            // All at once, since the store may be far away.
            let shadowed = next.iter().map(|(_, resource)| self.is_shadowed(owner, &resource.uri));
            let shadowed = try_join_all(shadowed).await?;
            let shown = next.into_iter().zip(shadowed).filter(|(_, shadowed)| !shadowed);
            for ((_, resource), _) in shown {
                resources.push(catalog.listed_now(resource).await);
            }
        }
        let mut more = defined.next().is_some();
        if !more {
            // Also when the page is full already: to know whether there is another.
            let room = size - resources.len();
            let page = self.store.list(owner, "", cursor.after.as_deref(), room).await;
            let page = page?;
            resources.extend(page.entries.iter().map(|e| e.to_resource()));
            if let Some(last) = page.entries.last() {
                cursor.after = Some(last.uri.as_str().to_owned());
            }
            more = page.more;
        }
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = more.then(|| cursor.encode());
        Ok(Reply::Resources(result, CacheHint::OWN))
    }

    /// Whether a dynamic resource stands in that one's place, further on.
    async fn is_shadowed(&self, owner: &Owner, uri: &str) -> Result<bool, StoreError> {
        let Ok(uri) = ResourceUri::parse(uri) else { return Ok(false) };
        match self.store.get(owner, &uri).await {
            Ok(_) => Ok(true),
            // The list of what is stored cannot be had either.
            Err(down @ StoreError::Unavailable { .. }) => Err(down),
            Err(_) => Ok(false),
        }
    }

    pub(super) async fn read_resource(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        let text = params.required_text(Member::Uri)?;
        let uri = ResourceUri::parse(&text).map_err(|e| Fault::invalid_params(e.to_string()))?;
        let missing = match self.store.read(&scope.identity, &uri).await {
            Ok(found) => return self.read_dynamic(&found),
            Err(missing) => missing,
        };
        // A static resource needs no store, so it is served even while the store is down.
        if let Some(read) = self.registry.read(&text, scope).await {
            let (content, mime_type) = read?;
            let mime_type = mime_type.unwrap_or_else(|| content.mime_type().to_owned());
            let (kind, pieces) = content.into_parts();
            let reply = ReadReply { uri: text.into_owned(), mime_type, kind, pieces };
            return Ok(Reply::Read(reply, CacheHint::OWN));
        }
        Err(missing.into())
    }

    fn read_dynamic(&self, found: &Found) -> Result<Reply, Fault> {
        let entry = &found.entry;
        let cap = self.limits.load().read_bytes;
        if entry.size > cap {
            return Err(Fault::invalid_params(self.too_large(entry, cap)));
        }
        let reply = ReadReply {
            uri: entry.uri.as_str().to_owned(),
            mime_type: entry.mime_type.clone(),
            kind: entry.kind,
            pieces: found.stream().map_err(std::io::Error::other).boxed(),
        };
        Ok(Reply::Read(reply, CacheHint::OWN))
    }

    /// Says how to read what cannot be given at once: by what this server has.
    fn too_large(&self, entry: &Entry, cap: u64) -> String {
        let Entry { uri, size, .. } = entry;
        let mut text = format!("{uri} has {size} bytes; at most {cap} are given at once.");
        let is_text = entry.kind == Kind::Text;
        let (range, some) =
            if is_text { ("lines=1-200", "lines") } else { ("bytes=0-65535", "bytes") };
        if self.registry.is_static(&format!("{uri}?{range}")) {
            text += &format!(" Read some {some} at {uri}?{range}.");
        }
        if self.registry.catalog().input_schema("read_resource").is_some() {
            let arguments = if is_text {
                json!({ "uri": uri, "offset": 0, "limit": 200 })
            } else {
                json!({ "uri": uri, "unit": "bytes" })
            };
            text += &format!(" Or call the tool read_resource {arguments}");
            text += if is_text { ", or search_resource to find some." } else { "." };
        }
        text
    }
}
