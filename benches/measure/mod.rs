//! What the benchmarks of the store have in common.

use tokio::time::Instant;

/// Seconds that it takes.
pub(crate) async fn seconds(work: impl Future) -> f64 {
    let begin = Instant::now();
    work.await;
    begin.elapsed().as_secs_f64()
}

pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
