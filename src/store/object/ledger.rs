//! The changes of one owner, one after the other: who creates the n-th record
//! has made the n-th change, and everybody else has to look again. A record is
//! created once and never changed, which files and S3 alike can promise; so a
//! change is atomic, and what an owner has is counted exactly, whoever dies
//! in the middle and however many servers there are.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use object_store::path::Path;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::{sync::OwnedMutexGuard, time::Instant};

use super::{Inner, layout, record::Record};
use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{ResourceUri, StoreError},
};

/// After that time somebody looks again what the last change is, rather than
/// trust that nobody else has been there: much less than [`KEEP`].
const TRUST: Duration = Duration::from_secs(20);

/// The same by number of changes.
const TRUST_CHANGES: u32 = 1000;

/// How long a record stays after a newer one: so long, and for so many
/// changes, nobody can create it a second time.
const KEEP: chrono::Duration = chrono::Duration::minutes(2);
const KEEP_CHANGES: u64 = 8 * TRUST_CHANGES as u64;

/// How many owners' last changes are remembered.
const REMEMBERED: usize = 1024;

/// How long whoever made a change has to carry it out, before another does it.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);

/// How many entries stay that newer ones have overtaken: who has seen the name
/// of one among others still finds it.
const OVERTAKEN: usize = 8;

/// What an owner has after a change, and what the change was: whoever comes
/// next makes sure that it is carried out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Ledger {
    /// Of this record; of no other ever.
    pub(super) id: String,
    /// Of content.
    pub(super) bytes: u64,
    pub(super) resources: u64,
    pub(super) change: Option<Change>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) uri: ResourceUri,
    /// What is there now, if anything.
    pub(super) put: Option<Record>,
    /// The content that is there no more.
    pub(super) gone: Vec<String>,
    /// When it goes, so that whoever is reading it can end; at once if not given.
    pub(super) until: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    pub(super) number: u64,
    pub(super) ledger: Ledger,
}

/// What is remembered of an owner's ledger. Who changes something holds it,
/// so that the changes of one process queue up rather than collide.
#[derive(Debug, Default)]
pub(super) struct OwnerLock {
    tail: Option<Tail>,
    trusted: Option<Instant>,
    changes: u32,
}

#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Owner, Arc<tokio::sync::Mutex<OwnerLock>>>>);

impl Turns {
    pub(super) async fn wait(&self, owner: &Owner) -> OwnedMutexGuard<OwnerLock> {
        let turn = {
            let mut turns = self.0.lock();
            if turns.len() >= REMEMBERED && !turns.contains_key(owner) {
                turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            }
            Arc::clone(turns.entry(owner.clone()).or_default())
        };
        turn.lock_owned().await
    }
}

impl Inner {
    /// The last change, which has been carried out.
    pub(super) async fn tail(
        &self,
        owner: &Owner,
        turn: &mut OwnerLock,
    ) -> Result<Tail, StoreError> {
        let trusted = turn.trusted.is_some_and(|since| since.elapsed() < TRUST);
        if let Some(tail) = turn.tail.as_ref().filter(|_| trusted && turn.changes < TRUST_CHANGES) {
            return Ok(tail.clone());
        }
        let since = Instant::now();
        let folder = layout::ledger(owner);
        let records: Vec<_> = self.objects.below(&folder).try_collect().await?;
        let number = |path| layout::number(path);
        let last = records.iter().max_by_key(|record| number(&record.location));
        let tail = match last.and_then(|last| number(&last.location).map(|number| (number, last))) {
            None => Tail::default(),
            Some((last, newest)) => {
                for record in &records {
                    let Some(number) = number(&record.location) else { continue };
                    let old = newest.last_modified - record.last_modified > KEEP;
                    if number != last && (old || number + KEEP_CHANGES < last) {
                        self.objects.remove(&record.location).await?;
                    }
                }
                let known = turn.tail.take().filter(|tail| tail.number == last);
                match known {
                    Some(tail) => tail,
                    None => {
                        let tail = self.read_ledger(&folder, last).await?;
                        self.settle(owner, &tail).await?;
                        tail
                    }
                }
            }
        };
        *turn = OwnerLock { tail: Some(tail.clone()), trusted: Some(since), changes: 0 };
        Ok(tail)
    }

