//! `resources/list` and `resources/read`. A dynamic resource takes precedence over a
//! defined one with the same URI.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, future::try_join_all};
use larder_oauth::Owner;
use larder_protocol::{APPS_SCHEME, Fault, Member, Params};
use larder_store::store::{Entry, Kind, ResourceUri, StoreError, StoredResource};
use rmcp::model::ListResourcesResult;

use super::{CacheHint, ContentReply, Dispatcher, ReadReply, Reply, parse_cursor};
use crate::{
    handler::{ReadContent, Scope},
    registry::Cursor,
    spill::tool_calls::{call, read_arguments},
};

/// The name of the listing within its cursors.
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
        let mut cursor = Cursor::decode(LIST, parse_cursor(params)?.as_deref())?;
        let mut resources = Vec::new();

        let catalog = self.registry.catalog();
        let provided = self.registry.provided_resources(&scope).await?;
        let defined = catalog.resources().chain(&provided).enumerate().skip(cursor.offset);

        // UI resources are listed only for clients that show them.
        let shows_apps = scope.client.shows_apps();
        let mut defined = defined.filter(|(_, resource)| {
            (shows_apps || !resource.uri.starts_with(APPS_SCHEME))
                && self.registry.can_list_resource(identity.grant(), &resource.uri)
        });

        while resources.len() < size {
            let next: Vec<_> = defined.by_ref().take(size - resources.len()).collect();
            let Some((last, _)) = next.last() else { break };
            cursor.offset = last + 1;

            // Looks the resources up concurrently, because the store may be remote.
            let shadowed = next.iter().map(|(_, resource)| self.is_shadowed(owner, &resource.uri));
            let shadowed = try_join_all(shadowed).await?;
            let shown = next.into_iter().zip(shadowed).filter(|(_, shadowed)| !shadowed);
            for ((_, resource), _) in shown {
                resources.push(catalog.with_current_stat(resource).await);
            }
        }

        let mut more = defined.next().is_some();
        if !more {
            // Asks the store even if the page is full, to learn whether another page
            // follows.
            let room = size - resources.len();
            let page = self.store.list(owner, "", cursor.after.as_deref(), room).await?;
            resources.extend(page.entries.iter().map(|e| e.to_resource()));
            if let Some(last) = page.entries.last() {
                cursor.after = Some(last.uri.as_str().to_owned());
            }
            more = page.more;
        }

        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = more.then(|| cursor.encode());
        Ok(Reply::Resources(result, CacheHint::NO_CACHE))
    }

    /// Whether a dynamic resource replaces the defined one. It is then listed further on.
    async fn is_shadowed(&self, owner: &Owner, uri: &str) -> Result<bool, StoreError> {
        let Ok(uri) = ResourceUri::parse(uri) else { return Ok(false) };

        match self.store.get(owner, &uri).await {
            Ok(_) => Ok(true),
            // Listing the stored resources would fail, too.
            Err(error @ StoreError::Unavailable { .. }) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Whether a stored resource of the owner, or a resource of the definition has this URI. `true`
    /// if that cannot be found out.
    pub async fn has_own_resource(&self, owner: &Owner, uri: &str) -> bool {
        self.registry.is_static(uri) || self.is_shadowed(owner, uri).await.unwrap_or(true)
    }

    pub(super) async fn read_resource(
        &self,
        params: &Params,
        scope: Arc<Scope>,
    ) -> Result<Reply, Fault> {
        let text = params.required_text(Member::Uri)?;
        let missing = match self.store.read_named(&scope.identity, &text).await {
            Ok(found) => return self.read_dynamic(&found),
            Err(missing) => missing,
        };

        // A static resource is served even if the store is unavailable, or cannot hold its URI.
        let hint = self.registry.cache_rule(&text).map_or(CacheHint::NO_CACHE, CacheHint::from);
        if let Some(read) = self.registry.read(&text, scope).await {
            let mut contents = read?;
            let meta = contents.meta.take();
            let contents = contents.into_iter().map(|read| content_reply(&text, read)).collect();
            let reply = ReadReply { uri: text.into_owned(), contents, meta };
            return Ok(Reply::Read(reply, hint));
        }

        Err(missing.into())
    }

    fn read_dynamic(&self, found: &StoredResource) -> Result<Reply, Fault> {
        let entry = &found.entry;
        let max = self.limits.load().read_bytes;
        if entry.size > max {
            return Err(Fault::invalid_params(self.too_large(entry, max)));
        }

        let content = ContentReply {
            uri: entry.uri.as_str().to_owned(),
            mime_type: entry.mime_type.clone(),
            kind: entry.kind,
            chunks: found.stream().map_err(std::io::Error::other).boxed(),
            meta: None,
        };

        let uri = content.uri.clone();
        let reply = ReadReply { uri, contents: vec![content], meta: None };
        Ok(Reply::Read(reply, CacheHint::NO_CACHE))
    }

    /// The error for content that is over the limit. It names the ways to read a part that
    /// this server offers.
    fn too_large(&self, entry: &Entry, max: u64) -> String {
        let Entry { uri, size, .. } = entry;
        let mut text = format!("{uri} has {size} bytes; one response has at most {max}.");

        let is_text = entry.kind == Kind::Text;
        let (range, unit) =
            if is_text { ("lines=1-200", "lines") } else { ("bytes=0-65535", "bytes") };

        if self.registry.is_static(&format!("{uri}?{range}")) {
            text += &format!(" Read a range of {unit} at {uri}?{range}.");
        }

        if self.registry.catalog().input_schema("read_resource").is_some() {
            let arguments = read_arguments(entry, 200);
            text += &format!(" Or call the tool {}", call("read_resource", &arguments));
            text += if is_text { ", or search_resource to find lines." } else { "." };
        }

        text
    }
}

/// A content of the static resource `of`, as it is sent.
fn content_reply(of: &str, read: ReadContent) -> ContentReply {
    let ReadContent { uri, mime_type, meta, content } = read;
    let uri = uri.unwrap_or_else(|| of.to_owned());
    let mime_type = mime_type.unwrap_or_else(|| content.mime_type().to_owned());
    let (kind, chunks) = content.into_parts();
    ContentReply { uri, mime_type, kind, chunks, meta }
}
