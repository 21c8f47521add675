//! The answer of `completion/complete`.

use rmcp::model::CompletionInfo;
use serde_json::Value;

use super::{
    object::Object,
    problem::Problem,
    result::{Answer, RawResult},
};

/// The suggested values.
pub(crate) struct Completed(pub(crate) CompletionInfo);

impl Answer for Completed {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let completion = result.object()?.take("completion").unwrap_or_default();
        let mut completion = Object::of(completion, "completion")?;
        let values = completion.take_list("values")?.into_iter().map(|value| match value {
            Value::String(text) => Ok(text),
            other => Err(Problem::of("a suggested value must be a text", &other)),
        });
        let mut values = values.collect::<Result<Vec<_>, _>>()?;
        let is_cut = values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);

        let mut info = CompletionInfo::default();
        info.values = values;
        info.total =
            completion.take("total").and_then(|n| n.as_u64()).and_then(|n| n.try_into().ok());
        info.has_more = if is_cut { Some(true) } else { completion.take_flag("hasMore")? };
        Ok(Self(info))
    }
}
