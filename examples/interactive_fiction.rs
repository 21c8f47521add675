//! A workflow that gives a player a hint: it looks up the current game, reads
//! that game's walkthrough, and gives both to the model.

use larder::{
    prelude::*,
    workflow::{self, dsl::*},
};

/// Returns the current game and the player's progress.
#[tool]
fn get_my_progress(
    /** The game. Default: the current one. */
    game_id: Option<String>,
) -> String {
    let game = game_id.unwrap_or_else(|| "zork1".into());
    json!({ "game_id": game, "room": "West of House", "score": 0, "moves": 3 }).to_string()
}

/// How a game is won
#[resource("if://walkthrough/{game_id}", name = "Walkthrough", mime_type = "text/plain")]
fn walkthrough(game_id: String) -> Result<&'static str, ResourceError> {
    match game_id.as_str() {
        "zork1" => Ok(
            "Open the small mailbox. Read the leaflet. Go around the house: a window at its back is ajar.",
        ),
        "planetfall" => Ok("Scrub the deck until the ship explodes. Then run for the escape pod."),
        _ => Err(ResourceError::NotFound),
    }
}

fn get_hint() -> SequentialWorkflow {
    SequentialWorkflow::new("get_hint", "Get a hint for the current game")
        .argument("game_id", "The game. Default: the current one", false)
        .with_instructions("Give one small hint. Do not tell the solution.")
        .step(
            WorkflowStep::new("get_progress", ToolHandle::new("get_my_progress"))
                .with_guidance("I'll check your current game progress first...")
                .arg("game_id", prompt_arg("game_id"))
                .bind("user_progress"),
        )
        .step(
            WorkflowStep::new(
                "read_walkthrough",
                ResourceHandle::new("if://walkthrough/{game_id}"),
            )
            .with_guidance("Now I'll fetch the walkthrough for your current game...")
            .with_template_binding("game_id", field("user_progress", "game_id"))
            .bind("walkthrough"),
        )
        .finish()
}

fn main() -> ExitCode {
    larder::server("interactive-fiction")
        .with(workflow::prompt(get_hint()))
        .tool(get_my_progress)
        .resource(walkthrough)
        .run()
}
