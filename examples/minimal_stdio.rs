//! A minimal server: a name and no items. Run it with `--stdio`, as hosts do that
//! start their servers as child processes.

fn main() -> std::process::ExitCode {
    larder::server("minimal-stdio-server").run()
}
