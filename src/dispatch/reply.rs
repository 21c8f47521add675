//! Replies, before any era has dressed them.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use rmcp::model;

use crate::{handler::InputRequired, store::Kind, task::TaskView};

/// What a call comes to. Passed on through many hands, so what is large lies
/// behind a pointer.
pub enum Reply {
    /// Nothing but success.
    Empty,
    /// `server/discover`
    Discover(Box<model::DiscoverResult>, CacheHint),
    /// `tools/list`
    Tools(model::ListToolsResult, CacheHint),
    /// `tools/call`
    CallTool(Box<model::CallToolResult>),
    /// `prompts/list`
    Prompts(model::ListPromptsResult, CacheHint),
    /// `prompts/get`
    GetPrompt(model::GetPromptResult),
    /// `completion/complete`
    Complete(model::CompleteResult),
    /// The call goes on as a task.
    TaskCreated(Box<TaskView>),
    /// `tasks/get`
    Task(Box<TaskView>),
    /// The client has to be asked first.
    InputRequired(InputRequired),
    /// `resources/list`
    Resources(model::ListResourcesResult, CacheHint),
    /// `resources/templates/list`
    Templates(model::ListResourceTemplatesResult, CacheHint),
    /// `resources/read`
    Read(ReadReply, CacheHint),
}

/// The content of a resource, still to be streamed.
pub struct ReadReply {
    /// As the client asked for it.
    pub uri: String,
    /// The media type.
    pub mime_type: String,
    /// Whether it becomes `text` or `blob`.
    pub kind: Kind,
    /// The content's pieces; in text they may be cut anywhere.
    pub pieces: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
}

/// How long, and by whom, a reply may be kept (2026-07-28, utilities: Caching).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// For how many milliseconds it is fresh.
    pub ttl_ms: u64,
    /// Who may share it.
    pub scope: model::CacheScope,
}

impl CacheHint {
    /// What the server's definition says: the same for everyone, and it does
    /// not change while the server runs.
    pub const DEFINITION: Self = Self { ttl_ms: 300_000, scope: model::CacheScope::Public };
    /// The same where it depends on what the caller may do.
    pub const DEFINITION_FOR_ONE: Self =
        Self { ttl_ms: Self::DEFINITION.ttl_ms, scope: model::CacheScope::Private };
    /// What belongs to one caller and may change with its next call.
    pub const OWN: Self = Self { ttl_ms: 0, scope: model::CacheScope::Private };
}
