//! Servers on a directory and on S3, and what is left when they are killed.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder::{
    auth::Owner,
    clock::SystemClock,
    random::Random,
    store::{
        Content, Details, ObjectBackend, ObjectPlace, OwnerQuota, ResourceUri, Store, StoreLimits,
    },
};
use serde_json::{Value, json};
use tokio::process::Child;

use crate::{
    process::{refused, serving_in, serving_with_in, signal},
    support::{Modern, S3Server, patiently},
};

/// Answers by one message each, however long they take.
pub(crate) const AT_ONCE: (&str, &str) = ("LARDER_SERVER__JSON_RESPONSE", "true");

/// A kind of place, by its URL and what has to be in the environment.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) environment: Vec<(&'static str, String)>,
    _folder: tempfile::TempDir,
    pub(crate) s3: Option<Arc<S3Server>>,
}

impl Place {
    pub(crate) async fn each() -> [Self; 2] {
        let folder = tempfile::tempdir().unwrap();
        let directory = format!("file://{}/not/yet", folder.path().display());
        let s3 = S3Server::shared().await;
        let own = tempfile::tempdir().unwrap();
        let prefix = own.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        [
            Self { url: directory, environment: Vec::new(), _folder: folder, s3: None },
            Self {
                url: S3Server::url(prefix),
                environment: s3.environment().into(),
                _folder: own,
                s3: Some(s3),
            },
        ]
    }

    async fn serving(&self) -> (Child, Modern) {
        let environment = self.environment.iter().map(|(n, v)| (*n, v.as_str()));
        // However long a change takes that somebody else has begun.
        let environment: Vec<_> = environment.chain([AT_ONCE]).collect();
        let (child, url) = serving_in(&["--store", &self.url], &environment).await;
        (child, Modern::at(&url))
    }
}

#[tokio::test]
async fn what_is_created_on_one_is_read_on_another_and_after_a_restart() {
    for place in Place::each().await {
        let ((mut a, client_a), (_b, client_b)) = (place.serving().await, place.serving().await);
        client_a.create(json!({ "uri": "x:1", "text": "one", "name": "One" })).await;
        assert_eq!(client_b.read("x:1").await["text"], "one");
        client_b.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
        assert_eq!(client_a.read("x:1").await["text"], "two");
        signal(&a, "-TERM").await;
        patiently("the end", a.wait()).await.unwrap();
        let (_c, client_c) = place.serving().await;
        assert_eq!(client_c.read("x:1").await["text"], "two");
        let listed: Vec<Value> = client_c.list("resources/list", "resources").await;
        assert!(listed.iter().any(|one| one["uri"] == "x:1" && one["name"] == "One"), "{listed:?}");
    }
}

#[tokio::test]
async fn killed_in_the_middle_of_writing_it_leaves_the_old_or_the_new() {
    let [place, _] = Place::each().await;
    killed_in_the_middle(
        |n| format!("{n} {}", "0123456789abcdef".repeat(40_000 + n)),
        || place.serving(),
    )
    .await;
}

