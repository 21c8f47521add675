//! What is said to a connection that is one too many.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{
    era::{Era, failure},
    protocol::Fault,
};

/// How long this may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// More of a request is not waited for.
const MOST: u64 = 64 * 1024;

/// Says, without waiting for the request, that there are too many connections.
pub(super) async fn tell<S: AsyncRead + AsyncWrite>(stream: S, most: usize) {
    let fault = Fault::TooMany(format!(
        "This server has {most} connections, the most it takes (limits.connections). Try again shortly, or use one connection for many requests."
    ));
    let body = failure(None, &fault, Era::Legacy);
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let told = async {
        let (read, mut write) = tokio::io::split(stream);
        write.write_all(head.as_bytes()).await?;
        write.write_all(&body).await?;
        write.shutdown().await?;
        // To close while something is unread would take back what was said.
        tokio::io::copy(&mut read.take(MOST), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(PATIENCE, told).await;
}
