//! Putting, deleting, expiring: each is one step in the owner's ledger.

use std::{panic, sync::Arc, time::Duration};

use super::{
    Inner,
    ledger::{Change, Ledger, Tail},
    record::{Current, Past, Record},
};
use crate::{
    auth::Owner,
    clock::Timestamp,
    store::{self, ChangeKind, Committed, Draft, Entry, ResourceUri, StoreError},
};

/// How long content that was replaced or deleted stays for those who have
/// begun to read it.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// What is to become of a resource.
#[derive(Clone)]
enum Operation {
    /// Content that lies there under that id.
    Put(Box<Draft>, String),
    Delete,
    Expire,
}

/// What became of it.
enum Outcome {
    Put(Committed),
    Removed,
    Nothing,
}

impl Inner {
    pub(super) async fn put(
        self: &Arc<Self>,
        draft: Draft,
        content: String,
    ) -> Result<Committed, StoreError> {
        let (owner, uri) = (draft.owner.clone(), draft.uri.clone());
        match self.change(&owner, &uri, Operation::Put(Box::new(draft), content)).await? {
            Outcome::Put(committed) => Ok(committed),
            Outcome::Removed | Outcome::Nothing => Err(StoreError::NotFound { uri }),
        }
    }

    pub(super) async fn delete(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<bool, StoreError> {
        let deleted = self.change(owner, uri, Operation::Delete).await?;
        Ok(matches!(deleted, Outcome::Removed))
    }

    /// Removes a resource whose time is over.
    pub(super) async fn expire(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<(), StoreError> {
        self.change(owner, uri, Operation::Expire).await.map(|_| ())
    }

    /// Once begun it is carried out, whoever stops waiting for it.
    async fn change(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        operation: Operation,
    ) -> Result<Outcome, StoreError> {
        let (inner, owner, uri) = (Arc::clone(self), owner.clone(), uri.clone());
        let changing =
            tokio::spawn(async move { inner.change_in_turn(&owner, &uri, operation).await });
        changing.await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            Err(error) => Err(self.objects.failed(error)),
        })
    }

    async fn change_in_turn(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        operation: Operation,
    ) -> Result<Outcome, StoreError> {
        let mut swept = false;
        loop {
            let mut turn = self.turns.wait(owner).await;
            let tail = self.tail(owner, &mut turn).await?;
            let current = self.current(owner, uri).await?;
            let exists = current.is_some();
            // What cannot be read can still be replaced or deleted.
            let old = current.and_then(|Current { number, record }| Some((number, record.ok()?)));
            let (number, old) = old.unzip();
            let now = self.clock.now();
            let expired = old.as_ref().filter(|old| old.entry.is_expired(now));
            let expired = expired.map(|old| old.entry.expires);
            let living = old.as_ref().filter(|_| expired.is_none()).map(|old| &old.entry);
            let put = match &operation {
                Operation::Put(draft, content) => {
                    let missing = || StoreError::NotFound { uri: uri.clone() };
                    let entry = Draft::clone(draft).over(living).ok_or_else(missing)?;
                    let past = old.clone().filter(|_| expired.is_none()).zip(number);
                    let past = past.map_or_else(Vec::new, |(old, number)| old.into_past(number));
                    match self.past_beside(&tail, &entry, exists, past, draft.revisions) {
                        Ok(past) => Some(Record { content: content.clone(), entry, past }),
                        Err(full) => {
                            drop(turn);
                            if swept {
                                return Err(full);
                            }
                            // What has expired takes nobody's room.
                            if let Err(error) = self.sweep().await {
                                tracing::debug!(%error, "what has expired may still take room");
                            }
                            swept = true;
                            continue;
                        }
                    }
                }
                Operation::Delete if exists => None,
                Operation::Expire if expired.is_some() => None,
                Operation::Delete | Operation::Expire => return Ok(Outcome::Nothing),
            };
            let readable = old.as_ref().filter(|_| expired.is_none());
            let until = readable.map(|_| now.saturating_add(GRACE));
            let next = self.next(&tail, old.as_ref(), exists, uri, put.clone(), until);
            if !self.advance(owner, &mut turn, &tail, next).await? {
                continue;
            }
            // With the turn still held, so that changes are heard in their order.
            if let Some(at) = expired {
                self.expired.remember(owner.clone(), uri.clone(), at);
                self.publish(owner, uri, ChangeKind::Expired);
            }
            let created = expired.is_some() || !exists;
            return Ok(match put {
                Some(Record { entry, .. }) => {
                    let change = if created { ChangeKind::Created } else { ChangeKind::Updated };
                    self.expired.forget(owner, uri);
                    self.agenda.expect(entry.expires);
                    self.publish(owner, uri, change);
                    Outcome::Put(Committed { entry: Arc::new(entry), change })
                }
                None if expired.is_some() => Outcome::Nothing,
                None => {
                    self.publish(owner, uri, ChangeKind::Deleted);
                    Outcome::Removed
                }
            });
        }
    }

