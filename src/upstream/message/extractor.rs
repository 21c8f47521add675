//! [`Extractor`]: finds the long texts of a tool's result while its message arrives.

use crate::protocol::Unescape;

/// The longest name of a member that matters, in bytes.
const MAX_NAME: usize = "structuredContent".len();
/// How many strings may be taken out of the structured content.
const MAX_STRINGS: usize = 64;

/// Reads a JSON-RPC message that arrives in pieces. Keeps it as it is, but for long texts: those
/// of the blocks in `result.content`, and of the resources embedded there, and all strings in
/// `result.structuredContent`. If there is one, the structured content is copied as it is.
///
/// What is kept is valid JSON exactly if the message is, because only the inside of strings is
/// taken out, and is checked here. The rest is checked when it is parsed.
pub(super) struct Extractor {
    /// The length in bytes up to which a text is kept.
    longest: usize,
    /// How many texts may still be taken out of the blocks.
    left: usize,
    structure: Structure,
    level: Level,
    /// How deep within values that do not matter.
    skipped: usize,
    /// Whether the next string is a member's name.
    expects_name: bool,
    /// The latest name of a member, as it is written and shortened.
    name: Vec<u8>,
    string: Reading,
}

/// The containers on the way to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Outside,
    Message,
    Result,
    Content,
    Block,
    Resource,
    /// The structured content. What is within it is skipped, but for its strings.
    Structure,
}

/// How far the structured content is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Structure {
    /// No long string has been found. It begins there in what is kept, once it has begun.
    Kept {
        start: usize,
        left: usize,
    },
    Copied {
        left: usize,
    },
    /// It has ended. Another one is kept as it is.
    Over,
}

/// The string that is being read.
enum Reading {
    None,
    Name {
        is_escaped: bool,
    },
    Other {
        is_escaped: bool,
    },
    /// A text, which begins there in what is kept.
    Text {
        start: usize,
        decoder: Unescape,
        decoded: Vec<u8>,
    },
    /// A long text, which is taken out.
    Long {
        decoder: Unescape,
        ready: Vec<u8>,
        has_ended: bool,
    },
}

/// What the extractor has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A long text of a block begins. What stands for it is to be kept now.
    Begins,
    /// The same for a string of the structured content.
    StringBegins,
    /// A piece of it, decoded.
    Piece(Vec<u8>),
    Ends,
    /// The structured content has ended, all of which was copied.
    StructureEnds,
    /// The message is no JSON. What is kept is none, either.
    Invalid,
}

impl Extractor {
    /// Takes out at most `left` texts of more than `longest` bytes.
    pub(super) fn new(longest: usize, left: usize) -> Self {
        Self {
            longest,
            left,
            structure: Structure::Kept { start: 0, left: MAX_STRINGS },
            level: Level::Outside,
            skipped: 0,
            expects_name: false,
            name: Vec::new(),
            string: Reading::None,
        }
    }

    /// How many bytes of a text are held.
    pub(super) fn held(&self) -> usize {
        match &self.string {
            Reading::Text { decoded, .. } => decoded.len(),
            _ => 0,
        }
    }

    /// Reads on. `None` if the input is used up. Adds to `structure` what is copied of the
    /// structured content.
    pub(super) fn next(
        &mut self,
        input: &mut &[u8],
        kept: &mut Vec<u8>,
        structure: &mut Vec<u8>,
    ) -> Option<Found> {
        let before = *input;
        let is_copied = matches!(self.structure, Structure::Copied { .. });
        let found = self.find(input, kept, structure);
        if is_copied {
            structure.extend_from_slice(&before[..before.len() - input.len()]);
            if self.level != Level::Structure {
                self.structure = Structure::Over;
                return Some(Found::StructureEnds);
            }
        }
        found
    }

