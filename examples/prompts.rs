//! Prompts: a text, a text with an argument, and a message in which tags separate
//! instructions and data.

use larder::{Context, Prompt, Registry, user};
use rmcp::model::PromptMessage;

/// Greets the user.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SimpleStringPrompt;

/// Greets the user by name.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SimplePromptInput {
    /// The user's name.
    username: String,
}

/// Lists the main ideas of a text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SimpleExamplePrompt {
    /// The text.
    user_text: String,
}

/// The text is inserted once and not interpreted: braces in it have no meaning.
async fn simple_example_prompt(_: Context, args: SimpleExamplePrompt) -> PromptMessage {
    user(format!(
        "<instruction>\nCreate a list of 3 main ideas from the following text:\n</instruction>\n\n\
        <text>\n{}\n</text>",
        args.user_text
    ))
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        let hello =
            Prompt::new(|_: Context, _: SimpleStringPrompt| async { "Say hello to the user." });
        let hello_by_name = Prompt::new(|_: Context, args: SimplePromptInput| async move {
            format!("Say hello to the user using their name: {}", args.username)
        });
        Registry::builder("simple-prompt-server")
            .prompt(hello)
            .prompt(hello_by_name)
            .prompt(Prompt::new(simple_example_prompt))
            .build()
    })
}
