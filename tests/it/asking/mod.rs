//! Handlers that ask the client: by rounds in the modern era, on the call's stream in sessions.

mod rounds;
mod sessions;

use std::sync::Arc;

use larder::{Builder, Elicited, Resource, ResourceError, Sampling, Tool, ToolError, within_roots};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::support::{Ctx, ToolControl, ToolState};

/// No arguments.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct AskNothing {}

/// One argument.
#[derive(Deserialize, JsonSchema)]
struct AskAbout {
    /// The topic.
    topic: String,
}

/// Opens a file if it is within the client's roots.
#[derive(Deserialize, JsonSchema)]
struct AskFile {
    /// Its URI.
    uri: String,
}

/// A name.
#[derive(Deserialize, JsonSchema)]
struct Named {
    /// The name.
    name: String,
}

/// The name that the user gives.
async fn ask_for_name(ctx: &Ctx, key: &str) -> Result<String, ToolError> {
    Ok(match ctx.elicit::<Named>(key, "What is your name?").await? {
        Elicited::Accepted(named) => named.name,
        Elicited::Declined => "nobody".into(),
        Elicited::Cancelled => "nobody at all".into(),
    })
}

/// A greeting with the name that the user gives.
pub(crate) async fn name(ctx: &Ctx, key: &str) -> Result<String, ToolError> {
    Ok(match ctx.elicit::<Named>(key, "What is your name?").await? {
        Elicited::Accepted(named) => format!("Hello, {}!", named.name),
        Elicited::Declined => "They would not say.".into(),
        Elicited::Cancelled => "They closed it.".into(),
    })
}

fn tool<F, Fut>(name: &'static str, run: F) -> Tool<Arc<ToolControl>>
where
    F: Fn(Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    Tool::new(move |ctx: Ctx, _: AskNothing| run(ctx)).name(name)
}

async fn three(ctx: Ctx) -> Result<String, ToolError> {
    let sampling = Sampling::new("2 + 2?", 50);
    let (name, said, roots) = tokio::join!(
        ask_for_name(&ctx, "name"),
        ctx.sample("model", &sampling),
        ctx.roots("roots"),
    );
    Ok(format!("{}, {}, {} roots", name?, said?.model, roots?.len()))
}

pub(crate) fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    let about = Tool::new(|ctx: Ctx, args: AskAbout| async move {
        let name = ask_for_name(&ctx, "name").await?;
        Ok::<_, ToolError>(format!("{name} on {}", args.topic))
    });
    let file = Tool::new(|ctx: Ctx, AskFile { uri }: AskFile| async move {
        let roots = ctx.roots("roots").await?;
        if !within_roots(&roots, &uri) {
            return Err(ToolError::new(format!("{uri} lies outside of your roots.")));
        }
        Ok(format!("opened {uri}"))
    });
    let page = Resource::new("docs://asks", |ctx: Ctx| async move {
        name(&ctx, "name").await.map_err(|e| ResourceError::Failed(e.message().to_owned()))
    });
    builder
        .tool(tool("ask_name", |ctx| async move { name(&ctx, "name").await }))
        .tool(about)
        .tool(file)
        .tool(tool("ask_visit", |ctx| async move {
            let visited = ctx.elicit_url("visit", "Connect.", "https://example.com/connect");
            Ok(format!("visited: {}", visited.await? == Elicited::Accepted(())))
        }))
        .tool(tool("ask_model", |ctx| async move {
            let sampling = Sampling::new("2 + 2?", 50).system_prompt("Be brief.");
            let said = ctx.sample("model", &sampling).await?;
            Ok(format!("{} said {}", said.model, said.text()))
        }))
        .tool(tool("ask_roots", |ctx| async move {
            let roots = ctx.roots("roots").await?;
            Ok(roots.into_iter().map(|r| r.uri).collect::<Vec<_>>().join(" "))
        }))
        .tool(tool("ask_three", three))
        .tool(tool("ask_twice", |ctx| async move {
            ctx.state().record("runs", ToolState::Started);
            let first = ask_for_name(&ctx, "first").await?;
            ctx.state().record("runs", ToolState::Step(1));
            let second = ask_for_name(&ctx, "second").await?;
            Ok(format!("{first} and {second}"))
        }))
        .tool(tool("ask_between_steps", |ctx| async move {
            let player = ctx.state().enter("asks");
            let named = name(&ctx, "name").await;
            player.finish();
            named
        }))
        .resource(page)
}
