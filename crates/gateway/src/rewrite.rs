//! URIs in what an upstream sends, if there are several upstreams.

use rmcp::model::{ContentBlock, MetaObject, ResourceContents};
use serde_json::{Map, Value};

use super::names::Naming;

impl Naming {
    /// The URI under which a resource of the upstream is offered.
    pub(super) fn offered_uri(&self, own: &str) -> String {
        match own.strip_prefix("ui://") {
            _ if !self.is_prefixed => own.to_owned(),
            Some(rest) => format!("ui://{}/{rest}", self.upstream),
            None => format!("{}+{own}", self.upstream),
        }
    }

    /// The upstream's own URI. `None` if it cannot be the upstream's.
    pub(super) fn own_uri(&self, offered: &str) -> Option<String> {
        if !self.is_prefixed {
            return Some(offered.to_owned());
        }
        if let Some(rest) = offered.strip_prefix("ui://") {
            let rest = rest.strip_prefix(&self.upstream)?.strip_prefix('/')?;
            return Some(format!("ui://{rest}"));
        }
        Some(offered.strip_prefix(&self.upstream)?.strip_prefix('+')?.to_owned())
    }

    /// Changes the URIs of links and embedded resources in content blocks. Text stays as it is.
    pub(super) fn offer_blocks(&self, blocks: &mut [ContentBlock]) {
        for block in blocks {
            self.offer_block(block);
        }
    }

    /// Changes the URIs in one content block.
    pub(super) fn offer_block(&self, block: &mut ContentBlock) {
        match block {
            ContentBlock::ResourceLink(link) => {
                self.offer(&mut link.uri);
                self.offer_meta(&mut link.meta);
            }
            ContentBlock::Resource(embedded) => {
                self.offer_meta(&mut embedded.meta);
                match &mut embedded.resource {
                    ResourceContents::TextResourceContents { uri, meta, .. }
                    | ResourceContents::BlobResourceContents { uri, meta, .. } => {
                        self.offer(uri);
                        self.offer_meta(meta);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Changes the URIs of user interfaces in metadata: those of MCP Apps and of ChatGPT's apps.
    pub(super) fn offer_meta(&self, meta: &mut Option<MetaObject>) {
        if let Some(MetaObject(members)) = meta {
            self.offer_members(members);
        }
    }

    /// Changes the URIs of user interfaces among the members of metadata.
    pub(super) fn offer_members(&self, meta: &mut Map<String, Value>) {
        if let Some(Value::Object(ui)) = meta.get_mut("ui")
            && let Some(Value::String(uri)) = ui.get_mut("resourceUri")
        {
            self.offer(uri);
        }
        for member in ["ui/resourceUri", "openai/outputTemplate"] {
            if let Some(Value::String(uri)) = meta.get_mut(member) {
                self.offer(uri);
            }
        }
    }

    /// Changes a URI.
    pub(super) fn offer(&self, uri: &mut String) {
        if self.is_prefixed {
            *uri = self.offered_uri(uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn uris_are_rewritten_and_found_again() {
        let naming =
            |is_prefixed| Naming { upstream: "fs".into(), is_prefixed, reserved: HashSet::new() };

        for (own, offered) in [
            ("file:///a", "fs+file:///a"),
            ("ui://board/view.html", "ui://fs/board/view.html"),
            ("demo://{id}", "fs+demo://{id}"),
        ] {
            assert_eq!(naming(true).offered_uri(own), offered);
            assert_eq!(naming(true).own_uri(offered).as_deref(), Some(own));
            assert_eq!(naming(false).offered_uri(own), own);
        }
        for other in ["file:///a", "fsx+file:///a", "ui://other/x", "fs"] {
            assert_eq!(naming(true).own_uri(other), None, "{other}");
        }

        let mut blocks: Vec<ContentBlock> = serde_json::from_value(json!([
            { "type": "text", "text": "file:///a" },
            { "type": "resource_link", "uri": "file:///a", "name": "a" },
            { "type": "resource", "resource": { "uri": "file:///b", "text": "" } },
        ]))
        .expect("they are blocks");

        naming(true).offer_blocks(&mut blocks);
        let mut meta = Some(MetaObject(Map::from_iter([
            ("ui".to_owned(), json!({ "resourceUri": "ui://board/a" })),
            ("ui/resourceUri".to_owned(), json!("ui://board/b")),
            ("openai/outputTemplate".to_owned(), json!("ui://board/c")),
            ("other".to_owned(), json!("ui://board/d")),
        ])));
        naming(true).offer_meta(&mut meta);
        assert_eq!(
            json!(meta),
            json!({
                "ui": { "resourceUri": "ui://fs/board/a" },
                "ui/resourceUri": "ui://fs/board/b",
                "openai/outputTemplate": "ui://fs/board/c",
                "other": "ui://board/d",
            })
        );

        let blocks = json!(blocks);
        assert_eq!(blocks[0]["text"], "file:///a");
        assert_eq!(blocks[1]["uri"], "fs+file:///a");
        assert_eq!(blocks[2]["resource"]["uri"], "fs+file:///b");
    }
}
