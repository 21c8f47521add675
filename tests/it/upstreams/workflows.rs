//! Workflows whose steps use tools and resources of upstreams.

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::{
    Registry,
    config::{AuthMode, TokenConfig},
    tools::{self, ToolOptions},
    upstream::Settings,
    workflow::{self, dsl::*},
};
use serde_json::{Value, json};

use super::{FOLDER, lines, odd, package, with_upstreams};
use crate::support::{
    Modern, Server, TextFile,
    process::{Process, larder, refused, run},
    sha256,
};

/// A server in front of these with a workflow.
async fn running(upstreams: Vec<Settings>, workflow: SequentialWorkflow) -> (Server, Modern) {
    let builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
    let registry = with_upstreams(builder.with(workflow::prompt(workflow)), upstreams);
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    (server, client)
}

fn workflow() -> SequentialWorkflow {
    SequentialWorkflow::new("w", "Do it").argument("a", "Anything", false)
}

fn call(tool: &str) -> WorkflowStep {
    WorkflowStep::new("call", ToolHandle::new(tool))
}

/// The result of the workflow's prompt.
async fn get(client: &Modern, arguments: Value) -> Value {
    client.send("prompts/get", json!({ "name": "w", "arguments": arguments })).await.result()
}

fn outcome(result: &Value) -> &Value {
    &result["_meta"]["larder/workflow"]
}

