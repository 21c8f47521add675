//! Prompts: a text, a text with an argument, and a message in which tags separate
//! instructions and data.

use larder::prelude::*;

/// Greets the user.
#[prompt]
fn simple_string_prompt() -> &'static str {
    "Say hello to the user."
}

/// Greets the user by name.
#[prompt]
fn simple_prompt_input(
    /** The user's name. */
    username: String,
) -> String {
    format!("Say hello to the user using their name: {username}")
}

/// Lists the main ideas of a text.
#[prompt]
fn simple_example_prompt(
    /** The text. */
    user_text: String,
) -> Message {
    // The text is inserted once and not interpreted: braces in it have no meaning.
    user(format!(
        "<instruction>\nCreate a list of 3 main ideas from the following text:\n</instruction>\n\n\
        <text>\n{user_text}\n</text>"
    ))
}

fn main() -> ExitCode {
    larder::server("simple-prompt-server")
        .prompt(simple_string_prompt)
        .prompt(simple_prompt_input)
        .prompt(simple_example_prompt)
        .run()
}
