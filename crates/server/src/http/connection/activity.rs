//! Whether a connection waits, and for how long: for its first request, for the rest of a
//! head, or for another request.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use http::Version;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

/// How long a connection without a request stays open after a stop: a request that meets the end
/// of its connection is lost, because a proxy repeats only those that change nothing.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a connection may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// For a request whose head has begun, or for the first request.
    pub(super) head: Duration,
    /// For another request.
    pub(super) idle: Duration,
}

/// The activity of one connection.
pub(super) struct Activity {
    timeouts: Timeouts,
    state: Mutex<ActivityState>,
    /// Wakes the connection's task when its deadline moves from outside of that task.
    waker: AtomicWaker,
}

struct ActivityState {
    /// Requests whose responses are not complete.
    requests: usize,
    is_http2: bool,
    waits_for: WaitsFor,
    since: Instant,
    is_closing: bool,
}

#[derive(PartialEq, Eq)]
enum WaitsFor {
    Head,
    Request,
}

impl Activity {
    /// A connection that was opened now.
    pub(super) fn new(timeouts: Timeouts) -> Arc<Self> {
        let state = ActivityState {
            requests: 0,
            is_http2: false,
            waits_for: WaitsFor::Head,
            since: Instant::now(),
            is_closing: false,
        };

        Arc::new(Self { timeouts, state: Mutex::new(state), waker: AtomicWaker::new() })
    }

    /// A request was received. It is counted until the returned value is dropped.
    pub(super) fn request(self: &Arc<Self>, version: Version) -> RequestInProgress {
        let mut state = self.state.lock();
        state.requests += 1;
        state.is_http2 = version == Version::HTTP_2;
        RequestInProgress(Arc::clone(self))
    }

    /// Bytes were received.
    pub(super) fn received(&self) {
        let mut state = self.state.lock();
        // Bytes of HTTP/2 may be a frame of the connection, such as a PING.
        if state.requests == 0 && !state.is_http2 && state.waits_for == WaitsFor::Request {
            state.waits_for = WaitsFor::Head;
            state.since = Instant::now();
        }
    }

    /// Whether the latest request came by HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.state.lock().is_http2
    }

    /// The server stops: the connection waits for one more request, which a proxy may be
    /// sending, for a moment only.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        state.since = Instant::now();
    }

    /// Resolves when the connection has waited too long.
    pub(super) async fn expired(&self) {
        let mut timer = Timer::default();
        // Every event of the connection polls this future, so it must be cheap.
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            timer.poll(cx, self.deadline())
        })
        .await;
    }

    fn deadline(&self) -> Option<Instant> {
        let state = self.state.lock();
        let timeout = match state.waits_for {
            _ if state.is_closing => CLOSING_TIMEOUT,
            WaitsFor::Head => self.timeouts.head,
            WaitsFor::Request => self.timeouts.idle,
        };

        (state.requests == 0).then(|| state.since + timeout)
    }
}

/// A request whose response is not complete.
pub(super) struct RequestInProgress(Arc<Activity>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let Self(activity) = self;
        let mut state = activity.state.lock();
        state.requests -= 1;

        if state.requests == 0 {
            state.waits_for = WaitsFor::Request;
            state.since = Instant::now();
            drop(state);
            activity.waker.wake();
        }
    }
}

/// A timer whose deadline may change with each poll. It is reset only when it would be late.
#[derive(Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready when the deadline has passed; never without one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, deadline: Option<Instant>) -> Poll<()> {
        let Some(deadline) = deadline else { return Poll::Pending };
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));

        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }

        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts =
        Timeouts { head: Duration::from_secs(30), idle: Duration::from_secs(150) };

    /// How many seconds the connection stays open from now on.
    async fn remaining(activity: &Activity) -> u64 {
        let now = Instant::now();
        activity.expired().await;
        now.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_head_and_a_begun_one_have_less_time_than_an_idle_connection() {
        let activity = Activity::new(TIMEOUTS);
        assert_eq!(remaining(&activity).await, 30);

        let activity = Activity::new(TIMEOUTS);
        drop(activity.request(Version::HTTP_11));
        assert_eq!(remaining(&activity).await, 150);

        let activity = Activity::new(TIMEOUTS);
        drop(activity.request(Version::HTTP_11));
        tokio::time::advance(Duration::from_secs(100)).await;
        activity.received();
        tokio::time::advance(Duration::from_secs(10)).await;
        activity.received();
        assert_eq!(remaining(&activity).await, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn frames_of_an_http2_connection_do_not_keep_it_open() {
        let activity = Activity::new(TIMEOUTS);
        drop(activity.request(Version::HTTP_2));
        tokio::time::advance(Duration::from_secs(100)).await;
        activity.received();

        assert_eq!(remaining(&activity).await, 50);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_progress_has_no_deadline() {
        let activity = Activity::new(TIMEOUTS);
        let request = activity.request(Version::HTTP_11);
        let hour = Duration::from_secs(3600);
        let ends = tokio::spawn(async move {
            tokio::time::sleep(hour).await;
            drop(request);
        });

        assert_eq!(remaining(&activity).await, 3600 + 150);
        ends.await.expect("it does not panic");

        let request = activity.request(Version::HTTP_11);
        activity.close();
        assert!(tokio::time::timeout(hour, activity.expired()).await.is_err());
        drop(request);
        assert_eq!(remaining(&activity).await, 1);
    }
}
