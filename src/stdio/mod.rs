//! The protocol over standard input and output: one JSON-RPC message a line
//! (2026-07-28, transports: stdio). Both eras; a session is the process.

mod connection;
mod line;

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncBufRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use self::{
    connection::Connection,
    line::{Line, read_line},
};
use crate::{
    dispatch::Dispatcher,
    era::{Era, Legacy, Modern},
    protocol::{Fault, has_values_within},
};

/// How many messages may wait for a slow reader of our output.
const OUTPUT: usize = 64;

/// What a connection works with.
#[derive(Clone)]
pub(crate) struct Stdio {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) legacy: Arc<Legacy>,
    pub(crate) modern: Modern,
    pub(crate) closing: CancellationToken,
    /// The most that a message may have, in bytes.
    pub(crate) message_bytes: usize,
    /// The most JSON values that it may have, at every depth.
    pub(crate) message_values: usize,
    /// How long running calls may take to end once the input has.
    pub(crate) grace: Duration,
}

impl Stdio {
    /// Serves until the input ends or the server stops.
    ///
    /// # Errors
    /// When input or output fails.
    pub(crate) async fn serve(
        self,
        mut input: impl AsyncBufRead + Unpin,
        mut output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let (sender, mut messages) = mpsc::channel::<Bytes>(OUTPUT);
        let writer = tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                output.write_all(&message).await?;
                output.write_all(b"\n").await?;
                output.flush().await?;
            }
            Ok::<_, io::Error>(())
        });
        let (closing, most, values) =
            (self.closing.clone(), self.message_bytes, self.message_values);
        let mut connection = Connection::new(self, sender);
        loop {
            let line = tokio::select! {
                () = closing.cancelled() => break,
                line = read_line(&mut input, most) => line?,
            };
            match line {
                Line::End => break,
                Line::Message(line) if line.trim_ascii().is_empty() => {}
                Line::Message(line) if !has_values_within(&line, values) => {
                    let message = format!(
                        "The message has more than {values} JSON values (limits.body_values). Send bulky data as text, in one string."
                    );
                    connection.refuse(None, &Fault::InvalidRequest(message), Era::Legacy).await;
                }
                Line::Message(line) => connection.take(line).await,
                Line::TooLong => {
                    let message =
                        format!("The message is longer than {most} bytes (limits.body_bytes).");
                    connection.refuse(None, &Fault::InvalidRequest(message), Era::Legacy).await;
                }
            }
        }
        connection.end().await;
        drop(connection);
        writer.await.map_err(io::Error::other)?
    }
}
