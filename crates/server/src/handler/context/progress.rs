//! Progress notifications.

use std::future::IntoFuture;

use futures_util::future::BoxFuture;
use larder_protocol::Outgoing;

use super::{Call, Context};

/// A number of steps, bytes or anything else that is counted.
pub trait Amount {
    /// The number as the protocol has it.
    fn amount(self) -> f64;
}

macro_rules! amounts {
    ($($type:ty)*) => {$(
        impl Amount for $type {
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "progress is shown, not computed with")]
            fn amount(self) -> f64 {
                self as f64
            }
        }
    )*};
}

amounts!(f32 i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

impl Amount for f64 {
    fn amount(self) -> f64 {
        self
    }
}

impl<S> Context<S> {
    /// Sends a progress notification when awaited, if the caller requested them:
    /// `ctx.progress(1).of(2).message("searched").await`. `done` must increase from call to
    /// call; a value that does not is not sent. Waits while the caller reads slowly.
    pub fn progress(&self, done: impl Amount) -> Progress<'_> {
        Progress { call: &self.call, done: done.amount(), total: None, message: None }
    }

    /// Notifies the client of progress, unless it is less than before.
    pub async fn send_progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        self.call.send_progress(done, total, message).await;
    }
}

impl Call {
    async fn send_progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let (Some(task), Some(message)) = (self.scope.control.task(), message) {
            // A task has no stream: clients poll its status message.
            task.set_message(message).await;
        }

        let Some(token) = self.scope.progress_token.clone() else { return };

        {
            let mut last = self.progress.lock();
            if !done.is_finite() || done <= *last {
                return;
            }
            *last = done;
        }

        let message = message.map(str::to_owned);
        let total = total.filter(|t| t.is_finite());
        self.send(Outgoing::Progress { token, progress: done, total, message }).await;
    }
}

/// Sends a progress notification when awaited.
#[must_use = "nothing is sent until it is awaited"]
pub struct Progress<'a> {
    call: &'a Call,
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Progress<'_> {
    /// The total that `done` will reach.
    pub fn of(mut self, total: impl Amount) -> Self {
        self.total = Some(total.amount());
        self
    }

    /// A text for people about what the call does now.
    pub fn message(mut self, text: impl Into<String>) -> Self {
        self.message = Some(text.into());
        self
    }
}

impl<'a> IntoFuture for Progress<'a> {
    type Output = ();
    type IntoFuture = BoxFuture<'a, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { call, done, total, message } = self;
            call.send_progress(done, total, message.as_deref()).await;
        })
    }
}
