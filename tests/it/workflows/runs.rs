//! Runs of workflows: their transcripts, failures, conditions and progress.

use std::sync::atomic::Ordering;

use larder::workflow::dsl::*;
use serde_json::{Value, json};

use super::{client, get, messages, outcome, resources, texts, two_slow_steps, user, workflow};
use crate::support::{
    Modern, Server, ToolState, ask, patiently,
    process::{Process, example},
};

#[tokio::test]
async fn the_transcript_goes_step_by_step() {
    let steps = workflow()
        .with_instructions("Be brief.")
        .step(user().with_guidance("First {a}, not { user }.").with_resource("docs://static-page"))
        .step(read_resource("docs://static-page").named("read"))
        .finish();
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({ "a": "{user}" })).await;
    let said: Vec<_> = messages(&result)
        .into_iter()
        .map(|(role, content)| (role, content["type"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        ("user", "text"),
        ("assistant", "text"),
        ("assistant", "text"),
        ("user", "resource"),
        ("assistant", "text"),
        ("user", "text"),
        ("user", "resource"),
    ];
    assert_eq!(said, expected.map(|(r, t)| (r.to_owned(), t.to_owned())));
    let texts = texts(&result);
    assert!(
        texts.contains("Be brief.") && texts.contains("First {user}, not { user }."),
        "{texts}"
    );
    assert!(texts.contains("I call lookup with {}."), "{texts}");
    let read = &resources(&result)[1];
    assert_eq!(read["uri"], "docs://static-page");
    assert_eq!(
        (&read["mimeType"], &read["text"]),
        (&json!("text/plain"), &json!("The static page."))
    );
    assert_eq!(result["description"], "Do it");
    let steps = &outcome(&result)["steps"];
    assert_eq!(steps[0], json!({ "name": "look up", "status": "done" }));
}

#[tokio::test]
async fn a_failing_tool_stops_the_workflow() {
    let steps = workflow()
        .step(user().arg("name", constant("nobody")))
        .step(read_resource("docs://static-page").named("never"));
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({})).await;
    assert!(resources(&result).is_empty());
    assert_eq!(outcome(&result)["outcome"], "failed");
    let (role, content) = messages(&result).pop().unwrap();
    assert_eq!(role, "user");
    let text = content["text"].as_str().unwrap();
    assert!(text.contains("nobody of that name") && text.contains("Not done: never"), "{text}");
}

#[tokio::test]
async fn a_retryable_step_is_repeated() {
    let flaky = || WorkflowStep::new("flaky", ToolHandle::new("flaky"));
    let delay = std::time::Duration::from_millis(1);
    let (_server, one, calls) = client(workflow().step(flaky().retryable_with(3, delay))).await;
    let result = get(&one, json!({})).await;
    assert_eq!(outcome(&result)["outcome"], "completed");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert!(texts(&result).contains("At last."));
    let (_server, two, _) = client(workflow().step(flaky().retryable_with(2, delay))).await;
    assert_eq!(outcome(&get(&two, json!({})).await)["retryable"], true);
    let (_server, once, _) = client(workflow().step(flaky())).await;
    assert!(outcome(&get(&once, json!({})).await).get("retryable").is_none());
}

#[tokio::test]
async fn what_would_fail_again_is_not_retried() {
    let day = std::time::Duration::from_secs(24 * 3600);
    let invalid = user().arg("count", constant("many")).retryable_with(3, day);
    let (_server, client, _) = client(workflow().step(invalid)).await;
    let result = patiently("a run without a second attempt", get(&client, json!({}))).await;
    let outcome = outcome(&result);
    assert_eq!(outcome["outcome"], "failed");
    assert!(outcome["reason"].as_str().unwrap().contains("count"), "{outcome}");
    assert!(outcome.get("retryable").is_none(), "{outcome}");
}

#[tokio::test]
async fn a_prompt_has_a_bound_as_a_whole() {
    let many =
        (0..20).fold(read_resource("docs://medium"), |step, _| step.with_resource("docs://medium"));
    let (_server, client, _) = client(workflow().step(many)).await;
    let result = get(&client, json!({})).await;
    assert_eq!(outcome(&result)["outcome"], "completed");
    // 30 kB each, in 128 kB.
    assert_eq!(resources(&result).len(), 4);
    assert_eq!(texts(&result).matches("PREVIEW ONLY: docs://medium").count(), 17);
    let size = result.to_string().len();
    assert!(size < 140_000, "{size}");
}

#[tokio::test]
async fn a_long_argument_is_cut_in_the_transcript() {
    let (_server, client, _) = client(workflow().step(user())).await;
    let result = get(&client, json!({ "a": "ü".repeat(200_000) })).await;
    let size = result.to_string().len();
    assert!(size < 140_000, "{size}");
    assert!(texts(&result).contains("bytes left out"));
    assert_eq!(outcome(&result)["outcome"], "completed");
}

