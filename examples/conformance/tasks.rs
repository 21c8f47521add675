//! Tools that take their time, as tasks where the client can follow one.

use std::time::Duration;

use larder::{Builder, Context, Elicited, Tool, ToolError, protocol::Fault};
use tokio::time::sleep;

use crate::tool;

/// Says hello.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// To whom.
    name: String,
}

/// Computes slowly.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SlowCompute {
    /// For how long.
    seconds: f64,
    /// What to call it.
    #[serde(default)]
    label: Option<String>,
}

/// Deletes a file, once somebody has said yes.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ConfirmDelete {
    /// Which.
    filename: String,
}

/// A yes or a no.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    /// Yes?
    confirm: bool,
}

/// Somebody who says yes or no.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NameAndConfirm {
    /// The name.
    #[serde(default)]
    name: Option<String>,
    /// Yes?
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
    let label = args.label.unwrap_or_else(|| "nothing in particular".into());
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
        .tool(tool("failing_job", "Fails, as a task only", |ctx| async move {
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
        .tool(tool("multi_input", "Asks two things at once", multi_input))
        .tool(tool("test_tool_with_task", "Asks first, then takes its time", |ctx| async move {
            let name = match ctx.elicit::<Named>("user_name", "What is your name?").await? {
                Elicited::Accepted(named) => named.name,
                _ => "whoever you are".into(),
            };
            ctx.into_task().await;
            sleep(Duration::from_millis(100)).await;
            Ok::<_, ToolError>(format!("Hello, {name}!"))
        }))
}
