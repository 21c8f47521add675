//! A network that breaks.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A proxy of TCP that drops the first `cuts` connections after `bytes` from the client.
pub(crate) async fn dropping_proxy(server: &str, cuts: usize, bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.to_owned();
    tokio::spawn(async move {
        let left = Arc::new(AtomicUsize::new(cuts));
        while let Ok((client, _)) = listener.accept().await {
            let (server, left) = (server.clone(), Arc::clone(&left));
            tokio::spawn(async move {
                let upstream = TcpStream::connect(server).await.unwrap();
                let (mut from, mut back) = client.into_split();
                let (mut answers, mut to) = upstream.into_split();
                let answering = tokio::spawn(async move {
                    let _ = tokio::io::copy(&mut answers, &mut back).await;
                });
                let (mut sent, mut buffer) = (0, vec![0; 65_536]);
                while let Ok(read @ 1..) = from.read(&mut buffer).await {
                    sent += read;
                    let may_cut = |left: usize| left.checked_sub(1);
                    if sent > bytes
                        && left.fetch_update(Ordering::AcqRel, Ordering::Acquire, may_cut).is_ok()
                    {
                        answering.abort();
                        return;
                    }
                    if to.write_all(&buffer[..read]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}
