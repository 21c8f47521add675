//! The API of handlers: [`Context`], requests to the client, and return types.
//!
//! A handler reaches the server through the [`Server`] trait, which the
//! registry implements.

mod argument;
mod ask;
mod ask_mode;
mod base64_pieces;
mod cancellation;
mod content;
mod contents;
mod context;
mod control;
mod error;
mod media;
mod messages;
mod outbox;
mod receiving;
mod result;
mod returned;
mod round_trips;
mod scope;
mod steps;
mod stored;
mod structure;
mod structured;
pub(crate) mod tool_calls;

pub use argument::Argument;
pub use ask::can_be_asked;
pub use ask::{AskError, Elicited, Root, Sampled, Sampling, within_roots};
pub(crate) use ask::{below_root, form};
pub use ask_mode::{AskMode, ResponseRouter};
pub use base64_pieces::{NotBase64, decode_base64};
pub use cancellation::Cancellation;
pub use content::IntoContent;
pub use contents::{Contents, IntoContents, ReadContent};
pub use context::{Amount, Context, CopyResource, CreateResource, Progress, UpdateResource};
pub use control::{Control, Polled, Suspended};
pub use error::{ErrorContext, ResourceError, Result, ToolError};
pub use media::{Audio, Image};
pub use messages::{IntoPromptMessage, IntoPromptResult, assistant, user};
pub use outbox::{Outbox, OutboxReader};
pub use receiving::{HashedText, HashingText, ReceivingText, Source};
pub use receiving::{Longest, ReceivedResult, ReceivedStructure, ReceivedText, Receiving};
pub(crate) use result::is_permanent;
pub use result::{IntoToolResult, Json};
pub use returned::{AsItIs, NoResult, Returned, Value, ValueOrError};
pub use round_trips::{InputRequired, RoundState, RoundTrips, SealState};
pub use scope::{Scope, Server};
pub use steps::StepAccounts;
pub use stored::READING_TOOL;
pub(crate) use stored::StoredFacts;
pub use stored::{StoreContent, Stored};
pub use structure::Structure;
pub use structured::Structured;
