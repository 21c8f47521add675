//! A minimal server: a name and no items. Run it with `--stdio`, as hosts do that
//! start their servers as child processes.

use larder::Registry;

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| Registry::builder("minimal-stdio-server").build())
}