    /// The same. Copies only what comes before the first long string of the structured content.
    fn find(
        &mut self,
        input: &mut &[u8],
        kept: &mut Vec<u8>,
        structure: &mut Vec<u8>,
    ) -> Option<Found> {
        loop {
            match &mut self.string {
                Reading::Long { decoder, ready, has_ended } => {
                    if !ready.is_empty() {
                        return Some(Found::Piece(std::mem::take(ready)));
                    }
                    if *has_ended {
                        kept.push(b'"');
                        self.string = Reading::None;
                        return Some(Found::Ends);
                    }
                    if input.is_empty() {
                        return None;
                    }
                    let Ok((used, is_end)) = decoder.feed(input, ready) else {
                        return Some(Found::Invalid);
                    };
                    *has_ended = is_end;
                    *input = &input[used..];
                }
                _ if input.is_empty() => return None,
                Reading::Text { start, decoder, decoded } => {
                    let Ok((used, has_ended)) = decoder.feed(input, decoded) else {
                        return Some(Found::Invalid);
                    };
                    if decoded.len() > self.longest {
                        let start = *start;
                        let (decoder, ready) = (std::mem::take(decoder), std::mem::take(decoded));
                        self.string = Reading::Long { decoder, ready, has_ended };
                        let (beginning, rest) = input.split_at(used);
                        *input = rest;
                        let found = self.take_out(kept, beginning, structure);
                        kept.truncate(start);
                        return Some(found);
                    }
                    keep(input, used, kept);
                    if has_ended {
                        self.string = Reading::None;
                    }
                }
                Reading::Name { is_escaped } => {
                    let (used, has_ended) = within_string(input, is_escaped);
                    let room = (MAX_NAME + 2).saturating_sub(self.name.len());
                    self.name.extend_from_slice(&input[..used.min(room)]);
                    keep(input, used, kept);
                    if has_ended {
                        self.string = Reading::None;
                    }
                }
                Reading::Other { is_escaped } => {
                    let (used, has_ended) = within_string(input, is_escaped);
                    keep(input, used, kept);
                    if has_ended {
                        self.string = Reading::None;
                    }
                }
                Reading::None => {
                    self.between_strings(input, kept);
                    let is_copied = matches!(self.structure, Structure::Copied { .. });
                    if is_copied && self.level != Level::Structure {
                        return None;
                    }
                }
            }
        }
    }

    /// A text is taken out, whose beginning is in what is kept and in these bytes. If it is the
    /// first one of the structured content, copies that so far.
    fn take_out(&mut self, kept: &[u8], beginning: &[u8], structure: &mut Vec<u8>) -> Found {
        self.structure = match self.structure {
            _ if self.level != Level::Structure => {
                self.left -= 1;
                return Found::Begins;
            }
            Structure::Kept { start, left } => {
                structure.extend_from_slice(&kept[start..]);
                structure.extend_from_slice(beginning);
                Structure::Copied { left: left - 1 }
            }
            Structure::Copied { left } => Structure::Copied { left: left - 1 },
            Structure::Over => Structure::Over,
        };
        Found::StringBegins
    }

    /// Reads up to the next byte that matters.
    fn between_strings(&mut self, input: &mut &[u8], kept: &mut Vec<u8>) {
        let matters = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':');
        let Some(index) = input.iter().position(matters) else {
            return keep(input, input.len(), kept);
        };
        let byte = input[index];
        keep(input, index + 1, kept);
        match byte {
            b'"' => self.string = self.string_begins(kept.len()),
            b'{' | b'[' => self.container_begins(byte, kept.len() - 1),
            b'}' | b']' if self.skipped > 0 => self.skipped -= 1,
            b'}' | b']' => self.level = self.level.outer(),
            _ if self.skipped > 0 => {}
            b',' => self.expects_name = self.level != Level::Content,
            _ => self.expects_name = false,
        }
    }

    fn string_begins(&mut self, start: usize) -> Reading {
        let text = || Reading::Text { start, decoder: Unescape::default(), decoded: Vec::new() };
        if let (Level::Structure, Structure::Kept { left, .. } | Structure::Copied { left }) =
            (self.level, self.structure)
            && left > 0
        {
            return text();
        }
        if self.skipped > 0 {
            return Reading::Other { is_escaped: false };
        }
        if self.expects_name {
            self.name.clear();
            return Reading::Name { is_escaped: false };
        }
        let has_text = matches!(self.level, Level::Block | Level::Resource);
        if has_text && self.is_named("text") && self.left > 0 {
            return text();
        }
        Reading::Other { is_escaped: false }
    }

    fn container_begins(&mut self, byte: u8, start: usize) {
        let is_object = byte == b'{';
        let inner = match (self.level, is_object) {
            _ if self.skipped > 0 || self.expects_name => None,
            (Level::Outside, true) => Some(Level::Message),
            (Level::Message, true) if self.is_named("result") => Some(Level::Result),
            (Level::Result, false) if self.is_named("content") => Some(Level::Content),
            (Level::Result, _) if self.is_named("structuredContent") => {
                if let Structure::Kept { left, .. } = self.structure {
                    self.structure = Structure::Kept { start, left };
                }
                Some(Level::Structure)
            }
            (Level::Content, true) => Some(Level::Block),
            (Level::Block, true) if self.is_named("resource") => Some(Level::Resource),
            _ => None,
        };
        match inner {
            Some(level) => {
                self.level = level;
                self.expects_name = is_object;
            }
            None => self.skipped += 1,
        }
    }

    /// Whether the latest member has this name. A name with escapes is not recognized.
    fn is_named(&self, name: &str) -> bool {
        self.name.strip_suffix(b"\"") == Some(name.as_bytes())
    }
}

