//! Sources of values, and their use in URIs and arguments.

use std::sync::atomic::Ordering;

use larder::workflow::dsl::*;
use serde_json::{Value, json};

use super::{client, found_user, get, messages, outcome, resources, texts, user, workflow};

/// The result of a workflow that reads `docs://{v}`, and the resources in it.
async fn read_by(source: DataSource) -> (Value, Vec<Value>) {
    let step = read_resource("docs://{v}").named("read").with_template_binding("v", source);
    let (_server, client, _) = client(workflow().step(user()).step(step)).await;
    let result = get(&client, json!({ "a": "ds1" })).await;
    let resources = resources(&result);
    (result, resources)
}

#[tokio::test]
async fn uris_are_built_from_each_source() {
    for (source, uri) in [
        (field("user", "id"), "docs://123"),
        (field("user", "api.endpoint_name"), "docs://v1"),
        (field("user", "list.1"), "docs://two"),
        (field("user", "list.0").to_lowercase(), "docs://one"),
        (prompt_arg("a"), "docs://ds1"),
        (constant(true), "docs://true"),
        (field("user", "path"), "docs://a%2Fb%3Fc%23d"),
        (constant("x://evil"), "docs://x%3A%2F%2Fevil"),
        (constant("v2"), "docs://v2"),
        (constant("{a}"), "docs://%7Ba%7D"),
        (template("x-{n}", [("n", field("user", "id"))]), "docs://x-123"),
    ] {
        let (result, resources) = read_by(source).await;
        assert_eq!(resources.len(), 1, "{uri}: {result}");
        assert_eq!(resources[0]["uri"], uri);
        assert_eq!(outcome(&result)["outcome"], "completed");
    }
}

#[tokio::test]
async fn a_value_that_does_not_fit_into_a_uri_fails_the_run() {
    for (source, words) in [
        (field("user", "nope"), "no field"),
        (field("user", "list.9"), "out of range in a list of 3"),
        (field("user", "nmae"), "Did you mean \"name\""),
        (field("user", "none"), "null is not text"),
        (from_step("user"), "an object is not text"),
        (template("x-{n}", [("n", from_step("user"))]), "an object is not text"),
        (field("user", "up"), "contains a . or .. segment"),
        (constant("missing"), "docs://missing"),
        (constant("../../secret"), "contains a . or .. segment"),
        (constant("/etc/passwd"), "starts with a slash"),
    ] {
        let (result, resources) = read_by(source).await;
        assert!(resources.is_empty(), "{words}");
        assert_eq!(outcome(&result)["outcome"], "failed");
        assert_eq!(outcome(&result)["step"], "read");
        let last = messages(&result).pop().unwrap();
        assert_eq!(last.0, "user");
        assert!(last.1["text"].as_str().unwrap().contains(words), "{words}: {}", last.1);
    }
}

#[tokio::test]
async fn a_template_receives_the_decoded_value() {
    let (_, resources) = read_by(field("user", "path")).await;
    assert_eq!(resources[0]["text"], "page a/b?c#d");
}

#[tokio::test]
async fn a_uri_has_several_variables() {
    let step = read_resource("project://{org}/{repo}/config")
        .with_template_binding("org", constant("acme"))
        .with_template_binding("repo", prompt_arg("a"));
    let (_server, client, _) = client(workflow().step(step)).await;
    let result = get(&client, json!({ "a": "web" })).await;
    let read = &resources(&result)[0];
    assert_eq!(read["uri"], "project://acme/web/config");
    assert_eq!(read["text"], "web of acme");
    // A step that only reads has no call to show.
    assert!(!texts(&result).contains("I call"), "{}", texts(&result));
}