/// Whatever is written when a server is killed, the next one reads the old
/// text or the new one, and goes on.
pub(crate) async fn killed_in_the_middle(
    text: impl Fn(usize) -> String,
    serving: impl AsyncFn() -> (Child, Modern),
) {
    for round in 0..5 {
        let (mut child, client) = serving().await;
        client.create(json!({ "uri": "x:1", "text": text(0) })).await;
        let mut written = 0;
        let writing = async {
            loop {
                let text = text(written + 1);
                let made = client.request(
                    1,
                    "tools/call",
                    json!({
                        "name": "create_resource", "arguments": { "uri": "x:1", "text": text }
                    }),
                );
                if made.send().await.is_err() {
                    return;
                }
                written += 1;
            }
        };
        let killing = async {
            // At another moment each time.
            tokio::time::sleep(std::time::Duration::from_millis(300 + 37 * round)).await;
            child.start_kill().unwrap();
            child.wait().await.unwrap();
        };
        patiently("the end", async { tokio::join!(writing, killing) }).await;
        let (_child, client) = serving().await;
        let read = client.read("x:1").await["text"].as_str().unwrap().to_owned();
        let n: usize = read.split(' ').next().unwrap().parse().unwrap();
        assert!(read == text(n), "what is read is nobody's");
        assert!(n == written || n == written + 1, "{n} after {written}");
        // And it goes on.
        client.create(json!({ "uri": "x:2", "text": "more" })).await;
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_used_names_the_setting() {
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
async fn a_place_that_is_not_built_in_names_its_feature() {
    for (url, feature) in [("gs://bucket/prefix", "gcs"), ("az://container/prefix", "azure")] {
        let beside = [("LARDER_STORE__BLOBS", url)];
        for (setting, store, environment) in
            [("store.url", url, &[][..]), ("store.blobs", "redis://127.0.0.1:9", &beside)]
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

/// Where the process that is measured finds its place.
const MEASURED: &str = "LARDER_TEST_PLACE";

#[tokio::test]
async fn two_hundred_megabytes_pass_through_little_memory() {
    const NAME: &str = "objects::two_hundred_megabytes_pass_through_little_memory";
    if let Ok(url) = std::env::var(MEASURED) {
        return pass_through(&url).await;
    }
    for place in Place::each().await {
        // In a process of its own, since memory is measured.
        let mut measured = tokio::process::Command::new(std::env::current_exe().unwrap());
        measured.args(["--exact", NAME, "--nocapture"]).kill_on_drop(true);
        measured.env(MEASURED, &place.url).envs(place.environment.iter().cloned());
        let output = measured.output().await.unwrap();
        assert!(output.status.success(), "{}: {output:?}", place.url);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 passed"), "nothing was measured: {said}");
    }
}

async fn pass_through(url: &str) {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 200;
    let random = Random::system();
    let place = ObjectPlace::open(url, &random).await.unwrap();
    let clock = Arc::new(SystemClock);
    let backend = ObjectBackend::new(place, clock.clone(), random, OwnerQuota::default());
    let store = Store::new(Arc::new(backend), clock, StoreLimits::default());
    let (owner, uri) = (Owner::new("alice"), ResourceUri::parse("x:large").unwrap());
    // What no compression makes less, and tells each piece from the others.
    let mut state = 1_u64;
    let words = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let noise = Bytes::from_owner(words.take(PIECE / 8).flatten().collect::<Vec<u8>>());
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
    // For whatever it is asked, the server in tests copies the whole object.
    for n in (0..PIECES as u64).step_by(10) {
        let window = found.bytes_from(n * PIECE as u64, 8).await.unwrap();
        assert_eq!(window.bytes, n.to_le_bytes().as_slice());
    }
    let grown = peak_memory() - before;
    assert!(grown < 80 << 20, "memory grew by {grown} bytes");
}

/// In bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn without_its_s3_a_server_says_so_and_goes_on_when_it_is_back() {
    let mut s3 = S3Server::start().await;
    let larder = std::path::Path::new(env!("CARGO_BIN_EXE_larder"));
    let example = larder.with_file_name("examples").join("dynamic_resources");
    let url = S3Server::url("prefix");
    let environment = s3.environment();
    let environment = environment.iter().map(|(n, v)| (*n, v.as_str()));
    let environment: Vec<_> = environment.chain([AT_ONCE]).collect();
    let example = example.to_str().unwrap();
    let (_server, at) = serving_with_in(example, &["--store", &url], &environment).await;
    let client = Modern::at(&at);
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
        assert!(!error.to_string().contains("127.0.0.1"), "it tells where: {error}");
    }
    let about = client.read("results://about").await;
    assert_eq!(about["text"], "Results live here for two hours.");
    s3.restart().await;
    // It has lost what it held, and takes new things at once.
    let gone = client.send("resources/read", json!({ "uri": uri })).await.error();
    assert_eq!(gone["code"], -32602, "{gone}");
    let uri = stored().await.text().trim_start_matches("PDF generated: ").to_owned();
    assert!(client.read(&uri).await["blob"].is_string());
}
