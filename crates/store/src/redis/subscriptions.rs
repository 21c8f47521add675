//! [`PubSub`]: the pub/sub connection, one for the whole process.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use ::redis::{FromRedisValue, PushInfo, PushKind, RedisResult, aio::MultiplexedConnection, cmd};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{RedisError, connection::dedicated, finder::Finder, settings::Address};

/// The most undelivered messages of a subscriber, which then misses messages.
pub(super) const BACKLOG: usize = 256;

/// The interval of the PINGs that detect a dead connection.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The backoff between connection attempts: the first delay and the maximum.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// A message or a gap, as a subscription delivers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChannelEvent {
    /// A published message.
    Message(Bytes),
    /// Messages may be missing, because the connection was lost or this subscriber was too slow. A
    /// gap may arrive before messages that are older than it.
    Gap,
}

/// Receives the messages of one channel. Unsubscribes on drop.
#[derive(Debug)]
pub(crate) struct Subscription {
    events: mpsc::Receiver<ChannelEvent>,

    overflowed: Arc<AtomicBool>,
    channel: Arc<str>,
    id: u64,
    subscribers: Arc<Subscribers>,
}

impl Subscription {
    /// Waits for the next message or gap. Never ends.
    pub(crate) async fn next(&mut self) -> ChannelEvent {
        if self.overflowed.swap(false, Ordering::Relaxed) {
            return ChannelEvent::Gap;
        }

        match self.events.recv().await {
            Some(event) => event,
            // The connection's task ends only with the process.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut channels = self.subscribers.channels.lock();
        let Some(subscribers) = channels.get_mut(&self.channel) else { return };
        subscribers.retain(|subscriber| subscriber.id != self.id);

        if subscribers.is_empty() {
            channels.remove(&self.channel);
            // Fails only if the connection's task has ended.
            let leave = SubscriptionRequest::Leave(Arc::clone(&self.channel));
            let _ = self.subscribers.requests.send(leave);
        }
    }
}

/// The subscribers by channel, and the requests to the connection's task.
#[derive(Debug)]
struct Subscribers {
    channels: Mutex<HashMap<Arc<str>, Vec<SubscriptionSender>>>,
    requests: mpsc::UnboundedSender<SubscriptionRequest>,
    ids: AtomicU64,
}

/// The sending end of a [`Subscription`].
#[derive(Debug)]
struct SubscriptionSender {
    id: u64,
    events: mpsc::Sender<ChannelEvent>,
    overflowed: Arc<AtomicBool>,
}

/// A request to the connection's task.
#[derive(Debug)]
enum SubscriptionRequest {
    /// Subscribes, and confirms through the sender.
    Join(Arc<str>, oneshot::Sender<()>),
    /// Unsubscribes if the channel has no subscribers left.
    Leave(Arc<str>),
}

/// The subscriptions of this process, and the task that serves them.
pub(super) struct PubSub {
    subscribers: Arc<Subscribers>,
    timeout: Duration,
    _task: AbortOnDropHandle<()>,
}

impl PubSub {
    /// Opens the connection, and reopens it when `demoted` is notified: the connections of a demoted
    /// server stay open, but deliver nothing until the server follows the new primary.
    pub(super) fn new(
        address: &Address,
        timeout: Duration,
        demoted: Arc<Notify>,
    ) -> Result<Self, RedisError> {
        let finder = Finder::new(address).map_err(|error| RedisError::classify(error, timeout))?;
        let (sender, requests) = mpsc::unbounded_channel();
        let subscribers = Arc::new(Subscribers {
            channels: Mutex::default(),
            requests: sender,
            ids: AtomicU64::new(0),
        });

        let connection = PubSubConnection {
            subscribers: Arc::clone(&subscribers),
            finder,
            timeout,
            requests,
            joined: HashSet::new(),
            demoted,
        };

        let task = AbortOnDropHandle::new(tokio::spawn(connection.run()));
        Ok(Self { subscribers, timeout, _task: task })
    }

    pub(super) async fn subscribe(&self, channel: &str) -> Result<Subscription, RedisError> {
        let channel: Arc<str> = channel.into();
        let id = self.subscribers.ids.fetch_add(1, Ordering::Relaxed);
        let overflowed = Arc::new(AtomicBool::new(false));
        let (sender, events) = mpsc::channel(BACKLOG);
        let subscriber =
            SubscriptionSender { id, events: sender, overflowed: Arc::clone(&overflowed) };
        self.subscribers.channels.lock().entry(Arc::clone(&channel)).or_default().push(subscriber);

        // Created before the wait, so that dropping it also undoes an unfinished request.
        let subscription = Subscription {
            events,
            overflowed,
            channel: Arc::clone(&channel),
            id,
            subscribers: Arc::clone(&self.subscribers),
        };

        let (confirm, confirmed) = oneshot::channel();
        // If the task has ended, the confirmation fails below.
        let _ = self.subscribers.requests.send(SubscriptionRequest::Join(channel, confirm));

        match tokio::time::timeout(self.timeout, confirmed).await {
            Ok(Ok(())) => Ok(subscription),
            Ok(Err(_)) => {
                let lost = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
                Err(RedisError::classify(lost.into(), self.timeout))
            }
            Err(_) => Err(RedisError::Timeout(self.timeout)),
        }
    }
}

impl Subscribers {
    fn send(&self, channel: &str, event: &ChannelEvent) {
        for subscriber in self.channels.lock().get(channel).into_iter().flatten() {
            subscriber.send(event.clone());
        }
    }

