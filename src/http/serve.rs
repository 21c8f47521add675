//! Accepts connections until told to stop: softly first, then for good.

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
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

use super::{Certificate, overload};
use crate::in_flight::InFlight;

/// Bounds on connections.
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// How long a client may take to send a request's head, the first one's
    /// with all that comes before it.
    pub head_timeout: Duration,
    /// How long a client may take none of what is sent to it.
    pub write_timeout: Duration,
    /// How long running requests may take to end once the server stops.
    pub grace: Duration,
    /// The most connections at a time; more are told to try again. May change
    /// while they are served.
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

/// How many may be told at the same time that there are too many: whoever
/// comes then is told nothing.
const TURNED_AWAY_AT_ONCE: usize = 256;

/// Serves a service, such as an axum router, on a bound listener, over TLS if there is a certificate,
/// until `stop` resolves; then takes no more connections, lets those there are
/// finish what they do within the grace period, and drops the rest. Says
/// whether all finished.
///
/// # Errors
/// When the listener fails for good.
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
    let front = Arc::new(Front {
        tls: certificate.map(Certificate::acceptor).transpose()?,
        builder,
        service,
        limits: limits.clone(),
    });
    let (open, leaving) = (Count::default(), Count::default());
    let graceful = GracefulShutdown::new();
    // Cancelled when this function is done, however that comes about.
    let over = CancellationToken::new();
    let _over = over.clone().drop_guard();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // A connection that failed before we took it, or no file
                // descriptor left: neither is a reason to stop serving.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Events are small and wait for nothing.
        let _ = stream.set_nodelay(true);
        let most = limits.connections.load(Ordering::Relaxed);
        let (front, over) = (Arc::clone(&front), over.clone());
        if let Some(place) = open.take(most) {
            let watcher = graceful.watcher();
            tokio::spawn(async move {
                let _counted = (place, InFlight::new("larder_connections"));
                over.run_until_cancelled(front.serve(stream, watcher)).await;
            });
            continue;
        }
        metrics::counter!("larder_connections_refused_total").increment(1);
        if let Some(place) = leaving.take(TURNED_AWAY_AT_ONCE) {
            tokio::spawn(async move {
                let _place = place;
                over.run_until_cancelled(front.overload(stream, most)).await;
            });
        }
    }
    drop(listener);
    Ok(tokio::time::timeout(limits.grace, graceful.shutdown()).await.is_ok())
}

/// What stands at the door.
struct Front<S> {
    tls: Option<TlsAcceptor>,
    builder: auto::Builder<TokioExecutor>,
    service: S,
    limits: ServeLimits,
}

impl<S> Front<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    /// A connection from its first byte to its last.
    async fn serve(&self, stream: TcpStream, watcher: Watcher) {
        let asked = Arc::new(AtomicBool::new(false));
        // InFlight rule for a handshake, a preface and a head that do not come:
        // each has its own ways to be slow.
        let mut patience = std::pin::pin!(tokio::time::sleep(self.limits.head_timeout));
        let silent = {
            let asked = Arc::clone(&asked);
            // Looked at whenever the connection is: then it is to cost nothing.
            poll_fn(move |cx| {
                let asked = asked.load(Ordering::Relaxed);
                if asked { Poll::Pending } else { patience.as_mut().poll(cx) }
            })
        };
        let served = async {
            match &self.tls {
                None => self.speak(stream, watcher, asked).await,
                // On the heap by itself: most connections behind a proxy need no room for it.
                Some(tls) => match Box::pin(tls.accept(stream)).await {
                    Ok(stream) => self.speak(stream, watcher, asked).await,
                    Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
                },
            }
        };
        tokio::select! {
            biased;
            () = served => {}
            () = silent => tracing::debug!("no request came"),
        }
    }

    /// HTTP on a stream. The connection lies on the heap by itself: an async
    /// function would hold room for it once for each step that it passes
    /// through, and there may be many that only listen.
    fn speak<IO>(
        &self,
        stream: IO,
        watcher: Watcher,
        asked: Arc<AtomicBool>,
    ) -> BoxFuture<'static, ()>
    where
        IO: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.limits.write_timeout));
        let service = self.service.clone().map_request(move |request: http::Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            request.map(axum::body::Body::new)
        });
        let service = TowerToHyperService::new(service);
        let stream = TokioIo::new(Box::pin(stream));
        let connection = self.builder.serve_connection(stream, service).into_owned();
        let ended = watcher.watch(connection).map(|ended| {
            if let Err(error) = ended {
                tracing::debug!(error, "a connection ended badly");
            }
        });
        ended.boxed()
    }

    async fn overload(&self, stream: TcpStream, most: usize) {
        match &self.tls {
            None => overload::tell(stream, most).await,
            Some(tls) => {
                let accepted = tokio::time::timeout(overload::PATIENCE, tls.accept(stream)).await;
                if let Ok(Ok(stream)) = accepted {
                    overload::tell(stream, most).await;
                }
            }
        }
    }
}

/// How many there are of something.
#[derive(Debug, Clone, Default)]
struct Count(Arc<AtomicUsize>);

/// InFlight of them, while it is held.
struct Place(Count);

impl Count {
    fn take(&self, most: usize) -> Option<Place> {
        // Only the accepting loop adds to it.
        if self.0.load(Ordering::Relaxed) >= most {
            return None;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(Place(self.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
