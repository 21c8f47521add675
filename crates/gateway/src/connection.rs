//! [`Connection`]: keeps an upstream running from its first use on. A call wakes
//! an upstream that is down at once; otherwise attempts to start it back off.

mod anew;
mod client;
mod life;
mod lifespan;
mod offering;
mod pace;

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use self::client::ClientSession;
use self::life::Stage;
pub(super) use self::{life::Life, lifespan::Lifespan};
use super::{
    account::Account,
    catalogue::Catalogue,
    claim::Claim,
    error::{StartError, UpstreamError},
    following::follow,
    guarded::{PANICKED, Panicked, guarded},
    link::Link,
    login::LoginNeeded,
    remote_session::KeptSession,
    shared::Shared,
    start::{Start, StartFailure, StartedUpstream},
    subscriptions::Subscriptions,
};

/// The longest wait between two attempts to start an upstream.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// An upstream's process, started when it is first needed.
pub(super) struct Connection {
    shared: Arc<Shared>,
    /// The client's capabilities, as declared to the upstream.
    client: Value,
    /// Keeps other instances from starting a process for the same session.
    claim: Option<Claim>,
    /// Lets other instances go on with the upstream's session.
    kept: Option<KeptSession>,
    /// The caller's token, if the upstream asks for one.
    account: Option<Arc<Account>>,
    lifespan: Lifespan,
    /// Whether the running process was given calls, and so may keep something of them.
    has_calls: AtomicBool,
    /// Why the process is another one than that of the last call.
    anew: Mutex<Option<String>>,
    /// The session that has used it last.
    session: Mutex<Option<ClientSession>>,

    /// The sessions that use the process.
    pub(super) users: watch::Sender<ConnectionUsers>,
    /// The resources that clients follow.
    pub(super) subscriptions: Arc<Subscriptions>,

    /// The state of the process.
    life: watch::Sender<Life>,
    /// The catalogue of the process, kept while it is down.
    catalogue: ArcSwapOption<Catalogue>,
    /// Counts how often the lists were read.
    readings: watch::Sender<u64>,
    /// Lets the lists be read again.
    relist: Notify,
    /// Until when lists wait, if they are those of one caller.
    own_list_deadline: Mutex<Option<Instant>>,
    /// Whether a caller got a list without it.
    is_awaited: AtomicBool,
    /// Wakes the task that waits before its next attempt.
    wake: Notify,
    /// The task, from the first use on.
    task: Mutex<Option<JoinHandle<()>>>,
    stop: CancellationToken,
}

/// The instances that may serve the session of a connection.
pub(super) enum SessionOwnership {
    /// This instance, as the only one that knows the session.
    Own,
    /// This instance, which claims the session.
    Claimed(Claim),
    /// All instances, which go on with the upstream's session.
    Kept(KeptSession),
}

/// How many calls use a connection, and since when none does.
pub(super) struct ConnectionUsers {
    pub(super) count: usize,
    pub(super) since: Instant,
}

impl Connection {
    pub(super) fn new(
        shared: Arc<Shared>,
        client: Value,
        ownership: SessionOwnership,
        account: Option<Arc<Account>>,
        mut lifespan: Lifespan,
    ) -> Arc<Self> {
        let (claim, kept) = match ownership {
            SessionOwnership::Own => (None, None),
            SessionOwnership::Claimed(claim) => (Some(claim), None),
            SessionOwnership::Kept(kept) => (None, Some(kept)),
        };

        Arc::new(Self {
            shared,
            client,
            claim,
            kept,
            account,
            anew: Mutex::new(lifespan.anew.take()),
            lifespan,
            has_calls: AtomicBool::new(false),
            session: Mutex::default(),
            users: watch::Sender::new(ConnectionUsers { count: 0, since: Instant::now() }),
            subscriptions: Arc::new(Subscriptions::new()),
            life: watch::Sender::new(Life::new()),
            catalogue: ArcSwapOption::empty(),
            readings: watch::Sender::new(0),
            relist: Notify::new(),
            own_list_deadline: Mutex::default(),
            is_awaited: AtomicBool::new(false),
            wake: Notify::new(),
            task: Mutex::default(),
            stop: CancellationToken::new(),
        })
    }

    /// A snapshot of its life.
    pub(super) fn life(&self) -> Life {
        self.life.borrow().clone()
    }

    /// Waits until nobody uses it.
    pub(super) async fn unused(&self) {
        // The sender lives as long as this connection, so the wait cannot fail.
        let mut users = self.users.subscribe();
        let _ = users.wait_for(|users| users.count == 0).await;
    }

