//! The connection to the client.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use larder_oauth::{Identity, Principal};
use larder_protocol::{Fault, Message, Meta, Method, Params, Request, RequestId};
use larder_store::session::{Delivery, Session};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::Stdio;
use crate::{
    dispatch::{Reader, Running, Step},
    era::{
        Encoded, Era, Inbound, MessageContext, ResponseEncoder, SessionRequest, Subscription,
        Unread, batch, encode_error, encode_outcome,
    },
};

/// How long the client has to receive the last messages.
pub(super) const STOP_MARGIN: Duration = Duration::from_secs(1);

/// The mark with which some clients begin their output (RFC 8259, section 8.1).
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The connection to the client.
pub(super) struct StdioConnection {
    stdio: Stdio,
    output: mpsc::Sender<Bytes>,

    /// Calls. They end by themselves.
    calls: TaskTracker,
    /// Streams. They do not end by themselves.
    streams: TaskTracker,

    session: Option<Arc<Session>>,
    cancellations: Arc<Cancellations>,
}

/// Cancels the running requests, by their ID.
type Cancellations = Mutex<HashMap<RequestId, CancellationToken>>;

impl StdioConnection {
    pub(super) fn new(stdio: Stdio, output: mpsc::Sender<Bytes>) -> Self {
        Self {
            stdio,
            output,
            calls: TaskTracker::new(),
            streams: TaskTracker::new(),
            session: None,
            cancellations: Arc::default(),
        }
    }

    /// Handles a line: a message, or several of them, whose requests are answered one by one.
    pub(super) async fn handle(&mut self, line: Bytes) {
        let mark = if line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let line = line.slice(mark..);

        let messages = if batch::is_batch(&line) {
            match self.session.as_deref() {
                Some(session) if batch::has_batches(session) => batch::messages(&line),
                _ => Ok(vec![line]),
            }
        } else {
            batch::consecutive_messages(&line).unwrap_or_else(|| Ok(vec![line]))
        };

        match messages {
            Ok(messages) => {
                for message in messages {
                    self.handle_message(message).await;
                }
            }
            Err(fault) => self.send_error(None, &fault, Era::Legacy).await,
        }
    }

    async fn handle_message(&mut self, line: Bytes) {
        let context = MessageContext { version: None, in_session: self.session.is_some() };
        let (stdio, owner) = (&self.stdio, Principal::Local.owner());
        let max_values = stdio.message_values;
        let read = Inbound::receive(line, context, max_values, &owner, &stdio.dispatcher).await;

        let inbound = match read {
            Ok(inbound) => inbound,
            Err(Unread::TooManyValues) => {
                let message = format!(
                    "The message has more than {max_values} JSON values (limits.body_values). Send large data as one string."
                );
                let fault = Fault::InvalidRequest(message);
                return self.send_error(None, &fault, Era::Legacy).await;
            }
            Err(Unread::Busy(fault)) => return self.send_error(None, &fault, Era::Legacy).await,
        };

        let (id, era, result) = match inbound {
            // Two running requests with one id, and their cancellations, could not be told apart.
            Inbound::Modern(request, _)
            | Inbound::Single(request, _)
            | Inbound::InSession(request, _)
                if self.lock().contains_key(&request.id) =>
            {
                let fault = Fault::InvalidRequest(
                    "A request with this id is still running. Send it again with another id."
                        .into(),
                );
                (request.id, Era::Legacy, Err(fault))
            }
            Inbound::Modern(request, meta) => {
                (request.id.clone(), Era::Modern, self.modern(&request, meta).await)
            }
            Inbound::Initialize(request) => {
                (request.id.clone(), Era::Legacy, self.initialize(&request).await)
            }
            Inbound::Single(request, meta) => {
                (request.id.clone(), Era::Legacy, self.single(&request, meta))
            }
            Inbound::InSession(request, meta) => {
                (request.id.clone(), Era::Legacy, self.in_session(&request, meta).await)
            }
            Inbound::Notification { method, params } => {
                return self.notification(&method, &params).await;
            }
            Inbound::Response { id, outcome } => {
                if let Some(session) = &self.session {
                    // The handler runs in this process, so a failed signal does not matter.
                    let _ = self.stdio.legacy.handle_response(session, id, outcome).await;
                }
                return;
            }
            Inbound::Ignored => return,
            Inbound::Rejected { id, fault, era } => {
                return self.send_error(id.as_ref(), &fault, era).await;
            }
        };

        if let Err(fault) = result {
            self.send_error(Some(&id), &fault, era).await;
        }
    }

