//! `find_tools` and `call_tool`, in place of the definitions of all tools.

use std::sync::Arc;

use larder_records::words::{count, cut, number};
use larder_store::store::StoreError;
use rmcp::model::{self, JsonObject};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ToolOptions;
use crate::{
    handler::{Context, ToolError},
    registry::{CALL_TOOL, RESERVED, Tool, rank_tools},
};

/// Reserved for the text around the definitions.
const HEAD_BYTES: usize = 500;
/// The most bytes of a description where a tool is one of several.
const SUMMARY_BYTES: usize = 120;
/// The most bytes of the parameters there.
const PARAMETERS_BYTES: usize = 110;
/// How many tools are returned by default.
const DEFAULT_LIMIT: u64 = 5;

/// Finds tools by words about the task. Gives their parameters (? is optional); for the name of a
/// tool, its whole schema.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindTools {
    /// Words, or the name of a tool.
    query: String,
    /// 5 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u64>,
}

/// Calls a tool that find_tools has found, or that an answer names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallTool {
    /// The name.
    name: String,
    /// The arguments.
    #[serde(default)]
    arguments: JsonObject,
}

pub(super) fn find_tool<S: Send + Sync + 'static>(options: ToolOptions) -> Tool<S> {
    Tool::new(move |ctx: Context<S>, args: FindTools| {
        let budget = options.budget(&ctx, HEAD_BYTES);
        async move { find(&ctx, args, budget).await }
    })
}

/// The dispatcher replaces a request for it by a call of the tool that its arguments name. Only
/// nested calls, of tools and workflows, reach this handler.
pub(super) fn call_tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: CallTool| async move {
        let called = ctx.call_tool(&args.name, Value::Object(args.arguments)).await;
        called.map_err(|fault| ToolError::new(fault.to_string()))
    })
}

async fn find<S>(ctx: &Context<S>, args: FindTools, budget: usize) -> Result<String, ToolError> {
    let tools = ctx.registry().unlisted_tools(ctx.scope()).await;
    let tools = Arc::new(tools.map_err(|fault| ToolError::new(fault.to_string()))?);

    let named = tools.iter().find(|tool| tool.name == args.query.trim());
    if let Some(tool) = named {
        let code = signature(ctx, tool).map(|signature| format!("\nin code: {signature}"));
        return Ok(whole_definition(tool, budget) + &code.unwrap_or_default());
    }

    let ranked = rank_tools(ctx.identity(), &args.query, &tools).await;
    let ranked = ranked.map_err(StoreError::from)?;

    let all = count(tools.len() as u64, "tool");
    let Some(first) = ranked.first() else {
        return Err(ToolError::new(format!("None of {all} matches: try other words.")));
    };
    let first = &tools[*first].name;

    let limit = usize::try_from(args.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let mut lines = String::new();
    let mut shown = 0;
    for index in ranked.iter().take(limit) {
        let tool = &tools[*index];
        let line = summary(tool, signature(ctx, tool));
        if lines.len() + line.len() > budget && shown > 0 {
            break;
        }
        lines += &line;
        lines.push('\n');
        shown += 1;
    }

    let found = number(ranked.len() as u64);
    let schema = json!({ "query": first });
    let call = json!({ "name": first, "arguments": {} });
    Ok(format!(
        "{shown} of {found} that match, of {all}:\n{lines}whole schema: find_tools {schema}\nnext: {CALL_TOOL} {call}"
    ))
}

/// The signature of a tool in TypeScript, for callers who can run code.
#[cfg(feature = "query")]
fn signature<S>(ctx: &Context<S>, tool: &model::Tool) -> Option<String> {
    let runs_code = ctx.registry().offers(ctx.identity().grant(), super::code::NAME);
    let output = tool.output_schema.as_deref();
    runs_code.then(|| super::code::signature(&tool.name, &tool.input_schema, output))
}

/// Without the feature, there is no code.
#[cfg(not(feature = "query"))]
fn signature<S>(_ctx: &Context<S>, _tool: &model::Tool) -> Option<String> {
    None
}

/// A line about a tool: its name and parameters, or its signature, its hints and the beginning of
/// its description.
fn summary(tool: &model::Tool, signature: Option<String>) -> String {
    let hints = tool.annotations.as_ref().map_or("", |hints| {
        match (hints.read_only_hint, hints.destructive_hint) {
            (Some(true), _) => " [read-only]",
            (_, Some(true)) => " [destructive]",
            _ => "",
        }
    });

    let text = text_of(tool).trim();
    let end = text.find(['\n', '\r']).unwrap_or(text.len());
    let first_line = &text[..end];
    let sentence = first_line.find(". ").map_or(first_line, |end| &first_line[..=end]);

    let parameters = || parameters(&tool.input_schema);
    let call = signature.unwrap_or_else(|| format!("{}({})", tool.name, parameters()));
    format!("{call}{hints}: {}", cut(sentence, SUMMARY_BYTES))
}

/// The parameters of a tool, the required ones first: `title, labels?: array`. A string needs no
/// type. Without the reserved argument, which the server's instructions explain.
fn parameters(schema: &JsonObject) -> String {
    let required: Vec<_> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let (needed, optional): (Vec<_>, Vec<_>) = properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != RESERVED)
        .partition(|(name, _)| required.iter().any(|required| *required == *name));

    let mut text = String::new();
    let all = needed.len() + optional.len();
    let needed = needed.into_iter().map(|parameter| (parameter, ""));
    let optional = optional.into_iter().map(|parameter| (parameter, "?"));
    for (index, ((name, schema), mark)) in needed.chain(optional).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let part = format!("{comma}{name}{mark}{}", type_of(schema));
        // A parameter that is required is never left out.
        if text.len() + part.len() > PARAMETERS_BYTES && mark == "?" {
            return format!("{text}{comma}… {} more", all - index);
        }
        text += &part;
    }
    text
}