    pub(super) async fn read_ledger(&self, folder: &Path, number: u64) -> Result<Tail, StoreError> {
        let path = layout::change(folder, number);
        let Some(bytes) = self.objects.get(&path).await? else {
            return Err(self.objects.failed(format!("{path} has gone")));
        };
        let ledger = serde_json::from_slice(&bytes);
        let ledger = ledger.map_err(|error| self.objects.damaged(&path, &error))?;
        Ok(Tail { number, ledger })
    }

    /// Makes the change after `tail`, and carries it out. `false` if somebody
    /// else made one first.
    pub(super) async fn advance(
        &self,
        owner: &Owner,
        turn: &mut OwnerLock,
        tail: &Tail,
        next: Ledger,
    ) -> Result<bool, StoreError> {
        let number = tail.number + 1;
        let folder = layout::ledger(owner);
        let path = layout::change(&folder, number);
        // Until it is known what became of it.
        turn.tail = None;
        let record = serde_json::to_vec(&next).expect("it is JSON");
        if !self.objects.create(&path, record).await? {
            // It may be ours all the same, where the answer to the first try was lost.
            let there = self.read_ledger(&folder, number).await?;
            if there.ledger.id != next.id {
                return Ok(false);
            }
        }
        self.sum.change(&tail.ledger, &next);
        let tail = Tail { number, ledger: next };
        self.apply(owner, &tail).await?;
        turn.tail = Some(tail);
        turn.changes += 1;
        Ok(true)
    }

    /// Waits until somebody else's change is carried out, or does it.
    async fn settle(&self, owner: &Owner, tail: &Tail) -> Result<(), StoreError> {
        if let Some(Change { uri, put: Some(_), .. }) = &tail.ledger.change {
            let entry = layout::entry(&layout::resource(owner, uri), tail.number);
            let begin = Instant::now();
            while begin.elapsed() < PATIENCE {
                if self.objects.exists(&entry).await? {
                    break;
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        self.apply(owner, tail).await
    }

    /// May be done again, and by several at once: entries bear the number of
    /// their change, so none is ever put in the place of another.
    async fn apply(&self, owner: &Owner, tail: &Tail) -> Result<(), StoreError> {
        let Some(Change { uri, put, gone, until }) = &tail.ledger.change else { return Ok(()) };
        let resource = layout::resource(owner, uri);
        if let Some(record) = put {
            let record = serde_json::to_vec(record).expect("it is JSON");
            self.objects.put(&layout::entry(&resource, tail.number), record).await?;
        }
        // Before the entries, so that whoever finds none finds no content that is nobody's.
        match until {
            Some(until) if !gone.is_empty() => self.remove_at(*until, owner, uri, gone).await?,
            _ => self.remove_contents(&resource, gone).await?,
        }
        let files: Vec<_> = self.objects.below(&resource).try_collect().await?;
        let mut overtaken: Vec<u64> =
            files.iter().filter_map(|file| layout::number(&file.location)).collect();
        let is_kept = |number: &u64| {
            put.iter().flat_map(|record| &record.past).any(|past| past.number == *number)
        };
        overtaken.retain(|number| *number < tail.number && !is_kept(number));
        overtaken.sort_unstable_by(|one, other| other.cmp(one));
        let stay = if put.is_some() { OVERTAKEN } else { 0 };
        for number in overtaken.into_iter().skip(stay) {
            self.objects.remove(&layout::entry(&resource, number)).await?;
        }
        Ok(())
    }

    pub(super) async fn remove_contents(
        &self,
        resource: &Path,
        ids: &[String],
    ) -> Result<(), StoreError> {
        for id in ids {
            self.objects.remove(&layout::content(resource, id)).await?;
        }
        Ok(())
    }
}