/// Why the run has failed.
fn reason(result: &Value) -> &str {
    outcome(result)["reason"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn texts(result: &Value) -> String {
    let messages = result["messages"].as_array().unwrap().iter();
    let texts = messages.filter_map(|message| {
        let content = &message["content"];
        content["text"].as_str().or(content["resource"]["text"].as_str())
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The server that answers with chosen bytes.
fn any() -> Settings {
    let script = format!("{FOLDER}/any.mjs");
    Settings::new("any", vec!["node".to_owned(), script])
}

/// The argument with which `any` returns this result.
fn returning(result: &Value) -> Value {
    let answer = json!({ "jsonrpc": "2.0", "id": "ID", "result": result }).to_string();
    json!(BASE64_STANDARD.encode(answer.replace("\"ID\"", "$ID")))
}

#[tokio::test]
async fn a_step_uses_a_tool_and_a_static_resource_of_an_upstream() {
    for (upstreams, prefix) in [
        (vec![odd("one", &[])], ["", ""]),
        (vec![odd("one", &[]), odd("two", &[])], ["two__", "two+"]),
    ] {
        let [tool, scheme] = prefix;
        let steps = workflow()
            .step(call(&format!("{tool}echo")).arg("v", prompt_arg("a")).bind("said"))
            .step(read_resource(format!("{scheme}odd://several")).named("read").bind("several"))
            .step(
                call(&format!("{tool}echo"))
                    .named("again")
                    .arg("of", field("said", "v"))
                    .arg("first", field("several", "[0]")),
            );
        let (_server, client) = running(upstreams, steps).await;
        let result = get(&client, json!({ "a": "{{x}} {a}" })).await;
        assert_eq!(outcome(&result)["outcome"], "completed", "{result}");
        let texts = texts(&result);
        let again = json!({ "first": "a", "of": "{{x}} {a}" });
        assert!(texts.contains(&format!("Result of {tool}echo:\n{again}")), "{texts}");
    }
}

#[tokio::test]
async fn a_name_that_no_upstream_has_fails_its_step_with_near_names() {
    for (upstreams, prefix) in
        [(vec![odd("one", &[])], ["", ""]), (vec![odd("one", &[]), any()], ["one__", "one+"])]
    {
        let [tool, scheme] = prefix;
        let lost = workflow().step(call(&format!("{tool}ecko")).retryable());
        let (_server, client) = running(upstreams.clone(), lost).await;
        let result = get(&client, json!({})).await;
        assert_eq!(outcome(&result)["step"], "call", "{result}");
        let said = reason(&result);
        let near = format!("There is no tool \"{tool}ecko\". Did you mean \"{tool}echo\"");
        assert!(said.contains(&near), "{said}");

        let lost = workflow().step(read_resource(format!("{scheme}odd://sevral")).named("read"));
        let (_server, client) = running(upstreams, lost).await;
        let result = get(&client, json!({})).await;
        assert_eq!(outcome(&result)["step"], "read", "{result}");
        let near = format!("Did you mean \"{scheme}odd://several\"?");
        assert!(reason(&result).contains(&near), "{result}");
    }
}

#[tokio::test]
async fn arguments_are_made_to_fit_the_schema_of_the_upstream_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let record_flag = format!("--record={}", record.display());
    let many = || vec![odd("many", &["--tools=many", "--topic=x", &record_flag])];
    let archive = |source| workflow().step(call("archive_7").arg("fill", source));

    let (_server, client) = running(many(), archive(prompt_arg("a"))).await;
    let fits = get(&client, json!({ "a": "3" })).await;
    assert!(texts(&fits).contains("archive_7 xxx"), "{fits}");

    let calls = || lines(&record).iter().filter(|line| line.contains("tools/call")).count();
    let before = calls();
    let result = get(&client, json!({ "a": "many" })).await;
    let said = reason(&result);
    assert!(said.contains("do not fit the tool archive_7") && said.contains("fill"), "{said}");
    assert_eq!(calls(), before, "the upstream was not called");
}

#[tokio::test]
async fn results_of_upstreams_are_reached_into_whatever_their_size() {
    let page = |size: usize| {
        let items: Vec<_> = (0..size).map(|id| json!({ "id": format!("n{id}") })).collect();
        json!({ "items": items, "next.page": { "größe": size } })
    };
    for size in [1, 20_000] {
        let page = page(size);
        let text = json!([{ "type": "text", "text": page.to_string() }]);
        for answer in [
            json!({ "content": text }),
            json!({ "content": text, "structuredContent": page }),
            json!({ "content": text, "structuredContent": { "result": page.to_string() } }),
        ] {
            let bytes = json!({ "say_back": "x" });
            let echoed = json!({ "content": [{ "type": "text", "text": bytes.to_string() }] });
            let steps = workflow()
                .step(call("say").arg("bytes", constant(returning(&answer))).bind("page"))
                .step(
                    call("say")
                        .named("uses")
                        .arg("bytes", constant(returning(&echoed)))
                        .arg("last", field("page", "items[-1].id"))
                        .arg("size", field("page", r#"["next.page"].größe"#)),
                );
            let (_server, client) = running(vec![any()], steps).await;
            let result = get(&client, json!({})).await;
            assert_eq!(outcome(&result)["outcome"], "completed", "{size}: {}", outcome(&result));
            let used = texts(&result);
            assert!(
                used.contains(&format!("\"last\":\"n{}\",\"size\":{size}", size - 1)),
                "{size}"
            );
        }
    }
}

#[tokio::test]
async fn a_value_of_an_upstream_is_never_expanded() {
    let hostile = json!({ "v": "{a} {{larder://r/1}} ${a} {v}" });
    let steps =
        workflow().step(call("echo").arg("v", constant(hostile["v"].clone())).bind("first")).step(
            call("echo")
                .named("again")
                .arg("v", template("{v}", [("v", field("first", "v"))]))
                .with_guidance("Of {a}."),
        );
    let (_server, client) = running(vec![odd("odd", &[])], steps).await;
    let result = get(&client, json!({ "a": "{v} {a}" })).await;
    let texts = texts(&result);
    assert_eq!(texts.matches(&format!("Result of echo:\n{hostile}")).count(), 2, "{texts}");
    assert!(texts.contains("Of {v} {a}."), "{texts}");
}

#[tokio::test]
async fn arguments_that_go_into_uris_are_completed_from_resources_of_upstreams() {
    let of = |uri: &str, source| {
        read_resource(uri).named(uri.to_owned()).with_template_binding("resourceId", source)
    };
    let steps = SequentialWorkflow::new("w", "Do it")
        .argument("whole", "A URI", false)
        .argument("id", "A number", false)
        .argument("document", "A document", false)
        .argument("other", "No URI", false)
        .step(WorkflowStep::new("read", ResourceHandle::from_source(prompt_arg("whole"))))
        .step(of("demo://resource/dynamic/text/{resourceId}", prompt_arg("id")))
        .step(of("demo://resource/static/document/{resourceId}", prompt_arg("document")))
        .step(call("echo").arg("message", prompt_arg("other")));
    let (_server, client) = running(vec![package("everything", &[])], steps).await;

    let completed = async |argument: &str, value: &str| {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "w" },
            "argument": { "name": argument, "value": value },
        });
        client.send("completion/complete", params).await.result()["completion"]["values"].take()
    };
    let listed = client.list("resources/list", "resources").await;
    let mut documents: Vec<_> = listed
        .iter()
        .filter_map(|resource| {
            resource["uri"].as_str()?.strip_prefix("demo://resource/static/document/")
        })
        .collect();
    documents.sort_unstable();
    assert!(documents.len() > 2, "{listed:?}");

    let whole: Vec<_> =
        documents.iter().map(|name| format!("demo://resource/static/document/{name}")).collect();
    assert_eq!(completed("whole", "demo://resource/static/").await, json!(whole));
    assert_eq!(completed("whole", "demo://none").await, json!([]));
    assert_eq!(completed("id", "4").await, json!(["4"]));
    assert_eq!(completed("document", &documents[0][..1]).await[0], documents[0]);
    assert_eq!(completed("other", "").await, json!([]));
}

/// A configuration with upstreams of these names and a step.
fn configured(upstreams: &[&str], step: &str) -> TextFile {
    let mut config = String::new();
    for name in upstreams {
        let command = json!(["node", format!("{FOLDER}/odd.mjs")]);
        config += &format!("[[upstreams]]\nname = \"{name}\"\ncommand = {command}\n");
    }
    config += "[[workflows]]\nname = \"w\"\ndescription = \"Do it\"\n[[workflows.steps]]\n";
    config += &format!("name = \"step one\"\n{step}\n");
    TextFile::new(&config)
}

#[tokio::test]
async fn a_configured_workflow_starts_with_names_that_an_upstream_may_have() {
    for (upstreams, step, words) in [
        (&["crm"][..], "tool = \"echo\"", "Result of echo"),
        (&["crm", "erp"], "tool = \"erp__echo\"", "Result of erp__echo"),
        (&["crm", "erp"], "resources = [\"crm+odd://several\"]", "a"),
        (&["crm"], "tool = \"echoo\"", "Did you mean \"echo\""),
    ] {
        let file = configured(upstreams, step);
        let checked = run(larder(&["config", "check", "--config", file.path()])).await;
        assert_eq!((checked.code, &*checked.stderr), (Some(0), ""), "{checked:?}");
        let process = Process::start(larder(&["serve", "--config", file.path()])).await;
        let result = get(&Modern::at(&process.url), json!({})).await;
        assert!(texts(&result).contains(words), "{result}");
    }
}

#[tokio::test]
async fn a_name_that_no_upstream_can_have_is_refused_with_file_and_line() {
    for (step, words) in [
        ("tool = \"erq__echo\"", "there is no tool \"erq__echo\""),
        ("tool = \"list_resource\"", "Did you mean \"list_resources\""),
        ("resources = [\"other://x\"]", "there is no resource \"other://x\""),
    ] {
        let file = configured(&["crm", "erp"], step);
        for command in [&["config", "check", "--config"][..], &["serve", "--config"]] {
            let arguments: Vec<_> = command.iter().copied().chain([file.path()]).collect();
            let (code, said) = refused(&arguments, &[]).await;
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains(words) && said.contains("step \"step one\""), "{said}");
            assert!(said.contains(&format!("{}:", file.path())), "{said}");
        }
    }
}

#[tokio::test]
async fn names_are_checked_by_what_an_upstream_has_listed_last() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let environment = ("LARDER_TOOLS__CATALOGUE_CACHE", cache.to_str().unwrap());
    let check = async |step: &str| {
        let file = configured(&["crm"], step);
        let mut command = larder(&["config", "check", "--config", file.path()]);
        command.envs([environment]);
        run(command).await
    };
    let wrong = "tool = \"ecko\"";
    assert_eq!(check(wrong).await.stderr, "");

    let file = configured(&["crm"], "tool = \"echo\"");
    let mut command = larder(&["serve", "--config", file.path()]);
    command.envs([environment]);
    let process = Process::start(command).await;
    assert!(texts(&get(&Modern::at(&process.url), json!({})).await).contains("Result of echo"));
    assert_eq!(process.stop("-TERM").await.code, Some(0));

    // The last lists may be out of date, so they do not keep a server from starting.
    for (step, near) in [
        (wrong, "did not have the tool \"ecko\" when it was listed last. Did you mean \"echo\""),
        ("resources = [\"odd://sevral\"]", "Did you mean \"odd://several\""),
    ] {
        let checked = check(step).await;
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert!(checked.stderr.contains("warning") && checked.stderr.contains(near), "{checked:?}");
        assert!(checked.stderr.contains("step \"step one\""), "{checked:?}");
    }
    assert_eq!(check("tool = \"echo\"").await.stderr, "");
    assert_eq!(check("resources = [\"odd://several\"]").await.stderr, "");

    let file = configured(&["crm"], wrong);
    let mut command = larder(&["serve", "--config", file.path()]);
    command.envs([environment]);
    let process = Process::start(command).await;
    assert!(process.stderr().contains("did not have the tool"), "{}", process.stderr());
}

/// The token `all` with these scopes, and the token `few` without any.
fn all_and_few(scopes: &[&str]) -> [TokenConfig; 2] {
    ["all", "few"].map(|name| TokenConfig {
        name: name.into(),
        sha256: sha256(name),
        scopes: scopes.iter().filter(|_| name == "all").map(|scope| (*scope).into()).collect(),
        groups: Vec::new(),
        expires: None,
    })
}

#[tokio::test]
async fn scopes_hold_for_completions_and_steps_of_upstreams() {
    let steps = SequentialWorkflow::new("w", "Do it")
        .argument("uri", "A URI", false)
        .step(WorkflowStep::new("read", ResourceHandle::from_source(prompt_arg("uri"))))
        .step(call("echo").arg("message", constant("x")));
    let tokens = all_and_few(&["docs", "echo"]);
    let server = Server::configured(|setup| {
        let auth = &mut setup.config.auth;
        auth.mode = AuthMode::Static;
        auth.tokens = tokens.into();
        auth.scopes.insert("demo://resource/static/*".into(), vec!["docs".into()]);
        auth.scopes.insert("echo".into(), vec!["echo".into()]);
        setup.offers = Box::new(|_, _| {
            let builder = Registry::builder("gateway").with(workflow::prompt(steps));
            with_upstreams(builder, vec![package("everything", &[])])
        });
    })
    .await;

    let completed = async |client: &Modern| {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "w" },
            "argument": { "name": "uri", "value": "demo://resource/static/" },
        });
        let mut result = client.send("completion/complete", params).await.result();
        result["completion"]["values"].as_array_mut().unwrap().split_off(0)
    };
    let (all, few) = (Modern::bearing(&server, "all"), Modern::bearing(&server, "few"));
    let uris = completed(&all).await;
    assert!(!uris.is_empty());
    assert_eq!(completed(&few).await, Vec::<Value>::new());

    let result = get(&all, json!({ "uri": uris[0] })).await;
    assert_eq!(outcome(&result)["outcome"], "completed", "{result}");
    let result = get(&few, json!({ "uri": uris[0] })).await;
    assert_eq!(outcome(&result)["step"], "read", "{result}");
    assert!(reason(&result).contains("scope"), "{result}");
    let result = get(&few, json!({})).await;
    assert_eq!(outcome(&result)["step"], "call", "{result}");
    assert!(reason(&result).contains("scope"), "{result}");
}

