//! What a replica hears: on a channel of its own that a stream it follows has
//! more, and on one of all replicas what concerns a session wherever it is
//! used. So following a stream subscribes to nothing, and cannot miss
//! anything between subscribing and reading.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, broadcast, mpsc, watch};

use super::cache::Cache;
use crate::{
    redis::{Heard, Keys, Redis, cmd},
    session::{SessionError, Signal, Signalled, Signals},
};

/// How many signals may wait to be attended to.
const BACKLOG: usize = 1024;

/// How long to wait for the first connection, or for others to acknowledge.
const PATIENCE: Duration = Duration::from_secs(2);
const ACKNOWLEDGED: Duration = Duration::from_millis(500);

/// What is published for all replicas.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Notice {
    from: Arc<str>,
    session: Arc<str>,
    /// Where that is waited for, tell `from` by this number when it is done.
    acknowledge: Option<u64>,
    /// Or else its record has changed.
    signal: Option<Signal>,
}

#[derive(Debug)]
pub(super) struct Hub {
    keys: Keys,
    instance: Arc<str>,
    ears: Mutex<HashMap<u64, Arc<Subscriber>>>,
    waiting: Mutex<HashMap<u64, mpsc::UnboundedSender<()>>>,
    numbers: AtomicU64,
    signals: broadcast::Sender<Signalled>,
    listening: watch::Sender<bool>,
}

/// One follower's.
#[derive(Debug)]
pub(super) struct Subscriber {
    session: Arc<str>,
    pub(super) woken: Notify,
    cut: AtomicBool,
}

impl Subscriber {
    /// Whether somebody else follows now, or the session has ended.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
        self.woken.notify_waiters();
    }
}

/// Somebody who waits until the other replicas have heard.
pub(super) struct Acknowledgements<'a> {
    hub: &'a Hub,
    number: u64,
    come: mpsc::UnboundedReceiver<()>,
}

impl Hub {
    pub(super) fn new(keys: Keys, instance: Arc<str>) -> Self {
        Self {
            keys,
            instance,
            ears: Mutex::default(),
            waiting: Mutex::default(),
            numbers: AtomicU64::new(1),
            signals: broadcast::Sender::new(BACKLOG),
            listening: watch::Sender::new(false),
        }
    }

    /// Where this replica is told what its followers wait for.
    pub(super) fn channel(&self) -> String {
        self.channel_of(&self.instance)
    }

    fn channel_of(&self, instance: &str) -> String {
        self.keys.channel(&format!("replica:{instance}"))
    }

    /// Where all replicas are told.
    pub(super) fn common_channel(&self) -> String {
        self.keys.channel("sessions")
    }

    pub(super) fn is_listening(&self) -> bool {
        *self.listening.borrow()
    }

