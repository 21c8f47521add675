//! A real S3-compatible server (moto) for tests, on a free port. It stops with the last test that
//! uses it. `make s3-server` installs it.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::Mutex;

/// The limit for starting a server.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The limit for a response. A process that does not respond is another program that took the port.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of ports to try, because another process may take a free port first.
const PORT_ATTEMPTS: usize = 5;

const BUCKET: &str = "larder-tests";

/// A running S3-compatible server (moto); killed on drop.
pub struct S3Server {
    child: Child,
    port: u16,
}

impl S3Server {
    /// The server that all tests of this process share, because it takes seconds to start.
    pub async fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<S3Server>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(server) = shared.upgrade() {
            return server;
        }

        let server = Arc::new(Self::start().await);
        *shared = Arc::downgrade(&server);
        server
    }

    /// A new server with an empty bucket.
    ///
    /// # Panics
    /// If the server does not answer, as it must for the test to mean anything.
    pub async fn start() -> Self {
        for _ in 0..PORT_ATTEMPTS {
            let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
            let port = free.local_addr().expect("it has an address").port();
            drop(free);

            let mut server = Self { child: spawn(port), port };
            // Another process may have taken the port in the meantime.
            if server.creates_bucket().await {
                return server;
            }
        }
        panic!("{} does not start: make s3-server installs it", program().display());
    }

    /// The environment variables that a client needs.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "tests".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret-of-tests".into()),
        ]
    }

    /// The URL of a prefix in the bucket.
    pub fn url(prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// The keys below a prefix, relative to it, read without Larder.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let keys = self.all_keys(&format!("{prefix}/")).await;
        let keys = keys.iter().filter_map(|key| key.strip_prefix(prefix)?.strip_prefix('/'));
        keys.map(str::to_owned).collect()
    }

    /// All keys that begin with `start`.
    ///
    /// # Panics
    /// If the server does not answer, as it must for the test to mean anything.
    pub async fn all_keys(&self, start: &str) -> Vec<String> {
        let url = format!("http://127.0.0.1:{}/{BUCKET}?list-type=2&prefix={start}", self.port);
        let listed = reqwest::get(url).await.expect("it answers").text().await.expect("it is text");

        assert!(
            listed.contains("<IsTruncated>false<"),
            "the keys need more than one page: {listed}"
        );

        let keys = listed.split("<Key>").skip(1).filter_map(|key| key.split_once("</Key>"));
        keys.map(|(key, _)| key.to_owned()).collect()
    }

    /// Renames an object without Larder.
    ///
    /// # Panics
    /// If the server does not answer, as it must for the test to mean anything.
    pub async fn rename(&self, from: &str, to: &str) {
        let object = async |method: &str, key: &str, content: Bytes| {
            let url = format!("http://127.0.0.1:{}/{BUCKET}/{key}", self.port);
            let method = method.parse().expect("it is a method");
            let request = reqwest::Client::new().request(method, url).body(content);
            // moto accepts any signature.
            let request = request.header("authorization", "AWS tests:signature");
            let response = request.send().await.expect("it answers");
            let done = response.error_for_status().expect("it is done");
            done.bytes().await.expect("the body is complete")
        };

        let content = object("GET", from, Bytes::new()).await;
        object("PUT", to, content).await;
        object("DELETE", from, Bytes::new()).await;
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Restarts the server on the same port with an empty bucket.
    ///
    /// # Panics
    /// If the server does not answer, as it must for the test to mean anything.
    pub async fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.port);
        assert!(self.creates_bucket().await, "its port is still free");
    }

    /// Waits until the server has created the bucket. Returns `false` if it exits.
    async fn creates_bucket(&mut self) -> bool {
        let url = format!("http://127.0.0.1:{}/{BUCKET}", self.port);

        let created = async {
            loop {
                if self.child.try_wait().expect("it is our child").is_some() {
                    return false;
                }

                let created =
                    reqwest::Client::new().put(&url).timeout(RESPONSE_TIMEOUT).send().await;
                if created.is_ok_and(|response| response.status().is_success()) {
                    // Another process may have responded on that port.
                    return self.child.try_wait().expect("it is our child").is_none();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };

        tokio::time::timeout(START_TIMEOUT, created).await.expect("moto_server starts in time")
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(port: u16) -> Child {
    let mut command = Command::new(program());
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("moto_server runs: make s3-server installs it")
}

fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    // The target directory of the workspace, which is two folders above this crate.
    let target = target
        .unwrap_or_else(|| Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")).into());
    target.join("s3/venv/bin/moto_server")
}
