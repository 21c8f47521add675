//! Wording that results share: the size of a resource, and calls of the tools
//! over the store for the model to copy.

use larder_records::{Container, Layout, Pointer, RecordIndex};
use serde_json::{Value, json};

pub(crate) use crate::handler::tool_calls::{
    READ_AT_ONCE, arguments_after, call, read_arguments, type_and_size,
};

/// The arguments of `search_resource`, with a placeholder as the query.
pub(crate) fn search_arguments(uri: &str) -> Value {
    json!({ "uri": uri, "query": "PATTERN" })
}

/// The jq filter that gives the records, one by one: `.data.items[]`.
pub(crate) fn jq_root(index: &RecordIndex) -> String {
    if index.layout() != Layout::Json {
        return ".".into();
    }

    let at: Pointer = index.at().parse().unwrap_or_default();
    let mut root = String::new();
    for segment in (0..at.len()).filter_map(|n| at.segment(n)) {
        let is_word = segment.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !segment.starts_with(|c: char| c.is_ascii_digit())
            && !segment.is_empty();
        root += &match (is_word, root.is_empty()) {
            (true, _) => format!(".{segment}"),
            (false, true) => format!(".[{}]", Value::from(segment)),
            (false, false) => format!("[{}]", Value::from(segment)),
        };
    }

    let root = if root.is_empty() { ".".to_owned() } else { root };
    match index.container() {
        Container::List => format!("{root}[]"),
        Container::Object if root == "." => "to_entries[]".to_owned(),
        Container::Object => format!("{root} | to_entries[]"),
        Container::Scalar => root,
    }
}

/// The arguments of `query_resource` that count the records.
pub(crate) fn count_arguments(uri: &str) -> Value {
    json!({ "from": uri, "sql": "SELECT count(*) FROM t" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_records::Indexer;

    #[test]
    fn a_jq_root_leads_to_the_records() {
        for (json, root) in [
            ("[1]", ".[]"),
            ("{\"a\": {\"b_1\": [1]}}", ".a.b_1[]"),
            ("{\"a b\": {\"1\": [1]}}", ".[\"a b\"][\"1\"][]"),
            ("{\"a\": 1}", "to_entries[]"),
            ("7", "."),
        ] {
            let mut indexer = Indexer::new(Layout::Json);
            indexer.feed(json.as_bytes()).expect("it is JSON");
            let index = indexer.finish().expect("it is JSON").expect("it has a value");

            assert_eq!(jq_root(&index), root, "{json}");
        }
    }
}
