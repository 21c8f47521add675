//! Tools that call tools, and steps of workflows: they use the whole result.

use larder::{
    Context, Registry, Tool, ToolError,
    workflow::{self, SequentialWorkflow, ToolHandle, WorkflowStep, dsl::*},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::offers;
use crate::support::{Modern, Server, numbered_lines};

/// Calls another tool and uses its result.
#[derive(Deserialize, JsonSchema)]
struct Nested;

async fn nested(ctx: Context, _: Nested) -> Result<String, ToolError> {
    let result = ctx.call_tool("lines", json!({ "n": 5_000 })).await;
    let result = result.map_err(|fault| ToolError::new(fault.to_string()))?;
    Ok(format!("{} lines", result.content[0].as_text().unwrap().text.lines().count()))
}

#[tokio::test]
async fn a_tool_that_calls_another_gets_its_whole_result() {
    let registry = Registry::builder("nested").with(offers).tool(Tool::new(nested));
    let server = Server::of(registry.build().unwrap()).await;
    let answer = Modern::of(&server).call("nested", json!({})).await;
    assert_eq!(answer.text(), "5000 lines");
}

#[tokio::test]
async fn the_result_of_a_step_is_shown_as_a_preview_and_used_whole() {
    let workflow = SequentialWorkflow::new("w", "Counts")
        .step(
            WorkflowStep::new("rows", ToolHandle::new("rows"))
                .arg("n", constant(10_000))
                .bind("all"),
        )
        .step(WorkflowStep::new("again", ToolHandle::new("lines")).arg("n", field("all", "total")));
    let registry = Registry::builder("w").with(offers).with(workflow::prompt(workflow));
    let server = Server::of(registry.build().unwrap()).await;
    let client = Modern::of(&server);
    let result = client.send("prompts/get", json!({ "name": "w" })).await.result();
    assert_eq!(result["_meta"]["larder/workflow"]["outcome"], "completed", "{result}");
    let messages = result["messages"].as_array().unwrap();
    let links: Vec<_> =
        messages.iter().filter(|m| m["content"]["type"] == "resource_link").collect();
    let texts: Vec<_> = messages.iter().filter_map(|m| m["content"]["text"].as_str()).collect();
    for link in &links {
        let uri = link["content"]["uri"].as_str().unwrap();
        let said = texts.iter().find(|text| text.contains(uri)).unwrap();
        assert!(said.contains("PREVIEW ONLY") && said.contains("Next: read_resource "), "{said}");
    }
    let uri = links[1]["content"]["uri"].as_str().unwrap();
    assert_eq!(client.read(uri).await["text"], numbered_lines(10_000));
    assert!(result.to_string().len() < 20_000);
}

#[tokio::test]
async fn a_step_fails_if_its_result_cannot_be_stored() {
    let workflow = SequentialWorkflow::new("w", "Counts")
        .step(WorkflowStep::new("rows", ToolHandle::new("rows")).arg("n", constant(10_000)));
    let server = Server::configured(|setup| {
        setup.config.memory.bytes_per_owner = 1_000;
        setup.offers = Box::new(|_, _| {
            Registry::builder("w").with(offers).with(workflow::prompt(workflow)).build().unwrap()
        });
    })
    .await;
    let client = Modern::of(&server);
    let result = client.send("prompts/get", json!({ "name": "w" })).await.result();
    let outcome = &result["_meta"]["larder/workflow"];
    assert_eq!(outcome["outcome"], "failed");
    assert!(outcome["reason"].as_str().unwrap().contains("could not be stored"), "{outcome}");
}
