//! The cost of a workflow, as a ratio to a plain prompt handler that reads the
//! same resource and returns the same messages: `cargo bench --bench workflow`.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::Request,
};
use larder::{
    Context, Prompt, Registry, Resource, Template, Variables,
    app::App,
    config::Config,
    workflow::{self, dsl::*},
};
use rmcp::model::{ContentBlock, GetPromptResult, PromptMessage, ResourceContents, Role};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

const ROUNDS: u32 = 20_000;
const REPEATS: usize = 7;

/// Reads the page.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct PlainPrompt;

async fn plain_prompt(ctx: Context, _: PlainPrompt) -> GetPromptResult {
    let read = ctx.read_any("docs://page").await.expect("it exists");
    let bytes = read.bytes().await.expect("a complete body");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let entry = &read.entry;
    let contents = ResourceContents::text(text, entry.uri.as_str());
    GetPromptResult::new(vec![
        PromptMessage::new_text(Role::User, "Read the page"),
        PromptMessage::new_text(Role::Assistant, "I will do this:\n1. read"),
        PromptMessage::new(Role::User, ContentBlock::resource(contents)),
    ])
}

fn registry() -> Registry {
    let workflow_of = |name: &str, step: WorkflowStep| {
        workflow::prompt(SequentialWorkflow::new(name, "Read the page").step(step.named("read")))
    };
    Registry::builder("bench")
        .prompt(Prompt::new(plain_prompt))
        .with(workflow_of("static", read_resource("docs://page")))
        .with(workflow_of(
            "variable",
            read_resource("docs://{page}").with_template_binding("page", constant("page")),
        ))
        .resource(Resource::text("docs://page", "The page."))
        .template(Template::new("other://{v}", "other", |_: Context, v: Variables| async move {
            v["v"].clone()
        }))
        .build()
        .expect("it builds")
}

/// The mean seconds of a request for a prompt.
async fn seconds(router: &Router, prompt: &str) -> f64 {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": prompt },
    })
    .to_string();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        let request = Request::post("/mcp")
            .header("host", "127.0.0.1:8000")
            .header("content-type", "application/json")
            .body(Body::from(body.clone()))
            .expect("it is a request");
        let response = router.clone().oneshot(request).await.expect("it never fails");
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a complete body");
        debug_assert!(
            serde_json::from_slice::<Value>(&bytes).expect("it is JSON")["result"].is_object()
        );
    }
    begin.elapsed().as_secs_f64() / f64::from(ROUNDS)
}

#[tokio::main]
async fn main() {
    let mut config = Config::default();
    config.limits.requests_per_window = 0;
    let router = App::new(registry(), config).expect("it opens").router();
    let mut best = [f64::INFINITY; 3];
    // Alternating, so that other load on the machine affects all of them.
    for _ in 0..REPEATS {
        for (best, prompt) in best.iter_mut().zip(["plain_prompt", "static", "variable"]) {
            *best = best.min(seconds(&router, prompt).await);
        }
    }
    let [plain, fixed, variable] = best;
    println!("a step with a static URI, to a plain prompt:    {:.2}", fixed / plain);
    println!("a step with one variable, to one without:       {:.2}", variable / fixed);
}
