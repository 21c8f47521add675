//! Replies, before a protocol era encodes them.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use larder_runtime::held::Held;
use larder_store::{store::Kind, task::TaskView};
use rmcp::model;
use serde_json::value::RawValue;

use super::Reader;
use crate::{handler::InputRequired, registry::CacheRule};

/// The result of a call. Large variants are boxed, because a reply is moved often.
pub enum Reply {
    /// An empty result.
    Empty,
    /// `server/discover`
    Discover(Box<model::DiscoverResult>, CacheHint),
    /// `tools/list`
    Tools(model::ListToolsResult, CacheHint),
    /// `tools/call`
    CallTool(Box<ToolReply>),
    /// `prompts/list`
    Prompts(model::ListPromptsResult, CacheHint),
    /// `prompts/get`
    GetPrompt(model::GetPromptResult),
    /// `completion/complete`
    Complete(model::CompleteResult),
    /// The call continues as a task.
    TaskCreated(Box<TaskView>),
    /// `tasks/get`
    Task(Box<TaskView>),
    /// The call needs input from the client.
    InputRequired(InputRequired),
    /// `resources/list`
    Resources(model::ListResourcesResult, CacheHint),
    /// `resources/templates/list`
    Templates(model::ListResourceTemplatesResult, CacheHint),
    /// `resources/read`
    Read(ReadReply, CacheHint),
}

/// The result of a tool.
#[derive(Debug, Clone)]
pub struct ToolReply {
    /// The result.
    pub result: model::CallToolResult,
    /// The structured content as it was sent, where a value does not keep its numbers.
    pub exact: Option<Box<RawValue>>,
    /// The reader of the result.
    pub reader: Reader,
}

impl From<model::CallToolResult> for ToolReply {
    fn from(result: model::CallToolResult) -> Self {
        Self { result, exact: None, reader: Reader::Model }
    }
}

impl Reply {
    /// The reply for this reader.
    pub(super) fn read_by(mut self, reader: Reader) -> Self {
        if let Self::CallTool(reply) = &mut self {
            reply.reader = reader;
        }
        self
    }
}

/// A reply, and the counted memory that it takes until it is sent or dropped.
pub struct HeldReply {
    /// The reply.
    pub reply: Reply,
    /// The memory that the result holds.
    pub held: Held,
}

impl From<Reply> for HeldReply {
    fn from(reply: Reply) -> Self {
        Self { reply, held: Held::default() }
    }
}

/// The contents of a resource.
pub struct ReadReply {
    /// The URI as the client sent it.
    pub uri: String,
    /// At least one.
    pub contents: Vec<ContentReply>,
    /// The `_meta` of the result.
    pub meta: Option<model::JsonObject>,
}

/// One content of a resource, as a stream.
pub struct ContentReply {
    /// The URI of the resource.
    pub uri: String,
    /// The media type.
    pub mime_type: String,
    /// Whether it is sent as `text` or as `blob`.
    pub kind: Kind,
    /// The content. Chunks of text may end within a character.
    pub chunks: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
    /// The `_meta` of the content.
    pub meta: Option<model::JsonObject>,
}

/// How long and by whom a reply may be cached (2026-07-28, utilities: Caching).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// How long the reply is fresh, in milliseconds.
    pub ttl_ms: u64,
    /// The caches that may keep the reply: those of one caller, or shared ones.
    pub scope: model::CacheScope,
}

impl CacheHint {
    /// For the server's definition, which is the same for all callers and rarely changes.
    pub const DEFINITION: Self = Self { ttl_ms: 300_000, scope: model::CacheScope::Public };
    /// For a definition that depends on the caller's scopes.
    pub const DEFINITION_PRIVATE: Self =
        Self { ttl_ms: Self::DEFINITION.ttl_ms, scope: model::CacheScope::Private };
    /// For what belongs to one caller and may change with the next call.
    pub const NO_CACHE: Self = Self { ttl_ms: 0, scope: model::CacheScope::Private };
}

impl From<CacheRule> for CacheHint {
    fn from(rule: CacheRule) -> Self {
        let ttl_ms = u64::try_from(rule.ttl.as_millis()).unwrap_or(u64::MAX);
        Self { ttl_ms, scope: rule.scope }
    }
}