impl Level {
    fn outer(self) -> Self {
        match self {
            Self::Outside | Self::Message => Self::Outside,
            Self::Result => Self::Message,
            Self::Content | Self::Structure => Self::Result,
            Self::Block => Self::Content,
            Self::Resource => Self::Block,
        }
    }
}

/// Moves the first bytes of the input to what is kept.
fn keep(input: &mut &[u8], bytes: usize, kept: &mut Vec<u8>) {
    let (first, rest) = input.split_at(bytes);
    kept.extend_from_slice(first);
    *input = rest;
}

/// How many bytes belong to a string, its closing quote included, and whether it ends there.
fn within_string(input: &[u8], is_escaped: &mut bool) -> (usize, bool) {
    if *is_escaped {
        *is_escaped = false;
        return (1, false);
    }
    match memchr::memchr2(b'"', b'\\', input) {
        None => (input.len(), false),
        Some(index) => {
            let is_end = input[index] == b'"';
            *is_escaped = !is_end;
            (index + 1, is_end)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// What an extractor makes of a message.
    #[derive(Default)]
    struct Extracted {
        kept: Vec<u8>,
        /// The texts for which `$0`, `$1` and so on stand.
        texts: Vec<Vec<u8>>,
        /// How many of them are in blocks.
        in_blocks: usize,
        structure: Vec<u8>,
        has_structure: bool,
    }

    /// What is kept of a message in pieces of these sizes. `None` if it is found to be invalid.
    fn extract(message: &[u8], sizes: &[usize]) -> Option<Extracted> {
        let (mut extractor, mut rest) = (Extractor::new(5, 3), message);
        let mut all = Extracted::default();
        for size in sizes.iter().chain(std::iter::repeat(&11)) {
            let (mut piece, after) = rest.split_at((*size).min(rest.len()));
            let Extracted { kept, texts, structure, in_blocks, has_structure } = &mut all;
            while let Some(found) = extractor.next(&mut piece, kept, structure) {
                match found {
                    Found::Begins | Found::StringBegins => {
                        kept.extend(format!("${}", texts.len()).bytes());
                        texts.push(Vec::new());
                        *in_blocks += usize::from(found == Found::Begins);
                    }
                    Found::Piece(piece) => texts.last_mut().unwrap().extend(piece),
                    Found::Ends => {}
                    Found::StructureEnds => *has_structure = true,
                    Found::Invalid => return None,
                }
            }
            if after.is_empty() {
                break;
            }
            rest = after;
        }
        Some(all)
    }

    /// Puts the texts back.
    fn restore(value: &mut Value, texts: &[Vec<u8>]) {
        match value {
            Value::String(text) => {
                let number = text.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
                if let Some(taken) = number.and_then(|number| texts.get(number)) {
                    *text = String::from_utf8(taken.clone()).unwrap();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| restore(item, texts)),
            Value::Object(members) => {
                for (name, mut member) in std::mem::take(members) {
                    restore(&mut member, texts);
                    let mut name = Value::String(name);
                    restore(&mut name, texts);
                    members.insert(name.as_str().unwrap().to_owned(), member);
                }
            }
            _ => {}
        }
    }

    fn any_string() -> impl Strategy<Value = String> {
        let parts = ["a", "text", "\n", "\"", "\\", "é", "🦀", "\0", "{", "]", "result", "long "];
        prop::collection::vec(prop::sample::select(parts.to_vec()), 0..8).prop_map(|p| p.concat())
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any_string().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            Just(Value::Null),
        ];
        let name = prop::sample::select(vec!["text", "result", "content", "resource", "type", "x"]);
        leaf.prop_recursive(5, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name.clone(), inner), 0..4).prop_map(|members| {
                    Value::Object(members.into_iter().map(|(n, v)| (n.to_owned(), v)).collect())
                }),
            ]
        })
    }

    fn any_block() -> impl Strategy<Value = Value> {
        let text = || any_string().prop_map(|text| json!({ "type": "text", "text": text }));
        let resource =
            text().prop_map(|resource| json!({ "resource": resource, "x": "long text" }));
        prop_oneof![3 => text(), 1 => resource, 1 => any_value()]
    }

    fn any_message() -> impl Strategy<Value = Value> {
        let blocks = prop::collection::vec(any_block(), 0..6);
        let result = (blocks, any_value()).prop_map(|(blocks, value)| {
            json!({ "id": 1, "result": { "structuredContent": value, "content": blocks } })
        });
        prop_oneof![3 => result, 1 => any_value()]
    }

    proptest! {
        #[test]
        fn a_message_in_any_pieces_is_whole(
            message in any_message(),
            is_pretty in any::<bool>(),
            sizes in prop::collection::vec(1usize..40, 0..60),
        ) {
            let text = if is_pretty {
                serde_json::to_string_pretty(&message).unwrap()
            } else {
                message.to_string()
            };
            let found = extract(text.as_bytes(), &sizes).unwrap();
            let Extracted { kept, texts, in_blocks, .. } = found;
            let mut read: Value = serde_json::from_slice(&kept).unwrap();
            restore(&mut read, &texts);
            prop_assert_eq!(&read, &message);
            // It finds what it is for.
            let blocks = message["result"]["content"].as_array();
            let long = blocks.into_iter().flatten().filter(|block| {
                let texts = [&block["text"], &block["resource"]["text"]];
                texts.iter().any(|text| text.as_str().is_some_and(|text| text.len() > 5))
            });
            prop_assert!(in_blocks >= long.count().min(3));
            prop_assert!(in_blocks <= 3 && texts.iter().all(|text| text.len() > 5));
            prop_assert_eq!(found.has_structure, texts.len() > in_blocks);
            if found.has_structure {
                let copied: Value = serde_json::from_slice(&found.structure).unwrap();
                prop_assert_eq!(&copied, &message["result"]["structuredContent"]);
            } else {
                prop_assert!(found.structure.is_empty());
            }
        }

        #[test]
        fn what_is_no_json_is_none_afterwards(
            message in any_message(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            sizes in prop::collection::vec(1usize..40, 0..60),
        ) {
            let mut text = message.to_string().into_bytes();
            for (at, byte) in changes {
                let at = at.index(text.len());
                text[at] = byte;
            }
            let expected = serde_json::from_slice::<Value>(&text);
            match extract(&text, &sizes) {
                None => prop_assert!(expected.is_err()),
                // The store checks that texts are UTF-8.
                Some(found) if found.texts.iter().any(|text| str::from_utf8(text).is_err()) => {}
                Some(Extracted { kept, texts, .. }) => {
                    let read = serde_json::from_slice::<Value>(&kept).map(|mut read| {
                        restore(&mut read, &texts);
                        read
                    });
                    prop_assert_eq!(read.ok(), expected.ok());
                }
            }
        }
    }

    #[test]
    fn hostile_messages_are_kept_as_they_are() {
        let deep = format!(r#"{{"result":{{"content":{}"#, "[{".repeat(100_000));
        let closers = "]}".repeat(1000);
        let names = format!(r#"{{"result":{{"content":[{{"te\u0078t":"{}"}}]}}}}"#, "x".repeat(50));
        for message in [deep.as_str(), &closers, &names, "", "\"", "{\"result\":\"", "nul"] {
            let found = extract(message.as_bytes(), &[3]).unwrap();
            assert!(found.kept == message.as_bytes() && found.texts.is_empty(), "{message:.40}");
        }
    }
}
