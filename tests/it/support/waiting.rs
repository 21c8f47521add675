//! Waiting for what other tasks and processes do: always for something, and
//! never for a fixed time.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// How long a test waits for anything: long enough for a busy machine, on which Redis Sentinel
/// watches without acting for 30 s.
const DEADLINE: Duration = Duration::from_secs(120);

/// How often a condition is checked.
const INTERVAL: Duration = Duration::from_millis(10);

/// Waits for a future until a deadline; past it, the test fails and says what
/// it waited for.
pub(crate) async fn patiently<F: Future>(what: &str, wait: F) -> F::Output {
    let waited = timeout(DEADLINE, wait).await;
    waited.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

/// Checks a condition until it holds or the deadline has passed.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    poll(what, async || holds().await.then_some(())).await;
}

/// Calls `probe` until it returns a value or the deadline has passed.
pub(crate) async fn poll<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(value) = probe().await {
                return value;
            }
            sleep(INTERVAL).await;
        }
    };
    patiently(what, found).await
}
