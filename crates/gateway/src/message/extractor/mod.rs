//! [`Extractor`]: finds the long texts of a tool's result, or of a resource's contents, while the
//! message arrives.

use larder_protocol::Unescape;
use larder_server::handler::{Longest, Source};
use larder_store::store::Kind;

/// The longest name of a member that matters, in bytes.
const MAX_NAME: usize = "structuredContent".len();
/// How many strings may be taken out of the structured content.
const MAX_STRINGS: usize = 64;

/// Reads a JSON-RPC message that arrives in pieces. Keeps it as it is, but for long strings: the
/// texts and the data of the blocks in `result.content`, and of the resources embedded there, and
/// all strings in `result.structuredContent`. If there is one, the structured content is copied as it is.
/// Of a resource, these are the texts and blobs in `result.contents`.
///
/// The kept part is valid JSON exactly if the message is, repaired as `received::repair` does it,
/// because only the inside of strings is taken out, and is checked here. The rest is checked when it
/// is parsed.
pub(super) struct Extractor {
    /// The lengths in bytes up to which strings are kept.
    longest: Longest,
    /// Whether it reads the contents of a resource.
    is_resource: bool,

    /// How many strings may still be taken out of the blocks.
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
    /// The contents of a resource.
    Contents,
    /// One of them.
    ReadContent,
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
    /// The structured content has ended. Another one is kept as it is.
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
    /// A string that may be long. It begins there in what is kept.
    Text {
        start: usize,
        kind: Kind,
        longest: usize,
        decoder: Unescape,
        decoded: Vec<u8>,
    },
    /// A long string, which is taken out.
    Long {
        decoder: Unescape,
        ready: Vec<u8>,
        has_ended: bool,
    },
}

/// The position that the extractor has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A long text of a block begins, or base64 of binary content. What stands for it is to be kept
    /// now.
    Begins(Kind),
    /// A string of the structured content begins.
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
    /// Takes out at most `left` strings of blocks or contents that are longer than that.
    pub(super) fn new(source: &Source, longest: Longest, left: usize) -> Self {
        Self {
            longest,
            is_resource: *source == Source::Resource,
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

    /// Reads on to what is found next. Copies only what comes before the first long string of the structured content.
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
                Reading::Text { start, kind, longest, decoder, decoded } => {
                    let Ok((used, has_ended)) = decoder.feed(input, decoded) else {
                        return Some(Found::Invalid);
                    };

                    if decoded.len() > *longest {
                        let start = *start;
                        let kind = *kind;
                        let decoder = std::mem::take(decoder);
                        let ready = std::mem::take(decoded);
                        self.string = Reading::Long { decoder, ready, has_ended };
                        let (beginning, rest) = input.split_at(used);
                        *input = rest;
                        let found = self.take_out(kind, kept, beginning, structure);
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
    fn take_out(
        &mut self,
        kind: Kind,
        kept: &[u8],
        beginning: &[u8],
        structure: &mut Vec<u8>,
    ) -> Found {
        self.structure = match self.structure {
            _ if self.level != Level::Structure => {
                self.left -= 1;
                return Found::Begins(kind);
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
            b',' => self.expects_name = !matches!(self.level, Level::Content | Level::Contents),
            _ => self.expects_name = false,
        }
    }

    fn string_begins(&mut self, start: usize) -> Reading {
        let long = |kind, longest| {
            let decoder = Unescape::repairing();
            let decoded = Vec::new();
            Reading::Text { start, kind, longest, decoder, decoded }
        };

        if let (Level::Structure, Structure::Kept { left, .. } | Structure::Copied { left }) =
            (self.level, self.structure)
            && left > 0
        {
            return long(Kind::Text, self.longest.text);
        }

        if self.skipped > 0 {
            return Reading::Other { is_escaped: false };
        }
        if self.expects_name {
            self.name.clear();
            return Reading::Name { is_escaped: false };
        }

        let Longest { text, media } = self.longest;
        match self.level {
            _ if self.left == 0 => {}
            Level::Block | Level::Resource | Level::ReadContent if self.is_named("text") => {
                return long(Kind::Text, text);
            }
            Level::Block if self.is_named("data") => return long(Kind::Binary, media),
            Level::Resource | Level::ReadContent if self.is_named("blob") => {
                return long(Kind::Binary, text);
            }
            _ => {}
        }
        Reading::Other { is_escaped: false }
    }

    fn container_begins(&mut self, byte: u8, start: usize) {
        let is_object = byte == b'{';
        let inner = match (self.level, is_object) {
            _ if self.skipped > 0 || self.expects_name => None,
            (Level::Outside, true) => Some(Level::Message),
            (Level::Message, true) if self.is_named("result") => Some(Level::Result),
            (Level::Result, false) if self.is_resource && self.is_named("contents") => {
                Some(Level::Contents)
            }
            (Level::Contents, true) => Some(Level::ReadContent),
            (Level::Result, _) if self.is_resource => None,
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
            Self::Content | Self::Contents | Self::Structure => Self::Result,
            Self::Block => Self::Content,
            Self::Resource => Self::Block,
            Self::ReadContent => Self::Contents,
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
mod tests;
