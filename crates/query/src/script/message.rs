//! The messages between Larder and the worker of a script.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest message of a call, in bytes.
pub(crate) const MAX_CALL_BYTES: usize = 4 << 20;

/// A stored resource, as a script sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptHandle {
    /// The URI.
    pub uri: String,
    /// The media type.
    pub mime_type: String,
    /// The size in bytes.
    pub size: u64,
    /// The number of lines, of a text.
    pub line_count: Option<u64>,
}

/// A resource that is given to a script under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptInput {
    /// The name.
    pub name: String,
    /// The resource.
    pub handle: ScriptHandle,
}

/// To the worker, once: the script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptStart {
    pub(crate) code: String,
    /// The names of the tools that the caller may see.
    pub(crate) tools: Vec<String>,
    pub(crate) inputs: Vec<ScriptInput>,
    pub(crate) seconds: u64,
    pub(crate) calls_at_once: usize,
    pub(crate) result_bytes: usize,
    pub(crate) console_bytes: usize,
}

/// To the worker: the answer to one of its calls.
#[derive(Debug, Serialize)]
pub(crate) struct ScriptReply {
    pub(crate) id: u64,
    pub(crate) outcome: ScriptOutcome,
}

/// The answer to a call of a script.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptOutcome {
    /// A value.
    Value(Box<RawValue>),
    /// A resource, in place of a value that is too large.
    Handle(ScriptHandle),
    /// An error, which the script can catch.
    Error {
        /// The text.
        message: String,
        /// The error of the tool as it was sent, if the tool was called.
        value: Option<Box<RawValue>>,
    },
}

/// A range of bytes, lines or records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PartRange {
    /// The number of units to skip.
    pub offset: u64,
    /// The number of units to read; all that follow if left out.
    pub limit: Option<u64>,
}

/// An operation on stored resources.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HandleOperation {
    /// The resource under a URI.
    Open {
        /// The URI.
        uri: String,
    },
    /// The whole content, parsed if it is JSON.
    Value {
        /// The URI.
        uri: String,
    },
    /// A part of the text, by bytes.
    Text {
        /// The URI.
        uri: String,
        /// The bytes.
        range: PartRange,
    },
    /// Lines of the text.
    Lines {
        /// The URI.
        uri: String,
        /// The lines.
        range: PartRange,
    },
    /// Records.
    Records {
        /// The URI.
        uri: String,
        /// The records.
        range: PartRange,
    },
    /// The values that a jq filter gives.
    Jq {
        /// The URI.
        uri: String,
        /// The filter.
        filter: String,
    },
    /// The rows of a SELECT.
    Sql {
        /// A URI, or an object with a URI for each table.
        from: Box<RawValue>,
        /// The statement.
        statement: String,
    },
    /// The lines that match a regular expression.
    Search {
        /// The URI.
        uri: String,
        /// The expression.
        pattern: String,
    },
    /// Stores a value.
    Store {
        /// The value.
        value: Box<RawValue>,
        /// The URI; made if left out.
        uri: Option<String>,
        /// A short name.
        name: Option<String>,
        /// The time to live in seconds.
        ttl: Option<u64>,
    },
}

/// The reason why a script has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptFailure {
    /// The code cannot be parsed, or has thrown an error.
    Thrown {
        /// The error.
        message: String,
        /// The line of the code, from 1, and the column.
        at: Option<(u32, u32)>,
    },
    /// The time is over.
    Time,
    /// The memory is used up.
    Memory,
    /// The returned value is too large.
    Result,
    /// The code awaits something that nothing can settle.
    Stuck,
}

/// A message of the worker of a script.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptMessage {
    /// Calls a tool.
    Call {
        /// The number of the call, from 1, one more than that of the last one.
        id: u64,
        /// The name.
        tool: String,
        /// The arguments.
        arguments: Box<RawValue>,
        /// How many handles the arguments have, each as a reference.
        handles: usize,
    },
    /// Operates on stored resources.
    Handle {
        /// The number of the call.
        id: u64,
        /// The operation.
        operation: HandleOperation,
    },
    /// A line of console output.
    Log {
        /// The text.
        text: String,
    },
    /// The returned value. The script has ended.
    Done {
        /// The value.
        value: Box<RawValue>,
    },
    /// The script has ended without a value.
    Failed {
        /// The reason.
        failure: ScriptFailure,
    },
}

impl ScriptMessage {
    /// Parses a message of a worker. `None` if it is not one, or if a call is too long.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let message = serde_json::from_slice(payload).ok()?;
        let is_call = matches!(message, Self::Call { .. } | Self::Handle { .. });
        Some(message).filter(|_| !is_call || payload.len() <= MAX_CALL_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_of_the_known_kinds_with_the_known_members_are_parsed() {
        for (text, is_parsed) in [
            (r#"{"call":{"id":1,"tool":"x","arguments":{},"handles":0}}"#, true),
            (r#"{"handle":{"id":2,"operation":{"open":{"uri":"x:1"}}}}"#, true),
            (r#"{"log":{"text":"x"}}"#, true),
            (r#"{"done":{"value":[1]}}"#, true),
            (r#"{"failed":{"failure":"time"}}"#, true),
            (r#"{"failed":{"failure":{"thrown":{"message":"x","at":[1,2]}}}}"#, true),
            (r#"{"call":{"id":1,"tool":"x","arguments":{},"handles":0,"more":1}}"#, false),
            (r#"{"call":{"id":-1,"tool":"x","arguments":{},"handles":0}}"#, false),
            (r#"{"call":{"id":1,"tool":"x"}}"#, false),
            (r#"{"handle":{"id":2,"operation":{"delete":{"uri":"x:1"}}}}"#, false),
            (r#"{"done":{"value":[1]},"log":{"text":"x"}}"#, false),
            (r#"{"exit":{}}"#, false),
            (r#"{"done":{"value":[1]}} {}"#, false),
            ("", false),
        ] {
            assert_eq!(ScriptMessage::parse(text.as_bytes()).is_some(), is_parsed, "{text}");
        }
    }

    #[test]
    fn a_call_that_is_too_long_is_not_parsed() {
        let arguments = "x".repeat(MAX_CALL_BYTES);
        let call =
            format!(r#"{{"call":{{"id":1,"tool":"x","arguments":"{arguments}","handles":0}}}}"#);
        assert!(ScriptMessage::parse(call.as_bytes()).is_none());
    }
}
