//! The gauges of a server.

use std::sync::Arc;

use super::App;
use crate::telemetry::Inventory;

impl App {
    /// The gauges of stored resources and sessions, for metrics.
    pub fn inventory(&self) -> Inventory {
        Inventory::new(self.store.clone(), Arc::clone(&self.sessions), &self.base.random)
    }
}