    async fn modern(&self, request: &Request, meta: Meta) -> Result<(), Fault> {
        let stdio = &self.stdio;
        let call = stdio.modern.accept(request, meta, None, Identity::local(), Reader::Model)?;
        let (id, output) = (request.id.clone(), self.output.clone());

        if call.method == Method::Listen {
            let closing = stdio.closing.clone();
            let (params, identity, client) = (&call.params, &call.identity, &call.client);
            let dispatcher = &stdio.dispatcher;
            let subscription =
                Subscription::new(id.clone(), params, identity, client, dispatcher, closing);
            let subscription = Box::pin(subscription).await?;

            self.spawn(&self.streams, id, |cancelled| async move {
                let mut messages = std::pin::pin!(subscription.messages());
                loop {
                    let message = tokio::select! {
                        // A cancelled request must not send another message.
                        biased;
                        () = cancelled.cancelled() => return,
                        message = messages.next() => message,
                    };

                    let Some(message) = message else { return };
                    if output.send(message).await.is_err() {
                        return;
                    }
                }
            });
            return Ok(());
        }

        let running = stdio.dispatcher.start(call)?;
        self.run(running, id, stdio.modern.encoder.clone());
        Ok(())
    }

    /// Sends what a call yields, until it ends or is cancelled.
    fn run(&self, mut running: Running, id: RequestId, encoder: ResponseEncoder) {
        let output = self.output.clone();
        self.spawn(&self.calls, id.clone(), |cancelled| async move {
            loop {
                let step = tokio::select! {
                    // A cancelled request must not send another message.
                    biased;
                    () = cancelled.cancelled() => return running.cancel(),
                    // The client has closed the output, so nobody receives the result.
                    () = output.closed() => return,
                    step = running.next() => step,
                };

                let Some(step) = step else { return };
                if send(&output, step, &id, &encoder).await.is_none() {
                    return;
                }
            }
        });
    }

    async fn initialize(&mut self, request: &Request) -> Result<(), Fault> {
        let (session, encoded) = self.stdio.legacy.initialize(request, &Identity::local()).await?;
        self.forward_session_stream(&session).await?;
        self.session = Some(session);
        self.reply(encoded).await
    }

    fn single(&self, request: &Request, meta: Meta) -> Result<(), Fault> {
        let legacy = &self.stdio.legacy;
        let running = legacy.start_single(request, meta, Identity::local())?;
        self.run(running, request.id.clone(), legacy.encoder.clone());
        Ok(())
    }

    async fn in_session(&self, request: &Request, meta: Meta) -> Result<(), Fault> {
        let legacy = &self.stdio.legacy;
        let Some(session) = &self.session else { return Err(Fault::SessionNotFound) };
        let (id, output) = (request.id.clone(), self.output.clone());
        let encoder = legacy.encoder.clone();

        match legacy.begin(session, request, meta, Identity::local(), true).await? {
            SessionRequest::Answered(reply) => {
                let message = encode_outcome(&id, Ok(reply.into()), &encoder).await;
                let _ = output.send(message.into_bytes()).await;
            }
            SessionRequest::Started(mut call) => {
                // The session's own cancellation ends the call.
                self.spawn(&self.calls, id.clone(), |_| async move {
                    while let Some(step) = call.next().await {
                        if send(&output, step, &id, &encoder).await.is_none() {
                            return;
                        }
                    }
                });
            }
        }

        Ok(())
    }

    async fn reply(&self, encoded: Encoded) -> Result<(), Fault> {
        let message = encoded.into_bytes().await.map_err(|e| Fault::Internal(e.to_string()))?;
        // A client that closed the output also closes the input, which ends the connection.
        let _ = self.output.send(message).await;
        Ok(())
    }

    /// Forwards the session's own stream.
    async fn forward_session_stream(&self, session: &Session) -> Result<(), Fault> {
        let (_, mut deliveries) =
            self.stdio.legacy.open_stream(session, None, &Identity::local()).await?;

        let (output, closing) = (self.output.clone(), self.stdio.closing.clone());
        self.streams.spawn(async move {
            let forward = async {
                while let Some(Ok(Delivery::Event(event))) = deliveries.next().await {
                    if output.send(event.data).await.is_err() {
                        return;
                    }
                }
            };

            tokio::select! {
                () = forward => {}
                () = closing.cancelled() => {}
            }
        });

        Ok(())
    }

    async fn notification(&self, method: &str, params: &Params) {
        if let Some(session) = &self.session {
            // The call runs in this process, so a failed signal does not matter.
            let _ = self.stdio.legacy.handle_notification(session, method, params).await;
        }

        let running = self.lock();
        if let Some(cancelled) = Message::cancelled(method, params).and_then(|id| running.get(&id))
        {
            cancelled.cancel();
        }
    }

