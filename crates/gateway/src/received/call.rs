//! The answer of `tools/call`.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json, value::RawValue};

use super::{
    block,
    members::{Excess, LongMembers},
    object::Object,
    problem::{Problem, shown},
    result::{Answer, RawResult},
    shapes,
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
        let has_null = result.members().get("content").is_some_and(Value::is_null);
        let content = result.take("content");
        if content.is_none()
            && let Some(task) = result.take("task")
        {
            return TaskState::of(task).map(Self::Task);
        }

        let structured = result.take_present("structuredContent");
        let is_error = result.take_flag("isError")?;
        // Languages write an empty list as null, and leave it out.
        let is_empty = has_null || has_metadata_alone(&result);
        if content.is_none() && structured.is_none() && is_error.is_none() && !is_empty {
            let expected = "a result must have content or structuredContent";
            return Err(Problem::new(format!("{expected}, not {what}")));
        }
        if let Some(kind) = result.take("resultType").filter(|kind| kind != "complete") {
            return Err(Problem::of("the resultType must be complete", &kind));
        }

        let mut long = LongMembers::default();
        long.take_meta(&mut result);
        long.carry_others(&mut result, &shapes::CALL_RESULT);
        let mut answer = CallToolResult::default();
        answer.content = match block::read_all(content.unwrap_or(json!([])), Excess::IsShown) {
            Ok(blocks) => blocks,
            Err(problem) if structured.is_some() => {
                vec![ContentBlock::text(format!("(The content is left out: {problem}.)"))]
            }
            Err(problem) => return Err(problem),
        };
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

/// Whether nothing is left of a result but members that every result may have.
fn has_metadata_alone(result: &Object) -> bool {
    result.members().keys().all(|name| matches!(name.as_str(), "_meta" | "resultType"))
}

/// The metadata without the task, which the client does not know.
fn meta(result: &mut Object) -> Option<MetaObject> {
    let mut meta = result.take_members("_meta")?;
    meta.remove(TASK);
    Some(MetaObject(meta))
}

#[cfg(test)]
mod tests {
    use super::{super::repair::Repaired, *};

    fn read(result: &Value) -> Result<Value, Problem> {
        let result = RawResult::of_json(&result.to_string(), Repaired::default());
        match CallAnswer::read(result.expect("it is JSON"))? {
            CallAnswer::Done { result, .. } => Ok(json!(result)),
            CallAnswer::Task(_) => panic!("it is no task"),
        }
    }

    #[test]
    fn a_result_without_content_is_empty() {
        for sent in [
            json!({}),
            json!({ "content": null }),
            json!({ "content": null, "_meta": null }),
            json!({ "content": null, "extra": 5 }),
            json!({ "_meta": { "a": 1 } }),
            json!({ "resultType": "complete" }),
        ] {
            let read = read(&sent).expect("it is empty");
            assert_eq!(read["content"], json!([]), "{sent}");
        }

        assert!(read(&json!({ "rows": [1] })).is_err());
        assert!(read(&json!({ "content": 5 })).is_err());
    }

    #[test]
    fn content_that_cannot_be_read_does_not_cost_structured_content() {
        for content in [json!(5), json!([null]), json!([5, 6])] {
            let sent = json!({ "content": content, "structuredContent": { "a": 1 } });
            let read = read(&sent).expect("it has structured content");
            assert_eq!(read["structuredContent"], json!({ "a": 1 }));
            let note = read["content"][0]["text"].as_str().expect("a note");
            assert!(note.contains("left out"), "{note}");
        }
    }
}
