//! Prompts of every kind.

use larder::{Builder, Context, Elicited, Prompt, ToolError};
use rmcp::model::{ContentBlock, PromptMessage, ResourceContents, Role};

use crate::{Nothing, PNG};

/// Takes two arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestPromptWithArguments {
    /// The first.
    arg1: String,
    /// The second.
    arg2: String,
}

/// Embeds a resource.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestPromptWithEmbeddedResource {
    /// Which.
    #[serde(rename = "resourceUri")]
    resource_uri: String,
}

/// Some context.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct UserContext {
    /// What the prompt is about.
    context: String,
}

fn user(content: ContentBlock) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}

pub(crate) fn passing() -> Prompt {
    Prompt::new(|_: Context, _: Nothing| async { "Gone already." })
        .name("test_passing_prompt")
        .description("Goes again")
}

pub(crate) fn prompts(builder: Builder) -> Builder {
    let simple =
        Prompt::new(|_: Context, _: Nothing| async { "This is a simple prompt for testing." });
    let with_arguments = Prompt::new(|_: Context, args: TestPromptWithArguments| async move {
        format!("Prompt with arguments: arg1='{}', arg2='{}'", args.arg1, args.arg2)
    });
    let embedded = Prompt::new(|_: Context, args: TestPromptWithEmbeddedResource| async move {
        let text = "Embedded resource content for testing.";
        vec![
            user(ContentBlock::resource(ResourceContents::text(text, args.resource_uri))),
            user(ContentBlock::text("Please look at the resource above.")),
        ]
    });
    let with_image = Prompt::new(|_: Context, _: Nothing| async {
        vec![
            user(ContentBlock::image(PNG, "image/png")),
            user(ContentBlock::text("Please look at the image above.")),
        ]
    });
    let asking = Prompt::new(|ctx: Context, _: Nothing| async move {
        let context = ctx.elicit::<UserContext>("user_context", "What is it about?").await;
        match context.map_err(ToolError::from)? {
            Elicited::Accepted(about) => Ok(format!("Talk about this: {}", about.context)),
            _ => Err(ToolError::new("There is nothing to talk about.")),
        }
    });
    builder
        .prompt(simple.name("test_simple_prompt").description("One message"))
        .prompt(with_arguments.complete("arg1", |_, completing| async move {
            let values = ["test", "testValue1", "testing"].map(str::to_owned);
            values.into_iter().filter(|v| v.starts_with(&completing.value)).collect()
        }))
        .prompt(embedded)
        .prompt(with_image.name("test_prompt_with_image").description("Shows an image"))
        .prompt(asking.name("test_input_required_result_prompt").description("Asks first"))
}
