//! Helpers of the store benchmarks.

use tokio::time::Instant;

/// The seconds that some work takes.
pub(crate) async fn seconds(work: impl Future) -> f64 {
    let begin = Instant::now();
    work.await;
    begin.elapsed().as_secs_f64()
}

pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
