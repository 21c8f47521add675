//! The arguments of several calls: a list, or the records of a resource.

use larder_protocol::exact;
use larder_records::{Container, Layout, essence};
use larder_store::store::Entry;
use rmcp::model::{ContentBlock, JsonObject};
use serde_json::{Value, json};

use super::{
    projection::{LARGEST_LIST, Projecting},
    projection_each::MAX_CALLS,
    query,
};
use crate::{handler::Context, registry::Projection, spill::tool_calls::jq_root};

impl Projecting {
    /// The arguments of several calls: those that are given, or the records of a resource.
    pub(super) async fn inputs(
        &self,
        projection: &Projection,
        ctx: &Context<()>,
    ) -> Result<Vec<JsonObject>, String> {
        let too_many = || format!("each has more than {MAX_CALLS} arguments");
        let uri = match &projection.each {
            Some(Value::Array(inputs)) if inputs.len() > MAX_CALLS => return Err(too_many()),
            // The argument was read as a list of objects.
            Some(Value::Array(inputs)) => {
                return Ok(inputs.iter().filter_map(Value::as_object).cloned().collect());
            }
            Some(Value::String(uri)) => {
                uri.trim().trim_start_matches("{{").trim_end_matches("}}").trim()
            }
            _ => return Err("each is a list of arguments, or the URI of records".to_owned()),
        };

        let found = ctx.find(uri).await.map_err(|error| format!("each: {error}"))?;
        let entry = found.entry;
        let asked = json!({
            "from": uri, "jq": inputs_filter(&entry), "limit": MAX_CALLS + 1,
        });
        let answer = query::of_result(ctx, asked, &self.queries, false).await;
        let answer = answer.map_err(|error| format!("each: {error}"))?;
        let text = answer.content.first().and_then(ContentBlock::as_text);
        let keeps_numbers = text.is_none_or(|shown| {
            let body = shown.text.split_once("\n\n").map_or("", |(_, body)| body);
            exact::keeps_numbers(body.as_bytes())
        });

        let found = answer.structured_content.unwrap_or_default();
        if found["total"].as_u64().is_some_and(|total| total > MAX_CALLS as u64) {
            return Err(too_many());
        }
        let rows = found["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
        if found["complete"] != true || rows.is_empty() {
            return Err(format!(
                "each: the records of {uri} are none, or too large: store the members that are arguments by query_resource and \"into\" first"
            ));
        }
        if !keeps_numbers {
            return Err(format!(
                "each: {uri} has numbers that would change, such as 1.10 or 12345678901234567890123: store the members that are arguments by query_resource and \"into\" first, such numbers as texts"
            ));
        }

        let object = |row: &Value| match row.get(0) {
            // A member that is null is an argument that is not given.
            Some(Value::Object(members)) => {
                let given = members.iter().filter(|(_, value)| !value.is_null());
                Ok(given.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            _ => Err(format!("each: the records of {uri} are not objects with arguments")),
        };
        rows.iter().map(object).collect()
    }
}

/// The filter that gives records that are arguments: members of a map have their name as `key`.
fn inputs_filter(entry: &Entry) -> String {
    match &entry.records {
        Some(index) if index.layout() == Layout::Json && index.container() == Container::Object => {
            let root = jq_root(index);
            format!("{root} | if .value | type == \"object\" then {{key}} + .value else . end")
        }
        Some(index) => jq_root(index),
        // Short content has no index.
        None => {
            let rest = if is_json(entry) { LARGEST_LIST } else { "." };
            format!("if type == \"array\" then .[] else {rest} end")
        }
    }
}

fn is_json(entry: &Entry) -> bool {
    let essence = essence(&entry.mime_type);
    essence.ends_with("/json") || essence.ends_with("+json")
}
