//! Workflows as tools, and as tasks.

use larder::{
    Context, Registry, Resource, Tool, ToolError,
    workflow::{dsl::*, prompt},
};
use serde_json::{Value, json};

use super::{client, get, two_slow_steps, user, workflow};
use crate::support::{Legacy, Modern, Server, ToolState, poll};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn looks_and_reads() -> SequentialWorkflow {
    workflow()
        .typed_argument("n", ArgumentKind::Integer, "How many", true)
        .step(user().arg("count", prompt_arg("n")).with_resource("docs://static-page"))
        .step(read_resource("docs://picture").named("picture"))
        .as_tool()
}

#[tokio::test]
async fn the_tool_is_listed_with_the_arguments_of_the_prompt() {
    let (_server, client, _) = client(looks_and_reads()).await;
    let tools = client.list("tools/list", "tools").await;
    let tool = tools.iter().find(|tool| tool["name"] == "w").unwrap();
    assert_eq!(tool["description"], "Do it");
    let input = &tool["inputSchema"];
    assert_eq!(input["properties"]["n"], json!({ "type": "integer", "description": "How many" }));
    assert_eq!(input["required"], json!(["n"]));
    let output = &tool["outputSchema"];
    assert_eq!(output["type"], "object");
    assert!(output["properties"]["outcome"].is_object(), "{output}");
    // It is a prompt as well.
    assert_eq!(client.list("prompts/list", "prompts").await.len(), 1);
}

