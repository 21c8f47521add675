//! The rights of code, which are those of its caller; and code that is run from a terminal.

use serde_json::{Value, json};

use crate::support::{
    Modern, TextFile,
    process::{Process, larder, run},
    two_callers,
};

/// A server that runs code, for two callers, of which only the first may search.
async fn for_two() -> (Process, Modern, Modern) {
    let callers = two_callers(["all", "few"], "search_resources", "search");
    let config = format!("[code]\nenabled = true\n{callers}");
    let file = TextFile::new(&config);
    let process = Process::start(larder(&["serve", "--config", file.path()])).await;
    let [all, few] = ["all-secret", "few-secret"].map(|t| Modern::at(&process.url).with_token(t));
    (process, all, few)
}

async fn value(client: &Modern, code: &str) -> Value {
    let text = client.call("run_code", json!({ "code": code })).await.text();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{code}: {text}"))
}

#[tokio::test]
async fn code_has_the_scopes_and_the_resources_of_its_caller_alone() {
    let (_process, all, few) = for_two().await;
    all.call("create_resource", json!({ "uri": "x:1", "text": "of all" })).await.text();

    let search = "return await call('search_resources', { query: 'of' }).then(() => 'called', (e) => e.message)";
    assert_eq!(value(&all, search).await, "called");
    let refused = value(&few, search).await;
    assert!(refused.as_str().unwrap().starts_with("search_resources was not called"), "{refused}");

    let open = "return await larder.open('x:1').then((found) => found.size, (e) => e.message)";
    assert_eq!(value(&all, open).await, 6);
    let refused = value(&few, open).await;
    assert!(refused.as_str().unwrap().starts_with("Resource not found"), "{refused}");
}

#[tokio::test]
async fn a_file_is_run_from_the_terminal() {
    let mut command = larder(&["serve"]);
    command.env("LARDER_CODE__ENABLED", "true");
    let process = Process::start(command).await;
    let client = Modern::at(&process.url);
    client.call("create_resource", json!({ "uri": "x:1", "text": "a\nb\n" })).await.text();

    let code = TextFile::new("return (await inputs.given.lines({})).length + 1;");
    let arguments = ["run", code.path(), "--input", "given=x:1", "--server", &process.url];
    let ran = run(larder(&arguments)).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "3\n1 call: 1 done.\n");

    let code = TextFile::new("const one = 1;\nthrow new Error('no');");
    let ran = run(larder(&["run", code.path(), "--server", &process.url])).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("Error: no (line 2, column"), "{ran:?}");
}
