//! Two prompts and a tool: one prompt asks the model to call the tool, the other
//! calls it and starts the answer with the result.

use larder::{Context, Prompt, Registry, Tool, assistant, random::Random, user};
use rmcp::model::PromptMessage;

/// Returns the sentiment of the user's request. Simulated: the result is random.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct AnalyzeSentiment;

/// Asks the model to call the tool.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct RequestToolUse {
    /// The user's request.
    user_request: String,
}

/// Calls the tool and starts the answer with its result.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ForceToolUse {
    /// The user's request.
    user_request: String,
}

async fn analyze_sentiment(ctx: Context<Random>, _: AnalyzeSentiment) -> &'static str {
    let moods = ["positive", "negative", "neutral"];
    let digits = ctx.state().id();
    let number = usize::from_str_radix(digits.get(..6).unwrap_or("0"), 16).unwrap_or(0);
    moods[number % moods.len()]
}

async fn request_tool_use(_: Context<Random>, args: RequestToolUse) -> PromptMessage {
    user(format!(
        "<user_request>\n{}\n</user_request>\n<tool_instruction>\n\
        Use the analyze_sentiment tool if available to you to get the sentiment of the user's \
        request. Respond in such a way to move the user's sentiment to neutral.\n\
        </tool_instruction>",
        args.user_request
    ))
}

async fn force_tool_use(ctx: Context<Random>, args: ForceToolUse) -> Vec<PromptMessage> {
    // A tool's handler is a plain function.
    let sentiment = analyze_sentiment(ctx, AnalyzeSentiment).await;
    vec![user(args.user_request), assistant(format!("Your request was {sentiment}, let's "))]
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("tool-use-prompt-server")
            .state(Random::system())
            .tool(Tool::new(analyze_sentiment))
            .prompt(Prompt::new(request_tool_use))
            .prompt(Prompt::new(force_tool_use))
            .build()
    })
}
