//! The state of an upstream, for operators.

use larder_server::registry::ProviderState;

use super::Upstream;
use crate::{
    catalogue::ReasonReader,
    link::Era,
    status::{LastError, Status},
};

impl Upstream {
    /// The state, for operators.
    pub(crate) fn status(&self) -> Status {
        let shared = &self.connections.shared;
        let lives = self.connections.lives();

        let era = shared.era.lock().found().map(|era| match era {
            Era::Legacy => "legacy".to_owned(),
            Era::Modern => "modern".to_owned(),
        });
        let last_error = shared
            .statistics
            .last_error()
            .map(|error| LastError { text: error.text, seconds_ago: error.at.elapsed().as_secs() });

        let latest = shared.latest.load();
        Status {
            name: self.naming.upstream.clone(),
            state: lives.state(),
            degraded: lives.degraded(ReasonReader::Operator),
            waits_for: lives.waits_for(),
            is_failing: lives.is_failing(),
            processes: lives.running(),
            era,
            tools: latest.as_ref().map(|latest| latest.tools.len()),
            left_out: latest.as_ref().map(|latest| latest.left_out()).unwrap_or_default(),
            renamed: latest.as_ref().map(|latest| latest.renamed()).unwrap_or_default(),
            kept_out_bytes: shared.statistics.kept_out(),
            failures: shared.statistics.failures(),
            last_error,
        }
    }

    /// The state, for anybody: errors may have data of callers, so it has only their classes.
    pub(super) fn reported(&self) -> ProviderState {
        let shared = &self.connections.shared;
        let lives = self.connections.lives();
        let error = shared.statistics.last_error();

        ProviderState {
            name: self.naming.upstream.clone(),
            state: lives.state().as_str(),
            degraded: lives.degraded(ReasonReader::Anybody),
            tools: shared.latest.load().as_ref().map(|latest| latest.tools.len()),
            last_error: error.as_ref().map(|error| error.kind),
            error_seconds_ago: error.map(|error| error.at.elapsed().as_secs()),
        }
    }
}