#[tokio::test]
async fn the_result_of_the_tool_is_the_transcript_of_the_prompt() {
    let (_server, client, _) = client(looks_and_reads()).await;
    let said = get(&client, json!({ "n": "2" })).await;
    let result = client.call("w", json!({ "n": 2 })).await.result();
    assert_ne!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    for message in said["messages"].as_array().unwrap() {
        let shown = match message["content"]["type"].as_str().unwrap() {
            "text" => &message["content"]["text"],
            _ => &message["content"]["resource"]["uri"],
        };
        assert!(text.contains(shown.as_str().unwrap()), "{shown} is not in {text}");
    }
    assert!(text.contains("The static page.") && text.contains(r#""count":2"#), "{text}");
    let picture = &result["content"][1]["resource"];
    assert_eq!((&picture["uri"], &picture["blob"]), (&json!("docs://picture"), &json!("iVBORw==")));
    assert_eq!(result["content"].as_array().unwrap().len(), 2);
    let mut told = result["structuredContent"].clone();
    // Some hosts show the model only the structured content.
    assert_eq!(told["transcript"].take(), text);
    told.as_object_mut().unwrap().remove("transcript");
    assert_eq!(told, said["_meta"]["larder/workflow"]);
    assert_eq!(told["outcome"], "completed");
    assert_eq!(told, result["_meta"]["larder/workflow"]);
}

#[tokio::test]
async fn a_long_transcript_spills_like_any_result() {
    let (_server, client, _) =
        client(workflow().step(read_resource("docs://long")).as_tool()).await;
    let answer = client.call("w", json!({})).await;
    assert!(answer.body.len() < 40_000, "{}", answer.body.len());
    let result = answer.result();
    let mut links =
        result["content"].as_array().unwrap().iter().filter(|c| c["type"] == "resource_link");
    let uri = links.next_back().unwrap()["uri"].as_str().unwrap().to_owned();
    assert!(answer.text().contains(&uri), "{answer:?}");
    assert!(client.read(&uri).await["text"].as_str().unwrap().contains(&"long ".repeat(18_000)));
    assert_eq!(result["_meta"]["larder/workflow"]["outcome"], "completed");
}

#[tokio::test]
async fn a_transcript_that_spills_is_stored_once() {
    let read = || read_resource("docs://medium");
    let registry = Registry::builder("w")
        .with(prompt(workflow().step(read()).step(read().named("again")).as_tool()))
        .with(larder::tools::reading(larder::tools::ToolOptions::default()))
        .resource(Resource::text("docs://medium", "medium ".repeat(4_300)))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let result = Modern::of(&server).call("w", json!({})).await.result();
    let blocks = result["content"].as_array().unwrap().iter();
    let stored: Vec<_> = blocks.filter(|c| c["type"] == "resource_link").collect();
    assert_eq!(stored.len(), 1, "{result}");
    let spilled = &result["structuredContent"]["spilled"];
    assert_eq!(spilled["resources"].as_array().unwrap().len(), 1);
    assert_eq!(spilled["value"]["outcome"], "completed");
}

#[tokio::test]
async fn a_failed_run_is_a_failure_that_names_the_step() {
    let steps = workflow().step(user().arg("name", constant("nobody"))).as_tool();
    let (_server, client, _) = client(steps).await;
    let answer = client.call("w", json!({})).await;
    assert!(answer.failure().contains("There is nobody of that name."), "{answer:?}");
    let outcome = &answer.result()["_meta"]["larder/workflow"];
    assert_eq!((&outcome["outcome"], &outcome["step"]), (&json!("failed"), &json!("look up")));
    assert!(answer.result().get("structuredContent").is_none());
}

#[tokio::test]
async fn invalid_arguments_are_named_and_no_step_runs() {
    let (_server, client, _) = client(looks_and_reads()).await;
    for (wrong, named) in [
        (json!({ "n": "many" }), "n: "),
        (json!({}), "\"n\""),
        (json!({ "n": 1, "other": 2 }), "other"),
    ] {
        let answer = client.call("w", wrong).await;
        assert!(answer.failure().contains(named), "{answer:?}");
        assert!(answer.result().get("_meta").is_none_or(|m| m.get("larder/workflow").is_none()));
    }
}

#[tokio::test]
async fn a_session_gets_the_same_result() {
    let (server, _, _) = client(looks_and_reads()).await;
    let legacy = Legacy::of(&server).await;
    let params = json!({ "name": "w", "arguments": { "n": 3 } });
    let result = legacy.send("tools/call", params).await.result();
    assert_eq!(result["structuredContent"]["outcome"], "completed");
}

#[tokio::test]
async fn progress_is_complete_only_after_the_last_step() {
    for (name, last) in [("somebody", 2.0), ("nobody", 0.0)] {
        let steps = workflow()
            .step(user().arg("name", constant(name)))
            .step(read_resource("docs://static-page"))
            .as_tool();
        let (_server, client, _) = client(steps).await;
        let mut events = client.stream_call(1, "w", json!({})).await;
        let mut told = Vec::new();
        loop {
            let message = events.message().await;
            if message["method"] != "notifications/progress" {
                break;
            }
            assert_eq!(message["params"]["total"], 2.0);
            told.push(message["params"]["progress"].as_f64().unwrap());
        }
        assert!(told.is_sorted_by(|a, b| a < b), "{told:?}");
        assert_eq!(told.last(), Some(&last));
    }
}

/// The task, once it has a status.
async fn task(client: &Modern, id: &str, status: &str) -> Value {
    let reached = async || {
        let task = client.send("tasks/get", json!({ "taskId": id })).await.result();
        (task["status"] == status).then_some(task)
    };
    poll(status, reached).await
}

/// A server with a slow workflow, and a client that follows tasks.
async fn slow() -> (Server, Modern) {
    let server = Server::offering(|builder| builder.with(two_slow_steps())).await;
    let client = Modern::able(&server, json!({ "extensions": { TASKS: {} } }));
    (server, client)
}

#[tokio::test]
async fn a_long_workflow_is_a_task_whose_status_names_the_step() {
    let (server, client) = slow().await;
    let created = client.call("slow", json!({})).await.result();
    assert_eq!(created["resultType"], "task", "{created}");
    let id = created["taskId"].as_str().unwrap();
    for step in ["one", "two"] {
        server.control.reached(step, ToolState::Started).await;
        assert_eq!(task(&client, id, "working").await["statusMessage"], step);
        server.control.release(step, 1);
    }
    let result = task(&client, id, "completed").await["result"].clone();
    assert_eq!(result["structuredContent"]["outcome"], "completed");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("played two"), "{result}");
}

#[tokio::test]
async fn a_cancelled_task_runs_no_further_step() {
    let (server, client) = slow().await;
    let created = client.call("slow", json!({})).await.result();
    let id = created["taskId"].as_str().unwrap();
    server.control.reached("one", ToolState::Started).await;
    client.send("tasks/cancel", json!({ "taskId": id })).await.result();
    server.control.reached("one", ToolState::Dropped).await;
    let cancelled = task(&client, id, "cancelled").await;
    assert!(cancelled.get("result").is_none(), "{cancelled}");
    assert!(!server.control.has("two", ToolState::Started));
}

#[tokio::test]
async fn a_client_without_tasks_waits_for_the_result() {
    let (server, _) = slow().await;
    for step in ["one", "two"] {
        server.control.release(step, 1);
    }
    let result = Modern::of(&server).call("slow", json!({})).await.result();
    assert_eq!(result["structuredContent"]["outcome"], "completed");
}

fn calling(name: &str, tool: &str) -> SequentialWorkflow {
    let call = WorkflowStep::new("call", ToolHandle::new(tool));
    SequentialWorkflow::new(name, "Calls a tool").step(call).as_tool()
}

/// Calls a workflow.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Two {}

#[tokio::test]
async fn a_tool_and_a_workflow_that_call_each_other_in_a_circle_fail() {
    // Nothing shows what a handler calls, so only the run finds the circle.
    let two = Tool::new(|ctx: Context, _: Two| async move {
        let called = ctx.call_tool("one", json!({})).await;
        called.map_err(|fault| ToolError::new(fault.to_string()))
    });
    let registry = Registry::builder("circle")
        .with(prompt(calling("one", "two")))
        .tool(two)
        .resource(Resource::text("docs://page", "A page."))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let answer = Modern::of(&server).call("one", json!({})).await;
    assert!(answer.failure().contains("in a circle"), "{answer:?}");
}

#[test]
fn a_workflow_that_calls_itself_does_not_build() {
    let built = Registry::builder("w").with(prompt(calling("own", "own"))).build();
    let problems = built.unwrap_err().problems;
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].contains("\"call\"") && problems[0].contains("never end"), "{problems:#?}");
}
