//! Logs, on standard error only: standard output may carry the protocol.

use tracing_subscriber::EnvFilter;

/// Begins to log what `RUST_LOG` asks for; warnings by default. A second call
/// changes nothing.
pub fn init() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    // Somebody else's subscriber stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(is_terminal)
        .try_init();
}