    /// Waits until nothing can be missed any more.
    pub(super) async fn listening(&self) -> Result<(), SessionError> {
        let mut listening = self.listening.subscribe();
        let wait = listening.wait_for(|listening| *listening);
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(SessionError::Unavailable),
        }
    }

    pub(super) fn follower(&self, session: Arc<str>) -> (u64, Arc<Subscriber>) {
        let subscriber =
            Arc::new(Subscriber { session, woken: Notify::new(), cut: AtomicBool::new(false) });
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        lock(&self.ears).insert(number, Arc::clone(&subscriber));
        (number, subscriber)
    }

    pub(super) fn forget(&self, number: u64) {
        lock(&self.ears).remove(&number);
    }

    pub(super) fn notice(&self, session: &Arc<str>, signal: Option<Signal>) -> String {
        self.encode(session, signal, None)
    }

    /// The same where it is waited for that all have heard it.
    pub(super) fn urgent_notice(
        &self,
        session: &Arc<str>,
        signal: Option<Signal>,
    ) -> (String, Acknowledgements<'_>) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (sender, come) = mpsc::unbounded_channel();
        lock(&self.waiting).insert(number, sender);
        let notice = self.encode(session, signal, Some(number));
        (notice, Acknowledgements { hub: self, number, come })
    }

    fn encode(&self, session: &Arc<str>, signal: Option<Signal>, number: Option<u64>) -> String {
        let (from, session) = (Arc::clone(&self.instance), Arc::clone(session));
        let notice = Notice { from, session, acknowledge: number, signal };
        // Maps with other keys than strings are in none of it.
        serde_json::to_string(&notice).unwrap_or_default()
    }

    pub(super) fn signals(&self) -> Signals {
        stream::unfold(self.signals.subscribe(), |mut signals| async move {
            loop {
                match signals.recv().await {
                    Ok(signal) => return Some((signal, signals)),
                    Err(broadcast::error::RecvError::Lagged(missed)) => {
                        tracing::warn!(missed, "signals between replicas came too fast");
                    }
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
        .boxed()
    }

    /// Hears, until dropped.
    pub(super) async fn hear(&self, redis: &Redis, cache: &Cache) {
        let mut own = redis.listen_patiently(&self.channel()).await;
        let mut common = redis.listen_patiently(&self.common_channel()).await;
        self.listening.send_replace(true);
        loop {
            tokio::select! {
                heard = own.next() => match heard {
                    Heard::Message(message) => self.called(&message),
                    Heard::Gap => self.look_up(),
                },
                heard = common.next() => match heard {
                    Heard::Message(message) => self.noticed(&message, redis, cache),
                    Heard::Gap => {
                        cache.clear();
                        self.look_up();
                    }
                },
            }
        }
    }

    /// Something on this replica's channel: `wake 7`.
    fn called(&self, message: &Bytes) {
        let message = String::from_utf8_lossy(message);
        let Some((what, number)) = message.split_once(' ') else { return };
        let Ok(number) = number.parse::<u64>() else { return };
        if what == "done" {
            if let Some(waiting) = lock(&self.waiting).get(&number) {
                // Whoever no longer waits is not missed.
                let _ = waiting.send(());
            }
            return;
        }
        let ears = lock(&self.ears);
        match (what, ears.get(&number)) {
            ("cut", Some(subscriber)) => subscriber.cut(),
            (_, Some(subscriber)) => subscriber.woken.notify_waiters(),
            _ => {}
        }
    }

    fn noticed(&self, message: &Bytes, redis: &Redis, cache: &Cache) {
        let Ok(notice) = serde_json::from_slice::<Notice>(message) else {
            // A newer version may know more.
            tracing::debug!("a notice between replicas cannot be read");
            return;
        };
        let ended = notice.signal == Some(Signal::Ended);
        if ended || notice.signal.is_none() {
            cache.remove(&notice.session);
        }
        if ended {
            for subscriber in
                lock(&self.ears).values().filter(|subscriber| subscriber.session == notice.session)
            {
                subscriber.cut();
            }
        }
        if notice.from == self.instance {
            return;
        }
        if let Some(signal) = notice.signal {
            // Nobody attending is no failure.
            let _ = self.signals.send((notice.session, signal));
        }
        if let Some(number) = notice.acknowledge {
            let (redis, channel) = (redis.clone(), self.channel_of(&notice.from));
            tokio::spawn(async move {
                let mut done = cmd("PUBLISH");
                done.arg(channel).arg(format!("done {number}"));
                // Whoever waits does not wait for long.
                let _ = redis.query::<()>(&done).await;
            });
        }
    }

    /// Something may have been missed.
    fn look_up(&self) {
        for subscriber in lock(&self.ears).values() {
            subscriber.woken.notify_waiters();
        }
    }
}

impl Acknowledgements<'_> {
    /// Waits until these replicas have heard; for a moment at most: one that
    /// hangs must not hold up the others.
    pub(super) async fn by(mut self, instances: &[String]) {
        let others = instances.iter().filter(|instance| ***instance != *self.hub.instance).count();
        let all = async {
            for _ in 0..others {
                self.come.recv().await;
            }
        };
        if tokio::time::timeout(ACKNOWLEDGED, all).await.is_err() {
            tracing::debug!("not all replicas have acknowledged that a session changed");
        }
    }
}

impl Drop for Acknowledgements<'_> {
    fn drop(&mut self) {
        lock(&self.hub.waiting).remove(&self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