    /// The login that the upstream waits for.
    pub(super) fn login_needed(&self) -> Option<Arc<LoginNeeded>> {
        self.life.borrow().login_needed().cloned()
    }

    /// The running upstream. Starts it if it is down.
    pub(super) async fn link(self: &Arc<Self>) -> Result<Arc<Link>, UpstreamError> {
        self.ensure_task();
        let mut life = self.life.subscribe();
        let first = life.borrow().attempt_of_call();

        loop {
            let current = life.borrow_and_update().clone();
            if let Some(link) = current.link() {
                return Ok(Arc::clone(link));
            }
            if let Some(error) = current.failed_since(first) {
                return Err(UpstreamError::Start(Arc::clone(error)));
            }

            match current.stage() {
                Stage::NeedsLogin { .. } | Stage::BackingOff(_) => {
                    self.ensure_task();
                    self.wake.notify_one();
                }
                Stage::Stopped => return Err(self.stopping()),
                // The attempt goes on, or the end was seen.
                Stage::Idle
                | Stage::Starting
                | Stage::Probing
                | Stage::Listing
                | Stage::Ready(_)
                | Stage::Degraded { .. } => {}
            }

            if life.changed().await.is_err() {
                return Err(self.stopping());
            }
        }
    }

    fn stopping(&self) -> UpstreamError {
        let name = self.name();
        let problem = "it is being stopped".to_owned();
        UpstreamError::Unavailable { name, problem }
    }

    fn name(&self) -> Arc<str> {
        self.shared.settings.name.as_str().into()
    }

    /// Begins to end the process.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Begins to end the process, because the client's session has ended.
    pub(super) fn end_session(&self) {
        if let Some(kept) = &self.kept {
            kept.end();
        }
        self.stop();
    }

    /// Ends the process, and waits until nothing is left of it.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let task = self.task.lock().take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }

    /// Starts the process if nothing has used it yet.
    pub(super) fn ensure_task(self: &Arc<Self>) {
        let mut task = self.task.lock();
        if task.is_none() && self.stop.is_cancelled() {
            // No task will say so.
            self.life.send_modify(Life::stop);
        } else if task.is_none() {
            self.life.send_modify(Life::wake);
            let this = Arc::clone(self);
            *task = Some(self.shared.tasks.spawn(async move {
                if guarded(&this.shared.settings.name, Box::pin(this.live())).await.is_err() {
                    this.restart();
                }
            }));
        }
    }

    /// Keeps the upstream running until the connection is stopped.
    async fn live(self: &Arc<Self>) {
        let idle = Arc::clone(self).stop_when_idle();
        tokio::join!(self.run(), idle, self.keep_claim(), self.keep_session());

        if let Some(claim) = &self.claim {
            claim.release().await;
        }
        if let Some(kept) = self.kept.as_ref().filter(|kept| kept.has_ended()) {
            kept.forget().await;
        }
    }

    /// The task has panicked: those who wait hear of it, and the next use begins another task.
    fn restart(&self) {
        // Holds the lock, so that no new task begins before the failure is recorded.
        let mut task = self.task.lock();
        self.failed(StartFailure::from(PANICKED.to_owned()), Duration::ZERO);
        *task = None;
    }

    /// Starts the upstream again and again, until it is stopped.
    async fn run(&self) {
        let mut failures = 0;
        loop {
            self.life.send_modify(Life::start);

            let mut logins = self.account.as_ref().and_then(|account| account.logins());
            let begun = Instant::now();
            let failed = match guarded(&self.shared.settings.name, self.run_once()).await {
                Ok(Some(failed)) => failed,
                Ok(None) => break,
                Err(Panicked) => StartFailure::from(PANICKED.to_owned()),
            };

            if begun.elapsed() >= MAX_BACKOFF {
                failures = 0;
            }
            failures += 1;

            let wait = backoff(failures);
            self.failed(failed, wait);
            let needs_login = self.life.borrow().login_needed().is_some();
            let logged_in = async {
                match &mut logins {
                    // The sender lives as long as the upstream, so the wait cannot fail.
                    Some(logins) => drop(logins.changed().await),
                    None => std::future::pending().await,
                }
            };

            tokio::select! {
                () = tokio::time::sleep(wait), if !needs_login => {}
                () = logged_in => {}
                () = self.wake.notified() => {}
                () = self.stop.cancelled() => break,
            }
        }
        self.life.send_modify(Life::stop);
    }

