//! One connection a process for everything that is published.

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
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{RedisError, connection::dedicated, finder::Finder, settings::Place};

/// How far a listener may fall behind before it is told that it missed some.
pub(super) const BACKLOG: usize = 256;

/// How often a connection on which nothing is heard is asked whether it lives.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long to wait before connecting again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What a listener hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// What somebody published.
    Message(Bytes),
    /// Something may have been missed: the connection was lost for a while,
    /// or this listener was too slow. It may stand before messages that are
    /// older than it.
    Gap,
}

/// Hears one channel until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    heard: mpsc::Receiver<Heard>,
    slow: Arc<AtomicBool>,
    channel: Arc<str>,
    id: u64,
    hub: Arc<Hub>,
}

impl Listener {
    /// What comes next; it never ends.
    pub(crate) async fn next(&mut self) -> Heard {
        if self.slow.swap(false, Ordering::Relaxed) {
            return Heard::Gap;
        }
        match self.heard.recv().await {
            Some(heard) => heard,
            // The connection's task ends only with the process.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut channels = self.hub.channels();
        if let Some(ears) = channels.get_mut(&self.channel) {
            ears.retain(|ear| ear.id != self.id);
            if ears.is_empty() {
                channels.remove(&self.channel);
                // Nobody there to be asked: nothing to take back.
                let _ = self.hub.requests.send(Request::Leave(Arc::clone(&self.channel)));
            }
        }
    }
}

#[derive(Debug)]
struct Hub {
    channels: Mutex<HashMap<Arc<str>, Vec<Subscriber>>>,
    requests: mpsc::UnboundedSender<Request>,
    ids: AtomicU64,
}

/// The other end of a [`Listener`].
#[derive(Debug)]
struct Subscriber {
    id: u64,
    heard: mpsc::Sender<Heard>,
    slow: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Request {
    /// Subscribe, and say when that is done.
    Join(Arc<str>, oneshot::Sender<()>),
    /// Unsubscribe, if nobody listens any more.
    Leave(Arc<str>),
}

pub(super) struct Subscriptions {
    hub: Arc<Hub>,
    timeout: Duration,
    _task: AbortOnDropHandle<()>,
}

impl Subscriptions {
    /// Connects anew when a server was `demoted`: its connections stay open, and
    /// until it follows the new one, nothing is heard on them.
    pub(super) fn new(
        place: &Place,
        timeout: Duration,
        demoted: Arc<Notify>,
    ) -> Result<Self, RedisError> {
        let finder = Finder::new(place).map_err(|error| RedisError::of(error, timeout))?;
        let (requests, asked) = mpsc::unbounded_channel();
        let ids = AtomicU64::new(0);
        let hub = Arc::new(Hub { channels: Mutex::default(), requests, ids });
        let joined = HashSet::new();
        let line =
            PubSubConnection { hub: Arc::clone(&hub), finder, timeout, asked, joined, demoted };
        let task = AbortOnDropHandle::new(tokio::spawn(line.keep()));
        Ok(Self { hub, timeout, _task: task })
    }

    pub(super) async fn listen(&self, channel: &str) -> Result<Listener, RedisError> {
        let channel: Arc<str> = channel.into();
        let id = self.hub.ids.fetch_add(1, Ordering::Relaxed);
        let slow = Arc::new(AtomicBool::new(false));
        let (sender, heard) = mpsc::channel(BACKLOG);
        let ear = Subscriber { id, heard: sender, slow: Arc::clone(&slow) };
        self.hub.channels().entry(Arc::clone(&channel)).or_default().push(ear);
        let hub = Arc::clone(&self.hub);
        // From here on, dropping it takes everything back.
        let listener = Listener { heard, slow, channel: Arc::clone(&channel), id, hub };
        let (done, joined) = oneshot::channel();
        // Where nobody takes the request, nobody answers it.
        let _ = self.hub.requests.send(Request::Join(channel, done));
        match tokio::time::timeout(self.timeout, joined).await {
            Ok(Ok(())) => Ok(listener),
            Ok(Err(_)) => {
                let lost = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
                Err(RedisError::of(lost.into(), self.timeout))
            }
            Err(_) => Err(RedisError::Slow(self.timeout)),
        }
    }
}

impl Hub {
    fn channels(&self) -> MutexGuard<'_, HashMap<Arc<str>, Vec<Subscriber>>> {
        self.channels.lock()
    }

