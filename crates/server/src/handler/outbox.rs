//! The queue of a call's messages to its client.

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use larder_protocol::Outgoing;
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// The number of messages that a call may queue. When the queue is full, the handler waits
/// for the reader.
const CAPACITY: usize = 64;

/// Queues the messages of a call. The channel is created for the first message, because most
/// calls send none. Cheap to clone; all clones share the queue.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Mutex<QueueState>>);

/// Receives the messages of a call. Dropping it closes the queue.
#[derive(Debug)]
pub struct OutboxReader {
    outbox: Outbox,
    receiver: Option<Receiver>,
}

// Boxed, because an empty channel reserves space for messages.
type Sender = mpsc::Sender<Box<Outgoing>>;
type Receiver = mpsc::Receiver<Box<Outgoing>>;

#[derive(Debug)]
enum QueueState {
    /// There was no message yet. Has the waker of a waiting reader.
    Unused(Option<Waker>),
    /// The reader takes the receiver.
    Open(Sender, Option<Receiver>),
    Closed,
}

impl Outbox {
    /// An empty queue and its reader.
    pub fn new() -> (Self, OutboxReader) {
        let outbox = Self(Arc::new(Mutex::new(QueueState::Unused(None))));
        (outbox.clone(), OutboxReader { outbox, receiver: None })
    }

    /// Queues a message. Waits while the queue is full. Has no effect on a closed queue.
    pub(super) async fn send(&self, message: Outgoing) {
        if let Some(sender) = self.sender() {
            // Fails only if the queue was closed meanwhile.
            let _ = sender.send(Box::new(message)).await;
        }
    }

    fn sender(&self) -> Option<Sender> {
        let mut state = self.0.lock();
        match &mut *state {
            QueueState::Closed => None,
            QueueState::Open(sender, _) => Some(sender.clone()),
            QueueState::Unused(reader) => {
                let reader = reader.take();
                let (sender, receiver) = mpsc::channel(CAPACITY);
                *state = QueueState::Open(sender.clone(), Some(receiver));

                drop(state);
                if let Some(reader) = reader {
                    reader.wake();
                }
                Some(sender)
            }
        }
    }
}

impl OutboxReader {
    /// The next message. Pending while there is none, also when no handler can send one.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Outgoing> {
        let Some(receiver) = self.receiver(Some(cx.waker())) else { return Poll::Pending };
        match ready!(receiver.poll_recv(cx)) {
            Some(message) => Poll::Ready(*message),
            None => Poll::Pending,
        }
    }

    /// The next message, if there is one already.
    pub fn try_next(&mut self) -> Option<Outgoing> {
        self.receiver(None)?.try_recv().ok().map(|message| *message)
    }

    /// The receiver of the channel. Without a channel, registers the waker for it.
    fn receiver(&mut self, waker: Option<&Waker>) -> Option<&mut Receiver> {
        if self.receiver.is_none() {
            match &mut *self.outbox.0.lock() {
                QueueState::Open(_, receiver) => self.receiver = receiver.take(),
                QueueState::Unused(registered) => registered.clone_from(&waker.cloned()),
                QueueState::Closed => {}
            }
        }
        self.receiver.as_mut()
    }
}

impl Drop for OutboxReader {
    fn drop(&mut self) {
        // Dropped without the lock, because messages may be many.
        let closed = mem::replace(&mut *self.outbox.0.lock(), QueueState::Closed);
        drop(closed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn message(data: usize) -> Outgoing {
        Outgoing::Log { level: larder_protocol::LogLevel::Info, logger: None, data: data.into() }
    }

    async fn next(reader: &mut OutboxReader) -> Outgoing {
        std::future::poll_fn(|cx| reader.poll_next(cx)).await
    }

    #[tokio::test(start_paused = true)]
    async fn messages_arrive_in_order_and_a_full_queue_waits_for_its_reader() {
        let (outbox, mut reader) = Outbox::new();
        assert!(reader.try_next().is_none());

        let many = 3 * CAPACITY;
        let sent = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            for n in 0..many {
                outbox.send(message(n)).await;
            }
        });

        for n in 0..many {
            let received = tokio::time::timeout(Duration::from_secs(5), next(&mut reader)).await;
            assert_eq!(received.expect("it is woken"), message(n));
        }

        sent.await.expect("it does not panic");
        assert!(reader.try_next().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_does_not_wait_for_a_reader_that_has_gone() {
        for is_used in [false, true] {
            let (outbox, reader) = Outbox::new();
            if is_used {
                outbox.send(message(0)).await;
            }
            drop(reader);

            let sent = async {
                for n in 0..2 * CAPACITY {
                    outbox.send(message(n)).await;
                }
            };

            tokio::time::timeout(Duration::from_secs(5), sent).await.expect("it does not wait");
        }
    }
}
