//! Two prompts and a tool: one prompt asks the model to call the tool, the other
//! calls it and starts the answer with the result.

use larder::{prelude::*, random::Random};

/// Returns the sentiment of the user's request. Simulated: the result is random.
#[tool]
fn analyze_sentiment(ctx: &Context<Random>) -> &'static str {
    let moods = ["positive", "negative", "neutral"];
    let digits = ctx.state().id();
    let number = usize::from_str_radix(digits.get(..6).unwrap_or("0"), 16).unwrap_or(0);
    moods[number % moods.len()]
}

/// Asks the model to call the tool.
#[prompt]
fn request_tool_use(
    /** The user's request. */
    user_request: String,
) -> Message {
    user(format!(
        "<user_request>\n{user_request}\n</user_request>\n<tool_instruction>\n\
        Use the analyze_sentiment tool if available to you to get the sentiment of the user's \
        request. Respond in such a way to move the user's sentiment to neutral.\n\
        </tool_instruction>"
    ))
}

/// Calls the tool and starts the answer with its result.
#[prompt]
fn force_tool_use(
    ctx: &Context<Random>,
    /** The user's request. */
    user_request: String,
) -> [Message; 2] {
    // The function of a tool can be called.
    let sentiment = analyze_sentiment::call(ctx);
    [user(user_request), assistant(format!("Your request was {sentiment}, let's "))]
}

fn main() -> ExitCode {
    larder::server("tool-use-prompt-server")
        .state(Random::system())
        .tool(analyze_sentiment)
        .prompt(request_tool_use)
        .prompt(force_tool_use)
        .run()
}