#[tokio::test]
async fn only_what_is_bound_is_read_as_a_whole() {
    let huge = || read_resource("docs://huge");
    let limited = async |steps: SequentialWorkflow| {
        let registry = larder::Registry::builder("limited")
            .with(larder::workflow::prompt(steps))
            .resource(larder::Resource::text("docs://huge", "x".repeat(200_000)))
            .build()
            .unwrap();
        let server = Server::configured(|setup| {
            setup.config.limits.read_bytes = 100_000;
            setup.offers = Box::new(|_, _| registry);
        });
        let server = server.await;
        get(&Modern::of(&server), json!({})).await
    };
    let unbound = limited(workflow().step(huge())).await;
    assert_eq!(outcome(&unbound)["outcome"], "completed", "{unbound}");
    let bound = limited(workflow().step(huge().bind("huge"))).await;
    let reason = outcome(&bound)["reason"].as_str().unwrap();
    assert!(reason.contains("200000 bytes") && reason.contains("limits.read_bytes"), "{reason}");
}

#[tokio::test]
async fn steps_count_as_requests_of_the_caller() {
    let read = read_resource("docs://page").named("read");
    let steps = [user(), read, user().named("too much").bind("other")];
    let steps = steps.into_iter().fold(workflow(), SequentialWorkflow::step);
    let registry = larder::Registry::builder("limited")
        .with(larder::workflow::prompt(steps))
        .tool(larder::Tool::new(super::lookup))
        .resource(larder::Resource::text("docs://page", "A page."))
        .build()
        .unwrap();
    let server = Server::configured(|setup| {
        setup.config.limits.requests_per_window = 3;
        setup.offers = Box::new(|_, _| registry);
    });
    let server = server.await;
    // One request and two steps; the third is one too many.
    let result = get(&Modern::of(&server), json!({})).await;
    let outcome = outcome(&result);
    assert_eq!(outcome["step"], "too much", "{outcome}");
    let reason = outcome["reason"].as_str().unwrap();
    assert!(reason.contains("limits.requests_per_window"), "{reason}");
}

#[tokio::test]
async fn a_step_whose_condition_fails_is_skipped_and_says_so() {
    let steps = workflow().step(
        read_resource("docs://static-page").named("maybe").when(prompt_arg("a"), equals("yes")),
    );
    let (_server, client, _) = client(steps).await;
    assert_eq!(resources(&get(&client, json!({ "a": "yes" })).await).len(), 1);
    for arguments in [json!({ "a": "no" }), json!({})] {
        let result = get(&client, arguments).await;
        assert!(resources(&result).is_empty() && texts(&result).contains("I skip \"maybe\""));
        assert_eq!(outcome(&result)["steps"][0]["status"], "skipped");
    }
}

#[tokio::test]
async fn binary_and_large_resources_do_not_stop_a_run() {
    let steps =
        workflow().step(read_resource("docs://picture").with_resource("docs://huge").bind("both"));
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({})).await;
    let picture = &resources(&result)[0];
    assert_eq!((&picture["mimeType"], &picture["blob"]), (&json!("image/png"), &json!("iVBORw==")));
    let links: Vec<_> =
        messages(&result).into_iter().filter(|(_, c)| c["type"] == "resource_link").collect();
    assert_eq!(links[0].1["uri"], "docs://huge");
    assert!(result.to_string().len() < 10_000);
    assert_eq!(outcome(&result)["outcome"], "completed");
}

#[tokio::test]
async fn a_large_result_is_stored_and_linked() {
    let big = WorkflowStep::new("big", ToolHandle::new("big"));
    let (_server, client, _) = client(workflow().step(big)).await;
    let result = get(&client, json!({})).await;
    assert_eq!(outcome(&result)["outcome"], "completed");
    assert!(result.to_string().len() < 50_000);
    let mut links = messages(&result).into_iter().filter(|(_, c)| c["type"] == "resource_link");
    let uri = links.next().unwrap().1["uri"].as_str().unwrap().to_owned();
    assert!(texts(&result).contains(&uri), "{}", texts(&result));
    assert_eq!(client.read(&uri).await["text"], "much ".repeat(40_000));
}

#[tokio::test]
async fn the_same_arguments_give_the_same_transcript() {
    let steps = workflow().step(user()).step(read_resource("docs://static-page"));
    let (_server, client, _) = client(steps).await;
    let first = get(&client, json!({ "a": "x" })).await;
    assert_eq!(get(&client, json!({ "a": "x" })).await.to_string(), first.to_string());
}

#[tokio::test]
async fn a_cancelled_run_runs_no_further_step() {
    let server = Server::streaming_with(|builder| builder.with(two_slow_steps())).await;
    let client = Modern::of(&server);
    let events = client.stream(1, "prompts/get", json!({ "name": "slow" })).await;
    server.control.reached("one", ToolState::Started).await;
    drop(events);
    server.control.reached("one", ToolState::Dropped).await;
    assert!(!server.control.has("two", ToolState::Started));
}

