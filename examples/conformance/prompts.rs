//! Prompts with all kinds of content.

use larder::{Builder, Context, Elicited, Prompt, ToolError};
use rmcp::model::{ContentBlock, PromptMessage, ResourceContents, Role};

use crate::{Nothing, PNG};

/// Takes two arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestPromptWithArguments {
    /// The first argument.
    arg1: String,
    /// The second argument.
    arg2: String,
}

/// Embeds a resource.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestPromptWithEmbeddedResource {
    /// The resource's URI.
    #[serde(rename = "resourceUri")]
    resource_uri: String,
}

/// The context of a prompt.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct UserContext {
    /// What the prompt is about.
    context: String,
}

fn user(content: ContentBlock) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}

pub(crate) fn temporary() -> Prompt {
    Prompt::new(|_: Context, _: Nothing| async { "Temporary." })
        .name("test_passing_prompt")
        .description("Temporary")
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
        .prompt(with_arguments.complete("arg1", |_, input| async move {
            let values = ["test", "testValue1", "testing"].map(str::to_owned);
            values.into_iter().filter(|v| v.starts_with(&input.value)).collect()
        }))
        .prompt(embedded)
        .prompt(with_image.name("test_prompt_with_image").description("Shows an image"))
        .prompt(asking.name("test_input_required_result_prompt").description("Asks first"))
}
