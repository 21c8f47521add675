//! The protocol over standard input and output: one JSON-RPC message a line
//! (2026-07-28, transports: stdio). Both eras; a session is the process.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::{Identity, Principal},
    dispatch::{Dispatcher, Step},
    era::{Era, Legacy, Listen, Modern, ResponseEncoder, encode_outcome, failure},
    protocol::{
        Fault, Message, Meta, Method, Params, Request, RequestId, has_values_within, parse,
    },
    session::{Delivery, Session},
};

/// How many messages may wait for a slow reader of our output.
const OUTPUT: usize = 64;

/// What a connection works with.
#[derive(Clone)]
pub(crate) struct Stdio {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) legacy: Arc<Legacy>,
    pub(crate) modern: Modern,
    pub(crate) closing: CancellationToken,
    /// The most that a message may have, in bytes.
    pub(crate) message_bytes: usize,
    /// The most JSON values that it may have, at every depth.
    pub(crate) message_values: usize,
    /// How long running calls may take to end once the input has.
    pub(crate) grace: Duration,
}

/// One connection.
struct Connection {
    stdio: Stdio,
    output: mpsc::Sender<Bytes>,
    /// Calls, which come to an end.
    calls: TaskTracker,
    /// Streams, which do not by themselves.
    streams: TaskTracker,
    session: Option<Arc<Session>>,
    running: Arc<Running>,
}

type Running = Mutex<HashMap<RequestId, CancellationToken>>;

impl Stdio {
    /// Serves until the input ends or the server stops.
    ///
    /// # Errors
    /// When input or output fails.
    pub(crate) async fn serve(
        self,
        mut input: impl AsyncBufRead + Unpin,
        mut output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let (sender, mut messages) = mpsc::channel::<Bytes>(OUTPUT);
        let writer = tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                output.write_all(&message).await?;
                output.write_all(b"\n").await?;
                output.flush().await?;
            }
            Ok::<_, io::Error>(())
        });
        let (closing, most, values) =
            (self.closing.clone(), self.message_bytes, self.message_values);
        let mut connection = Connection {
            stdio: self,
            output: sender,
            calls: TaskTracker::new(),
            streams: TaskTracker::new(),
            session: None,
            running: Arc::default(),
        };
        loop {
            let line = tokio::select! {
                () = closing.cancelled() => break,
                line = read_line(&mut input, most) => line?,
            };
            match line {
                Line::End => break,
                Line::Message(line) if line.trim_ascii().is_empty() => {}
                Line::Message(line) if !has_values_within(&line, values) => {
                    let message = format!(
                        "The message has more than {values} JSON values (limits.body_values). Send bulky data as text, in one string."
                    );
                    connection.refuse(None, &Fault::InvalidRequest(message), Era::Legacy).await;
                }
                Line::Message(line) => connection.take(line).await,
                Line::TooLong => {
                    let message =
                        format!("The message is longer than {most} bytes (limits.body_bytes).");
                    connection.refuse(None, &Fault::InvalidRequest(message), Era::Legacy).await;
                }
            }
        }
        connection.end().await;
        drop(connection);
        writer.await.map_err(io::Error::other)?
    }
}

enum Line {
    Message(Bytes),
    TooLong,
    End,
}

/// Reads a line without keeping more of it than a message may have.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => Line::TooLong,
                (false, true) => Line::End,
                (false, false) => Line::Message(line.into()),
            });
        }
        let end = memchr::memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        too_long |= line.len() + part.len() > most;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = end.map_or(buffer.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Message(line.into()) });
        }
    }
}

impl Connection {
    async fn take(&mut self, line: Bytes) {
        match parse(&line) {
            Ok(Message::Request(request)) => self.request(request).await,
            Ok(Message::Notification { method, params }) => {
                self.notification(&method, &params).await;
            }
            Ok(Message::Response { id, outcome }) => {
                if let Some(session) = &self.session {
                    // Whoever asked is in this process.
                    let _ = self.stdio.legacy.answered(session, id, outcome).await;
                }
            }
            Err((fault, id)) => self.refuse(id.as_ref(), &fault, Era::Legacy).await,
        }
    }

    async fn request(&mut self, request: Request) {
        let meta = match Meta::read(&request.params) {
            Ok(meta) => meta,
            Err(fault) => return self.refuse(Some(&request.id), &fault, Era::Legacy).await,
        };
        let era = Era::of(meta.protocol_version.as_deref(), None);
        let id = request.id.clone();
        let begun = match era {
            Era::Modern => self.modern(&request, meta).await,
            Era::Legacy => self.legacy(&request, meta).await,
        };
        if let Err(fault) = begun {
            self.refuse(Some(&id), &fault, era).await;
        }
    }

