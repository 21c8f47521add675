//! [`ResultValue`]: the value of a result, and its JSON as the server behind has written it.

use std::{borrow::Cow, collections::HashMap};

use larder_protocol::exact;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, value::RawValue};

/// The value of a result: its structured content, or its text, parsed if it is JSON.
pub(super) struct ResultValue {
    pub(super) value: Value,
    /// The JSON, where the value does not keep its numbers.
    json: Option<String>,
}

impl ResultValue {
    /// The value of a result, whose structured content was sent as `exact` if a value does not keep
    /// its numbers.
    pub(super) fn of(result: CallToolResult, exact: Option<Box<RawValue>>) -> Self {
        if let Some(value) = result.structured_content {
            return Self { value, json: exact.map(|json| one_line(json.get())) };
        }

        let mut blocks: Vec<Self> = result.content.into_iter().map(Self::of_block).collect();
        if blocks.len() == 1 {
            return blocks.swap_remove(0);
        }

        let json = blocks.iter().any(|block| block.json.is_some()).then(|| {
            let items: Vec<_> = blocks.iter().map(Self::json).collect();
            format!("[{}]", items.join(","))
        });
        let values = blocks.into_iter().map(|block| block.value).collect();
        Self { value: Value::Array(values), json }
    }

    fn of_block(block: ContentBlock) -> Self {
        let text = match block {
            ContentBlock::Text(text) => text.text,
            other => {
                return Self { value: serde_json::to_value(other).unwrap_or_default(), json: None };
            }
        };

        match serde_json::from_str::<Value>(&text) {
            Ok(value) if value.is_object() || value.is_array() => {
                let is_kept = exact::keeps_numbers(text.as_bytes());
                Self { value, json: (!is_kept).then(|| one_line(&text)) }
            }
            _ => Self { value: Value::String(text), json: None },
        }
    }

    /// The JSON in one line.
    pub(super) fn json(&self) -> Cow<'_, str> {
        match &self.json {
            Some(json) => Cow::Borrowed(json),
            None => Cow::Owned(self.value.to_string()),
        }
    }

    /// The text of an error.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match &self.value {
            Value::String(text) => Cow::Borrowed(text),
            _ => self.json(),
        }
    }

    /// The items of the list at a path of members, each as JSON in one line. `None` if there is no
    /// list.
    pub(super) fn items(&self, path: &[String]) -> Option<Vec<Cow<'_, str>>> {
        if let Some(json) = &self.json {
            return raw_items(json, path);
        }

        let list = path.iter().try_fold(&self.value, |value, step| value.get(step))?;
        Some(list.as_array()?.iter().map(|item| Cow::Owned(item.to_string())).collect())
    }
}

fn raw_items<'a>(json: &'a str, path: &[String]) -> Option<Vec<Cow<'a, str>>> {
    let mut at: &RawValue = serde_json::from_str(json).ok()?;
    for step in path {
        let members: HashMap<String, &RawValue> = serde_json::from_str(at.get()).ok()?;
        at = members.get(step)?;
    }

    let items: Vec<&RawValue> = serde_json::from_str(at.get()).ok()?;
    Some(items.into_iter().map(|item| Cow::Borrowed(item.get())).collect())
}

fn one_line(json: &str) -> String {
    String::from_utf8_lossy(&exact::in_one_line(json.as_bytes())).trim().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn of(texts: &[&str]) -> ResultValue {
        let blocks = texts.iter().map(|text| ContentBlock::text(*text)).collect();
        ResultValue::of(CallToolResult::success(blocks), None)
    }

    #[test]
    fn items_are_as_they_were_written() {
        let big = "12345678901234567890123";
        let page =
            format!("{{\"next\":\"b\",\n \"data\":{{\"items\":[{{\"price\":19.90}},\n{big}]}}}}");
        let page = of(&[&page]);
        assert_eq!(page.value["next"], "b");
        let items = page.items(&["data".into(), "items".into()]).unwrap();
        assert_eq!(items, ["{\"price\":19.90}", big]);
        assert!(page.items(&["data".into()]).is_none() && page.items(&["x".into()]).is_none());

        let plain = of(&["[1, {\"a\": 2}]"]);
        assert_eq!(plain.items(&[]).unwrap(), ["1", "{\"a\":2}"]);
        assert_eq!(plain.json(), "[1,{\"a\":2}]");
        assert_eq!(of(&["19.90"]).value, "19.90");
        assert_eq!(of(&["{\"a\":1e3}", "x"]).json(), "[{\"a\":1e3},\"x\"]");

        let mut structured = CallToolResult::success(Vec::new());
        structured.structured_content = Some(json!({ "a": 1.1 }));
        let exact = serde_json::from_str("{\n\"a\":1.10}").unwrap();
        assert_eq!(ResultValue::of(structured, Some(exact)).json(), "{\"a\":1.10}");
    }
}
