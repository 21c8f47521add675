//! Accepts and serves connections until the server stops, gracefully first.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{extract::Request, response::Response};
use hyper_util::{rt::TokioTimer, server::conn::auto};
use larder_runtime::in_flight::InFlight;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service;

use super::{
    activity::Timeouts,
    connection_count::{ConnectionCount, ConnectionLimit},
    overload,
    server::ConnectionServer,
    stall::StreamExecutor,
    stop_stages::StopStages,
    tls::{Certificate, TlsAcceptor},
    tls_protocols::Protocols,
};

/// Limits on connections.
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// How long a client may take to send the head of a request. For the first request this
    /// includes the TLS handshake.
    pub head_timeout: Duration,
    /// How long a connection may wait for another request.
    pub idle_timeout: Duration,
    /// How long a client may read none of the data that is sent to it, on a connection or on
    /// a stream of HTTP/2.
    pub write_timeout: Duration,

    /// How long connections are accepted after a stop, while responses close theirs.
    pub shutdown_delay: Duration,
    /// How long running requests may take to end after that.
    pub grace: Duration,

    /// The maximum number of connections. More get a 503. May change while serving.
    pub connections: Arc<AtomicUsize>,
    /// The maximum number of connections from one address; 0 for no limit. May change while
    /// serving.
    pub connections_per_address: Arc<AtomicUsize>,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            head_timeout: Duration::from_secs(30),
            // Proxies close idle connections earlier (Caddy: after two minutes), so that no
            // request meets the end of its connection.
            idle_timeout: Duration::from_secs(150),
            write_timeout: Duration::from_secs(60),

            shutdown_delay: Duration::ZERO,
            grace: Duration::from_secs(10),

            connections: Arc::new(AtomicUsize::new(10_000)),
            connections_per_address: Arc::new(AtomicUsize::new(5_000)),
        }
    }
}

/// The maximum number of 503 responses that are sent at a time. More connections are closed
/// without one.
const MAX_OVERLOAD_RESPONSES: usize = 256;

/// Serves a service, such as an axum router, on a bound listener until `stop` resolves;
/// with TLS if there is a certificate. After the delay it accepts no more connections, lets
/// running requests finish within the grace period, and closes the rest. Returns whether all
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
    serve_in_stages(listener, certificate, service, limits, &StopStages::default(), stop).await
}

/// Serves, as [`serve`] does, a service that takes part in the stages of a stop.
///
/// # Errors
/// The TLS configuration is invalid.
pub async fn serve_in_stages<S>(
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    service: S,
    limits: &ServeLimits,
    stages: &StopStages,
    stop: impl Future<Output = ()>,
) -> io::Result<bool>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let acceptor = |protocols| {
        let certificate = certificate.clone();
        certificate.map(|certificate| certificate.acceptor(protocols)).transpose()
    };

    let server = ConnectionServer {
        tls: acceptor(Protocols::All)?,
        http1: http_builder(limits).http1_only(),
        http2: http_builder(limits).http2_only(),
        service,
        timeouts: Timeouts { head: limits.head_timeout, idle: limits.idle_timeout },
        write_timeout: limits.write_timeout,
        stages: stages.clone(),
    };

    // The token is cancelled when this function returns or is dropped.
    let done = CancellationToken::new();
    let _over = done.clone().drop_guard();

    let connections = Connections {
        server: Arc::new(server),
        overload_tls: acceptor(Protocols::Http1)?,
        limits,
        open: ConnectionCount::default(),
        rejected: ConnectionCount::default(),
        tasks: TaskTracker::new(),
        done,
    };

    let mut stopped = std::pin::pin!(async {
        stop.await;
        stages.draining.cancel();
        tokio::time::sleep(limits.shutdown_delay).await;
    });

    loop {
        tokio::select! {
            () = &mut stopped => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => connections.serve(stream, peer),
                Err(error) => {
                    // The connection failed before it was accepted, or no file descriptor is
                    // left. Serving continues in both cases.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }

    // Clients in the accept queue are connected and may have sent a request, which a proxy does
    // not repeat.
    let listener = listener.into_std()?;
    while let Ok((stream, peer)) = listener.accept() {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            connections.serve(stream, peer);
        }
    }
    drop(listener);

    stages.closing.cancel();
    connections.tasks.close();
    Ok(tokio::time::timeout(limits.grace, connections.tasks.wait()).await.is_ok())
}

/// The connections of a server, each of which is served by a task or rejected.
struct Connections<'a, S> {
    server: Arc<ConnectionServer<S>>,
    overload_tls: Option<TlsAcceptor>,
    limits: &'a ServeLimits,
    open: ConnectionCount,
    rejected: ConnectionCount,
    tasks: TaskTracker,
    /// Ends all connections.
    done: CancellationToken,
}

impl<S> Connections<'_, S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    /// Serves a connection, or rejects it if there are too many.
    fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        // Small events must be sent at once.
        let _ = stream.set_nodelay(true);

        let max = self.limits.connections.load(Ordering::Relaxed);
        let max_per_address = self.limits.connections_per_address.load(Ordering::Relaxed);

        match self.open.try_acquire(peer.ip(), max, max_per_address) {
            Ok(slot) => {
                let server = Arc::clone(&self.server);
                let done = self.done.clone();
                self.tasks.spawn(async move {
                    let _guards = (slot, InFlight::new("larder_connections"));
                    done.run_until_cancelled(server.serve(stream, peer)).await;
                });
            }
            Err(limit) => self.reject(stream, peer, limit),
        }
    }

    fn reject(&self, stream: TcpStream, peer: SocketAddr, limit: ConnectionLimit) {
        metrics::counter!("larder_connections_refused_total").increment(1);

        if let Ok(slot) = self.rejected.try_acquire(peer.ip(), MAX_OVERLOAD_RESPONSES, 0) {
            let tls = self.overload_tls.clone();
            let done = self.done.clone();
            tokio::spawn(async move {
                let _slot = slot;
                done.run_until_cancelled(reject(stream, tls, limit)).await;
            });
        }
    }
}

fn http_builder(limits: &ServeLimits) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(StreamExecutor { write_timeout: limits.write_timeout });

    // The time of a head is limited by `activity`: Hyper's timeout would include the time
    // between requests.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None);

    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30));
    builder
}

/// Refuses a connection over a limit.
async fn reject(stream: TcpStream, tls: Option<TlsAcceptor>, limit: ConnectionLimit) {
    let Some(tls) = tls else { return overload::respond(stream, limit).await };

    let accepted = tokio::time::timeout(overload::SEND_TIMEOUT, tls.accept(stream)).await;
    if let Ok(Ok(stream)) = accepted {
        overload::respond(stream, limit).await;
    }
}
