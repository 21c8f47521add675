//! Shared by the benchmark and its peers.

use std::{fmt::Write, io, sync::LazyLock};

use tokio::net::TcpListener;

pub mod foreign;
pub mod issuer;
pub mod load;
pub mod process;
pub mod report;
pub mod wire;

/// Ten megabytes of log lines, with quotes and characters that are not ASCII, so
/// that escaping does real work.
pub fn large() -> &'static str {
    static LARGE: LazyLock<String> = LazyLock::new(|| {
        let mut text = String::with_capacity(10 << 20);
        let mut n = 0_u64;
        while text.len() < 10 << 20 {
            let ms = (n * 7919) % 1000;
            let _ = writeln!(
                text,
                "2026-11-20T10:{:02}:{:02}Z level=info request=\"GET /items/{n}\" took={ms}ms über",
                (n / 60) % 60,
                n % 60,
            );
            n += 1;
        }
        text
    });
    &LARGE
}

/// Listens on a free port and prints the address, as all peers do.
///
/// # Errors
/// When no port is free.
pub async fn listen(name: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("{name} listening on http://{}/mcp", listener.local_addr()?);
    Ok(listener)
}
