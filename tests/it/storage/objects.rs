//! Servers whose store is a directory or S3: restarts, kills, outages and memory use.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder::{
    auth::Owner,
    clock::SystemClock,
    random::Random,
    store::{
        Content, Details, ObjectBackend, ObjectLocation, OwnerQuota, ResourceUri, Store,
        StoreLimits,
    },
};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Location, ONE_MESSAGE, is_atomic_when_killed};
use crate::support::{
    Modern, S3Server, noise,
    process::{Process, example, refused, run, serving_in},
};

impl Location {
    /// A server with its store there.
    async fn serving(&self) -> (Process, Modern) {
        let environment = self.environment(&[ONE_MESSAGE]);
        let (process, url) = serving_in(&["--store", &self.url], &environment).await;
        (process, Modern::at(&url))
    }
}

#[tokio::test]
async fn a_resource_of_one_server_is_read_on_another_and_after_a_restart() {
    for location in Location::each().await {
        let (a, client_a) = location.serving().await;
        let (_b, client_b) = location.serving().await;
        client_a.create(json!({ "uri": "x:1", "text": "one", "name": "One" })).await;
        assert_eq!(client_b.read("x:1").await["text"], "one");
        client_b.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
        assert_eq!(client_a.read("x:1").await["text"], "two");
        a.stop("-TERM").await;
        let (_c, client_c) = location.serving().await;
        assert_eq!(client_c.read("x:1").await["text"], "two");
        let listed: Vec<Value> = client_c.list("resources/list", "resources").await;
        assert!(listed.iter().any(|one| one["uri"] == "x:1" && one["name"] == "One"), "{listed:?}");
    }
}

#[tokio::test]
async fn a_kill_during_a_write_leaves_the_old_or_the_new_content() {
    let [directory, _] = Location::each().await;
    let text = |n| format!("{n} {}", "0123456789abcdef".repeat(20_000 + n));
    is_atomic_when_killed(text, || directory.serving()).await;
}