    fn send_to_all(&self, event: &ChannelEvent) {
        for subscriber in self.channels.lock().values().flatten() {
            subscriber.send(event.clone());
        }
    }
}

impl SubscriptionSender {
    /// Queues an event without waiting. A full queue becomes a gap.
    fn send(&self, event: ChannelEvent) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.events.try_send(event) {
            self.overflowed.store(true, Ordering::Relaxed);
        }
    }
}

/// The task that owns the connection and reconnects it.
struct PubSubConnection {
    subscribers: Arc<Subscribers>,
    finder: Finder,
    timeout: Duration,
    requests: mpsc::UnboundedReceiver<SubscriptionRequest>,
    /// The channels to which the present connection is subscribed.
    joined: HashSet<Arc<str>>,
    demoted: Arc<Notify>,
}

impl PubSubConnection {
    /// Connects and serves the connection, again and again, until dropped.
    async fn run(mut self) {
        let mut backoff = MIN_BACKOFF;
        let mut first = true;

        loop {
            let (sender, mut pushes) = mpsc::unbounded_channel();

            match self.connect(sender).await {
                Ok(mut connection) => {
                    if !first {
                        self.subscribers.send_to_all(&ChannelEvent::Gap);
                    }
                    first = false;
                    backoff = MIN_BACKOFF;

                    let reason = self.serve(&mut connection, &mut pushes).await;
                    tracing::warn!(%reason, "lost the pub/sub connection to Redis");

                    tokio::time::sleep(backoff).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot open the pub/sub connection to Redis");
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
        }
    }

    /// Connects and subscribes to all channels that have subscribers.
    async fn connect(
        &mut self,
        pushes: mpsc::UnboundedSender<PushInfo>,
    ) -> RedisResult<MultiplexedConnection> {
        let mut connection = dedicated(&self.finder, self.timeout, pushes).await?;

        self.joined = self.subscribers.channels.lock().keys().cloned().collect();
        if !self.joined.is_empty() {
            let channels: Vec<&str> = self.joined.iter().map(AsRef::as_ref).collect();
            connection.subscribe(channels).await?;
        }

        Ok(connection)
    }

    /// Delivers messages until the connection is lost. Returns the reason.
    async fn serve(
        &mut self,
        connection: &mut MultiplexedConnection,
        pushes: &mut mpsc::UnboundedReceiver<PushInfo>,
    ) -> String {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);

        loop {
            tokio::select! {
                push = pushes.recv() => match push {
                    Some(PushInfo { kind: PushKind::Message, data }) => self.deliver(data),
                    Some(PushInfo { kind: PushKind::Disconnection, .. }) | None => {
                        return "the connection was closed".into();
                    }
                    Some(_) => {}
                },
                Some(request) = self.requests.recv() => {
                    if let Err(error) = self.apply(connection, request).await {
                        return error.to_string();
                    }
                }
                () = self.demoted.notified() => return "another server is the primary now".into(),
                _ = heartbeat.tick() => {
                    if let Err(error) = cmd("PING").exec_async(connection).await {
                        return error.to_string();
                    }
                }
            }
        }
    }

    /// Subscribes or unsubscribes the connection.
    async fn apply(
        &mut self,
        connection: &mut MultiplexedConnection,
        request: SubscriptionRequest,
    ) -> RedisResult<()> {
        match request {
            SubscriptionRequest::Join(channel, confirm) => {
                if !self.joined.contains(&channel) {
                    connection.subscribe(&*channel).await?;
                    self.joined.insert(channel);
                }
                // Fails if the caller has given up; dropping its listener unsubscribes.
                let _ = confirm.send(());
            }
            SubscriptionRequest::Leave(channel) => {
                let unused = !self.subscribers.channels.lock().contains_key(&channel);
                if unused && self.joined.remove(&channel) {
                    connection.unsubscribe(&*channel).await?;
                }
            }
        }

        Ok(())
    }

    /// Sends a message to the subscribers of its channel.
    fn deliver(&self, data: Vec<::redis::Value>) {
        let mut data = data.into_iter();
        let channel = data.next().and_then(|channel| String::from_redis_value(channel).ok());
        let message = data.next().and_then(|message| Vec::<u8>::from_redis_value(message).ok());

        if let (Some(channel), Some(message)) = (channel, message) {
            self.subscribers.send(&channel, &ChannelEvent::Message(message.into()));
        }
    }
}
