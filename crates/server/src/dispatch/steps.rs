//! Accounts for the steps of calls as for requests: scopes, audit log, limits and metrics.

use std::{sync::Arc, time::Duration};

use larder_oauth::{Identity, audit};
use larder_protocol::{Fault, Method};

use super::{
    Traffic,
    admission::{self, audited},
};
use crate::{admission::Limits, handler::StepAccounts, registry::Registry};

/// The accounts of one dispatcher.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) registry: Arc<Registry>,
    pub(super) limits: Arc<Limits>,
    pub(super) traffic: Arc<Traffic>,
}

impl StepAccounts for Accounts {
    fn admit(&self, identity: &Identity, method: Method, target: &str) -> Result<(), Fault> {
        self.limits.request(identity).map_err(|limited| {
            audit::refused(identity, &audited(method, target), &limited);
            Fault::from(limited)
        })?;

        admission::authorize(&self.registry, method, Some(target), identity)
    }

    fn record(&self, method: Method, tool: Option<&str>, error: &'static str, took: Duration) {
        let listed_by = |tool: &str| self.registry.listed_by(tool);
        self.traffic.record(method, tool.unwrap_or_default(), error, took, listed_by);
    }
}
