//! Serves one client on standard input and output.

use std::{io, sync::Arc};

use larder_server::stdio::Stdio;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{App, STOP_MARGIN};

impl App {
    /// Serves one client on standard input and output: see [`App::serve_io`].
    ///
    /// # Errors
    /// Reading the input or writing the output fails.
    pub async fn serve_stdio(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        self.serve_io(tokio::io::stdin(), tokio::io::stdout(), stop).await
    }

    /// Serves one client, one message a line, until the input ends or `stop` resolves. Then
    /// running calls may finish within the grace period; the others end with an error that
    /// asks to send them again.
    ///
    /// # Errors
    /// Reading the input or writing the output fails.
    pub async fn serve_io(
        self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let stdio = Stdio {
            dispatcher: Arc::clone(&self.calls.dispatcher),
            legacy: Arc::clone(&self.calls.legacy),
            modern: self.calls.modern.clone(),
            closing: self.closing.clone(),
            message_bytes: self.base.config.limits.body_bytes,
            message_values: self.base.config.limits.body_values,
            grace: self.base.config.grace(),
        };

        let closing = self.closing.clone();
        let served = {
            let serving = stdio.serve(tokio::io::BufReader::new(input), output);
            let stop = async move {
                stop.await;
                closing.cancel();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                served = serving => served,
                () = stop => Ok(()),
            }
        };

        // The calls have ended; only their results remain to be written.
        let _ = tokio::time::timeout(STOP_MARGIN, self.calls.drain()).await;
        self.calls.dispatcher.registry().close().await;
        served
    }
}