#[tokio::test]
async fn the_content_of_a_resource_is_a_source_for_later_steps() {
    let by = |source| read_resource("docs://{v}").named("by").with_template_binding("v", source);
    for (uri, source, read) in [
        ("docs://facts", field("read", "next.page"), "docs://two"),
        ("docs://pointer", from_step("read"), "docs://three"),
    ] {
        let steps = workflow().step(read_resource(uri).bind("read")).step(by(source));
        let (_server, client, _) = client(steps).await;
        assert_eq!(resources(&get(&client, json!({})).await)[1]["uri"], read);
    }
}

#[tokio::test]
async fn each_source_feeds_a_tool_with_its_own_type() {
    for (source, value) in [
        (prompt_arg("a"), json!("7")),
        (field("user", "id"), json!(123)),
        (field("user", "list"), json!(["One", "two", "three"])),
        (field("user", "none"), json!(null)),
        (field("user", "api"), json!({ "endpoint_name": "v1" })),
        // A whole result: an object keeps its type, and so does text.
        (from_step("user"), found_user(None)),
        (from_step("page"), json!("The static page.")),
        (constant(json!([1, { "a": true }])), json!([1, { "a": true }])),
        (template("docs://{id}", [("id", field("user", "id"))]), json!("docs://123")),
    ] {
        let says = WorkflowStep::new("say", ToolHandle::new("say_back")).arg("value", source);
        let page = read_resource("docs://static-page").bind("page");
        let (_server, client, _) = client(workflow().step(user()).step(page).step(says)).await;
        let texts = texts(&get(&client, json!({ "a": "7" })).await);
        let said = json!({ "value": value }).to_string();
        assert!(texts.contains(&format!("I call say_back with {said}.")), "{texts}");
        assert!(texts.contains(&format!("Result of say_back:\n{said}")), "{texts}");
    }
}

#[tokio::test]
async fn the_resources_of_a_step_are_read_in_their_order() {
    let step = read_resource("docs://two").with_resource("docs://static-page");
    let step = step.with_resource("people://ana@x.com").with_resource("docs://one");
    let (_server, client, _) = client(workflow().step(step)).await;
    let found = resources(&get(&client, json!({})).await);
    let found: Vec<_> =
        found.iter().map(|resource| (&resource["uri"], &resource["text"])).collect();
    let expected = json!([
        ["docs://two", "page two"],
        ["docs://static-page", "The static page."],
        ["people://ana@x.com", "Ana."],
        ["docs://one", "page one"],
    ]);
    assert_eq!(json!(found), expected);
}

