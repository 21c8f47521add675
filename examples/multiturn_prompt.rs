//! A prompt with two messages: the user's, and the start of the assistant's
//! answer, which sets its format.

use larder::{Context, Prompt, Registry, assistant, user};
use rmcp::model::PromptMessage;

/// Lists the main ideas of a text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct MultiturnPrompt {
    /// The number of ideas.
    #[schemars(range(min = 1, max = 100))]
    main_idea_count: u32,
    /// The text.
    user_text: String,
}

async fn multiturn_prompt(_: Context, args: MultiturnPrompt) -> Vec<PromptMessage> {
    let MultiturnPrompt { main_idea_count: count, user_text } = args;
    vec![
        user(format!(
            "<instruction>\nCreate a list of {count} main ideas from the following text:\n\
            </instruction>\n\n<text>\n{user_text}\n</text>"
        )),
        assistant(format!("Here are {count} main ideas from the text:\n1.")),
    ]
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("multiturn-prompt-server").prompt(Prompt::new(multiturn_prompt)).build()
    })
}
