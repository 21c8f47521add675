//! What the benchmarks of the store have in common.

use tokio::time::Instant;

/// Bytes that no compression makes less.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(len).collect()
}

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
