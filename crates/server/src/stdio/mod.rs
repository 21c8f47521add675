//! The protocol over standard input and output: one JSON-RPC message per line (2026-07-28,
//! transports: stdio), in both eras. A process has one session.

mod connection;
mod line;

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use larder_protocol::Fault;
use tokio::{
    io::{AsyncBufRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use self::{
    connection::{STOP_MARGIN, StdioConnection},
    line::{InputLine, read_line},
};
use crate::{
    dispatch::Dispatcher,
    era::{Era, Legacy, Modern},
};

/// The number of encoded messages that may wait for a slow reader of the output.
const OUTPUT_CAPACITY: usize = 64;

/// The server for one client on standard input and output.
#[derive(Clone)]
pub struct Stdio {
    /// Answers the calls.
    pub dispatcher: Arc<Dispatcher>,
    /// The eras of 2025.
    pub legacy: Arc<Legacy>,
    /// The era of 2026-07-28.
    pub modern: Modern,
    /// Fires when the server stops.
    pub closing: CancellationToken,

    /// The maximum size of a message, in bytes.
    pub message_bytes: usize,
    /// The maximum number of JSON values in a message, at all depths.
    pub message_values: usize,
    /// How long running calls may continue after the end of the input, or after a stop.
    pub grace: Duration,
}

impl Stdio {
    /// Serves until the input ends or the server stops.
    ///
    /// # Errors
    /// Reading the input or writing the output fails.
    pub async fn serve(
        self,
        mut input: impl AsyncBufRead + Unpin,
        mut output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let (sender, mut messages) = mpsc::channel::<Bytes>(OUTPUT_CAPACITY);
        let mut writer = tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                output.write_all(&message).await?;
                output.write_all(b"\n").await?;
                output.flush().await?;
            }
            Ok::<_, io::Error>(())
        });

        let (closing, max_bytes) = (self.closing.clone(), self.message_bytes);
        let sender_closed = sender.clone();
        let mut connection = StdioConnection::new(self, sender);

        loop {
            let line = tokio::select! {
                () = closing.cancelled() => break,
                // The client closed the output: nobody receives an answer.
                () = sender_closed.closed() => break,
                line = read_line(&mut input, max_bytes) => line?,
            };

            match line {
                InputLine::End => break,
                InputLine::Message(line) if line.trim_ascii().is_empty() => {}
                InputLine::Message(line) => connection.handle(line).await,
                InputLine::TooLong => {
                    let message = format!(
                        "The message is longer than {max_bytes} bytes (limits.body_bytes)."
                    );
                    connection.send_error(None, &Fault::InvalidRequest(message), Era::Legacy).await;
                }
            }
        }

        drop(sender_closed);
        connection.close().await;
        drop(connection);

        // A client that reads nothing must not hold up the end.
        match tokio::time::timeout(STOP_MARGIN, &mut writer).await {
            Ok(written) => written.map_err(io::Error::other)?,
            Err(_) => {
                writer.abort();
                Ok(())
            }
        }
    }
}
