//! The least there can be: a server by name that offers nothing. Run with
//! `--stdio`, as a host does that starts its servers itself.

use larder::Registry;

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| Registry::builder("minimal-stdio-server").build())
}
