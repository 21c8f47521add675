//! Values within results: each key can be reached, texts that are JSON are gone into, and steps go
//! over the members of objects.

use larder::{Context, Registry, ResourceError, Template, Tool, Variables, workflow::dsl::*};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::{get, outcome, resources, texts, workflow};
use crate::support::{Modern, Server};

/// Returns its argument as structured content.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Give {
    /// The structured content.
    content: Value,
}

/// Returns its argument.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Show {
    /// Anything.
    value: Value,
}

async fn give(_: Context, args: Give) -> CallToolResult {
    let mut result = CallToolResult::success(Vec::new());
    result.structured_content = Some(args.content);
    result
}

async fn page(_: Context, variables: Variables) -> Result<String, ResourceError> {
    match &*variables["page"] {
        page if page.starts_with("missing") => Err(ResourceError::NotFound),
        page => Ok(format!("page {page} of {}", variables["book"])),
    }
}

async fn client(workflow: SequentialWorkflow) -> (Server, Modern) {
    let registry = Registry::builder("values")
        .with(larder::workflow::prompt(workflow))
        .tool(
            Tool::new(give).output_schema(json!({ "type": "object" }).as_object().unwrap().clone()),
        )
        .tool(Tool::new(|_: Context, args: Show| async move { args.value.to_string() }))
        .template(Template::new("books://{book}/{page}", "Page", page))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    (server, client)
}

/// A step whose result is this.
fn given(content: &Value) -> WorkflowStep {
    WorkflowStep::new("give", ToolHandle::new("give"))
        .arg("content", constant(content.clone()))
        .bind("given")
}

/// The value at this path of a result.
async fn found(content: &Value, source: DataSource) -> String {
    let show = WorkflowStep::new("show", ToolHandle::new("show")).arg("value", source);
    let (_server, client) = client(workflow().step(given(content)).step(show)).await;
    let result = get(&client, json!({})).await;
    match outcome(&result)["reason"].as_str() {
        Some(reason) => reason.to_owned(),
        None => texts(&result).rsplit_once("Result of show:\n").unwrap().1.to_owned(),
    }
}