#[tokio::test]
async fn a_handoff_lists_the_remaining_steps_with_the_known_values() {
    let steps =
        workflow().step(user()).step(WorkflowStep::handoff("yours", "I leave {a} to you.")).step(
            WorkflowStep::new("again", ToolHandle::new("lookup"))
                .arg("count", field("user", "id"))
                .with_resource("docs://static-page")
                .bind("later"),
        );
    let read = |name: &str, source| {
        read_resource("docs://{v}").named(name).with_template_binding("v", source)
    };
    let steps = steps
        .step(read("next", field("later", "id")))
        .step(read("all", field("user", "list")).for_each_up_to(2, OnError::Stop));
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({ "a": "this" })).await;
    let texts = texts(&result);
    assert!(texts.contains("I leave this to you."), "{texts}");
    // Nothing is said of steps as if they had run.
    assert!(!texts.contains("Only the first"), "{texts}");
    assert!(
        texts.contains("all: read docs://") && texts.contains("next: its resources"),
        "{texts}"
    );
    assert!(texts.contains("{v} in docs://{v} has no value"), "{texts}");
    assert!(
        texts.contains(r#"again: call lookup with {"count":123}: read docs://static-page"#),
        "{texts}"
    );
    assert_eq!(outcome(&result)["outcome"], "handoff");
    assert!(resources(&result).is_empty());
}

#[tokio::test]
async fn progress_is_complete_only_after_the_last_step() {
    for (name, ends) in [("somebody", true), ("nobody", false)] {
        let steps = workflow().step(user().arg("name", constant(name)));
        let (_server, client, _) = client(steps).await;
        let params = json!({ "name": "w", "_meta": { "progressToken": "p" } });
        let mut events = client.stream(1, "prompts/get", params).await;
        let mut told = Vec::new();
        loop {
            let message = events.message().await;
            if message["method"] != "notifications/progress" {
                break;
            }
            told.push(message["params"]["progress"].as_f64().unwrap());
        }
        assert_eq!(told.last() == Some(&1.0), ends, "{told:?}");
        assert!(told.is_sorted());
    }
}

#[tokio::test]
async fn a_workflow_is_listed_with_its_arguments() {
    let (_server, client, _) = client(workflow().step(user())).await;
    let prompts = client.list("prompts/list", "prompts").await;
    assert_eq!(prompts[0]["name"], "w");
    assert_eq!(prompts[0]["description"], "Do it");
    let arguments = json!([{ "name": "a", "description": "Anything", "required": false }]);
    assert_eq!(prompts[0]["arguments"], arguments);
}

#[tokio::test]
async fn the_fiction_example_gives_a_hint_in_one_request() {
    let server = Process::start(example("interactive_fiction")).await;
    let hint = async |arguments: Value| {
        let params = json!({ "name": "get_hint", "arguments": arguments });
        ask(&server.url, "prompts/get", params).await.result()
    };
    let result = hint(json!({})).await;
    let read = &resources(&result)[0];
    assert_eq!(read["uri"], "if://walkthrough/zork1");
    assert!(read["text"].as_str().unwrap().contains("mailbox"));
    assert!(texts(&result).contains("West of House"));
    let unknown = hint(json!({ "game_id": "none" })).await;
    assert_eq!(outcome(&unknown)["outcome"], "failed");
    assert!(texts(&unknown).contains("if://walkthrough/none"), "{}", texts(&unknown));
}

#[tokio::test]
async fn a_run_without_bindings_has_exactly_these_messages() {
    let steps = workflow()
        .with_instructions("Be brief.")
        .step(WorkflowStep::new("again", ToolHandle::new("say_back")).arg("value", constant(1)))
        .step(read_resource("docs://pointer").with_guidance("Now {a}."));
    let (_server, client, _) = client(steps).await;
    let result = get(&client, json!({ "a": "this" })).await;
    let said: Vec<_> =
        messages(&result).into_iter().map(|(role, content)| (role, content.to_string())).collect();
    let text = |text: &str| json!({ "type": "text", "text": text }).to_string();
    let embedded = json!({ "uri": "docs://pointer", "mimeType": "text/plain", "text": "three" });
    let expected = [
        ("user", text("Do it\na: this\n\nBe brief.")),
        ("assistant", text("I will do this:\n1. again\n2. read docs://pointer")),
        ("assistant", text("I call say_back with {\"value\":1}.")),
        ("user", text("Result of say_back:\n{\"value\":1}")),
        ("assistant", text("Now this.")),
        ("user", json!({ "type": "resource", "resource": embedded }).to_string()),
    ];
    assert_eq!(said, expected.map(|(role, content)| (role.to_owned(), content)));
}
