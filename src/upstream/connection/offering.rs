//! What the upstream of a connection offers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{Connection, Phase};
use crate::upstream::{
    catalogue::{Catalogue, CutList, Source},
    error::UpstreamError,
    link::{Era, Link},
    shared::Shared,
};

/// How long the lists wait for the subscription to their changes.
const SUBSCRIBED: Duration = Duration::from_secs(3);

/// The wait before lists are read again for which there was no room.
const RETRY: Duration = Duration::from_secs(60);

impl Connection {
    /// What the upstream offers. Waits for an upstream that was never listed,
    /// but not for long: its lists are announced when they come.
    pub(in crate::upstream) async fn catalogue(self: &Arc<Self>) -> Option<Arc<Catalogue>> {
        self.ensure_task();
        if let Some(known) = self.catalogue.load_full() {
            return Some(known);
        }

        let mut state = self.state.subscribe();
        let listed = state.wait_for(|state| !matches!(state.phase, Phase::Starting));
        let _ = tokio::time::timeout(self.shared.settings.list_timeout, listed).await;

        // Set before the catalogue is looked at, so that no catalogue is missed.
        self.is_awaited.store(true, Ordering::SeqCst);
        self.catalogue.load_full()
    }

    /// What the upstream offers, as far as that is known.
    pub(in crate::upstream) fn known(&self) -> Option<Arc<Catalogue>> {
        self.catalogue.load_full()
    }

    /// The error of a call while nothing is known of what a running upstream offers.
    pub(in crate::upstream) fn unlisted(&self) -> Option<UpstreamError> {
        let error = self.list_error.lock().clone()?;
        let (name, problem) = (self.name(), format!("its lists cannot be read: {error}"));
        Some(UpstreamError::Unavailable { name, problem })
    }

    /// Lists what a running upstream offers, whenever that changes, until the
    /// process ends or the caller has no access: then returns why.
    pub(super) async fn serve(&self, link: &Arc<Link>) -> Option<UpstreamError> {
        let mut changed = link.lists_changed();
        if link.era() == Some(Era::Modern) && link.capabilities().announces_lists() {
            // Listed after the subscription, so that no change is missed.
            tokio::select! {
                _ = tokio::time::timeout(SUBSCRIBED, link.acknowledged(1)) => {}
                () = link.ended() => return None,
            }
        }

        loop {
            changed.borrow_and_update();
            tokio::select! {
                listed = Catalogue::load(self.source(link)) => match listed {
                    Ok(catalogue) => {
                        *self.list_error.lock() = None;
                        self.offer(&catalogue);
                    }
                    // Calls go on with a list that is known, since their tokens may differ.
                    Err(error) if error.login().is_some()
                        || error.is_callers() && self.catalogue.load().is_none() => return Some(error),
                    Err(error) => {
                        tracing::warn!(upstream = self.shared.settings.name, %error, "its lists cannot be read");
                        *self.list_error.lock() = Some(error);
                    }
                },
                () = link.ended() => return None,
            }

            self.state.send_if_modified(|state| {
                let is_new = matches!(state.phase, Phase::Starting);
                if is_new {
                    state.phase = Phase::Up(Arc::clone(link));
                    state.is_failing = false;
                }
                is_new
            });

            tokio::select! {
                Ok(()) = changed.changed() => {}
                () = self.retry() => {}
                () = link.ended() => return None,
            }
        }
    }

    /// Waits until the lists should be read again although no change was announced: a list that
    /// failed may succeed, and a list that was cut may have room.
    async fn retry(&self) {
        let may_be_complete_later = {
            let catalogue = self.catalogue.load();
            catalogue.iter().flat_map(|known| &known.cuts).any(CutList::is_transient)
        };
        let failed = self.list_error.lock().is_some();

        if may_be_complete_later || failed {
            tokio::time::sleep(RETRY).await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    fn source<'a>(&'a self, link: &'a Arc<Link>) -> Source<'a> {
        let Shared { settings, naming, catalogues: pool, budget, .. } = &*self.shared;
        Source { link, settings, naming, pool, budget }
    }

    fn offer(&self, catalogue: &Arc<Catalogue>) {
        // The catalogue of an upstream with accounts belongs to its caller alone.
        if self.account.is_none() {
            self.shared.latest.store(Some(Arc::clone(catalogue)));
        }

        let changed = match self.catalogue.swap(Some(Arc::clone(catalogue))) {
            Some(known) => catalogue.changes_since(&known),
            None if self.is_awaited.load(Ordering::SeqCst) => {
                catalogue.changes_since(&Catalogue::default())
            }
            None => Vec::new(),
        };

        for announcement in changed {
            self.shared.announce(announcement);
        }
    }
}
