//! The `larder` binary. See `larder --help`.

/// A call makes some dozens of small allocations; each takes a third of the
/// instructions of glibc's allocator. A library leaves the choice to its user.
#[cfg(feature = "cli")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    larder::cli::main()
}
