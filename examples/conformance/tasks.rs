//! Slow tools, which become tasks if the client supports tasks.

use std::time::Duration;

use larder::{Builder, Context, Elicited, Tool, ToolError, protocol::Fault};
use tokio::time::sleep;

use crate::tool;

/// Returns a greeting.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// The name to greet.
    name: String,
}

/// Computes slowly.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SlowCompute {
    /// How long it takes.
    seconds: f64,
    /// A label for the result.
    #[serde(default)]
    label: Option<String>,
}

/// Deletes a file after a confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ConfirmDelete {
    /// The file's name.
    filename: String,
}

/// A confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    /// Whether to go on.
    confirm: bool,
}

/// A name and a confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NameAndConfirm {
    /// The name.
    #[serde(default)]
    name: Option<String>,
    /// Whether to go on.
    #[serde(default)]
    confirm: Option<bool>,
}

/// A name.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    /// The name.
    name: String,
}

async fn slow_compute(ctx: Context, args: SlowCompute) -> Result<String, ToolError> {
    let time = Duration::try_from_secs_f64(args.seconds)
        .map_err(|_| ToolError::new("seconds must not be negative"))?;
    ctx.into_task().await;
    sleep(time).await;
    let label = args.label.unwrap_or_else(|| "a result".into());
    Ok(format!("Computed {label} in {} s.", args.seconds))
}

async fn confirm_delete(ctx: Context, args: ConfirmDelete) -> Result<String, ToolError> {
    ctx.into_task().await;
    let question = format!("Delete {}?", args.filename);
    Ok(match ctx.elicit::<Confirm>("confirm", &question).await? {
        Elicited::Accepted(Confirm { confirm: true }) => format!("Deleted {}.", args.filename),
        _ => format!("Kept {}.", args.filename),
    })
}

async fn multi_input(ctx: Context) -> Result<String, ToolError> {
    ctx.into_task().await;
    let (one, two) = tokio::join!(
        ctx.elicit::<NameAndConfirm>("first", "Who are you?"),
        ctx.elicit::<NameAndConfirm>("second", "And you?"),
    );
    let shown = |answer: Elicited<NameAndConfirm>| match answer {
        Elicited::Accepted(a) => {
            format!("{} ({})", a.name.unwrap_or_default(), a.confirm == Some(true))
        }
        _ => "nobody".into(),
    };
    Ok(format!("{} and {}", shown(one?), shown(two?)))
}

pub(crate) fn tasks(builder: Builder) -> Builder {
    builder
        .tool(Tool::new(|_: Context, args: Greet| async move { format!("Hello, {}!", args.name) }))
        .tool(Tool::new(slow_compute))
        .tool(tool("failing_job", "Fails as a task", |ctx| async move {
            ctx.require_task().await;
            sleep(Duration::from_millis(500)).await;
            Err::<(), _>(ToolError::new("The job failed."))
        }))
        .tool(tool("protocol_error_job", "Ends in a protocol error", |ctx| async move {
            ctx.into_task().await;
            sleep(Duration::from_millis(100)).await;
            ctx.fail::<()>(Fault::Internal("The job broke down.".into())).await;
        }))
        .tool(Tool::new(confirm_delete))
        .tool(tool("multi_input", "Sends two requests at once", multi_input))
        .tool(tool("test_tool_with_task", "Asks first, then runs as a task", |ctx| async move {
            let name = match ctx.elicit::<Named>("user_name", "What is your name?").await? {
                Elicited::Accepted(named) => named.name,
                _ => "stranger".into(),
            };
            ctx.into_task().await;
            sleep(Duration::from_millis(100)).await;
            Ok::<_, ToolError>(format!("Hello, {name}!"))
        }))
}
