//! Ends streams of HTTP/2 whose client takes no data, as the timeout for writing to a socket
//! does for a connection. Other streams of the connection go on.

use std::{cell::Cell, future::poll_fn, pin::pin, task::Poll, time::Duration};

use hyper::rt::Executor;
use tokio::time::Instant;

use super::activity::Timer;

tokio::task_local! {
    /// Since when the stream of this task has had data that the client does not take.
    static WAITING: Cell<Option<Instant>>;
}

/// The response body of this task's stream has data. Hyper asks for more when there is room
/// for this.
pub(super) fn has_data() {
    let _ = WAITING.try_with(|waiting| waiting.set(Some(Instant::now())));
}

/// The client has taken the data.
pub(super) fn is_taken() {
    let _ = WAITING.try_with(|waiting| waiting.set(None));
}

/// Runs the streams of HTTP/2 connections.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor {
    /// How long a client may take no data of a stream.
    pub(super) write_timeout: Duration,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(WAITING.scope(Cell::default(), until_stalled(stream, self.write_timeout)));
    }
}

/// Drops a stream that waits too long, which resets it.
async fn until_stalled(stream: impl Future<Output = ()>, timeout: Duration) {
    let mut stream = pin!(stream);
    let mut timer = Timer::default();

    poll_fn(|cx| {
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }

        let deadline = WAITING.with(Cell::get).map(|since| since + timeout);
        timer.poll(cx, deadline).map(|()| tracing::debug!("a stream was not read in time"))
    })
    .await;
}
