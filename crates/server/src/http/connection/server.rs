//! Serves one connection: TLS, then HTTP/1 or HTTP/2, until it ends or waits too long.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{ConnectInfo, Request},
    response::Response,
};
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderValue, Version, header::CONNECTION};
use hyper::body::Incoming;
use hyper_util::{rt::TokioIo, server::conn::auto};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

use super::{
    activity::{Activity, RequestInProgress, Timeouts},
    first_bytes::FirstBytes,
    response_body::ResponseBody,
    stall::StreamExecutor,
    stop_stages::StopStages,
    tls::TlsAcceptor,
};

/// How long a connection that is told to end may take for it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves single connections.
pub(super) struct ConnectionServer<S> {
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) http1: auto::Builder<StreamExecutor>,
    pub(super) http2: auto::Builder<StreamExecutor>,
    pub(super) service: S,

    pub(super) timeouts: Timeouts,
    pub(super) write_timeout: Duration,
    pub(super) stages: StopStages,
}

impl<S> ConnectionServer<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    /// Serves a connection until it ends.
    pub(super) async fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        let activity = Activity::new(self.timeouts);

        match &self.tls {
            None => self.serve_http(stream, peer, activity).await,
            Some(tls) => {
                // The handshake is boxed, because most connections behind a proxy do not use TLS.
                let handshake = Box::pin(tls.accept(stream));
                let accepted = tokio::select! {
                    accepted = handshake => accepted,
                    () = activity.expired() => return,
                    // A client in a handshake has sent no request that could be lost.
                    () = self.stages.closing.cancelled() => return,
                };

                match accepted {
                    Ok(stream) => self.serve_http(stream, peer, activity).await,
                    Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
                }
            }
        }
    }

    /// Serves HTTP on a stream, once its first bytes say which version. The connection is boxed:
    /// an async function would reserve space for it in each of its states, and many connections
    /// only listen.
    fn serve_http<IO>(
        &self,
        stream: IO,
        peer: SocketAddr,
        activity: Arc<Activity>,
    ) -> BoxFuture<'_, ()>
    where
        IO: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.write_timeout));
        let first = FirstBytes::default();
        let mut stream =
            Observed { stream: Box::pin(stream), activity: Arc::clone(&activity), first };

        let service = self.service.clone();
        let observed = Arc::clone(&activity);
        let draining = Arc::new(self.stages.draining.clone());
        let service = ObservedService { service, peer, activity: observed, draining };

        async move {
            if !self.has_begun(&mut stream, &activity).await {
                return;
            }

            let builder = if stream.first.is_http2() { &self.http2 } else { &self.http1 };
            let mut connection =
                Box::pin(builder.serve_connection(TokioIo::new(stream), service).into_owned());

            let ended = tokio::select! {
                biased;
                ended = &mut connection => ended,
                () = activity.expired() => {
                    tracing::debug!("no request was received in time");
                    connection.as_mut().graceful_shutdown();
                    let closed = tokio::time::timeout(CLOSE_TIMEOUT, connection).await;
                    closed.unwrap_or(Ok(()))
                }
                () = self.stages.closing.cancelled() => {
                    activity.close();
                    if activity.is_http2() {
                        // HTTP/2 frames tell the client which requests are still answered.
                        connection.as_mut().graceful_shutdown();
                    }

                    tokio::select! {
                        biased;
                        ended = &mut connection => ended,
                        () = activity.expired() => {
                            connection.as_mut().graceful_shutdown();
                            let closed = tokio::time::timeout(CLOSE_TIMEOUT, connection).await;
                            closed.unwrap_or(Ok(()))
                        }
                    }
                }
            };

            if let Err(error) = ended {
                tracing::debug!(error, "a connection ended with an error");
            }
        }
        .boxed()
    }

    /// Waits for the first bytes. Returns false if the connection waits too long, or fails.
    async fn has_begun<IO>(&self, stream: &mut Observed<IO>, activity: &Activity) -> bool
    where
        IO: AsyncRead + AsyncWrite + Send,
    {
        let received = tokio::select! {
            biased;
            received = stream.receive_first() => received,
            () = activity.expired() => return false,
            () = self.stages.closing.cancelled() => {
                activity.close();
                tokio::select! {
                    biased;
                    received = stream.receive_first() => received,
                    () = activity.expired() => return false,
                }
            }
        };

        received.inspect_err(|error| tracing::debug!(%error, "a connection failed")).is_ok()
    }
}

/// The stream of a connection, whose activity counts what is received.
struct Observed<IO> {
    stream: Pin<Box<TimeoutStream<IO>>>,
    activity: Arc<Activity>,
    first: FirstBytes,
}

impl<IO: AsyncRead + AsyncWrite> Observed<IO> {
    /// Receives until the first bytes say which version of HTTP the client speaks, or the stream
    /// ends. Can be cancelled and called again.
    async fn receive_first(&mut self) -> io::Result<()> {
        loop {
            let room = self.first.room();
            if room.is_empty() {
                return Ok(());
            }

            let received = self.stream.read(room).await?;
            if received == 0 {
                return Ok(());
            }

            self.first.received(received);
            self.activity.received();
        }
    }
}

impl<IO: AsyncRead + AsyncWrite> AsyncRead for Observed<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let has_first = self.first.read(buffer);

        let before = buffer.filled().len();
        let read = self.stream.as_mut().poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.received();
        }

        if has_first && read.is_pending() { Poll::Ready(Ok(())) } else { read }
    }
}

impl<IO: AsyncRead + AsyncWrite> AsyncWrite for Observed<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(cx)
    }
}

/// The service of a connection, whose activity counts the requests.
struct ObservedService<S> {
    service: S,
    peer: SocketAddr,
    activity: Arc<Activity>,
    /// Shared, because cloning a token takes its lock, and each request needs one.
    draining: Arc<CancellationToken>,
}

impl<S> hyper::service::Service<http::Request<Incoming>> for ObservedService<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = http::Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, mut request: http::Request<Incoming>) -> Self::Future {
        let version = request.version();
        let in_progress = self.activity.request(version);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let response = self.service.clone().oneshot(request.map(Body::new));
        let draining = Arc::clone(&self.draining);

        async move {
            let mut response = response.await?;

            // HTTP/2 closes a connection with a frame, not with a header.
            if draining.is_cancelled() && version <= Version::HTTP_11 {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }

            Ok(observed(response, version, in_progress))
        }
        .boxed()
    }
}

fn observed(
    response: Response,
    version: Version,
    request: RequestInProgress,
) -> http::Response<ResponseBody> {
    response.map(|body| ResponseBody::new(body, version == Version::HTTP_2, request))
}
