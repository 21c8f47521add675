//! A prompt with two messages: the user's, and the start of the assistant's
//! answer, which sets its format.

use larder::prelude::*;

/// Lists the main ideas of a text.
#[prompt]
fn multiturn_prompt(
    /** The number of ideas. */
    #[arg(range = 1..=100)]
    main_idea_count: u32,
    /** The text. */
    user_text: String,
) -> [Message; 2] {
    [
        user(format!(
            "<instruction>\nCreate a list of {main_idea_count} main ideas from the following text:\n\
            </instruction>\n\n<text>\n{user_text}\n</text>"
        )),
        assistant(format!("Here are {main_idea_count} main ideas from the text:\n1.")),
    ]
}

fn main() -> ExitCode {
    larder::server("multiturn-prompt-server").prompt(multiturn_prompt).run()
}
