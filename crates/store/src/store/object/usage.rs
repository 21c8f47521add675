//! [`TotalUsage`]: the total usage of all owners, counted from the ledgers at intervals, and
//! adjusted by each change that this process makes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use larder_runtime::clock::Timestamp;
use object_store::path::Path;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{ObjectState, layout, ledger::LedgerRecord};
use crate::store::{StoreError, Usage};

/// How often the total is counted again, to include changes by other instances.
const RECOUNT_INTERVAL: Duration = Duration::from_mins(10);

/// How many owners' ledgers are read concurrently.
const CONCURRENCY: usize = 16;

/// The last count, and the changes of this process since then.
#[derive(Debug, Default)]
pub(super) struct TotalUsage {
    /// The total, and when it was last counted.
    counted: Mutex<Option<(Usage, Instant)>>,
    /// Held during a count, so that only one count runs.
    counting: tokio::sync::Mutex<()>,
}

impl TotalUsage {
    /// Applies the difference between two consecutive records of a ledger.
    pub(super) fn change(&self, before: &LedgerRecord, after: &LedgerRecord, now: Timestamp) {
        let mut counted = self.counted.lock();
        let Some((total, _)) = &mut *counted else { return };

        let moved = |total: u64, before: u64, after: u64| (total + after).saturating_sub(before);
        let reserved = |record: &LedgerRecord| record.reserved.bytes_at(now);
        total.resources = moved(total.resources, before.resources, after.resources);
        total.bytes = moved(total.bytes, before.bytes, after.bytes);
        total.reserved = moved(total.reserved, reserved(before), reserved(after));
    }

    fn counted(&self) -> Option<(Usage, Instant)> {
        *self.counted.lock()
    }
}

impl ObjectState {
    /// The total usage. Only the first call waits for a count.
    pub(super) async fn usage(self: &Arc<Self>) -> Result<Usage, StoreError> {
        if self.schedule.is_due(self.clock.now())
            && let Err(error) = self.sweep().await
        {
            tracing::debug!(%error, "the usage may include expired resources");
        }

        match self.total_usage.counted() {
            Some((total, since)) if since.elapsed() < RECOUNT_INTERVAL => Ok(total),
            Some((total, _)) => {
                let state = Arc::clone(self);
                tokio::spawn(async move {
                    if let Err(error) = state.count_usage().await {
                        tracing::debug!(%error, "cannot count the usage");
                    }
                });
                Ok(total)
            }
            None => {
                self.count_usage().await?;
                Ok(self.total_usage.counted().map_or_else(Usage::default, |(total, _)| total))
            }
        }
    }

    /// Counts the usage, unless a count is running. Callers meanwhile use the last count.
    async fn count_usage(&self) -> Result<(), StoreError> {
        let Ok(_counting) = self.total_usage.counting.try_lock() else { return Ok(()) };

        let mut newest = HashMap::<Path, u64>::new();
        let mut records = self.objects.list(&layout::ledgers());
        while let Some(record) = records.try_next().await? {
            let number = layout::number(&record.location);
            if let Some((number, ledger)) = number.zip(layout::folder(&record.location)) {
                let known = newest.entry(ledger).or_default();
                *known = number.max(*known);
            }
        }

        let now = self.clock.now();
        let total = stream::iter(newest)
            .map(|(ledger, number)| async move {
                self.read_record(&ledger, number).await.map(|tail| tail.record)
            })
            .buffer_unordered(CONCURRENCY)
            .try_fold(Usage::default(), |total, record| async move {
                Ok(Usage {
                    resources: total.resources + record.resources,
                    bytes: total.bytes + record.bytes,
                    reserved: total.reserved + record.reserved.bytes_at(now),
                })
            })
            .await?;

        let mut counted = self.total_usage.counted.lock();
        *counted = Some((total, Instant::now()));
        Ok(())
    }
}