#[tokio::test]
async fn all_contents_of_a_resource_are_present_in_their_order() {
    let pair = read_resource("docs://pair").with_resource("docs://one").bind("pair");
    let by = |field: DataSource| {
        read_resource("docs://{v}").named("by").with_template_binding("v", field)
    };
    let steps = workflow().step(pair).step(by(field("pair", "0.0.page")));
    let steps = steps.step(by(field("pair", "0.1")).named("last"));
    let (_server, client, _) = client(steps).await;
    let found = resources(&get(&client, json!({})).await);
    let found: Vec<_> = found.iter().map(|part| (&part["uri"], &part["text"])).collect();
    let expected = json!([
        ["docs://pair/1", r#"{"page":"two"}"#],
        ["docs://pair/2", "three"],
        ["docs://one", "page one"],
        ["docs://two", "page two"],
        ["docs://three", "page three"],
    ]);
    assert_eq!(json!(found), expected);
}

#[tokio::test]
async fn arguments_keep_their_types() {
    let steps = SequentialWorkflow::new("w", "Do it")
        .typed_argument("n", ArgumentKind::Integer, "How many", true)
        .step(user().arg("count", prompt_arg("n")).arg("name", constant("'; DROP {n}")))
        .step(WorkflowStep::new("count", ToolHandle::new("flaky")));
    let (_server, client, calls) = client(steps).await;
    let result = get(&client, json!({ "n": "42" })).await;
    assert!(texts(&result).contains(r#""count":42"#));
    assert!(texts(&result).contains("'; DROP {n}"));
    let before = calls.load(Ordering::SeqCst);
    for wrong in [json!({ "n": "many" }), json!({}), json!({ "n": "1", "other": "x" })] {
        let refused = client.send("prompts/get", json!({ "name": "w", "arguments": wrong })).await;
        assert_eq!(refused.error()["code"], -32602, "{wrong}");
    }
    // No step has run.
    assert_eq!(calls.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn a_resource_that_a_step_stores_is_read_by_the_next_step() {
    let steps = workflow()
        .step(WorkflowStep::new("park", ToolHandle::new("park")).bind("parked"))
        .step(WorkflowStep::new("read", ResourceHandle::from_source(field("parked", "uri"))));
    let (_server, client, _) = client(steps).await;
    let read = resources(&get(&client, json!({})).await);
    assert_eq!(read[0]["uri"], "results://parked");
    assert_eq!(read[0]["text"], "parked content");
}

#[tokio::test]
async fn a_missing_optional_argument_skips_the_step_or_has_a_default() {
    let read =
        |source| read_resource("docs://{v}").named("read").with_template_binding("v", source);
    let (_server, skips, _) = client(workflow().step(read(prompt_arg("a")))).await;
    let result = get(&skips, json!({})).await;
    assert!(resources(&result).is_empty() && texts(&result).contains("was not given"));
    let (_server, defaults, _) = client(workflow().step(read(prompt_arg("a").or("front")))).await;
    assert_eq!(resources(&get(&defaults, json!({})).await)[0]["uri"], "docs://front");
}

#[tokio::test]
async fn for_each_reads_a_resource_for_each_item() {
    let each =
        |source| read_resources("docs://{v}").named("all").with_template_binding("v", source);
    let all = each(field("user", "list").to_lowercase()).for_each();
    let (_server, one, _) = client(workflow().step(user()).step(all)).await;
    let uris: Vec<_> =
        resources(&get(&one, json!({})).await).iter().map(|r| r["uri"].clone()).collect();
    assert_eq!(uris, ["docs://one", "docs://two", "docs://three"]);

    let some = each(field("user", "list")).for_each_up_to(2, OnError::Stop);
    let (_server, two, _) = client(workflow().step(user()).step(some)).await;
    let result = get(&two, json!({})).await;
    assert_eq!(resources(&result).len(), 2);
    assert!(texts(&result).contains("Only the first 2 of 3"), "{}", texts(&result));

    let list = || constant(json!(["x", "missing", null, "y"]));
    let (_server, stops, _) = client(workflow().step(each(list()).for_each())).await;
    assert_eq!(outcome(&get(&stops, json!({})).await)["outcome"], "failed");
    let skipping = each(list()).for_each_up_to(9, OnError::Skip);
    let (_server, skips, _) = client(workflow().step(skipping)).await;
    let result = get(&skips, json!({})).await;
    assert_eq!(resources(&result).len(), 2);
    assert_eq!(texts(&result).matches("left out").count(), 2);
    let none = each(constant(json!([]))).for_each();
    let (_server, empty, _) = client(workflow().step(none)).await;
    assert_eq!(outcome(&get(&empty, json!({})).await)["outcome"], "completed");
}

#[tokio::test]
async fn characters_of_a_path_need_not_be_encoded() {
    for uri in ["people://{who}", "people://{+who}"] {
        let step = read_resource(uri).with_template_binding("who", prompt_arg("a"));
        let (_server, client, _) = client(workflow().step(step)).await;
        let result = get(&client, json!({ "a": "ana@x.com" })).await;
        let read = resources(&result);
        assert_eq!(read.len(), 1, "{uri}: {result}");
        assert_eq!(read[0]["uri"], "people://ana@x.com");
        // An error names what was asked for.
        let missing = get(&client, json!({ "a": "eve@x.com" })).await;
        let reason = outcome(&missing)["reason"].as_str().unwrap();
        assert!(reason.contains("eve%40x.com") || reason.contains("eve@x.com"), "{reason}");
    }
}
