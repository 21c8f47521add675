//! A prompt of two turns: the user's, and the beginning of the assistant's
//! answer, which sets its form.

use larder::{Context, Prompt, Registry, assistant, user};
use rmcp::model::PromptMessage;

/// Has a text's main ideas listed, as many as asked for.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct MultiturnPrompt {
    /// How many ideas.
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
