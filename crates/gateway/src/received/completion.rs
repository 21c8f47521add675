//! The answer of `completion/complete`.

use rmcp::model::{CompleteResult, CompletionInfo, MetaObject};
use serde_json::Value;

use super::{
    definition::log_changed,
    members::{carry_others, drop_long},
    object::Object,
    problem::Problem,
    result::{Answer, RawResult},
    shapes,
};

/// The suggested values.
pub(crate) struct Completed(pub(crate) CompleteResult);

impl Answer for Completed {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut result = result.object()?;
        drop_long(&mut result);
        carry_others(&mut result, &shapes::COMPLETE_RESULT, "completion/complete");

        let completion = result.take("completion").unwrap_or_default();
        let mut completion = Object::of(completion, "completion")?;
        let values = completion.take_list("values")?.into_iter().filter_map(|value| match value {
            Value::String(text) => Some(text),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            other => {
                let problem = Problem::of("it must be a text", &other).to_string();
                log_changed("completion", "a suggested value is left out", &problem);
                None
            }
        });
        let mut values: Vec<_> = values.collect();
        let is_cut = values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);

        let mut info = CompletionInfo::default();
        info.values = values;
        info.total =
            completion.take("total").and_then(|n| n.as_u64()).and_then(|n| n.try_into().ok());
        info.has_more = if is_cut { Some(true) } else { completion.take_flag("hasMore")? };

        let mut completed = CompleteResult::new(info);
        completed.meta = result.take_members("_meta").map(MetaObject);
        Ok(Self(completed))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::repair::Repaired, *};

    #[test]
    fn a_bad_value_costs_no_other_one() {
        let result = json!({ "completion": { "values": [1, "b", null, { "a": 1 }, true] } });
        let result = RawResult::of_json(&result.to_string(), Repaired::default());
        let Completed(completed) =
            Completed::read(result.expect("it is JSON")).expect("it is clear");
        assert_eq!(completed.completion.values, ["1", "b", "true"]);
    }
}
