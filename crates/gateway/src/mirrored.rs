//! Arguments that are mirrored into headers of requests to a modern server
//! (2026-07-28, tools: x-mcp-header).

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use base64::{Engine, prelude::BASE64_STANDARD};
use larder_protocol::{Member, Params};
use larder_server::registry::ProvidedTool;
use serde_json::Value;

/// The tools with arguments that are mirrored, by the upstream's own names.
#[derive(Default)]
pub(super) struct Mirrored(ArcSwap<HashMap<String, Arc<ProvidedTool>>>);

impl Mirrored {
    /// Sets the tools that the upstream offers.
    pub(super) fn set<'a>(&self, tools: impl Iterator<Item = (&'a String, &'a Arc<ProvidedTool>)>) {
        let tools = tools.filter(|(_, tool)| !tool.headers().is_empty());
        let tools = tools.map(|(name, tool)| (name.clone(), Arc::clone(tool)));
        self.0.store(Arc::new(tools.collect()));
    }

    /// The headers of a call: names and values.
    pub(super) fn headers(&self, tool: &str, params: &Params) -> Vec<(String, String)> {
        let tools = self.0.load();
        let Some(tool) = tools.get(tool) else { return Vec::new() };
        let Ok(Some(arguments)) = params.read::<Value>(Member::Arguments) else {
            return Vec::new();
        };

        let mirrored = tool.headers().iter().filter_map(|parameter| {
            let value = match parameter.value(&arguments)? {
                Value::String(text) => header_text(text),
                other => other.to_string(),
            };
            Some((parameter.header.clone(), value))
        });
        mirrored.collect()
    }
}

/// Text as a header's value (2026-07-28, transports: Value Encoding).
pub(super) fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|b| (b' '..=b'~').contains(&b)) && text.trim() == text;
    if is_plain && !text.starts_with("=?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", BASE64_STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rmcp::model;
    use serde_json::json;

    use super::*;
    use larder_protocol::{self, Message};

    #[test]
    fn declared_arguments_become_headers() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": {
                "n": { "type": "integer", "x-mcp-header": "N" },
            } },
            "other": { "type": "string" },
        } });
        let Value::Object(schema) = schema else { panic!("an object") };
        let tool = ProvidedTool::new(model::Tool::new("query", "", schema), None);
        let mirrored = Mirrored::default();
        mirrored.set([(&"query".to_owned(), &Arc::new(tool))].into_iter());

        let headers = |arguments: Value| {
            let params = json!({ "name": "query", "arguments": arguments });
            let request =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            let Ok(Message::Request(request)) = larder_protocol::parse(&request.to_string().into())
            else {
                panic!("a request")
            };
            mirrored.headers("query", &request.params)
        };

        let found = headers(json!({ "region": "Zürich", "deep": { "n": 3 }, "other": "x" }));
        let expected = [("mcp-param-region", "=?base64?WsO8cmljaA==?="), ("mcp-param-n", "3")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(headers(json!({ "region": null })).is_empty());
    }

    #[test]
    fn text_that_headers_cannot_hold_is_encoded() {
        for (text, value) in [
            ("plain", "plain"),
            (" padded", "=?base64?IHBhZGRlZA==?="),
            ("=?base64?", "=?base64?PT9iYXNlNjQ/?="),
        ] {
            assert_eq!(header_text(text), value);
        }
    }
}
