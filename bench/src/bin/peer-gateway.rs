//! The `larder` binary, in front of another server.

/// The allocator of the `larder` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    larder::cli::main()
}
