//! `find_tools` and `call_tool`, in place of the definitions of all tools that providers have.

use std::sync::Arc;

use larder_records::preview::words::{count, cut, number};
use larder_runtime::compute::Compute;
use larder_store::store::StoreError;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ToolOptions,
    bm25::{Document, rank},
};
use crate::{
    handler::{Context, ToolError},
    registry::{CALL_TOOL, ProvidedTool, Tool},
};

/// Reserved for the text around the definitions.
const HEAD_BYTES: usize = 500;
/// The most bytes of a description in a result.
const DESCRIPTION_BYTES: usize = 1_500;
/// How many tools are returned by default.
const DEFAULT_LIMIT: u64 = 5;
/// How much a word counts in the name of a tool, and in its description and parameters.
const NAME_WEIGHT: f64 = 3.0;
const TEXT_WEIGHT: f64 = 1.0;

/// Finds tools by words about the task: in their names, descriptions and parameters. Returns
/// their definitions. Call one with call_tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindTools {
    /// Words, such as: create issue.
    query: String,
    /// The most tools to return. 5 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u64>,
}

/// Calls a tool that find_tools has found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallTool {
    /// The name of the tool.
    name: String,
    /// Its arguments, as its inputSchema says.
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
    let tools = ctx.registry().provided_tools(ctx.scope()).await;
    let tools = Arc::new(tools.map_err(|fault| ToolError::new(fault.to_string()))?);

    let bytes = tools.iter().map(|tool| text_of(tool).len()).sum();
    let ranking = {
        let (tools, query) = (Arc::clone(&tools), args.query.clone());
        Compute::run(ctx.identity().owner().as_str(), bytes, move || {
            let documents: Vec<_> = tools.iter().map(|tool| document(tool)).collect();
            rank(&query, &documents)
        })
    };
    let ranked = ranking.done().await.map_err(StoreError::from)?;

    if ranked.is_empty() {
        let all = count(tools.len() as u64, "tool");
        return Err(ToolError::new(format!("None of {all} matches: try other words.")));
    }

    let limit = usize::try_from(args.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let mut definitions = String::new();
    let mut shown = 0;

    for index in ranked.iter().take(limit) {
        let tool = &tools[*index];
        let mut line = definition(tool, true);
        if definitions.len() + line.len() > budget && shown == 0 {
            line = definition(tool, false);
        }

        if definitions.len() + line.len() > budget && shown > 0 {
            break;
        }

        definitions += &line;
        definitions.push('\n');
        shown += 1;
    }

    let first = &tools[ranked[0]].listed.name;
    let (found, all) = (number(ranked.len() as u64), count(tools.len() as u64, "tool"));
    let call = json!({ "name": first, "arguments": {} });
    Ok(format!("{shown} of {found} that match, of {all}:\n{definitions}next: {CALL_TOOL} {call}"))
}

/// The definition in a line of JSON.
fn definition(tool: &ProvidedTool, with_schema: bool) -> String {
    let listed = &tool.listed;
    let mut line = json!({ "name": listed.name });
    if let Some(description) = &listed.description {
        line["description"] = json!(cut(description, DESCRIPTION_BYTES));
    }

    let schema = Value::Object(JsonObject::clone(&listed.input_schema));
    line["inputSchema"] = if with_schema {
        schema
    } else {
        json!(format!("{}: too long to show", count(schema.to_string().len() as u64, "byte")))
    };
    line.to_string()
}

fn text_of(tool: &ProvidedTool) -> &str {
    tool.listed.description.as_deref().unwrap_or_default()
}

fn document(tool: &ProvidedTool) -> Document {
    let mut document = Document::default();
    document.add(&tool.listed.name, NAME_WEIGHT);
    document.add(tool.listed.title.as_deref().unwrap_or_default(), NAME_WEIGHT);
    document.add(text_of(tool), TEXT_WEIGHT);

    let parameters = tool.listed.input_schema.get("properties").and_then(Value::as_object);
    for parameter in parameters.into_iter().flat_map(serde_json::Map::keys) {
        document.add(parameter, TEXT_WEIGHT);
    }
    document
}
