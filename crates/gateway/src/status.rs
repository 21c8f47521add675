//! [`Status`] of an upstream, for operators.

use serde::{Deserialize, Serialize};

/// Whether an upstream can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody uses it: it starts with the next list or call.
    Idle,
    /// The credentials of its callers are refused, or cannot be had.
    NoAccess,
    /// A caller must log in first.
    NeedsLogin,
    /// The upstream is being started, or its lists are read for the first time.
    Starting,
    /// The upstream could not be started, or has ended.
    Down,
    /// The upstream runs.
    Up,
    /// The upstream runs, and a part of its lists is not offered or not read.
    Degraded,
}

impl State {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::NoAccess => "no_access",
            Self::NeedsLogin => "needs_login",
            Self::Starting => "starting",
            Self::Down => "down",
            Self::Up => "up",
            Self::Degraded => "degraded",
        }
    }

    /// Whether it runs.
    pub fn runs(self) -> bool {
        matches!(self, Self::Up | Self::Degraded)
    }
}

/// The state of an upstream, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The name of the upstream.
    pub name: String,
    /// The best state among its processes; `degraded` if one of them is.
    pub state: State,
    /// Why a part of its lists is not offered.
    #[serde(default)]
    pub degraded: Option<String>,
    /// The event that comes next, such as its first answer, while it does not run.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// Whether it has failed, and does not run since.
    #[serde(default)]
    pub is_failing: bool,

    /// How many of its processes, or sessions with a server over HTTP, run.
    pub processes: usize,
    /// The protocol era that the last start has found: `legacy` or `modern`.
    pub era: Option<String>,
    /// How many tools it offers.
    pub tools: Option<usize>,
    /// Tools, prompts, resources and templates that it offers and Larder does not, with the reason:
    /// the first twenty.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// Tools whose names would be those of others, with the names that they have instead: the first
    /// twenty.
    #[serde(default)]
    pub renamed: Vec<String>,

    /// The bytes of its results that were stored instead of sent.
    pub kept_out_bytes: u64,
    /// How often a process could not be started or has ended by itself.
    pub failures: u64,
    /// The last error.
    pub last_error: Option<LastError>,
}

/// The last error of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// The event, with the last lines of standard error.
    pub text: String,
    /// How long ago, in seconds.
    pub seconds_ago: u64,
}
