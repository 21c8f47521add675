//! The ways in which a call ends.

use larder_protocol::Fault;

use super::Reply;

/// How a call ended. A call that becomes a task has not ended: it takes its lifecycle along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a result.
    Done,
    /// With questions to the client, which calls again with the answers.
    InputRequired,
    /// With a result that is an error of the tool.
    ToolError,
    /// With a protocol error for which the caller is responsible.
    Refused,
    /// With a protocol error for which the server or something behind it is responsible.
    Failed,
    /// The server stopped.
    Stopped,
    /// The caller's token expired, or was revoked.
    Expired,
    /// The call took longer than a call may take.
    TimedOut,
    /// The client cancelled it.
    Cancelled,
    /// The client closed its connection.
    ClientGone,
}

impl End {
    /// All ends.
    pub const ALL: [Self; 10] = [
        Self::Done,
        Self::InputRequired,
        Self::ToolError,
        Self::Refused,
        Self::Failed,
        Self::Stopped,
        Self::Expired,
        Self::TimedOut,
        Self::Cancelled,
        Self::ClientGone,
    ];

    /// The end of a call with this outcome.
    pub(super) fn of(outcome: &Result<Reply, Fault>) -> Self {
        match outcome {
            Ok(Reply::CallTool(reply)) if reply.result.is_error == Some(true) => Self::ToolError,
            Ok(Reply::InputRequired(_)) => Self::InputRequired,
            Ok(_) => Self::Done,
            Err(fault) => Self::of_fault(fault),
        }
    }

    /// The end of a call with this error.
    pub(super) fn of_fault(fault: &Fault) -> Self {
        if fault.is_failure() { Self::Failed } else { Self::Refused }
    }

    /// Whether the call failed. What the client cancelled or left did not.
    pub fn is_error(self) -> bool {
        !matches!(self, Self::Done | Self::InputRequired | Self::Cancelled | Self::ClientGone)
    }

    /// The `error.type` in metrics and traces. Empty for success.
    pub fn error_type(self) -> &'static str {
        match self {
            Self::Done | Self::InputRequired => "",
            Self::ToolError => "tool_error",
            Self::Refused => "refused",
            Self::Failed => "error",
            Self::Stopped => "stopped",
            Self::Expired => "expired",
            Self::TimedOut => "timeout",
            Self::Cancelled => "cancelled",
            Self::ClientGone => "client_gone",
        }
    }
}
