//! Tasks of upstreams whose panic ends nothing but what they serve.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use larder_runtime::panics::PanicSite;

/// A task has panicked. It is counted and logged.
pub(super) struct Panicked;

/// The text for callers and operators. The message of the panic is in the log alone.
pub(super) const PANICKED: &str = "an internal error of Larder, which its log shows";

/// Runs a part of the work for an upstream. Nothing of it is used after a panic.
pub(super) async fn guarded<T>(
    upstream: &str,
    work: impl Future<Output = T>,
) -> Result<T, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| {
        PanicSite::Upstream.count();
        tracing::error!(upstream, "the task of an upstream panicked");
        Panicked
    })
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn a_panic_is_counted_and_ends_nothing_else() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();

        metrics::with_local_recorder(&recorder, || {
            let panics = guarded("odd", async { panic!("as the test wants") });
            assert!(panics.now_or_never().is_some_and(|done: Result<(), _>| done.is_err()));
            let works = guarded("odd", async { 5 }).now_or_never();
            assert!(works.is_some_and(|done| done.is_ok_and(|value| value == 5)));
        });

        let counted = "larder_panics_total{part=\"upstream\"} 1";
        assert!(handle.render().contains(counted), "{}", handle.render());
    }
}
