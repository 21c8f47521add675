//! The limits on the size of results, and the tools whose results are stored.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool that reads stored results. Results of [`Spill::Auto`] tools are
/// stored only for callers who may use it: without it a model could not read them.
pub use crate::handler::READING_TOOL;

/// When a tool's result is stored as a resource and replaced by a preview.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Spill {
    /// When it is larger than `output_bytes`, and the caller may use the tool
    /// `read_resource`.
    #[default]
    Auto,
    /// Always, whatever its size.
    Always,
    /// Never: the tool bounds its results itself, or the model needs all of it.
    Never,
}

/// The limits on the size of results.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputRules {
    /// The most bytes of text, or of structured content.
    pub output_bytes: usize,
    /// The most bytes of images and audio, in base64.
    pub media_bytes: usize,
    /// The most bytes of text in a workflow's prompt as a whole.
    pub prompt_bytes: usize,
    /// The most bytes of text that show a stored result, if its names are not long.
    pub preview_bytes: usize,
    /// Whether the tools of this crate are listed with their output schemas, which take more bytes
    /// than their other parts. Their structured content is the same without.
    pub own_schemas: bool,
    /// Other values of `output_bytes`, by client name; a `*` at the end matches
    /// any suffix. The longest matching pattern wins.
    pub clients: BTreeMap<String, usize>,
    /// Overrides of the tools' own [`Spill`], by tool name or pattern.
    pub tools: BTreeMap<String, Spill>,
}

impl Default for OutputRules {
    /// 32,000 bytes of text: most hosts pass that to a model without cutting it.
    /// A million bytes of media: models count an image's dimensions, not its bytes.
    fn default() -> Self {
        Self {
            output_bytes: 32_000,
            media_bytes: 1_000_000,
            prompt_bytes: 128_000,
            preview_bytes: 1_500,
            own_schemas: false,
            clients: BTreeMap::new(),
            tools: BTreeMap::new(),
        }
    }
}

/// Whether a name matches a pattern: equal, or with the prefix before a `*`.
pub fn is_match(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// The value of the longest pattern that matches.
pub fn lookup<'a, T>(rules: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let matching = rules.iter().filter(|(pattern, _)| is_match(pattern, name));
    // An exact name wins over a prefix of the same length.
    let longest = matching.max_by_key(|(pattern, _)| (pattern.len(), !pattern.ends_with('*')));
    longest.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_matching_pattern_wins() {
        let rules = [("claude-*", 1), ("claude-code", 2), ("*", 3), ("claude-c*", 4)];
        let rules: BTreeMap<_, _> = rules.map(|(name, n)| (name.to_owned(), n)).into();

        for (name, rule) in
            [("claude-ai", 1), ("claude-code", 2), ("claude-code-2", 4), ("else", 3), ("", 3)]
        {
            assert_eq!(lookup(&rules, name), Some(&rule), "{name}");
        }

        assert_eq!(lookup(&BTreeMap::<String, u8>::new(), "x"), None);
    }
}
