//! A real `redis-server` for one test, on a free port.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// The environment variable that names a compatible program, such as `valkey-server`.
const PROGRAM: &str = "TEST_REDIS_SERVER";

/// The configuration file in the server's folder, which a Sentinel rewrites.
const CONFIG: &str = "redis.conf";

/// The limit for starting a server.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The limit for the reply to a PING. The port may belong to another program.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of ports to try. A server that starts on none of them rejects its options.
const ATTEMPTS: usize = 10;

/// The limit for the nodes of a cluster to find each other.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(60);

/// A running `redis-server` with its own folder; killed on drop.
pub struct RedisServer {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
    options: Vec<String>,
}

impl RedisServer {
    /// Starts a server without persistence.
    pub async fn start() -> Self {
        Self::start_with(&["--save", "", "--appendonly", "no"]).await
    }

    /// Starts a server that writes each change to disk before it replies.
    pub async fn durable() -> Self {
        Self::start_with(&["--save", "", "--appendonly", "yes", "--appendfsync", "always"]).await
    }

    /// Starts a cluster of three nodes that share the slots. `options` is called once per node.
    ///
    /// # Panics
    /// If the server does not answer, as it must for the test to mean anything.
    pub async fn cluster(options: impl Fn() -> Vec<String>) -> Vec<Self> {
        let mut nodes = Vec::new();

        for (first, last) in [("0", "5460"), ("5461", "10922"), ("10923", "16383")] {
            // The default bus port is 10,000 higher and may not exist.
            let bus = free_port().to_string();
            let required = ["--save", "", "--cluster-enabled", "yes", "--cluster-port", &bus];
            let node = Self::start_also_with(&required, &options()).await;

            node.command(&["CLUSTER", "ADDSLOTSRANGE", first, last]).await;
            let epoch = (nodes.len() + 1).to_string();

            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
            nodes.push(node);
        }

        for node in &nodes[1..] {
            let bus = node.option("--cluster-port").expect("the node has a bus port");
            nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &node.peer_port(), bus]).await;
        }

        for node in &nodes {
            let formed = async {
                loop {
                    let info = node.command(&["CLUSTER", "INFO"]).await;
                    if info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3") {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            tokio::time::timeout(CLUSTER_TIMEOUT, formed).await.expect("the cluster forms");
        }

        nodes
    }

    /// Starts a replica of a primary.
    pub async fn replica_of(primary: &Self, options: &[String]) -> Self {
        let port = primary.peer_port();
        let follow = ["--save", "", "--replicaof", "127.0.0.1", &port];

        let immediate = ["--repl-diskless-sync-delay", "0"];
        Self::start_also_with(&[&follow[..], &immediate].concat(), options).await
    }

    /// Starts a Sentinel that monitors a primary under a name, and alone decides after one second
    /// that the primary is down.
    pub async fn sentinel(name: &str, primary: &Self, options: &[String]) -> Self {
        let port = primary.peer_port();
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
            let folder = tempfile::tempdir().expect("a folder can be created");
            std::fs::write(folder.path().join(CONFIG), config).expect("it can be written");

            let port = free_port();
            let child = spawn(folder.path(), port, &options);

            let mut server = Self { child, folder, port, options: options.clone() };
            // Another process may have taken the port in the meantime.
            if server.starts().await {
                return server;
            }
        }
        panic!("a server with {options:?} does not start");
    }

    /// The port for connections without TLS.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The port for other Redis servers, with TLS if it is enabled.
    fn peer_port(&self) -> String {
        self.option("--tls-port").map_or_else(|| self.port.to_string(), str::to_owned)
    }

    /// The value of a command-line option.
    pub fn option(&self, name: &str) -> Option<&str> {
        let index = self.options.iter().position(|option| option == name)?;
        self.options.get(index + 1).map(String::as_str)
    }

    /// The URL for connections without TLS.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends a command over a separate connection. Returns the text of a bulk reply, or the first
    /// line of any other reply.
    ///
    /// # Panics
    /// If the server does not answer, as it must for the test to mean anything.
    pub async fn command(&self, words: &[&str]) -> String {
        let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
        let bulk: Vec<String> = words.iter().map(word).collect();
        let command = format!("*{}\r\n{}", words.len(), bulk.concat());

        let stream =
            TcpStream::connect(("127.0.0.1", self.port)).await.expect("the server accepts");
        let mut stream = BufReader::new(stream);
        stream.write_all(command.as_bytes()).await.expect("the command is sent");

        let mut reply = String::new();
        stream.read_line(&mut reply).await.expect("the server replies");
        assert!(!reply.starts_with('-'), "{words:?} is refused: {reply}");
        let Some(length) = reply.strip_prefix('$') else { return reply };

        let mut text = vec![0; length.trim_end().parse().expect("a length")];
        stream.read_exact(&mut text).await.expect("the server replies");
        String::from_utf8(text).expect("a text")
    }

    /// Sends commands in the form of an append-only file (RESP).
    ///
    /// # Panics
    /// If the server refuses a command.
    pub async fn load(&self, commands: &[u8]) {
        const END: &[u8] = b"$6\r\nloaded\r\n";
        let mut stream =
            TcpStream::connect(("127.0.0.1", self.port)).await.expect("the server accepts");
        let echo = b"*2\r\n$4\r\nECHO\r\n$6\r\nloaded\r\n";
        stream.write_all(&[commands, echo].concat()).await.expect("the commands are sent");

        let mut replies = Vec::new();
        while !replies.ends_with(END) {
            let read = stream.read_buf(&mut replies).await.expect("the server replies");
            assert!(read > 0, "the server closed the connection");
        }

        let replies = String::from_utf8_lossy(&replies);
        assert!(!replies.lines().any(|reply| reply.starts_with('-')), "{replies}");
    }

    /// Kills the server (`SIGKILL`).
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills the server and starts it again on the same port with its data on disk.
    ///
    /// # Panics
    /// If the server does not answer, as it must for the test to mean anything.
    pub async fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.folder.path(), self.port, &self.options);
        assert!(self.starts().await, "redis-server does not start again");
    }

    /// Stops the process until [`RedisServer::resume`] (`SIGSTOP`). Connections stay open.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Continues after [`RedisServer::pause`] (`SIGCONT`).
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("the command kill exists").success(), "the server is running");
    }

    /// Whether the server replies to a PING before it exits.
    async fn starts(&mut self) -> bool {
        let started = async {
            while !matches!(tokio::time::timeout(PING_TIMEOUT, pong(self.port)).await, Ok(Ok(true)))
            {
                if self.child.try_wait().expect("the child can be waited for").is_some() {
                    return false;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }

            // The reply may come from another process on that port.
            self.child.try_wait().expect("the child can be waited for").is_none()
        };

        tokio::time::timeout(START_TIMEOUT, started).await.expect("redis-server starts in time")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that is free at the moment.
///
/// # Panics
/// If no port is free.
pub fn free_port() -> u16 {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    free.local_addr().expect("it has an address").port()
}

/// Whether a Redis that has loaded its data replies on `port`.
async fn pong(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"PING\r\n").await?;

    let mut reply = [0; 5];
    stream.read_exact(&mut reply).await?;
    Ok(reply == *b"+PONG")
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
