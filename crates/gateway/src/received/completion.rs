//! The answer of `completion/complete`.

use rmcp::model::CompletionInfo;
use serde_json::Value;

use super::{
    definition::log_changed,
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
        Ok(Self(info))
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
        let Completed(info) = Completed::read(result.expect("it is JSON")).expect("it is clear");
        assert_eq!(info.values, ["1", "b", "true"]);
    }
}