#[tokio::test]
async fn scopes_hold_for_each_use_of_an_upstreams_items() {
    let tokens = all_and_few(&["own"]);
    let server = Server::configured(|setup| {
        let auth = &mut setup.config.auth;
        auth.mode = AuthMode::Static;
        auth.tokens = tokens.into();
        for item in ["completable-prompt", "demo://*", "get-sum"] {
            auth.scopes.insert(item.into(), vec!["own".into()]);
        }
        setup.offers = Box::new(|_, _| {
            let builder = Registry::builder("gateway");
            let builder = builder.with(tools::reading(ToolOptions::default()));
            with_upstreams(builder, vec![package("everything", &[])])
        });
    })
    .await;
    let (all, few) = (Modern::bearing(&server, "all"), Modern::bearing(&server, "few"));

    let uri = all.list("resources/list", "resources").await[0]["uri"].clone();
    let completing = |reference: Value, name: &str| json!({ "ref": reference, "argument": { "name": name, "value": "E" } });
    let template = "demo://resource/dynamic/text/{resourceId}";
    for (method, params) in [
        (
            "prompts/get",
            json!({ "name": "completable-prompt", "arguments": { "department": "x", "name": "y" } }),
        ),
        (
            "completion/complete",
            completing(json!({ "type": "ref/prompt", "name": "completable-prompt" }), "department"),
        ),
        (
            "completion/complete",
            completing(json!({ "type": "ref/resource", "uri": template }), "resourceId"),
        ),
        ("resources/read", json!({ "uri": uri })),
        ("tools/call", json!({ "name": "get-sum", "arguments": { "a": 1, "b": 2 } })),
    ] {
        assert_eq!(all.send(method, params.clone()).await.status, 200, "{method} {params}");
        assert_eq!(few.send(method, params.clone()).await.status, 403, "{method} {params}");
    }
    for (method, member) in
        [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")]
    {
        let has_own = |items: Vec<Value>| json!(items).to_string().contains("demo://");
        assert!(has_own(all.list(method, member).await), "{method}");
        assert!(!has_own(few.list(method, member).await), "{method}");
    }
    let names = |tools: Vec<Value>| tools.iter().any(|tool| tool["name"] == "get-sum");
    assert!(names(all.list("tools/list", "tools").await));
    assert!(!names(few.list("tools/list", "tools").await));

    // A tool that reads a resource, and an argument that refers to it, need its scopes, too.
    let refused = few.call("read_resource", json!({ "uri": uri })).await.failure();
    assert!(refused.contains("scope") || refused.contains("not found"), "{refused}");
    let reference = json!({ "message": format!("{{{{{}}}}}", uri.as_str().unwrap()) });
    let echoed = all.call("echo", reference.clone()).await.text();
    assert!(echoed.len() > 100 && !echoed.contains("{{"), "{echoed}");
    assert!(few.call("echo", reference).await.failure().contains("scope"));
}