    /// Starts the upstream, and serves it until it ends. `None` once the connection is stopped.
    async fn run_once(&self) -> Option<StartFailure> {
        let shared = &self.shared;
        let start = Start {
            shared,
            client: &self.client,
            kept: self.kept.as_ref(),
            account: self.account.as_ref(),
            opened: &|| self.life.send_modify(Life::probe),
        };
        let started = tokio::select! {
            started = start.run() => started,
            () = self.stop.cancelled() => return None,
        };
        let StartedUpstream { link, child, .. } = match started {
            Ok(started) => started,
            Err(failed) => return Some(failed),
        };

        let caller = tokio::select! {
            caller = self.serve(&link) => caller,
            () = follow(&link, &self.subscriptions) => None,
            () = self.answer_outside(&link) => None,
            () = self.stop.cancelled() => {
                child.end().await;
                return None;
            }
        };

        let how = link.how_it_ended();
        self.ended_itself(how.as_deref().unwrap_or("closed"));
        let stderr = child.last_lines.show();
        child.end().await;
        Some(StartFailure { reason: "it ended".to_owned(), stderr, caller: caller.map(Box::new) })
    }

    /// An attempt has failed. The next one begins after `wait`.
    fn failed(&self, failed: StartFailure, wait: Duration) {
        let StartFailure { reason, stderr, caller } = failed;
        let shared = &self.shared;
        let next_try = Instant::now() + wait;
        let error = Arc::new(StartError { name: self.name(), reason, next_try, caller });

        if error.caller.is_none() {
            // Standard error is for operators: callers read the reason alone.
            let gap = if stderr.is_empty() { "" } else { ": " };
            shared.statistics.count_failure(format!("{}{gap}{stderr}", error.reason));
            let error = UpstreamError::Start(Arc::clone(&error));
            tracing::warn!(%error, stderr, "an upstream is down");
        } else {
            // The message is for the caller only: it may have the link of a login.
            tracing::debug!(upstream = shared.settings.name, "a caller has no access");
        }

        self.life.send_modify(|life| life.fail(error));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// How long to wait after this many failures in a row.
fn backoff(failures: u32) -> Duration {
    let seconds = 1u64 << failures.saturating_sub(1).min(6);
    Duration::from_secs(seconds).min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::HashSet;

    use serde_json::json;

    use super::*;
    use crate::{
        budget::MessageBudget, memory::Folder, names::Naming, settings::Settings, status::State,
    };

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_begun_anew_by_the_next_use() {
        let mut settings = Settings::new("missing", vec!["/nowhere/at-all".to_owned()]);
        settings.idle = Some(Duration::from_secs(60));
        let naming =
            Naming { upstream: "missing".into(), is_prefixed: false, reserved: HashSet::new() };
        let budget = Arc::new(MessageBudget::default());
        let shared = Arc::new(Shared::new(settings, naming, budget, Folder::default()));
        let panics = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let forget = {
            let panics = Arc::clone(&panics);
            Box::new(move || {
                panics.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                panic!("as the test wants")
            })
        };
        let lifespan = Lifespan { forget, ends_with_session: false, anew: None };
        let connection = Connection::new(shared, json!({}), SessionOwnership::Own, None, lifespan);

        for times in 1..=2 {
            let error = connection.link().await.err().unwrap();
            assert!(error.to_string().contains("/nowhere/at-all"), "{error}");
            // The connection has no user, so it is to be forgotten, which panics.
            let mut life = connection.life.subscribe();
            let has_panicked = |life: &Life| match life.stage() {
                Stage::BackingOff(error) => error.reason == PANICKED,
                _ => false,
            };
            life.wait_for(has_panicked).await.unwrap();
            assert_eq!(panics.load(std::sync::atomic::Ordering::SeqCst), times);
            assert_eq!(connection.life().state(), State::Down);
        }
        connection.close().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_a_connection_that_was_stopped_before_its_first_use_fails() {
        let settings = Settings::new("missing", vec!["/nowhere/at-all".to_owned()]);
        let naming =
            Naming { upstream: "missing".into(), is_prefixed: false, reserved: HashSet::new() };
        let budget = Arc::new(MessageBudget::default());
        let shared = Arc::new(Shared::new(settings, naming, budget, Folder::default()));
        let forget = Box::new(|| true);
        let lifespan = Lifespan { forget, ends_with_session: false, anew: None };
        let connection = Connection::new(shared, json!({}), SessionOwnership::Own, None, lifespan);

        connection.stop();
        let called = tokio::time::timeout(MAX_BACKOFF, connection.link()).await.unwrap();
        assert!(called.err().unwrap().to_string().contains("it is being stopped"));
    }

    #[test]
    fn attempts_back_off_to_a_minute() {
        let waits: Vec<_> = (1..=8).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
