//! The answer of `tools/call`.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::value::RawValue;

use super::{
    block,
    members::{Excess, LongMembers},
    object::Object,
    problem::{Problem, shown},
    result::{Answer, RawResult},
    task::TaskState,
};

/// The metadata that names the task of a result.
const TASK: &str = "io.modelcontextprotocol/related-task";

/// The answer of `tools/call`.
pub(crate) enum CallAnswer {
    Done {
        result: Box<CallToolResult>,
        /// The structured content as it was sent, where the value does not keep its numbers.
        exact: Option<Box<RawValue>>,
    },
    /// The upstream has begun a task.
    Task(TaskState),
}

impl Answer for CallAnswer {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let RawResult { value, repaired, exact } = result;
        let what = shown(&value);
        let mut result = Object::of(value, "the result")?;
        let content = result.take("content");
        if content.is_none()
            && let Some(task) = result.take("task")
        {
            return TaskState::of(task).map(Self::Task);
        }

        let structured = result.take_present("structuredContent");
        let is_error = result.take_flag("isError")?;
        if content.is_none() && structured.is_none() && is_error.is_none() {
            let expected = "a result must have content or structuredContent";
            return Err(Problem::new(format!("{expected}, not {what}")));
        }
        if let Some(kind) = result.take("resultType").filter(|kind| kind != "complete") {
            return Err(Problem::of("the resultType must be complete", &kind));
        }

        let mut long = LongMembers::default();
        long.take_meta(&mut result);
        let read = |content| block::read_all(content, Excess::IsShown);

        let mut answer = CallToolResult::default();
        answer.content = content.map(read).transpose()?.unwrap_or_default();
        answer.content.extend(long.note("the result", Excess::IsShown));
        answer.structured_content = structured;
        answer.is_error = is_error;
        answer.meta = meta(&mut result);
        if repaired.numbers > 0 {
            answer.content.push(ContentBlock::text(format!(
                "(Numbers in this answer that JSON does not have, such as NaN, are taken as null: {}.)",
                repaired.numbers
            )));
        }
        Ok(Self::Done { result: Box::new(answer), exact })
    }
}

/// The metadata without the task, which the client does not know.
fn meta(result: &mut Object) -> Option<MetaObject> {
    let mut meta = result.take_members("_meta")?;
    meta.remove(TASK);
    Some(MetaObject(meta))
}
