//! A real `redis-server` of a test's own, on a free port, gone with it.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// Names another program than `redis-server` that takes its options, such as `valkey-server`.
const PROGRAM: &str = "TEST_REDIS_SERVER";

/// Its configuration, in its folder. A Sentinel keeps there what it finds out.
const CONFIG: &str = "redis.conf";

/// How long it may take to start.
const START: Duration = Duration::from_secs(20);

/// How long one who listens there may take to say that it is a Redis.
const REPLY: Duration = Duration::from_secs(1);

/// How often another port is tried; a server that takes no port does not take its options.
const ATTEMPTS: usize = 10;

/// How long a cluster may take until all its nodes know each other.
const AGREE: Duration = Duration::from_secs(60);

/// A running `redis-server` with its own directory; killed on drop.
pub struct RedisServer {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
    options: Vec<String>,
}

impl RedisServer {
    /// One that keeps nothing on disk.
    pub async fn start() -> Self {
        Self::start_with(&["--save", "", "--appendonly", "no"]).await
    }

    /// One that has everything on disk before it answers.
    pub async fn durable() -> Self {
        Self::start_with(&["--save", "", "--appendonly", "yes", "--appendfsync", "always"]).await
    }

    /// Three nodes that know each other and share the slots, with options for each.
    pub async fn cluster(options: impl Fn() -> Vec<String>) -> Vec<Self> {
        let mut nodes = Vec::new();
        for (first, last) in [("0", "5460"), ("5461", "10922"), ("10923", "16383")] {
            // By default the second port is so much higher that it may not exist.
            let bus = free_port().to_string();
            let own = ["--save", "", "--cluster-enabled", "yes", "--cluster-port", &bus];
            let node = Self::start_also_with(&own, &options()).await;
            node.command(&["CLUSTER", "ADDSLOTSRANGE", first, last]).await;
            let epoch = (nodes.len() + 1).to_string();
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
            nodes.push(node);
        }
        for node in &nodes[1..] {
            let bus = node.option("--cluster-port").expect("it has one");
            nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &node.usual_port(), bus]).await;
        }
        for node in &nodes {
            let agreed = async {
                loop {
                    let info = node.command(&["CLUSTER", "INFO"]).await;
                    if info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3") {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            tokio::time::timeout(AGREE, agreed).await.expect("they agree");
        }
        nodes
    }

    /// One that follows another, and can take over from it.
    pub async fn following(primary: &Self, options: &[String]) -> Self {
        let port = primary.usual_port();
        let follow = ["--save", "", "--replicaof", "127.0.0.1", &port];
        let soon = ["--repl-diskless-sync-delay", "0"];
        Self::start_also_with(&[&follow[..], &soon].concat(), options).await
    }

    /// A Sentinel that looks after a primary, knows it by that name, and by
    /// itself decides after a second that it is gone.
    pub async fn sentinel(name: &str, primary: &Self, options: &[String]) -> Self {
        let port = primary.usual_port();
        let config = format!(
            "sentinel monitor {name} 127.0.0.1 {port} 1
sentinel down-after-milliseconds {name} 1000
sentinel failover-timeout {name} 3000
"
        );
        let options = [&["--sentinel".to_owned()], options].concat();
        Self::start_configured(&config, options).await
    }

    /// Starts a server with these command-line options.
    pub async fn start_with(options: &[&str]) -> Self {
        Self::start_also_with(options, &[]).await
    }

    /// Starts a server with two lists of command-line options.
    pub async fn start_also_with(options: &[&str], more: &[String]) -> Self {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        Self::start_configured("", [&options, more].concat()).await
    }

    async fn start_configured(config: &str, options: Vec<String>) -> Self {
        for _ in 0..ATTEMPTS {
            let folder = tempfile::tempdir().expect("there is room for a folder");
            std::fs::write(folder.path().join(CONFIG), config).expect("it can be written");
            let port = free_port();
            let child = spawn(folder.path(), port, &options);
            let mut server = Self { child, folder, port, options: options.clone() };
            // Somebody else may have taken the port before Redis did.
            if server.answers().await {
                return server;
            }
        }
        panic!("a server with {options:?} ends at once");
    }

    /// The port for connections without TLS.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// By which its like reach it: with TLS, if it has that.
    fn usual_port(&self) -> String {
        self.option("--tls-port").map_or_else(|| self.port.to_string(), str::to_owned)
    }

    /// Of the options that it was started with.
    pub fn option(&self, name: &str) -> Option<&str> {
        let at = self.options.iter().position(|option| option == name)?;
        self.options.get(at + 1).map(String::as_str)
    }

    /// The URL for connections without TLS.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Tells it something, past whatever is tested; gives its answer, where that is a text.
    pub async fn command(&self, words: &[&str]) -> String {
        let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let bulk: Vec<String> = words.iter().map(word).collect();
        let command = format!("*{}\r\n{}", words.len(), bulk.concat());
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.expect("it listens");
        let mut stream = BufReader::new(stream);
        stream.write_all(command.as_bytes()).await.expect("it takes commands");
        let mut answer = String::new();
        stream.read_line(&mut answer).await.expect("it answers");
        assert!(!answer.starts_with('-'), "{words:?} is refused: {answer}");
        let Some(length) = answer.strip_prefix('$') else { return answer };
        let mut text = vec![0; length.trim_end().parse().expect("a length")];
        stream.read_exact(&mut text).await.expect("it answers");
        String::from_utf8(text).expect("a text")
    }

    /// `kill -9`
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on the same port, with what it had on disk.
    pub async fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.folder.path(), self.port, &self.options);
        assert!(self.answers().await, "redis-server does not come back");
    }

    /// Lets it do nothing until [`RedisServer::resume`], while its
    /// connections stay open.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Continues after [`RedisServer::pause`] (`SIGCONT`).
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("there is kill").success(), "it is running");
    }

    /// Whether it answers before it ends.
    async fn answers(&mut self) -> bool {
        let answered = async {
            while !matches!(tokio::time::timeout(REPLY, pong(self.port)).await, Ok(Ok(true))) {
                if self.child.try_wait().expect("it is our child").is_some() {
                    return false;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // Whoever answers there may be another.
            self.child.try_wait().expect("it is our child").is_none()
        };
        tokio::time::timeout(START, answered).await.expect("redis-server starts in time")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One that nobody listens on, for now.
pub fn free_port() -> u16 {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    free.local_addr().expect("it has an address").port()
}

/// Whether there is a Redis that has loaded what it had.
async fn pong(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"PING\r\n").await?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await?;
    Ok(answer == *b"+PONG")
}

fn spawn(folder: &std::path::Path, port: u16, options: &[String]) -> Child {
    let program = std::env::var(PROGRAM).unwrap_or_else(|_| "redis-server".to_owned());
    Command::new(program)
        .arg(folder.join(CONFIG))
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--loglevel", "warning"])
        .arg("--dir")
        .arg(folder)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed (make redis-server), or TEST_REDIS_SERVER is")
}