    /// How much of what was there is kept beside an entry: what there is room
    /// for, of so many revisions in all.
    ///
    /// # Errors
    /// Where there is no room for the entry itself.
    fn past_beside(
        &self,
        tail: &Tail,
        entry: &Entry,
        exists: bool,
        mut past: Vec<Past>,
        revisions: usize,
    ) -> Result<Vec<Past>, StoreError> {
        let Ledger { bytes, resources, .. } = tail.ledger;
        let max = self.quota.bytes;
        let mut left = bytes;
        // All but the last one, which the entry replaces only when it is there.
        while left.saturating_add(entry.size) > max && past.len() > 1 {
            left = left.saturating_sub(past.remove(0).size);
        }
        if left.saturating_add(entry.size) > max {
            return Err(self.quota.out_of_bytes(bytes));
        }
        if !exists && resources >= self.quota.resources {
            return Err(self.quota.out_of_resources(resources));
        }
        let too_many = (past.len() + 1).saturating_sub(revisions.max(1));
        past.drain(..too_many);
        Ok(past)
    }

    /// The ledger after `put` stands in the place of `old`, whose content stays
    /// `until` then.
    fn next(
        &self,
        tail: &Tail,
        old: Option<&Record>,
        existed: bool,
        uri: &ResourceUri,
        put: Option<Record>,
        until: Option<Timestamp>,
    ) -> Ledger {
        let Ledger { bytes, resources, .. } = tail.ledger;
        let size = |record: Option<&Record>| record.map_or(0, Record::bytes);
        let resources = resources.saturating_sub(u64::from(existed));
        // What could not be read is counted until nothing is left.
        let bytes = if resources == 0 { 0 } else { bytes.saturating_sub(size(old)) };
        let stays = |id: &&String| put.as_ref().is_some_and(|put| put.wants(id));
        let gone = old.iter().flat_map(|old| old.contents()).filter(|id| !stays(id));
        let gone = gone.cloned().collect();
        Ledger {
            id: self.random.id(),
            bytes: bytes + size(put.as_ref()),
            resources: resources + u64::from(put.is_some()),
            change: Some(Change { uri: uri.clone(), gone, until, put }),
        }
    }

    fn publish(&self, owner: &Owner, uri: &ResourceUri, kind: ChangeKind) {
        let (owner, uri) = (owner.clone(), uri.clone());
        self.feed.publish(store::Change { owner, uri, kind, id: None });
    }

    /// Puts the resource down to be looked at when it expires.
    pub(super) async fn note(&self, draft: &Draft) -> Result<(), StoreError> {
        let ttl = match &draft.placement {
            store::Placement::Create { ttl, .. } | store::Placement::Update { ttl: Some(ttl) } => {
                *ttl
            }
            // It is down already.
            store::Placement::Update { ttl: None } => return Ok(()),
        };
        self.look_at(draft.now.saturating_add(ttl), &draft.owner, &draft.uri).await
    }
}
