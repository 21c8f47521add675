//! A proxy that cuts connections.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Where to cut connections.
#[derive(Clone)]
struct Cuts {
    /// How many connections are still to be cut.
    left: Arc<AtomicUsize>,
    /// The bytes in one direction after which a connection is cut.
    bytes: usize,
}

/// A proxy to a server, whose connections a test cuts.
pub(crate) struct Network {
    /// Where the proxy listens.
    pub(crate) address: String,
    works: watch::Sender<bool>,
    cuts: Cuts,
}

/// Starts a proxy to a server. It cuts the first `cuts` connections that pass more than `bytes`
/// bytes in one direction. Returns its address.
pub(crate) async fn dropping_proxy(server: &str, cuts: usize, bytes: usize) -> String {
    Network::dropping(server, cuts, bytes).await.address
}

impl Network {
    /// One that works until the test breaks it.
    pub(crate) async fn working(server: &str) -> Self {
        Self::dropping(server, 0, usize::MAX).await
    }

    /// One that cuts so many connections, each after so many bytes of one direction.
    pub(crate) async fn dropping(server: &str, cuts: usize, bytes: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let cuts = Cuts { left: Arc::new(cuts.into()), bytes };
        let (works, working) = watch::channel(true);
        let (server, passing) = (server.to_owned(), cuts.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, cuts, working) = (server.clone(), passing.clone(), working.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        () = broken(working) => {}
                        () = cuts.connect(client, &server) => {}
                    }
                });
            }
        });
        Self { address, works, cuts }
    }

    /// Cuts all connections, and each new one, until it is mended.
    pub(crate) fn break_all(&self) {
        self.works.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.works.send_replace(true);
    }

    /// How many connections are still to be cut.
    pub(crate) fn cuts_left(&self) -> usize {
        self.cuts.left.load(Ordering::Acquire)
    }
}

/// Waits until the network is broken; forever if nothing can break it any more.
async fn broken(mut working: watch::Receiver<bool>) {
    if working.wait_for(|works| !works).await.is_err() {
        pending::<()>().await;
    }
}

impl Cuts {
    async fn connect(&self, client: TcpStream, server: &str) {
        // The server may be restarting.
        let Ok(upstream) = TcpStream::connect(server).await else { return };
        let (requests, responses) = client.into_split();
        let (answers, sent) = upstream.into_split();
        // Both halves are dropped at a cut.
        tokio::select! {
            () = self.pass(requests, sent) => {}
            () = self.pass(answers, responses) => {}
        }
    }

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
