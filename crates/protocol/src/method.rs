//! [`Method`]: the request methods, and the eras in which they exist.

use super::Member;

/// A request method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `ping`
    Ping,
    /// `server/discover`
    Discover,
    /// `tools/list`
    ListTools,
    /// `tools/call`
    CallTool,
    /// `prompts/list`
    ListPrompts,
    /// `prompts/get`
    GetPrompt,
    /// `completion/complete`
    Complete,
    /// `logging/setLevel`
    SetLevel,
    /// `resources/list`
    ListResources,
    /// `resources/templates/list`
    ListResourceTemplates,
    /// `resources/read`
    ReadResource,
    /// `resources/subscribe`
    Subscribe,
    /// `resources/unsubscribe`
    Unsubscribe,
    /// `subscriptions/listen`
    Listen,
    /// `tasks/get`
    GetTask,
    /// `tasks/update`
    UpdateTask,
    /// `tasks/cancel`
    CancelTask,
}

impl Method {
    const ALL: [(Self, &'static str); 18] = [
        (Self::Initialize, "initialize"),
        (Self::Ping, "ping"),
        (Self::Discover, "server/discover"),
        (Self::ListTools, "tools/list"),
        (Self::CallTool, "tools/call"),
        (Self::ListPrompts, "prompts/list"),
        (Self::GetPrompt, "prompts/get"),
        (Self::Complete, "completion/complete"),
        (Self::SetLevel, "logging/setLevel"),
        (Self::ListResources, "resources/list"),
        (Self::ListResourceTemplates, "resources/templates/list"),
        (Self::ReadResource, "resources/read"),
        (Self::Subscribe, "resources/subscribe"),
        (Self::Unsubscribe, "resources/unsubscribe"),
        (Self::Listen, "subscriptions/listen"),
        (Self::GetTask, "tasks/get"),
        (Self::UpdateTask, "tasks/update"),
        (Self::CancelTask, "tasks/cancel"),
    ];

    /// The method of this name. Names are case-sensitive.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(m, _)| *m)
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(m, _)| *m == self).map_or("", |(_, n)| n)
    }

    /// Whether the method exists in 2025-11-25 and earlier. `server/discover`
    /// does not, but is answered there too, for use with curl.
    pub fn in_legacy(self) -> bool {
        !matches!(self, Self::Listen | Self::GetTask | Self::UpdateTask | Self::CancelTask)
    }

    /// Whether the method exists in 2026-07-28.
    pub fn in_modern(self) -> bool {
        !matches!(
            self,
            Self::Initialize | Self::Ping | Self::SetLevel | Self::Subscribe | Self::Unsubscribe
        )
    }

    /// The parameter that the `Mcp-Name` header mirrors
    /// (2026-07-28, Streamable HTTP: Standard Request Headers).
    pub fn mirrored_name(self) -> Option<Member> {
        match self {
            Self::CallTool | Self::GetPrompt => Some(Member::Name),
            Self::ReadResource => Some(Member::Uri),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some(Member::TaskId),
            _ => None,
        }
    }
}
