//! The `larder` binary. See `larder --help`.

/// A call makes some dozens of small allocations, and each takes a third of the
/// instructions that it does with glibc's. A library leaves this to whoever uses it.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    larder::cli::main()
}
