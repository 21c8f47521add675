//! A real S3-compatible server (moto) of the tests' own, on a free port, gone
//! with the last of those that use it. `make s3-server` installs it.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::Mutex;

/// How long it may take to start.
const START: Duration = Duration::from_secs(60);

/// How long an answer may take: who does not answer is another.
const ANSWER: Duration = Duration::from_secs(10);

/// How many ports are tried: others may take a free one first.
const PORTS: usize = 5;

const BUCKET: &str = "larder-tests";

/// A running S3-compatible server (moto); killed on drop.
pub struct S3Server {
    child: Child,
    port: u16,
}

impl S3Server {
    /// The one that other tests use, too: it takes seconds to start.
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

    /// One of one's own, with a bucket.
    pub async fn start() -> Self {
        for _ in 0..PORTS {
            let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
            let port = free.local_addr().expect("it has an address").port();
            drop(free);
            let mut server = Self { child: spawn(port), port };
            // Somebody else may have taken the port before.
            if server.answers().await {
                return server;
            }
        }
        panic!("{} ends instead of serving: make s3-server installs it", program().display());
    }

    /// What a process has to have in its environment.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "tests".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret-of-tests".into()),
        ]
    }

    /// Below which nobody else writes.
    pub fn url(prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// The names of the objects below a prefix, without it, past whatever is
    /// tested.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let keys = self.all_keys(&format!("{prefix}/")).await;
        let keys = keys.iter().filter_map(|key| key.strip_prefix(prefix)?.strip_prefix('/'));
        keys.map(str::to_owned).collect()
    }

    /// All names that begin like that.
    pub async fn all_keys(&self, beginning: &str) -> Vec<String> {
        let url = format!("http://127.0.0.1:{}/{BUCKET}?list-type=2&prefix={beginning}", self.port);
        let listed = reqwest::get(url).await.expect("it answers").text().await.expect("it is text");
        assert!(listed.contains("<IsTruncated>false<"), "there are more than one page: {listed}");
        let keys = listed.split("<Key>").skip(1).filter_map(|key| key.split_once("</Key>"));
        keys.map(|(key, _)| key.to_owned()).collect()
    }

    /// Gives an object another name, past whatever is tested.
    pub async fn rename(&self, from: &str, to: &str) {
        let object = async |method: &str, key: &str, content: Bytes| {
            let url = format!("http://127.0.0.1:{}/{BUCKET}/{key}", self.port);
            let method = method.parse().expect("it is a method");
            let request = reqwest::Client::new().request(method, url).body(content);
            // Who says who they are is believed.
            let request = request.header("authorization", "AWS tests:signature");
            let answer = request.send().await.expect("it answers");
            let done = answer.error_for_status().expect("it is done");
            done.bytes().await.expect("it is sent whole")
        };
        let content = object("GET", from, Bytes::new()).await;
        object("PUT", to, content).await;
        object("DELETE", from, Bytes::new()).await;
    }

    /// `kill -9`
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// On the same port, with an empty bucket.
    pub async fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.port);
        assert!(self.answers().await, "its port is still free");
    }

    /// Whether it has made a bucket before it ends.
    async fn answers(&mut self) -> bool {
        let url = format!("http://127.0.0.1:{}/{BUCKET}", self.port);
        let answered = async {
            loop {
                if self.child.try_wait().expect("it is our child").is_some() {
                    return false;
                }
                let made = reqwest::Client::new().put(&url).timeout(ANSWER).send().await;
                if made.is_ok_and(|made| made.status().is_success()) {
                    // Whoever answers there may be another.
                    return self.child.try_wait().expect("it is our child").is_none();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(START, answered).await.expect("moto_server starts in time")
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
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"));
    target.join("s3/venv/bin/moto_server")
}
