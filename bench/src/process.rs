//! The peers as processes, each on the server's core.

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

/// The core that all servers run on; the load comes from another one.
pub const SERVERS_CORE: &str = "0";

/// A server under test.
#[derive(Debug)]
pub struct Peer {
    pub address: SocketAddr,
    child: Child,
}

impl Peer {
    /// Starts a program that says `… listening on http://ADDRESS/mcp`.
    ///
    /// # Errors
    /// With what it said instead.
    pub async fn start(program: &Path, arguments: &[&str]) -> io::Result<Self> {
        Self::start_with(program, arguments, &[]).await
    }

    /// The same with an environment of its own.
    ///
    /// # Errors
    /// With what it said instead.
    pub async fn start_with(
        program: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> io::Result<Self> {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", SERVERS_CORE]).arg(program).args(arguments);
        command.env_remove("RUST_LOG").envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = BufReader::new(stderr).lines();
        let mut said = String::new();
        let found = tokio::time::timeout(Duration::from_secs(60), async {
            while let Some(line) = lines.next_line().await? {
                if let Some((_, rest)) = line.split_once("listening on http://") {
                    let address = rest.split('/').next().unwrap_or_default();
                    return address.parse().map_err(io::Error::other);
                }
                said += &line;
                said.push('\n');
            }
            Err(io::Error::other(format!("{} ended: {said}", program.display())))
        });
        let address = found.await.map_err(io::Error::other)??;
        // What it says from here on is of no interest, yet has to go somewhere.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { address, child })
    }

    /// Its id, which is the program's: `taskset` becomes it.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// Bytes in memory now.
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The most bytes in memory since the last [`Self::forget_peak`].
    pub fn peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Lets the peak begin anew.
    pub fn forget_peak(&self) {
        let _ = fs::write(format!("/proc/{}/clear_refs", self.pid()), "5");
    }

    fn status(&self, field: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10
    }
}

/// A program of this package, which is built with it.
///
/// # Panics
/// When this process has no path.
pub fn sibling(name: &str) -> PathBuf {
    let me = std::env::current_exe().expect("this process has a path");
    me.with_file_name(name)
}
