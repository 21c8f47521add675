//! Settings in code: the defaults of this server, which a configuration file, the environment and
//! flags override one by one.

use larder::{config::Config, prelude::*};

/// Counts to three, and says so at each step.
#[tool]
async fn count(ctx: &Context) -> &'static str {
    for step in 1..=3 {
        ctx.progress(step).of(3).await;
    }
    "three"
}

fn main() -> ExitCode {
    let mut config = Config::default();
    "debug".clone_into(&mut config.log.level);
    // Answers with one JSON message, and never with a stream.
    config.server.json_response = true;
    config.store.default_ttl = 60;

    larder::server("settings").tool(count).writing().config(config).run()
}
