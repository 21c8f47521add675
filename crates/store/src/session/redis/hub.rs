//! [`Hub`]: the channels of this instance. On its own channel an instance receives messages that
//! wake its followers, because a stream has new messages; on the common channel all instances
//! receive notices about sessions. A new follower needs no subscription of its own, so it cannot
//! miss a message between subscribing and reading.

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
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, broadcast, mpsc, watch};

use super::cache::SessionCache;
use crate::{
    redis::{ChannelEvent, Keys, Redis, cmd},
    session::{SessionError, SessionSignal, Signal, Signals},
};

/// The number of signals that may wait for their receiver.
const BACKLOG: usize = 1024;

/// How long a follower waits for the first subscription.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a notice waits for its acknowledgements.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_millis(500);

/// A message for all instances.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Notice {
    from: Arc<str>,
    session: Arc<str>,
    /// The number to send to `from` as an acknowledgement, if it waits for one.
    acknowledge: Option<u64>,
    /// `None` if the session's fields have changed.
    signal: Option<Signal>,
}

/// Receives the messages of both channels for this instance.
#[derive(Debug)]
pub(super) struct Hub {
    keys: Keys,
    instance: Arc<str>,

    followers: Mutex<HashMap<u64, Arc<LocalFollower>>>,
    /// Notices that wait for acknowledgements, by number.
    unacknowledged: Mutex<HashMap<u64, mpsc::UnboundedSender<()>>>,

    next_number: AtomicU64,

    signals: broadcast::Sender<SessionSignal>,
    subscribed: watch::Sender<bool>,
}

/// The state of a follower on this instance.
#[derive(Debug)]
pub(super) struct LocalFollower {
    session: Arc<str>,
    pub(super) woken: Notify,
    cut_off: AtomicBool,
}

impl LocalFollower {
    /// Whether another follower has taken over, or the session has ended.
    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Relaxed);
        self.woken.notify_waiters();
    }
}

/// Receives the acknowledgements of a notice.
pub(super) struct Acknowledgements<'a> {
    hub: &'a Hub,
    number: u64,
    received: mpsc::UnboundedReceiver<()>,
}

impl Hub {
    pub(super) fn new(keys: Keys, instance: Arc<str>) -> Self {
        Self {
            keys,
            instance,
            followers: Mutex::default(),
            unacknowledged: Mutex::default(),
            next_number: AtomicU64::new(1),
            signals: broadcast::Sender::new(BACKLOG),
            subscribed: watch::Sender::new(false),
        }
    }

    /// The channel of this instance.
    pub(super) fn channel(&self) -> String {
        self.channel_of(&self.instance)
    }

    fn channel_of(&self, instance: &str) -> String {
        self.keys.channel(&format!("replica:{instance}"))
    }

    /// The channel of all instances.
    pub(super) fn common_channel(&self) -> String {
        self.keys.channel("sessions")
    }

    pub(super) fn is_subscribed(&self) -> bool {
        *self.subscribed.borrow()
    }

