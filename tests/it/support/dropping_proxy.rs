//! A network that breaks.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Where to cut connections.
#[derive(Clone)]
struct Cuts {
    /// How many connections are still to be cut.
    left: Arc<AtomicUsize>,
    /// After so many bytes in one direction.
    bytes: usize,
}

/// A proxy to that server, which cuts so many connections, each after so many bytes of one
/// direction. Its address.
pub(crate) async fn dropping_proxy(server: &str, cuts: usize, bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (server, cuts) = (server.to_owned(), Cuts { left: Arc::new(cuts.into()), bytes });
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (server, cuts) = (server.clone(), cuts.clone());
            tokio::spawn(async move {
                // The server may be restarting.
                let Ok(upstream) = TcpStream::connect(server).await else { return };
                let (requests, responses) = client.into_split();
                let (answers, sent) = upstream.into_split();
                // Both halves are dropped at a cut.
                tokio::select! {
                    () = cuts.pass(requests, sent) => {}
                    () = cuts.pass(answers, responses) => {}
                }
            });
        }
    });
    address
}

impl Cuts {
    /// Passes bytes on until one side ends or the connection is cut.
    async fn pass(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let (mut passed, mut buffer) = (0, vec![0; 65_536]);
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            passed += read;
            let may_cut = |left: usize| left.checked_sub(1);
            if passed > self.bytes
                && self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, may_cut).is_ok()
            {
                return;
            }
            if to.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    }
}
