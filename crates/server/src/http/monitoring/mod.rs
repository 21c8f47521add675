//! Probes of the server, and the listener for operators.

pub(super) mod health;
mod metrics;

pub use self::{
    health::{Dependencies, PROBE_PATHS},
    metrics::{json_router, metrics_router},
};
