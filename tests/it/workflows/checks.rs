//! Faults of a workflow are found when the server is built.

use larder::{
    Builder, Context, Registry, Resource, Template, Tool, Variables,
    workflow::{self, dsl::*},
};

/// Finds something.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Find {
    /// The query.
    #[allow(dead_code, reason = "only its schema matters here")]
    query: String,
}

fn offers(builder: Builder) -> Builder {
    builder
        .tool(Tool::new(|_: Context, _: Find| async { "{}" }))
        .resource(Resource::text("docs://static-page", "A page."))
        .template(Template::new("docs://{page}", "Page", |_, _: Variables| async { "A page." }))
}

fn find(name: &str) -> WorkflowStep {
    WorkflowStep::new(name, ToolHandle::new("find")).arg("query", constant("x"))
}

fn problems(workflow: SequentialWorkflow) -> Vec<String> {
    let built = Registry::builder("w").with(workflow::prompt(workflow)).with(offers).build();
    built.err().map(|e| e.problems).unwrap_or_default()
}

/// The only fault of a workflow with these steps.
fn fault(steps: impl IntoIterator<Item = WorkflowStep>) -> String {
    let workflow = SequentialWorkflow::new("w", "A workflow").argument("known", "Known", false);
    let mut found = problems(steps.into_iter().fold(workflow, SequentialWorkflow::step));
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn says(fault: &str, words: &[&str]) {
    for word in words {
        assert!(fault.contains(word), "{word:?} is not in {fault:?}");
    }
}

#[test]
fn a_sound_workflow_builds_whatever_comes_first() {
    let sound = || {
        SequentialWorkflow::new("w", "A workflow")
            .argument("page", "Which page", true)
            .step(find("find").bind("found"))
            .step(read_resource("docs://static-page"))
            .step(read_resource("docs://{page}").with_template_binding("page", prompt_arg("page")))
            .finish()
    };
    assert!(problems(sound()).is_empty());
    let last = Registry::builder("w").with(offers).with(workflow::prompt(sound())).build();
    assert!(last.is_ok());
}

#[test]
fn a_variable_without_a_binding_is_named() {
    let fault = fault([read_resource("docs://{page}").named("read")]);
    says(&fault, &["\"w\"", "\"read\"", "{page}", "docs://{page}", "with_template_binding"]);
}

#[test]
fn a_binding_that_no_step_makes_is_named() {
    let read = read_resource("docs://{page}").named("read");
    let fault = fault([
        find("find").bind("found"),
        read.with_template_binding("page", field("lost", "id")),
    ]);
    says(&fault, &["\"read\"", "\"lost\"", "\"page\"", "bound before: found"]);
}

#[test]
fn an_argument_that_is_not_declared_is_named() {
    let read = read_resource("docs://{page}").with_template_binding("page", prompt_arg("other"));
    says(&fault([read]), &["\"other\"", "not declared", "known"]);
}

#[test]
fn a_step_cannot_use_what_it_or_a_later_one_binds() {
    let later =
        fault([find("first").arg("query", from_step("found")), find("second").bind("found")]);
    says(&later, &["\"first\"", "\"found\"", "\"second\""]);
    let own = fault([find("own").arg("query", from_step("own")).bind("own")]);
    says(&own, &["before the step \"own\" binds it"]);
}

#[test]
fn duplicate_names_are_faults() {
    says(&fault([find("same"), find("same")]), &["two steps", "\"same\""]);
    says(&fault([find("a").bind("x"), find("b").bind("x")]), &["two steps bind", "\"x\""]);
}

#[test]
fn a_variable_in_no_uri_is_a_fault() {
    let read = read_resource("docs://static-page").with_template_binding("page", constant("x"));
    says(&fault([read]), &["\"page\"", "none of its URIs"]);
}

#[test]
fn tools_arguments_and_resources_must_exist() {
    let unknown = WorkflowStep::new("s", ToolHandle::new("lose"));
    says(&fault([unknown]), &["no tool \"lose\""]);
    let missing = WorkflowStep::new("s", ToolHandle::new("find"));
    says(&fault([missing]), &["\"find\"", "needs the argument \"query\""]);
    says(&fault([find("s").arg("colour", constant(1))]), &["no argument \"colour\"", "query"]);
    says(&fault([read_resource("other://page")]), &["no resource \"other://page\""]);
}

#[test]
fn an_unknown_syntax_for_variables_is_answered_with_the_right_one() {
    let fault = fault([read_resource("docs://${found.id}").named("read")]);
    says(&fault, &["{id}", "with_template_binding(\"id\", field(\"found\", \"id\"))"]);
}

#[test]
fn the_binding_of_a_step_that_may_be_skipped_needs_a_default() {
    let maybe = find("maybe").when(prompt_arg("known"), equals("yes")).bind("found");
    let uses = find("uses").arg("query", from_step("found"));
    says(&fault([maybe.clone(), uses]), &["may be skipped", ".or("]);
    let with_default = find("uses").arg("query", from_step("found").or("nothing"));
    let same = find("same").when(prompt_arg("known"), equals("yes"));
    let same = same.arg("query", from_step("found"));
    let sound = SequentialWorkflow::new("w", "A workflow")
        .argument("known", "Known", false)
        .step(maybe)
        .step(with_default)
        .step(same);
    assert!(problems(sound).is_empty());
}

#[test]
fn steps_must_make_sense() {
    let fault_of = |step: WorkflowStep| fault([step]);
    says(&fault_of(find("s").for_each()), &["for_each"]);
    says(&fault_of(read_resource("docs://static-page").for_each()), &["one variable"]);
    says(&fault_of(read_resource("docs://static-page").retryable()), &["retried"]);
    let argument = read_resource("docs://static-page").arg("a", constant(1));
    says(&fault_of(argument), &["arguments, but no tool"]);
    let text = find("s").arg("query", template("{a}", [("b", constant(1))]));
    let both = problems(SequentialWorkflow::new("w", "A workflow").step(text));
    assert_eq!(both.len(), 2, "{both:#?}");
}

#[test]
fn short_forms_equal_their_long_forms() {
    let long = WorkflowStep::new("read docs://{a}", ResourceHandle::new("docs://{a}"));
    assert_eq!(read_resource("docs://{a}"), long);
    assert_eq!(read_resources("docs://{a}"), long);
    let named = WorkflowStep::new("page", ResourceHandle::new("docs://{a}"));
    assert_eq!(read_resource("docs://{a}").named("page"), named);
    let workflow = || SequentialWorkflow::new("w", "A workflow").step(find("find"));
    assert_eq!(workflow().finish(), workflow());
}

#[test]
fn all_faults_are_reported_at_once() {
    let workflow = SequentialWorkflow::new("bad name", "A workflow")
        .step(WorkflowStep::new("one", ToolHandle::new("lose")))
        .step(read_resource("docs://{page}"))
        .step(find("three").arg("query", from_step("nothing")));
    let found = problems(workflow);
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn a_workflow_can_be_serialized_and_deserialized() {
    let workflow = SequentialWorkflow::new("w", "A workflow")
        .typed_argument("n", ArgumentKind::Integer, "How many", true)
        .with_instructions("Be brief.")
        .as_task()
        .step(find("find").bind("found").retryable().with_guidance("Looking for {n}"))
        .step(
            read_resources("docs://{page}")
                .with_template_binding("page", field("found", "pages").trim().to_lowercase())
                .for_each_up_to(3, OnError::Skip)
                .when(from_step("found"), not_equals("no")),
        )
        .step(WorkflowStep::handoff("rest", "The rest is yours."))
        .finish();
    let text = serde_json::to_string(&workflow).unwrap();
    assert_eq!(serde_json::from_str::<SequentialWorkflow>(&text).unwrap(), workflow);
    assert!(!text.contains("\"template_bindings\":{}"), "{text}");
    let toml = r#"
        name = "w"
        description = "A workflow"
        [[steps]]
        name = "read"
        resources = ["docs://{page}", { uri = { step = "found", field = "uri" } }]
        template_bindings = { page = { prompt_arg = "page", transform = ["lowercase"] } }
        when = { source = { prompt_arg = "page" }, is = { exists = true } }
    "#;
    let read: SequentialWorkflow = toml::from_str(toml).unwrap();
    let again = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<SequentialWorkflow>(&again).unwrap(), read);
}

#[test]
fn guidance_names_only_arguments() {
    let fault = fault([find("s").with_guidance("Now {known}, then {other}, not { this }.")]);
    says(&fault, &["\"s\"", "{other}", "not declared", "declared: known"]);
}

#[test]
fn the_default_of_a_template_holds_for_what_it_inserts() {
    let maybe = find("maybe").when(prompt_arg("known"), equals("yes")).bind("found");
    let text = || template("About {x}", [("x", from_step("found"))]);
    let sound = SequentialWorkflow::new("w", "A workflow")
        .argument("known", "Known", false)
        .step(maybe.clone())
        .step(find("uses").arg("query", text().or("nothing")));
    assert_eq!(problems(sound), Vec::<String>::new());
    says(&fault([maybe, find("uses").arg("query", text())]), &["may be skipped"]);
}

#[test]
fn faults_suggest_what_was_meant() {
    let lost = WorkflowStep::new("s", ToolHandle::new("fnid"));
    says(&fault([lost]), &["no tool \"fnid\". Did you mean \"find\"?"]);
    let argument = find("s").arg("qeury", constant(1));
    says(&fault([argument]), &["no argument \"qeury\" (it has: query). Did you mean \"query\"?"]);
    says(&fault([read_resource("docs:/static-page")]), &["Did you mean \"docs://static-page\"?"]);
    let prompt = find("s").arg("query", prompt_arg("knwon"));
    says(&fault([prompt]), &["Did you mean \"known\"?"]);
    let bound = [find("a").bind("found"), find("b").arg("query", from_step("fuond"))];
    says(&fault(bound), &["(bound before: found). Did you mean \"found\"?"]);
}

#[test]
fn a_path_that_cannot_be_read_is_a_fault() {
    for (path, words) in [
        ("", "empty"),
        ("a..b", "an empty name"),
        ("a[", "has no ]"),
        ("a[b]", "neither an index nor a quoted key"),
        ("a[*]", "neither an index nor a quoted key"),
        ("a[\"b", "not a quoted key"),
        ("a[0]b", "there must be . or ["),
    ] {
        let uses = find("uses").arg("query", field("found", path));
        says(&fault([find("find").bind("found"), uses]), &["\"uses\"", words]);
    }
}

#[test]
fn what_goes_over_items_must_use_them() {
    let over = |uri: &str| read_resources(uri).named("all").for_each_over(constant(vec!["a"]));
    let sound = over("docs://{page}").with_template_binding("page", item());
    let only = |step| SequentialWorkflow::new("w", "A workflow").step(step);
    assert_eq!(problems(only(sound.clone())), Vec::<String>::new());

    says(
        &fault([over("docs://{page}").with_template_binding("page", constant("x"))]),
        &["an item"],
    );
    says(&fault([sound.clone().for_each_up_to(0, OnError::Stop)]), &["from 1 to 1000"]);
    says(&fault([sound.for_each_up_to(1_001, OnError::Skip)]), &["from 1 to 1000"]);
    let alone = read_resource("docs://{page}").with_template_binding("page", item_field("key"));
    says(&fault([alone.clone()]), &["for_each_over"]);
    says(&fault([alone.for_each()]), &["for_each_over"]);
    says(&fault([find("s").arg("query", item())]), &["the argument \"query\" uses an item"]);
}

#[test]
fn workflows_that_call_each_other_in_a_circle_are_faults() {
    let calling = |name: &str, tool: &str| {
        let step = WorkflowStep::new("call", ToolHandle::new(tool));
        SequentialWorkflow::new(name, "A workflow").step(step).as_tool()
    };
    let built = |workflows: Vec<SequentialWorkflow>| {
        let builder = Registry::builder("w").with(offers);
        let builder = workflows
            .into_iter()
            .fold(builder, |builder, workflow| builder.with(workflow::prompt(workflow)));
        builder.build().err().map(|error| error.problems).unwrap_or_default()
    };

    let found = built(vec![calling("a", "b"), calling("b", "c"), calling("c", "a")]);
    assert_eq!(found.len(), 3, "{found:#?}");
    says(&found[0], &["Workflow \"a\"", "by way of \"b\", \"c\""]);
    let found = built(vec![calling("a", "a")]);
    assert_eq!(found.len(), 1, "{found:#?}");

    // Not in a circle, although two call the same.
    let last = || SequentialWorkflow::new("c", "A workflow").step(find("find")).as_tool();
    let both = calling("a", "b").step(WorkflowStep::new("again", ToolHandle::new("c")));
    assert_eq!(built(vec![both, calling("b", "c"), last()]), Vec::<String>::new());
    // The first workflow calls into a circle, and is not in it.
    let found = built(vec![calling("x", "a"), calling("a", "b"), calling("b", "a")]);
    assert_eq!(found.len(), 2, "{found:#?}");
}
