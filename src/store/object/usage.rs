//! What all owners have together: added up now and then, and kept up with each
//! change that this process makes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Inner, layout, ledger::Ledger};
use crate::store::{StoreError, Usage};

/// After that time all is added up again, for what others have changed.
const ROUND: Duration = Duration::from_mins(10);

/// How many owners are looked at together.
const LOOKERS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Sum {
    known: Mutex<Option<(Usage, Instant)>>,
    /// Held by whoever adds up.
    adding: tokio::sync::Mutex<()>,
}

impl Sum {
    /// An owner has that much instead of this.
    pub(super) fn change(&self, before: &Ledger, after: &Ledger) {
        let mut known = self.known.lock();
        if let Some((sum, _)) = &mut *known {
            let moved = |sum: u64, before: u64, after: u64| (sum + after).saturating_sub(before);
            sum.resources = moved(sum.resources, before.resources, after.resources);
            sum.bytes = moved(sum.bytes, before.bytes, after.bytes);
        }
    }

    fn known(&self) -> Option<(Usage, Instant)> {
        *self.known.lock()
    }
}

impl Inner {
    pub(super) async fn usage(self: &Arc<Self>) -> Result<Usage, StoreError> {
        if self.agenda.is_due(self.clock.now())
            && let Err(error) = self.sweep().await
        {
            tracing::debug!(%error, "what has expired may still count");
        }
        match self.sum.known() {
            Some((sum, since)) if since.elapsed() < ROUND => Ok(sum),
            Some((sum, _)) => {
                let inner = Arc::clone(self);
                tokio::spawn(async move {
                    if let Err(error) = inner.add_up().await {
                        tracing::debug!(%error, "what there is cannot be added up now");
                    }
                });
                Ok(sum)
            }
            None => {
                self.add_up().await?;
                Ok(self.sum.known().map_or_else(Usage::default, |(sum, _)| sum))
            }
        }
    }

    async fn add_up(&self) -> Result<(), StoreError> {
        // One is enough, and the others have what it finds.
        let Ok(_adding) = self.sum.adding.try_lock() else { return Ok(()) };
        let mut newest = HashMap::<Path, u64>::new();
        let mut records = self.objects.below(&layout::ledgers());
        while let Some(record) = records.try_next().await? {
            let number = layout::number(&record.location);
            if let Some((number, owner)) = number.zip(layout::folder(&record.location)) {
                let known = newest.entry(owner).or_default();
                *known = number.max(*known);
            }
        }
        let ledgers = stream::iter(newest).map(|(owner, number)| async move {
            self.read_ledger(&owner, number).await.map(|tail| tail.ledger)
        });
        let ledgers = ledgers.buffer_unordered(LOOKERS);
        let sum = ledgers.try_fold(Usage::default(), |sum, ledger| async move {
            Ok(Usage {
                resources: sum.resources + ledger.resources,
                bytes: sum.bytes + ledger.bytes,
            })
        });
        let sum = sum.await?;
        let mut known = self.sum.known.lock();
        *known = Some((sum, Instant::now()));
        Ok(())
    }
}
