//! A server with name, version and capabilities, but without items. Larder
//! declares only capabilities for which the server has items or handlers.

use larder::{model::JsonObject, prelude::*};

fn main() -> ExitCode {
    larder::server("low-level-server")
        .version("0.1.0")
        .with(|server| server.fixed_lists().experimental("example.com/nothing", JsonObject::new()))
        .run()
}
