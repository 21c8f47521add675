//! A future that runs in a span.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tracing::Span;

/// Polls a future in a span and drops it there, so that each log line of the future is in the
/// span. The future is boxed, because `tracing::Instrument` would move a large one. It is dropped
/// when it ends, while the span is still entered.
pub struct InSpan<F: ?Sized> {
    span: Span,
    future: Option<Pin<Box<F>>>,
}

impl<F: ?Sized> InSpan<F> {
    /// Runs the future in the span.
    pub fn new(span: Span, future: Pin<Box<F>>) -> Self {
        Self { span, future: Some(future) }
    }
}

impl<F: Future + ?Sized> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { span, future } = &mut *self;
        let _entered = span.enter();
        let polled = future.as_mut().expect("it is not polled after its end").as_mut().poll(cx);
        if polled.is_ready() {
            *future = None;
        }
        polled
    }
}

impl<F: ?Sized> Drop for InSpan<F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            let _entered = self.span.enter();
            drop(future);
        }
    }
}
