//! The peak memory of the process while ten large resources are written.

use crate::{MIB, RedisServer, noise, seconds, status, store_on, uri};
use bytes::Bytes;
use futures_util::{future::join_all, stream};
use larder::{
    auth::Owner,
    store::{Content, Details},
};

const WRITERS: usize = 10;
const BYTES: usize = 100 * MIB;

pub(crate) async fn measure() {
    let server = RedisServer::start().await;
    let (store, owner) = (store_on(&server).await, Owner::new("bench"));
    // Longer than a block, so that repetitions do not compress.
    let (noise, piece) = (Bytes::from(noise(MIB)), 64 * 1024);
    let pieces: Vec<Bytes> =
        (0..MIB / piece).map(|n| noise.slice(n * piece..(n + 1) * piece)).collect();
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let before = status("self", "VmRSS");
    let writing = (0..WRITERS).map(|n| {
        let pieces = pieces.clone().into_iter().cycle().take(BYTES / piece).map(Ok);
        let (store, owner) = (store.clone(), owner.clone());
        tokio::spawn(async move {
            let content = Content::byte_stream(stream::iter(pieces));
            store.create(&owner, uri(n), content, Details::default()).await.expect("it fits");
        })
    });
    let writing: Vec<_> = writing.collect();
    let took = seconds(async {
        for written in join_all(writing).await {
            written.expect("no task panics");
        }
    })
    .await;
    let peak = status("self", "VmHWM");
    println!("ten of 100 MB at once: {took:.1} s; resident before {before} kB, at most {peak} kB");
}
