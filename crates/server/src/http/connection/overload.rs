//! The response to connections over a limit.

use std::time::Duration;

use larder_protocol::Fault;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::connection_count::ConnectionLimit;
use crate::era::{Era, encode_error};

/// How long sending the response may take.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// How much of the request is read before closing, in bytes.
const MAX_DRAINED_BYTES: u64 = 64 * 1024;

/// How long the beginning of the request is waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

/// Sends a 503. It waits for the beginning of the request, because clients take a response
/// before it for an error of the connection.
pub(super) async fn respond<S: AsyncRead + AsyncWrite>(stream: S, limit: ConnectionLimit) {
    let ConnectionLimit { setting, max } = limit;
    let fault = Fault::TooMany(format!(
        "This server has reached its limit of {max} connections ({setting}). Try again shortly, or reuse connections."
    ));

    let body = encode_error(None, &fault, Era::Legacy);
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );

    let sent = async {
        let (mut read, mut write) = tokio::io::split(stream);
        let _ = tokio::time::timeout(REQUEST_TIMEOUT, read.read(&mut [0; 1024])).await;
        write.write_all(head.as_bytes()).await?;
        write.write_all(&body).await?;
        write.shutdown().await?;
        // Closing with unread data would reset the connection and discard the response.
        tokio::io::copy(&mut read.take(MAX_DRAINED_BYTES), &mut tokio::io::sink()).await
    };

    let _ = tokio::time::timeout(SEND_TIMEOUT, sent).await;
}