#[tokio::test]
async fn a_store_that_cannot_be_used_names_the_setting() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = format!("file://{}/below", file.path().display());
    let nowhere = [("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("AWS_ACCESS_KEY_ID", "k")];
    let nowhere =
        [&nowhere[..], &[("AWS_SECRET_ACCESS_KEY", "hidden"), ("AWS_REGION", "x")]].concat();
    for (store, environment, code) in [
        ("file://relative", &[][..], 2),
        ("s3://", &[], 2),
        ("gopher://x", &[], 2),
        (&below, &[], 1),
        ("s3://bucket/prefix", &nowhere, 1),
    ] {
        let (found, said) =
            refused(&["serve", "--listen", "127.0.0.1:0", "--store", store], environment).await;
        assert_eq!(found, Some(code), "{said}");
        assert!(said.contains("store.url") && !said.contains("hidden"), "{said}");
    }
}

#[cfg(not(any(feature = "gcs", feature = "azure")))]
#[tokio::test]
async fn a_store_that_is_not_compiled_in_names_its_feature() {
    for (url, feature) in [("gs://bucket/prefix", "gcs"), ("az://container/prefix", "azure")] {
        let external = [("LARDER_STORE__BLOBS", url)];
        for (setting, store, environment) in
            [("store.url", url, &[][..]), ("store.blobs", "redis://127.0.0.1:9", &external)]
        {
            let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", store];
            let (code, said) = refused(&arguments, environment).await;
            assert_eq!(code, Some(2), "{said}");
            assert!(
                said.contains(setting) && said.contains(&format!("--features {feature}")),
                "{said}"
            );
        }
    }
}

/// The environment variable that tells the measured process its store.
const MEASURED: &str = "LARDER_TEST_STORE";

#[tokio::test]
async fn two_hundred_megabytes_pass_through_little_memory() {
    const NAME: &str = "two_hundred_megabytes_pass_through_little_memory";

    if let Ok(url) = std::env::var(MEASURED) {
        return pass_through(&url).await;
    }
    let (_, module) = module_path!().split_once("::").unwrap();
    for location in Location::each().await {
        // This test again in another process, so that nothing else uses memory.
        let mut measured = Command::new(std::env::current_exe().unwrap());
        measured.args(["--exact", &format!("{module}::{NAME}"), "--nocapture"]).kill_on_drop(true);
        measured.env(MEASURED, &location.url).envs(location.environment(&[]));
        let finished = run(measured).await;
        assert_eq!(finished.code, Some(0), "{}: {finished:?}", location.url);
        assert!(finished.stdout.contains("1 passed"), "nothing was measured: {finished:?}");
    }
}

async fn pass_through(url: &str) {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 200;
    let random = Random::system();
    let place = ObjectLocation::open(url, &random).await.unwrap();
    let clock = Arc::new(SystemClock);
    let backend = ObjectBackend::new(place, clock.clone(), random, OwnerQuota::default());
    let store = Store::new(Arc::new(backend), clock, StoreLimits::default());
    let (owner, uri) = (Owner::new("alice"), ResourceUri::parse("x:large").unwrap());
    // Pieces that do not compress, each with its number at its beginning.
    let words = noise(0).take(PIECE / 8).flat_map(u64::to_le_bytes);
    let noise = Bytes::from_owner(words.collect::<Vec<u8>>());
    let piece = move |n: usize| {
        let number = Bytes::copy_from_slice(&(n as u64).to_le_bytes());
        stream::iter([Ok(number), Ok(noise.slice(8..))])
    };
    let pieces = stream::iter(0..PIECES).flat_map(piece);
    let before = peak_memory();
    let content = Content::byte_stream(pieces);
    let entry = store.create(&owner, uri.clone(), content, Details::default()).await.unwrap();
    assert_eq!(entry.size, (PIECE * PIECES) as u64);
    let found = store.get(&owner, &uri).await.unwrap();
    if url.starts_with("file:") {
        let mut read = 0;
        let mut blocks = std::pin::pin!(found.stream());
        while let Some(block) = blocks.next().await {
            let block = block.unwrap();
            if read % PIECE == 0 {
                assert_eq!(block[..8], (read as u64 / PIECE as u64).to_le_bytes());
            }
            read += block.len();
        }
        assert_eq!(read, PIECE * PIECES);
    }
    // The S3 server of the tests copies the whole object for each window, so there are few.
    let step = if url.starts_with("file:") { 10 } else { 66 };
    for n in (0..PIECES as u64).step_by(step) {
        let window = found.bytes_from(n * PIECE as u64, 8).await.unwrap();
        assert_eq!(window.bytes, n.to_le_bytes().as_slice());
    }
    let grown = peak_memory() - before;
    assert!(grown < 80 << 20, "memory grew by {grown} bytes");
}

/// The peak of the resident memory in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn requests_fail_while_s3_is_away_and_succeed_afterwards() {
    let mut s3 = S3Server::start().await;
    let mut command = example("dynamic_resources");
    command.args(["--store", &S3Server::url("prefix")]).envs(s3.environment()).envs([ONE_MESSAGE]);
    let server = Process::start(command).await;
    let client = Modern::at(&server.url);
    let stored = async || client.call("generate_pdf", json!({})).await;
    let uri = stored().await.text().trim_start_matches("PDF generated: ").to_owned();
    assert!(client.read(&uri).await["blob"].is_string());
    let keys = s3.all_keys("").await;
    assert!(!keys.is_empty() && keys.iter().all(|key| key.starts_with("prefix/")), "{keys:?}");
    s3.kill();
    let failure = stored().await.failure();
    assert!(failure.contains("The s3 store") && failure.contains("try again"), "{failure}");
    for (method, params) in
        [("resources/read", json!({ "uri": uri })), ("resources/list", json!({}))]
    {
        let error = client.send(method, params).await.error();
        assert_eq!(error["code"], -32603, "{error}");
        assert!(!error.to_string().contains("127.0.0.1"), "the error names the address: {error}");
    }
    let about = client.read("results://about").await;
    assert_eq!(about["text"], "Results live here for two hours.");
    s3.restart().await;
    // The restarted S3 server is empty, and stores new objects at once.
    let gone = client.send("resources/read", json!({ "uri": uri })).await.error();
    assert_eq!(gone["code"], -32602, "{gone}");
    let uri = stored().await.text().trim_start_matches("PDF generated: ").to_owned();
    assert!(client.read(&uri).await["blob"].is_string());
}