/// The type of a parameter, unless it is a string; the values of an enumeration.
fn type_of(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
        let text = values.join("|");
        if !text.is_empty() && text.len() <= 40 {
            return format!(": {text}");
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        None | Some("string") => String::new(),
        Some(kind) => format!(": {kind}"),
    }
}

/// The whole definition in JSON, and the call.
fn whole_definition(tool: &model::Tool, budget: usize) -> String {
    let schema = Value::Object((*tool.input_schema).clone());
    let with_schema = |schema: Value| {
        let description = cut(text_of(tool), budget / 2);
        json!({ "name": tool.name, "description": description, "inputSchema": schema }).to_string()
    };

    let size = schema.to_string().len() as u64;
    let mut definition = with_schema(schema);
    if definition.len() > budget {
        definition = with_schema(json!(format!("{}: too long to show", count(size, "byte"))));
    }
    let call = json!({ "name": tool.name, "arguments": {} });
    format!("{definition}\nnext: {CALL_TOOL} {call}")
}

fn text_of(tool: &model::Tool) -> &str {
    tool.description.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_shown_with_their_types_the_required_ones_first() {
        let schema = |value: Value| value.as_object().cloned().unwrap_or_default();
        for (given, expected) in [
            (json!({}), ""),
            (json!({ "properties": { "a": true } }), "a?"),
            (
                json!({
                    "properties": {
                        "page": { "type": "integer" },
                        "state": { "type": "string", "enum": ["open", "closed"] },
                        "title": { "type": "string" },
                        "_larder": { "type": "object" },
                    },
                    "required": ["title"],
                }),
                "title, page?: integer, state?: open|closed",
            ),
        ] {
            assert_eq!(parameters(&schema(given)), expected);
        }

        let many: JsonObject = (0..50).map(|n| (format!("parameter_{n:02}"), json!({}))).collect();
        let text = parameters(&schema(json!({ "properties": many })));
        assert!(text.len() < PARAMETERS_BYTES + 20 && text.ends_with(" more"), "{text}");

        let needed = schema(json!({ "properties": many, "required": ["parameter_49"] }));
        assert!(parameters(&needed).starts_with("parameter_49, parameter_00?"));
    }
}
