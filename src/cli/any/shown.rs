//! Results and messages of servers, as text for a terminal.

use indicatif::HumanBytes;
use larder_protocol::quote::visible;
use serde_json::Value;

/// The text of a tool's result.
pub(super) fn result(result: &Value) -> String {
    let text = content(&result["content"]);
    match &result["structuredContent"] {
        // Some servers send the structured content alone.
        structured if text.is_empty() && !structured.is_null() => structured.to_string(),
        _ => text,
    }
}

/// The text of content blocks. Other blocks are described, unless the text names their URIs.
pub(super) fn content(blocks: &Value) -> String {
    let blocks = match blocks {
        Value::Array(blocks) => blocks.iter().collect(),
        Value::Null => Vec::new(),
        single => vec![single],
    };
    let texts: String = blocks.iter().filter_map(|block| block["text"].as_str()).collect();

    let shown = blocks.into_iter().filter_map(|block| {
        let uri = block["uri"].as_str().unwrap_or_default();
        match block["type"].as_str() {
            Some("resource_link") if !uri.is_empty() && texts.contains(uri) => None,
            _ => Some(one(block)),
        }
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn one(block: &Value) -> String {
    let field = |name: &str| visible(block[name].as_str().unwrap_or_default()).into_owned();
    if let Some(text) = block["text"].as_str() {
        return text.to_owned();
    }

    match block["type"].as_str() {
        Some(kind @ ("image" | "audio")) => {
            let bytes = block["data"].as_str().map_or(0, str::len) as u64 / 4 * 3;
            format!("[{kind}: {}, {}]", field("mimeType"), HumanBytes(bytes))
        }
        Some("resource_link") => format!("[link: {} {}]", field("name"), field("uri")),
        Some("resource") => match block["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => {
                let uri = block["resource"]["uri"].as_str().unwrap_or_default();
                format!("[resource: {}]", visible(uri))
            }
        },
        _ => visible(&block.to_string()).into_owned(),
    }
}

/// The first sentence of a description, in one line.
pub(super) fn summary(description: &Value) -> String {
    let text = description.as_str().unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |end| end + 1);
    visible(&line[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_become_text() {
        for (sent, shown) in [
            (
                json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }),
                "a\nb",
            ),
            (
                json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": "AAAA" }] }),
                "[image: image/png, 3 B]",
            ),
            (
                json!({ "content": [{ "type": "resource_link", "name": "N", "uri": "a:b" }] }),
                "[link: N a:b]",
            ),
            (json!({ "content": [{ "type": "resource_link", "name": "N" }] }), "[link: N ]"),
            (
                json!({ "content": [{ "type": "text", "text": "at a:b" }, { "type": "resource_link", "uri": "a:b" }] }),
                "at a:b",
            ),
            (
                json!({ "content": [{ "type": "resource", "resource": { "uri": "a:b", "text": "t" } }] }),
                "t",
            ),
            (
                json!({ "content": [{ "type": "resource", "resource": { "uri": "a:b", "blob": "" } }] }),
                "[resource: a:b]",
            ),
            (json!({ "structuredContent": { "a": 1 } }), r#"{"a":1}"#),
            (json!({ "content": [] }), ""),
            (json!({ "content": [{ "type": "odd" }] }), r#"{"type":"odd"}"#),
        ] {
            assert_eq!(result(&sent), shown, "{sent}");
        }
    }

    #[test]
    fn a_summary_is_a_sentence() {
        assert_eq!(summary(&json!("\n  Adds 1.5 to a. Then more.\nMore.")), "Adds 1.5 to a.");
        assert_eq!(summary(&json!("One")), "One");
        assert_eq!(summary(&Value::Null), "");
    }
}