    fn tell(&self, channel: &str, heard: &Heard) {
        for ear in self.channels().get(channel).into_iter().flatten() {
            ear.tell(heard.clone());
        }
    }

    fn tell_all(&self, heard: &Heard) {
        for ear in self.channels().values().flatten() {
            ear.tell(heard.clone());
        }
    }
}

impl Subscriber {
    /// Never waits.
    fn tell(&self, heard: Heard) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.heard.try_send(heard) {
            self.slow.store(true, Ordering::Relaxed);
        }
    }
}

/// The connection, through all its lives.
struct PubSubConnection {
    hub: Arc<Hub>,
    finder: Finder,
    timeout: Duration,
    asked: mpsc::UnboundedReceiver<Request>,
    /// What the present connection is subscribed to.
    joined: HashSet<Arc<str>>,
    demoted: Arc<Notify>,
}

impl PubSubConnection {
    async fn keep(mut self) {
        let mut wait = RETRY.0;
        let mut first = true;
        loop {
            let (pushed, mut pushes) = mpsc::unbounded_channel();
            match self.connect(pushed).await {
                Ok(mut connection) => {
                    if !first {
                        self.hub.tell_all(&Heard::Gap);
                    }
                    (first, wait) = (false, RETRY.0);
                    let lost = self.serve(&mut connection, &mut pushes).await;
                    tracing::warn!(%lost, "the subscription connection to Redis was lost");
                    tokio::time::sleep(wait).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "Redis cannot be subscribed to");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RETRY.1);
                }
            }
        }
    }

    /// Connects and subscribes to all that somebody listens to.
    async fn connect(
        &mut self,
        pushed: mpsc::UnboundedSender<PushInfo>,
    ) -> RedisResult<MultiplexedConnection> {
        let mut connection = dedicated(&self.finder, self.timeout, pushed).await?;
        self.joined = self.hub.channels().keys().cloned().collect();
        if !self.joined.is_empty() {
            let channels: Vec<&str> = self.joined.iter().map(AsRef::as_ref).collect();
            connection.subscribe(channels).await?;
        }
        Ok(connection)
    }

    /// Hands on what is heard until the connection is lost; says why it is.
    async fn serve(
        &mut self,
        connection: &mut MultiplexedConnection,
        pushes: &mut mpsc::UnboundedReceiver<PushInfo>,
    ) -> String {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                push = pushes.recv() => match push {
                    Some(PushInfo { kind: PushKind::Message, data }) => self.hand_on(data),
                    Some(PushInfo { kind: PushKind::Disconnection, .. }) | None => {
                        return "it was closed".into();
                    }
                    Some(_) => {}
                },
                Some(request) = self.asked.recv() => {
                    if let Err(error) = self.grant(connection, request).await {
                        return error.to_string();
                    }
                }
                () = self.demoted.notified() => return "another server has taken over".into(),
                _ = heartbeat.tick() => {
                    if let Err(error) = cmd("PING").exec_async(connection).await {
                        return error.to_string();
                    }
                }
            }
        }
    }

    async fn grant(
        &mut self,
        connection: &mut MultiplexedConnection,
        request: Request,
    ) -> RedisResult<()> {
        match request {
            Request::Join(channel, done) => {
                if !self.joined.contains(&channel) {
                    connection.subscribe(&*channel).await?;
                    self.joined.insert(channel);
                }
                // Who no longer waits has dropped the listener.
                let _ = done.send(());
            }
            Request::Leave(channel) => {
                let deserted = !self.hub.channels().contains_key(&channel);
                if deserted && self.joined.remove(&channel) {
                    connection.unsubscribe(&*channel).await?;
                }
            }
        }
        Ok(())
    }

    fn hand_on(&self, data: Vec<::redis::Value>) {
        let mut data = data.into_iter();
        let channel = data.next().and_then(|channel| String::from_redis_value(channel).ok());
        let message = data.next().and_then(|message| Vec::<u8>::from_redis_value(message).ok());
        if let (Some(channel), Some(message)) = (channel, message) {
            self.hub.tell(&channel, &Heard::Message(message.into()));
        }
    }
}
