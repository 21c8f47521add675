//! Accepts and serves connections until the server stops, gracefully first.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use axum::{extract::Request, response::Response};
use futures_util::{FutureExt, future::BoxFuture};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

use super::{Certificate, overload, tls::TlsAcceptor};
use crate::in_flight::InFlight;

/// Limits on connections.
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// How long a client may take to send the head of a request. For the first request this
    /// includes the TLS handshake.
    pub head_timeout: Duration,
    /// How long a client may read none of the data that is sent to it.
    pub write_timeout: Duration,
    /// How long running requests may take to end after a stop.
    pub grace: Duration,
    /// The maximum number of connections. More get a 503. May change while serving.
    pub connections: Arc<AtomicUsize>,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            head_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(10),
            connections: Arc::new(AtomicUsize::new(20_000)),
        }
    }
}

/// The maximum number of 503 responses that are sent at a time. More connections are closed
/// without one.
const MAX_OVERLOAD_RESPONSES: usize = 256;

/// Serves a service, such as an axum router, on a bound listener until `stop` resolves;
/// with TLS if there is a certificate. Then it accepts no more connections, lets running
/// requests finish within the grace period, and closes the rest. Returns whether all
/// requests finished.
///
/// # Errors
/// The TLS configuration is invalid.
pub async fn serve<S>(
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    service: S,
    limits: &ServeLimits,
    stop: impl Future<Output = ()>,
) -> io::Result<bool>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30));
    let acceptor = Arc::new(Acceptor {
        tls: certificate.map(Certificate::acceptor).transpose()?,
        builder,
        service,
        limits: limits.clone(),
    });
    let (open, rejected) = (ConnectionCount::default(), ConnectionCount::default());
    let graceful = GracefulShutdown::new();
    // Cancelled when this function returns or is dropped.
    let done = CancellationToken::new();
    let _over = done.clone().drop_guard();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // The connection failed before it was accepted, or no file descriptor is
                // left. Serving continues in both cases.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Small events must be sent at once.
        let _ = stream.set_nodelay(true);
        let max = limits.connections.load(Ordering::Relaxed);
        let (acceptor, done) = (Arc::clone(&acceptor), done.clone());
        if let Some(slot) = open.try_acquire(max) {
            let watcher = graceful.watcher();
            tokio::spawn(async move {
                let _guards = (slot, InFlight::new("larder_connections"));
                done.run_until_cancelled(acceptor.serve(stream, watcher)).await;
            });
            continue;
        }
        metrics::counter!("larder_connections_refused_total").increment(1);
        if let Some(slot) = rejected.try_acquire(MAX_OVERLOAD_RESPONSES) {
            tokio::spawn(async move {
                let _slot = slot;
                done.run_until_cancelled(acceptor.reject_overload(stream, max)).await;
            });
        }
    }
    drop(listener);
    Ok(tokio::time::timeout(limits.grace, graceful.shutdown()).await.is_ok())
}

/// Serves single connections.
struct Acceptor<S> {
    tls: Option<TlsAcceptor>,
    builder: auto::Builder<TokioExecutor>,
    service: S,
    limits: ServeLimits,
}

impl<S> Acceptor<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    /// Serves a connection until it ends.
    async fn serve(&self, stream: TcpStream, watcher: Watcher) {
        let request_received = Arc::new(AtomicBool::new(false));
        // One timeout for the TLS handshake, the HTTP/2 preface and the first head, because
        // each can be slow in its own way.
        let mut timeout = std::pin::pin!(tokio::time::sleep(self.limits.head_timeout));
        let timed_out = {
            let request_received = Arc::clone(&request_received);
            // Polled with every event of the connection, so it must be cheap.
            poll_fn(move |cx| {
                let request_received = request_received.load(Ordering::Relaxed);
                if request_received { Poll::Pending } else { timeout.as_mut().poll(cx) }
            })
        };
        let served = async {
            match &self.tls {
                None => self.serve_http(stream, watcher, request_received).await,
                // Boxed: most connections behind a proxy do not use TLS.
                Some(tls) => match Box::pin(tls.accept(stream)).await {
                    Ok(stream) => self.serve_http(stream, watcher, request_received).await,
                    Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
                },
            }
        };
        tokio::select! {
            biased;
            () = served => {}
            () = timed_out => tracing::debug!("no request was received in time"),
        }
    }

    /// Serves HTTP on a stream. The connection is boxed: an async function would reserve
    /// space for it in each of its states, and many connections only listen.
    fn serve_http<IO>(
        &self,
        stream: IO,
        watcher: Watcher,
        request_received: Arc<AtomicBool>,
    ) -> BoxFuture<'static, ()>
    where
        IO: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.limits.write_timeout));
        let service = self.service.clone().map_request(move |request: http::Request<Incoming>| {
            request_received.store(true, Ordering::Relaxed);
            request.map(axum::body::Body::new)
        });
        let service = TowerToHyperService::new(service);
        let stream = TokioIo::new(Box::pin(stream));
        let connection = self.builder.serve_connection(stream, service).into_owned();
        let ended = watcher.watch(connection).map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(error, "a connection ended with an error");
            }
        });
        ended.boxed()
    }

    async fn reject_overload(&self, stream: TcpStream, max: usize) {
        match &self.tls {
            None => overload::respond(stream, max).await,
            Some(tls) => {
                let accepted =
                    tokio::time::timeout(overload::SEND_TIMEOUT, tls.accept(stream)).await;
                if let Ok(Ok(stream)) = accepted {
                    overload::respond(stream, max).await;
                }
            }
        }
    }
}

/// A number of connections.
#[derive(Debug, Clone, Default)]
struct ConnectionCount(Arc<AtomicUsize>);

/// A counted connection, until dropped.
struct ConnectionSlot(ConnectionCount);

impl ConnectionCount {
    fn try_acquire(&self, max: usize) -> Option<ConnectionSlot> {
        // Only the accept loop increments it.
        if self.0.load(Ordering::Relaxed) >= max {
            return None;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(ConnectionSlot(self.clone()))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