    async fn modern(&self, request: &Request, meta: Meta) -> Result<(), Fault> {
        let stdio = &self.stdio;
        let call = stdio.modern.accept(request, meta, None, Identity::local())?;
        let (id, output) = (request.id.clone(), self.output.clone());
        if call.method == Method::Listen {
            let closing = stdio.closing.clone();
            let (params, dispatcher) = (&call.params, &stdio.dispatcher);
            let listen =
                Listen::new(id.clone(), params, &call.identity, dispatcher, closing).await?;
            self.spawn(&self.streams, id, async move {
                let mut messages = std::pin::pin!(listen.messages());
                while let Some(message) = messages.next().await {
                    if output.send(message).await.is_err() {
                        return;
                    }
                }
            });
            return Ok(());
        }
        let mut running = stdio.dispatcher.start(call)?;
        let encoder = stdio.modern.encoder.clone();
        self.spawn(&self.calls, id.clone(), async move {
            while let Some(step) = running.next().await {
                if send(&output, step, &id, &encoder).await.is_none() {
                    return;
                }
            }
        });
        Ok(())
    }

    async fn legacy(&mut self, request: &Request, meta: Meta) -> Result<(), Fault> {
        let legacy = Arc::clone(&self.stdio.legacy);
        let method = Method::parse(&request.method).filter(|m| m.in_legacy());
        let method = method.ok_or_else(|| Fault::MethodNotFound(request.method.clone()))?;
        let Some(session) = self.session.clone() else {
            let encoded = if method == Method::Initialize {
                let (session, encoded) = legacy.initialize(request, &Identity::local()).await?;
                self.follow(&session).await?;
                self.session = Some(session);
                encoded
            } else {
                legacy.answer_once(request, meta, Identity::local()).await?
            };
            let message = encoded.whole().await.map_err(|e| Fault::Internal(e.to_string()))?;
            // Nobody reading is noticed by the reader of our input.
            let _ = self.output.send(message).await;
            return Ok(());
        };
        let (id, output, encoder) =
            (request.id.clone(), self.output.clone(), legacy.encoder.clone());
        if let Some(reply) =
            legacy.in_session(&session, method, &request.params, &Identity::local()).await?
        {
            let message = encode_outcome(&id, Ok(reply), &encoder).await;
            let _ = self.output.send(message).await;
            return Ok(());
        }
        let mut call = legacy.start(&session, method, request, meta, Identity::local(), true)?;
        self.spawn(&self.calls, id.clone(), async move {
            while let Some(step) = call.next().await {
                if send(&output, step, &id, &encoder).await.is_none() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Carries what belongs to no call.
    async fn follow(&self, session: &Session) -> Result<(), Fault> {
        let (_, mut deliveries) =
            self.stdio.legacy.connect(session, None, &Identity::local()).await?;
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
            // Whatever it concerns is in this process.
            let _ = self.stdio.legacy.notified(session, method, params).await;
        }
        let running = self.lock();
        if let Some(cancelled) = Message::cancelled(method, params).and_then(|id| running.get(&id))
        {
            cancelled.cancel();
        }
    }

    /// Runs what a request asks for beside the others, until it is cancelled.
    fn spawn(
        &self,
        tasks: &TaskTracker,
        id: RequestId,
        run: impl Future<Output = ()> + Send + 'static,
    ) {
        let cancelled = CancellationToken::new();
        self.lock().insert(id.clone(), cancelled.clone());
        let running = Arc::clone(&self.running);
        tasks.spawn(async move {
            tokio::select! {
                // First, so that nothing is said of what has been cancelled.
                biased;
                () = cancelled.cancelled() => {}
                () = run => {}
            }
            lock(&running).remove(&id);
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        lock(&self.running)
    }

    async fn refuse(&self, id: Option<&RequestId>, fault: &Fault, era: Era) {
        // Nobody reading is noticed by the reader of our input.
        let _ = self.output.send(failure(id, fault, era)).await;
    }

    /// Whoever closed our input may still read our output: calls may finish
    /// within the grace period, unless the server itself is told to stop.
    async fn end(&mut self) {
        self.calls.close();
        tokio::select! {
            _ = tokio::time::timeout(self.stdio.grace, self.calls.wait()) => {}
            () = self.stdio.closing.cancelled() => {}
        }
        for cancelled in self.lock().values() {
            cancelled.cancel();
        }
        if let Some(session) = self.session.take() {
            // It may have expired already.
            let _ = self.stdio.legacy.end(&session.id, &Principal::Local).await;
        }
        self.calls.wait().await;
        self.streams.close();
        self.streams.wait().await;
    }
}

fn lock(running: &Running) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
    running.lock()
}

/// Sends a step; nothing when nobody reads any more.
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
        Step::Outcome(outcome) => encode_outcome(id, outcome, encoder).await,
    };
    output.send(message).await.ok()
}
