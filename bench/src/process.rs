//! Peers as processes, all on the servers' core.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// The core of all servers; the load runs on another one.
pub const SERVERS_CORE: &str = "0";

/// The load is one caller at one address, and limits of one caller are not measured.
const WITHOUT_LIMITS: [(&str, &str); 7] = [
    ("LARDER_LIMITS__REQUESTS_PER_WINDOW", "0"),
    ("LARDER_LIMITS__CONCURRENT_CALLS", "0"),
    ("LARDER_LIMITS__OPEN_STREAMS", "0"),
    ("LARDER_LIMITS__CONNECTIONS", "20000"),
    ("LARDER_LIMITS__CONNECTIONS_PER_ADDRESS", "20000"),
    ("LARDER_SESSIONS__PER_PRINCIPAL", "100000"),
    ("LARDER_SESSIONS__TOTAL", "0"),
];

/// A server under test.
#[derive(Debug)]
pub struct Peer {
    pub address: SocketAddr,
    child: Child,
}

impl Peer {
    /// Starts a program that prints `… listening on http://ADDRESS/mcp`.
    ///
    /// # Errors
    /// With the program's output, if it ends without that line.
    pub async fn start(program: &Path, arguments: &[&str]) -> io::Result<Self> {
        Self::start_with(program, arguments, &[]).await
    }

    /// [`Self::start`] with environment variables.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with(
        program: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> io::Result<Self> {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", SERVERS_CORE]).arg(program).args(arguments);
        command.env_remove("RUST_LOG").envs(WITHOUT_LIMITS).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = BufReader::new(stderr).lines();
        let mut output = String::new();
        let found = tokio::time::timeout(Duration::from_secs(60), async {
            while let Some(line) = lines.next_line().await? {
                if let Some((_, rest)) = line.split_once("listening on http://") {
                    let address = rest.split('/').next().unwrap_or_default();
                    return address.parse().map_err(io::Error::other);
                }
                output += &line;
                output.push('\n');
            }
            Err(io::Error::other(format!("{} ended: {output}", program.display())))
        });
        let address = found.await.map_err(io::Error::other)??;
        // Drains the pipe, so that the program never blocks on it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { address, child })
    }

    /// The process ID: that of the program, because `taskset` executes it in place.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// The resident memory, in bytes.
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The peak resident memory since the last [`Self::forget_peak`], in bytes.
    pub fn peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Resets the peak.
    pub fn forget_peak(&self) {
        let _ = fs::write(format!("/proc/{}/clear_refs", self.pid()), "5");
    }

    fn status(&self, field: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10
    }
}

/// Moves a process that another library started to the servers' core.
///
/// # Errors
/// When `taskset` fails.
pub fn on_servers_core(pid: u32) -> io::Result<()> {
    let mut taskset = std::process::Command::new("taskset");
    taskset.args(["--all-tasks", "--cpu-list", "--pid", SERVERS_CORE, &pid.to_string()]);
    if taskset.stdout(Stdio::null()).status()?.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("taskset did not move process {pid}")))
}

/// The path of another program of this package.
///
/// # Panics
/// When the path of this process is unknown.
pub fn sibling(name: &str) -> PathBuf {
    let me = std::env::current_exe().expect("the path of this process");
    me.with_file_name(name)
}
