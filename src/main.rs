//! The `larder` binary. See `larder --help`.

fn main() -> std::process::ExitCode {
    larder::cli::main()
}