#[tokio::test]
async fn each_key_of_a_result_can_be_reached() {
    let content = json!({ "a.b": { "1": { "naïve [x]": [[], ["first", "last"]] } }, "": 5 });
    for (path, expected) in [
        (r#"["a.b"]["1"]["naïve [x]"][1][-1]"#, "\"last\""),
        (r#"["a.b"].1["naïve [x]"].-1.0"#, "\"first\""),
        (r"['a.b'][1]['naïve [x]'][0]", "[]"),
        ("[\"\"]", "5"),
    ] {
        assert_eq!(found(&content, field("given", path)).await, expected, "{path}");
    }
    let missing = found(&content, field("given", "a.b")).await;
    assert!(missing.contains("there is no \"a\"") && missing.contains("\"a.b\""), "{missing}");
}

#[tokio::test]
async fn a_lone_result_that_is_json_is_gone_into_and_stays_text() {
    let page = json!({ "items": [{ "id": "x1" }] });
    let content = json!({ "result": page.to_string() });
    assert_eq!(found(&content, field("given", "result.items[0].id")).await, "\"x1\"");
    assert_eq!(found(&content, field("given", "items[0].id")).await, "\"x1\"");
    assert_eq!(
        found(&content, field("given", "result")).await,
        json!(page.to_string()).to_string()
    );
    assert_eq!(found(&content, from_step("given")).await, content.to_string());
    let broken = found(&json!({ "result": "{\"items\": [" }), field("given", "result.items")).await;
    assert!(broken.contains("not JSON"), "{broken}");
}

fn all(limit: usize, on_error: OnError) -> WorkflowStep {
    read_resources("books://{book}/{page}").named("all").for_each_up_to(limit, on_error)
}

/// The result of going over the items of a result.
async fn over(content: &Value, source: DataSource, [book, page]: [DataSource; 2]) -> Value {
    let step = all(20, OnError::Skip)
        .with_template_binding("book", book)
        .with_template_binding("page", page)
        .for_each_over(source)
        .bind("pages");
    let show = WorkflowStep::new("show", ToolHandle::new("show")).arg("value", from_step("pages"));
    let (_server, client) = client(workflow().step(given(content)).step(step).step(show)).await;
    get(&client, json!({})).await
}

fn uris(result: &Value) -> Vec<Value> {
    resources(result).iter().map(|resource| resource["uri"].clone()).collect()
}

#[tokio::test]
async fn for_each_goes_over_the_members_of_an_object_and_names_them() {
    let content = json!({ "chapters": { "one": { "page": 7 }, "two": { "page": 9 }, "x": {} } });
    let parts = [item_field("key").to_uppercase(), item_field("value.page")];
    let result = over(&content, field("given", "chapters"), parts).await;
    assert_eq!(uris(&result), ["books://ONE/7", "books://TWO/9"]);
    let texts = texts(&result);
    assert!(texts.contains("\"one\": books://ONE/7"), "{texts}");
    assert!(texts.contains("\"x\": ") && texts.contains("It is left out."), "{texts}");
    let bound = json!({ "one": "page 7 of ONE", "two": "page 9 of TWO" });
    assert!(texts.contains(&format!("Result of show:\n{bound}")), "{texts}");

    // A list has items without keys, and a result that wraps a list is that list.
    for content in [
        json!({ "result": [{ "b": "a", "p": 1 }, { "b": "b", "p": 2 }] }),
        json!({ "result": json!([{ "b": "a", "p": 1 }, { "b": "b", "p": 2 }]).to_string() }),
    ] {
        let parts = [item_field("b"), item_field("p")];
        let result = over(&content, from_step("given"), parts).await;
        assert_eq!(uris(&result), ["books://a/1", "books://b/2"], "{content}");
    }
}

#[tokio::test]
async fn the_only_variable_gets_the_values_of_an_object() {
    let step = read_resources("books://b/{page}")
        .named("all")
        .with_template_binding("page", constant(json!({ "k": "A", "l": "B" })).to_lowercase())
        .for_each();
    let (_server, client) = client(workflow().step(step)).await;
    let result = get(&client, json!({})).await;
    assert_eq!(uris(&result), ["books://b/a", "books://b/b"]);
    assert!(texts(&result).contains("\"l\": books://b/b"), "{}", texts(&result));
}

#[tokio::test]
async fn a_step_that_has_lost_all_its_items_has_failed() {
    let parts = || [constant("b"), item()];
    for (list, is_done) in [
        (json!(["missing", "missing2", null]), false),
        (json!(["..", {}]), false),
        (json!({ "k": "missing" }), false),
        (json!(["missing", "there"]), true),
        (json!([]), true),
        (json!({}), true),
    ] {
        let parts = if list.is_object() { [constant("b"), item_field("value")] } else { parts() };
        let content = json!({ "list": list });
        let result = over(&content, field("given", "list"), parts).await;
        let step = &outcome(&result)["steps"][1];
        if is_done {
            assert_eq!(step["status"], "done", "{list}: {result}");
            continue;
        }
        assert_eq!(*step, json!({ "name": "all", "status": "failed" }), "{list}");
        assert_eq!(outcome(&result)["outcome"], "failed");
        let reason = outcome(&result)["reason"].as_str().unwrap();
        let count = list.as_array().map_or(1, Vec::len);
        assert!(
            reason.starts_with(&format!("None of its {count} items could be read.")),
            "{reason}"
        );
        assert!(texts(&result).contains("It is left out."), "{result}");
    }
    let nothing = over(&json!({ "list": [] }), field("given", "list"), parts()).await;
    assert!(texts(&nothing).contains("goes over nothing"), "{nothing}");
}

#[tokio::test]
async fn a_huge_list_is_bounded_and_said() {
    let list: Vec<_> = (0..50_000).map(|page| json!(format!("p{page}"))).collect();
    let step = all(20, OnError::Skip)
        .with_template_binding("book", constant("b"))
        .with_template_binding("page", item())
        .for_each_over(constant(list));
    let (_server, client) = client(workflow().step(step)).await;
    let result = get(&client, json!({})).await;
    assert_eq!(uris(&result).len(), 20);
    assert!(texts(&result).contains("Only the first 20 of 50000 are read"), "{}", texts(&result));
    for other in [json!("text"), json!(7), json!(null), json!(true)] {
        let parts = [constant("b"), item()];
        let result = over(&json!({ "list": other }), field("given", "list"), parts).await;
        let reason = outcome(&result)["reason"].as_str().unwrap();
        assert!(reason.contains("not bound to a list or an object"), "{other}: {reason}");
    }
}
