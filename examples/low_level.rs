//! A server with name, version and capabilities, but without items. Larder
//! declares only capabilities for which the server has items or handlers.

use larder::Registry;
use rmcp::model::JsonObject;

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("low-level-server")
            .version("0.1.0")
            .fixed_lists()
            .experimental("example.com/nothing", JsonObject::new())
            .build()
    })
}
