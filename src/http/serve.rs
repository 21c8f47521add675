//! Accepts connections until told to stop: softly first, then for good.

use std::{io, time::Duration};

use axum::Router;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Bounds on connections.
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// How long a client may take to send a request's head.
    pub head_timeout: Duration,
    /// How long running requests may take to end once the server stops.
    pub grace: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self { head_timeout: Duration::from_secs(30), grace: Duration::from_secs(10) }
    }
}

/// Serves a router on a bound listener until `stop` resolves; then takes no
/// more connections, lets those there are finish what they do within the
/// grace period, and drops the rest. Says whether all finished.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: &ServeLimits,
    stop: impl Future<Output = ()>,
) -> io::Result<bool> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30));
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
        let service =
            TowerToHyperService::new(router.clone().map_request(
                |request: http::Request<Incoming>| request.map(axum::body::Body::new),
            ));
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        let over = over.clone();
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(error, "a connection ended badly");
                    }
                }
                () = over.cancelled() => {}
            }
        });
    }
    drop(listener);
    Ok(tokio::time::timeout(limits.grace, graceful.shutdown()).await.is_ok())
}