    /// Waits until this instance is subscribed to both channels.
    pub(super) async fn wait_until_subscribed(&self) -> Result<(), SessionError> {
        let mut subscribed = self.subscribed.subscribe();
        let wait = subscribed.wait_for(|subscribed| *subscribed);

        match tokio::time::timeout(SUBSCRIBE_TIMEOUT, wait).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(SessionError::Unavailable),
        }
    }

    /// Adds a follower and returns its number.
    pub(super) fn add_follower(&self, session: Arc<str>) -> (u64, Arc<LocalFollower>) {
        let follower = Arc::new(LocalFollower {
            session,
            woken: Notify::new(),
            cut_off: AtomicBool::new(false),
        });

        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        self.followers.lock().insert(number, Arc::clone(&follower));

        (number, follower)
    }

    pub(super) fn remove_follower(&self, number: u64) {
        self.followers.lock().remove(&number);
    }

    /// Encodes a notice.
    pub(super) fn notice(&self, session: &Arc<str>, signal: Option<Signal>) -> String {
        self.encode(session, signal, None)
    }

    /// Encodes a notice that the other instances acknowledge.
    pub(super) fn acknowledged_notice(
        &self,
        session: &Arc<str>,
        signal: Option<Signal>,
    ) -> (String, Acknowledgements<'_>) {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let (sender, received) = mpsc::unbounded_channel();
        self.unacknowledged.lock().insert(number, sender);

        let notice = self.encode(session, signal, Some(number));
        (notice, Acknowledgements { hub: self, number, received })
    }

    fn encode(&self, session: &Arc<str>, signal: Option<Signal>, number: Option<u64>) -> String {
        let notice = Notice {
            from: Arc::clone(&self.instance),
            session: Arc::clone(session),
            acknowledge: number,
            signal,
        };
        // All maps have string keys, so this cannot fail.
        serde_json::to_string(&notice).unwrap_or_default()
    }

    pub(super) fn signals(&self) -> Signals {
        stream::unfold(self.signals.subscribe(), |mut signals| async move {
            loop {
                match signals.recv().await {
                    Ok(signal) => return Some((signal, signals)),
                    Err(broadcast::error::RecvError::Lagged(missed)) => {
                        tracing::warn!(missed, "missed signals from other instances");
                    }
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
        .boxed()
    }

    /// Receives the messages of both channels, until dropped.
    pub(super) async fn run(&self, redis: &Redis, cache: &SessionCache) {
        let mut own = redis.subscribe_with_retry(&self.channel()).await;
        let mut common = redis.subscribe_with_retry(&self.common_channel()).await;
        self.subscribed.send_replace(true);

        loop {
            tokio::select! {
                event = own.next() => match event {
                    ChannelEvent::Message(message) => self.on_own_message(&message),
                    ChannelEvent::Gap => self.wake_all(),
                },
                event = common.next() => match event {
                    ChannelEvent::Message(message) => self.on_notice(&message, redis, cache),
                    ChannelEvent::Gap => {
                        cache.clear();
                        self.wake_all();
                    }
                },
            }
        }
    }

    /// Handles a message on this instance's channel, such as `wake 7`.
    fn on_own_message(&self, message: &Bytes) {
        let message = String::from_utf8_lossy(message);
        let Some((verb, number)) = message.split_once(' ') else { return };
        let Ok(number) = number.parse::<u64>() else { return };

        if verb == "done" {
            if let Some(sender) = self.unacknowledged.lock().get(&number) {
                // Fails if the caller no longer waits.
                let _ = sender.send(());
            }
            return;
        }

        let followers = self.followers.lock();
        match (verb, followers.get(&number)) {
            ("cut", Some(follower)) => follower.cut_off(),
            (_, Some(follower)) => follower.woken.notify_waiters(),
            _ => {}
        }
    }

    /// Handles a notice on the common channel.
    fn on_notice(&self, message: &Bytes, redis: &Redis, cache: &SessionCache) {
        let Ok(notice) = serde_json::from_slice::<Notice>(message) else {
            // A newer version may send notices of another form.
            tracing::debug!("cannot decode a notice from another instance");
            return;
        };

        let ended = notice.signal == Some(Signal::Ended);
        if ended || notice.signal.is_none() {
            cache.remove(&notice.session);
        }

        if ended {
            let followers = self.followers.lock();
            for follower in followers.values().filter(|f| f.session == notice.session) {
                follower.cut_off();
            }
        }

        if notice.from == self.instance {
            return;
        }

        if let Some(signal) = notice.signal {
            // Fails if there is no receiver.
            let _ = self.signals.send((notice.session, signal));
        }

        if let Some(number) = notice.acknowledge {
            let redis = redis.clone();
            let channel = self.channel_of(&notice.from);
            tokio::spawn(async move {
                let mut acknowledge = cmd("PUBLISH");
                acknowledge.arg(channel).arg(format!("done {number}"));
                // On failure, the sender's wait times out.
                let _ = redis.query::<()>(&acknowledge).await;
            });
        }
    }

    /// Makes all followers read again, because messages may have been missed.
    fn wake_all(&self) {
        for follower in self.followers.lock().values() {
            follower.woken.notify_waiters();
        }
    }
}

impl Acknowledgements<'_> {
    /// Waits until the others of these instances have acknowledged. Times out, so that a hanging
    /// instance does not block the caller.
    pub(super) async fn wait_for(mut self, instances: &[String]) {
        let others = instances.iter().filter(|instance| ***instance != *self.hub.instance).count();
        let all = async {
            for _ in 0..others {
                self.received.recv().await;
            }
        };

        if tokio::time::timeout(ACKNOWLEDGE_TIMEOUT, all).await.is_err() {
            tracing::debug!("not all instances have acknowledged a changed session");
        }
    }
}

impl Drop for Acknowledgements<'_> {
    fn drop(&mut self) {
        self.hub.unacknowledged.lock().remove(&self.number);
    }
}
