//! URIs in what an upstream sends, if there are several upstreams.

use serde_json::Value;

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

    /// Changes the URIs of links and embedded resources in content blocks.
    pub(super) fn offer_blocks(&self, blocks: &mut Value) {
        for block in blocks.as_array_mut().into_iter().flatten() {
            self.offer_block(block);
        }
    }

    /// Changes the URIs in one content block. Text stays as it is.
    pub(super) fn offer_block(&self, block: &mut Value) {
        match block["type"].as_str() {
            Some("resource_link") => self.offer_member(block, "uri"),
            Some("resource") => self.offer_member(&mut block["resource"], "uri"),
            _ => {}
        }
    }

    /// Changes the URI of a tool's user interface (MCP Apps).
    pub(super) fn offer_ui(&self, item: &mut Value) {
        if let Some(ui) = item.get_mut("_meta").and_then(|meta| meta.get_mut("ui")) {
            self.offer_member(ui, "resourceUri");
        }
    }

    /// Changes the URI in a member.
    pub(super) fn offer_member(&self, object: &mut Value, member: &str) {
        if self.is_prefixed
            && let Some(Value::String(uri)) = object.get_mut(member)
        {
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
        let mut blocks = json!([
            { "type": "text", "text": "file:///a" },
            { "type": "resource_link", "uri": "file:///a", "name": "a" },
            { "type": "resource", "resource": { "uri": "file:///b", "text": "" } },
        ]);
        naming(true).offer_blocks(&mut blocks);
        assert_eq!(blocks[0]["text"], "file:///a");
        assert_eq!(blocks[1]["uri"], "fs+file:///a");
        assert_eq!(blocks[2]["resource"]["uri"], "fs+file:///b");
    }
}
