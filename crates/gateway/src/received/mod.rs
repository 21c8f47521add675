//! The one place where a message of an upstream becomes values of Larder.
//!
//! Upstreams are believed to send anything. [`envelope::read`] finds out which request a message
//! answers, and keeps its result as a [`RawResult`], which has no members to look at: the only way
//! on is [`RawResult::read`], into the type of the method's [`Answer`]. A [`Problem`] says what was
//! sent instead. Nothing else in `upstream` reads JSON of unknown shape.

mod batch;
mod block;
mod call;
mod capabilities;
mod completion;
mod contents;
mod decoration;
mod definition;
mod draft;
mod envelope;
mod error;
mod lists;
mod members;
mod mend;
mod notification;
mod object;
mod problem;
mod prompt;
mod question;
mod repair;
mod result;
mod rounds;
mod shapes;
mod start;
mod task;

pub(super) use self::{
    batch::MAX_BATCH,
    call::CallAnswer,
    capabilities::Capabilities,
    completion::Completed,
    contents::{ReadAnswer, ReceivedBody, ReceivedContent},
    definition::LeftOut,
    envelope::{AnswerTo, Outcome, Received, read},
    error::{visits_of_error, without_id},
    lists::{
        Definition, List, NextPage, Page, PromptList, ResourceList, TemplateList, ToolDefinition,
        ToolList,
    },
    notification::Notification,
    problem::Problem,
    prompt::GotPrompt,
    question::{InputRequest, Question, visit_of_question},
    result::{Answer, Done, RawResult, Verbatim},
    rounds::{InputRequired, Round},
    start::{Discovered, Initialized, VersionName},
    task::TaskState,
};

#[cfg(test)]
pub(super) use self::repair::repair;

/// The most characters of a text of an upstream that is shown as a message, such as an error.
pub(super) const MESSAGE_CHARS: usize = 2_000;
