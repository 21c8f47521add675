//! [`Confinement`]: which barriers hold around a worker process; [`ConfinementPolicy`]: which of
//! them a query needs.

use larder_runtime::metric::{self, Label};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::QueryError;

/// The barriers that the kernel has put around a worker, besides limits of memory, time and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Landlock: no access to files, and no TCP.
    pub landlock: bool,
    /// seccomp: few system calls.
    pub seccomp: bool,
}

/// The confinement that a worker must have to run a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementPolicy {
    /// Both barriers. Without one of them, queries are refused.
    Required,
    /// The barriers that the system has.
    BestEffort,
}

impl Default for ConfinementPolicy {
    /// Required where the barriers exist: on Linux.
    fn default() -> Self {
        if cfg!(target_os = "linux") { Self::Required } else { Self::BestEffort }
    }
}

impl Confinement {
    /// The missing barriers in words; `None` if both hold.
    pub(super) fn missing(self) -> Option<&'static str> {
        match (self.landlock, self.seccomp) {
            (true, true) => None,
            (false, true) => Some("Landlock"),
            (true, false) => Some("seccomp"),
            (false, false) => Some("Landlock and seccomp"),
        }
    }

    /// Fails where the policy needs a missing barrier.
    ///
    /// # Errors
    /// [`QueryError::Unconfined`].
    pub(super) fn check(self, policy: ConfinementPolicy) -> Result<(), QueryError> {
        match (policy, self.missing()) {
            (ConfinementPolicy::Required, Some(missing)) => {
                Err(QueryError::Unconfined { missing: missing.into() })
            }
            _ => Ok(()),
        }
    }

    /// Tells the operator, once at the start.
    pub(super) fn log(self, policy: ConfinementPolicy) {
        let Some(missing) = self.missing() else {
            tracing::info!("query workers are confined by Landlock and seccomp");
            return;
        };

        match policy {
            ConfinementPolicy::Required => tracing::error!(
                "queries are refused: this system cannot confine query workers by {missing}. Allow it, or accept the risk by query.confinement = \"best_effort\""
            ),
            ConfinementPolicy::BestEffort => tracing::warn!(
                "query workers are not confined by {missing} (query.confinement = \"best_effort\")"
            ),
        }
    }

    /// Sets the gauges.
    pub(super) fn measure(self) {
        for (barrier, holds) in [("landlock", self.landlock), ("seccomp", self.seccomp)] {
            metric::gauge("larder_query_confinement", [("barrier", Label::fixed(barrier))])
                .set(f64::from(u8::from(holds)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_barrier_refuses_queries_only_where_it_is_required() {
        for (landlock, seccomp, missing) in [
            (true, true, None),
            (false, true, Some("Landlock")),
            (true, false, Some("seccomp")),
            (false, false, Some("Landlock and seccomp")),
        ] {
            let confinement = Confinement { landlock, seccomp };
            let refused = confinement.check(ConfinementPolicy::Required).err();
            assert_eq!(refused.is_some(), missing.is_some(), "{confinement:?}");
            assert_eq!(confinement.check(ConfinementPolicy::BestEffort), Ok(()));

            if let (Some(refused), Some(missing)) = (refused, missing) {
                let text = refused.to_string();
                assert!(text.contains(missing) && text.contains("query.confinement"), "{text}");
            }
        }
    }
}
