//! A server that says everything of itself and offers nothing yet: name,
//! version and capabilities, of which only those are declared that something
//! answers for.

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