    /// Runs a request concurrently with others. Its ID is taken until it ends.
    fn spawn<F: Future<Output = ()> + Send + 'static>(
        &self,
        tasks: &TaskTracker,
        id: RequestId,
        run: impl FnOnce(CancellationToken) -> F,
    ) {
        let (taken, cancelled) = TakenId::take(&self.cancellations, id);
        tasks.spawn(taken.until(run(cancelled)));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        lock(&self.cancellations)
    }

    pub(super) async fn send_error(&self, id: Option<&RequestId>, fault: &Fault, era: Era) {
        // A client that closed the output also closes the input, which ends the connection.
        let _ = self.output.send(encode_error(id, fault, era)).await;
    }

    /// Ends the connection. The client may have closed only the input, so calls may finish
    /// within the grace period. Those that still run then end with an error that asks to send
    /// them again, so each request has an answer.
    pub(super) async fn close(&mut self) {
        self.calls.close();
        let _ = tokio::time::timeout(self.stdio.grace, self.calls.wait()).await;

        self.stdio.dispatcher.stop();
        // The client may have stopped reading.
        let _ = tokio::time::timeout(STOP_MARGIN, self.calls.wait()).await;

        for cancelled in self.lock().values() {
            cancelled.cancel();
        }

        if let Some(session) = self.session.take() {
            // The session may have expired.
            let _ = self.stdio.legacy.end(&session.id, &Principal::Local).await;
        }

        self.streams.close();
        let _ = tokio::time::timeout(STOP_MARGIN, self.streams.wait()).await;
    }
}

/// The ID of a running request. Dropping it lets another request have the ID, also after a panic.
struct TakenId {
    cancellations: Arc<Cancellations>,
    id: RequestId,
}

impl TakenId {
    fn take(cancellations: &Arc<Cancellations>, id: RequestId) -> (Self, CancellationToken) {
        let cancelled = CancellationToken::new();
        lock(cancellations).insert(id.clone(), cancelled.clone());
        (Self { cancellations: Arc::clone(cancellations), id }, cancelled)
    }

    /// Runs the request.
    async fn until(self, ended: impl Future<Output = ()>) {
        ended.await;
        drop(self);
    }
}

impl Drop for TakenId {
    fn drop(&mut self) {
        lock(&self.cancellations).remove(&self.id);
    }
}

fn lock(cancellations: &Cancellations) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
    cancellations.lock()
}

/// Sends a step of a call. None if the output is closed.
async fn send(
    output: &mpsc::Sender<Bytes>,
    step: Step,
    id: &RequestId,
    encoder: &ResponseEncoder,
) -> Option<()> {
    let message = match step {
        Step::Message(message) => match message.encode() {
            Some(message) => message,
            None => return Some(()),
        },
        Step::Outcome(outcome) => encode_outcome(id, outcome, encoder).await.into_bytes(),
    };

    output.send(message).await.ok()
}

#[cfg(test)]
mod tests {
    use larder_protocol::ProtocolVersion;
    use larder_runtime::held::{Counted, Held};

    use crate::dispatch::{HeldReply, Reply, Traffic};

    use super::*;

    /// Memory of a result, which lives as long as it counts.
    struct Memory(#[allow(dead_code, reason = "it is counted")] Arc<()>);

    impl Counted for Memory {
        fn bytes(&self) -> usize {
            1
        }

        fn shrink(&mut self, _: usize) {}
    }

    #[tokio::test]
    async fn an_answer_counts_until_it_is_written() {
        let counts = Arc::new(());
        let mut held = Held::default();
        held.add(Box::new(Memory(Arc::clone(&counts))));

        let (output, mut waiting) = mpsc::channel(1);
        let info = rmcp::model::Implementation::new("s", "1");
        let traffic = Arc::<Traffic>::default();
        let encoder = ResponseEncoder::new(Era::Legacy, &info, ProtocolVersion::LATEST, traffic);
        let outcome = Step::Outcome(Ok(HeldReply { reply: Reply::Empty, held }));
        send(&output, outcome, &RequestId::Number(1), &encoder).await.expect("the output is open");

        let message = waiting.recv().await.expect("it waits");
        assert!(message.starts_with(b"{") && Arc::strong_count(&counts) == 2);
        drop(message);
        assert_eq!(Arc::strong_count(&counts), 1);
    }

    #[tokio::test]
    async fn an_id_is_free_when_its_request_has_ended_or_panicked() {
        let cancellations = Arc::<Cancellations>::default();
        for panics in [false, true] {
            let (taken, cancelled) = TakenId::take(&cancellations, RequestId::Number(1));
            let cancels = lock(&cancellations).get(&RequestId::Number(1)).cloned();
            cancels.expect("it is taken").cancel();

            let ended = tokio::spawn(taken.until(async move {
                cancelled.cancelled().await;
                assert!(!panics, "as some code might");
            }));

            assert_eq!(ended.await.is_err(), panics);
            assert!(lock(&cancellations).is_empty());
        }
    }
}
