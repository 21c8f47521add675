//! The example servers, each in a process of its own, met over HTTP.

mod dynamic_resources;
mod evaluation;
mod lifespan;
mod low_level;
mod prompts;
mod resources;
mod running;
mod tools;

use std::{path::PathBuf, process::Stdio, sync::Arc, sync::Mutex};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task::JoinHandle,
};

use crate::support::{Modern, patiently};

/// The program of an example, which `cargo test` has built beside the binary.
pub(super) fn program(example: &str) -> PathBuf {
    let larder = PathBuf::from(env!("CARGO_BIN_EXE_larder"));
    let program = larder.parent().unwrap().join("examples").join(example);
    assert!(program.exists(), "{} is not there: cargo build --examples", program.display());
    program
}

/// An example that serves.
pub(super) struct Example {
    child: Child,
    pub(super) url: String,
    said: Arc<Mutex<String>>,
    reading: JoinHandle<()>,
}

impl Example {
    pub(super) async fn start(name: &str) -> Self {
        Self::started(Command::new(program(name))).await
    }

    pub(super) async fn started(mut command: Command) -> Self {
        command.args(["--listen", "127.0.0.1:0", "--store", "memory:"]).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut before = String::new();
        let url = loop {
            let line = patiently("a line", stderr.next_line()).await.unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended: {before}"));
            if let Some(url) = line.strip_prefix("larder listening on ") {
                break url.to_owned();
            }
            before.push_str(&line);
            before.push('\n');
        };
        let said = Arc::new(Mutex::new(before));
        let reading = tokio::spawn({
            let said = Arc::clone(&said);
            async move {
                while let Ok(Some(line)) = stderr.next_line().await {
                    let mut said = said.lock().unwrap();
                    said.push_str(&line);
                    said.push('\n');
                }
            }
        });
        Self { child, url, said, reading }
    }

    pub(super) fn client(&self) -> Modern {
        Modern::at(&self.url)
    }

    /// What it has said on standard error so far.
    pub(super) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Tells it to stop; exit code, standard output and standard error.
    pub(super) async fn stop(mut self, signal: &str) -> (Option<i32>, String, String) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
        let mut stdout = self.child.stdout.take().unwrap();
        let code = patiently("the end", self.child.wait()).await.unwrap().code();
        let mut printed = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut printed).await.unwrap();
        patiently("the rest", self.reading).await.unwrap();
        let said = self.said.lock().unwrap().clone();
        (code, printed, said)
    }
}
