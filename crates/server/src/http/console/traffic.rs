//! The traffic of this instance over the last hour, for operators.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use http::StatusCode;
use larder_runtime::clock::{Clock, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;

use super::{Console, console, operator::admit_operator};
use crate::{
    dispatch::{Traffic, TrafficCounts},
    http::{error::Reply, response::value_response, route::Incoming},
};

/// The time between two samples.
const INTERVAL: Duration = Duration::from_secs(10);

/// How many callers are shown with numbers of their own.
const TOP: usize = 20;

/// The most samples that are kept: those of an hour.
const CAPACITY: usize = 360;

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct TrafficSample {
    /// In milliseconds since the epoch.
    time: Timestamp,
    #[serde(flatten)]
    counts: TrafficCounts,
}

/// The samples of the last hour.
#[derive(Debug)]
pub(super) struct Samples {
    clock: Arc<dyn Clock>,
    /// When the instance started.
    started: Timestamp,
    /// The oldest first.
    kept: Mutex<VecDeque<TrafficSample>>,
}

impl Samples {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let started = clock.now();
        Self { clock, started, kept: Mutex::default() }
    }

    /// Reads the counters. The oldest sample goes when there are too many.
    fn take(&self, traffic: &Traffic) {
        let sample = TrafficSample { time: self.clock.now(), counts: traffic.counts() };
        let mut kept = self.kept.lock();
        if kept.len() >= CAPACITY {
            kept.pop_front();
        }
        kept.push_back(sample);
    }
}

impl Console {
    /// Keeps samples of the counters until dropped.
    pub async fn sample(&self, traffic: &Traffic) {
        let samples = &self.samples;
        loop {
            let next = samples.clock.now().saturating_add(INTERVAL);
            samples.take(traffic);
            samples.clock.sleep_until(next).await;
        }
    }
}

/// The samples, and the counters now.
pub(in crate::http) async fn traffic(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let _caller = admit_operator(&endpoint, &head).await?;

    let samples = &console(&endpoint).samples;
    let kept: Vec<TrafficSample> = samples.kept.lock().iter().copied().collect();
    let now =
        TrafficSample { time: samples.clock.now(), counts: endpoint.dispatcher.traffic().counts() };

    let (callers, others) = endpoint.dispatcher.traffic().callers().top(TOP);
    Ok(value_response(
        StatusCode::OK,
        &json!({
            "started": samples.started, "samples": kept, "now": now, "callers": callers,
            "others": others,
        }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_runtime::clock::ManualClock;

    #[test]
    fn the_samples_are_those_of_the_last_hour() {
        let clock = ManualClock::new();
        let samples = Samples::new(Arc::new(clock.clone()));
        let traffic = Traffic::default();
        for call in 0..1_000 {
            samples.take(&traffic);
            traffic.add_returned(call);
            clock.advance(INTERVAL);
        }

        let kept = samples.kept.lock();
        assert_eq!(kept.len(), 360);

        let first = kept[0];
        let last = kept[359];
        assert_eq!(clock.now().since(first.time), Duration::from_secs(3600));
        assert_eq!(last.time.since(first.time), 359 * INTERVAL);
        assert!(first.counts.returned_bytes < last.counts.returned_bytes);
        assert_eq!(last.counts.returned_bytes, (0..999).sum::<u64>());
    }
}
