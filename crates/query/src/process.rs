//! [`Worker`]: a worker process, which is started, gets content, and is killed on drop.

use std::{
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use bytes::Bytes;
use futures_util::StreamExt;
use larder_store::store::StoredResource;
use parking_lot::Mutex;
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::mpsc,
};

use super::{
    Answer, Confinement, Engine, QueryError, Question,
    wire::{self, Progress},
};

/// How much of standard error is read: enough to tell why a worker has died.
const STDERR_BYTES: u64 = 4 << 10;
/// How many messages of a worker wait until they are handled.
const WAITING_MESSAGES: usize = 4;

/// The program of a worker, and the bounds of its process.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkerProgram<'a> {
    /// By default the running program.
    pub(super) program: Option<&'a Path>,
    /// The maximum memory of the process, in bytes.
    pub(super) memory_bytes: u64,
    /// The maximum size of a message of the worker, in bytes.
    pub(super) message_bytes: usize,
}

/// Why a worker has ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    /// The stack is used up.
    Stack,
    /// The memory is used up.
    Memory,
    /// The CPU time is used up.
    Time,
    /// Another reason, which the log has.
    Unknown,
}

/// A running worker process.
pub(super) struct Worker {
    child: Option<Child>,
    /// Until it is written in the background.
    input: Option<ChildStdin>,
    /// The messages of the worker; closed when it ends.
    messages: mpsc::Receiver<(u8, Vec<u8>)>,
    stderr: ChildStderr,
}

impl Worker {
    /// Starts a worker, and waits until it is confined.
    ///
    /// # Errors
    /// [`QueryError::Failed`] if it does not start.
    pub(super) async fn start(
        program: WorkerProgram<'_>,
    ) -> Result<(Self, Confinement), QueryError> {
        let mut worker = Self::spawn(program).map_err(|error| {
            tracing::error!(%error, "a query worker cannot be started");
            QueryError::Failed
        })?;

        let confinement = match worker.messages.recv().await {
            Some((wire::READY, payload)) => serde_json::from_slice(&payload).ok(),
            _ => None,
        };
        match confinement {
            Some(confinement) => Ok((worker, confinement)),
            None => {
                worker.death().await;
                Err(QueryError::Failed)
            }
        }
    }

    fn spawn(program: WorkerProgram<'_>) -> io::Result<Self> {
        let path = program.program.map_or_else(this_program, |path| Ok(path.to_owned()))?;
        let mut child = command(&path, program.memory_bytes).spawn()?;

        let missing = || io::Error::other("a pipe is missing");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;

        let messages = messages(output, program.message_bytes);
        Ok(Self { child: Some(child), input: Some(input), messages, stderr })
    }

    /// Sends a message, and from then on the replies that the returned channel gets, without
    /// waiting for the worker to read them. `None` if the worker is written to already.
    pub(super) fn write_in_background(
        &mut self,
        tag: u8,
        first: Vec<u8>,
        waiting: usize,
    ) -> Option<mpsc::Sender<Vec<u8>>> {
        let mut input = self.input.take()?;
        let (sender, mut replies) = mpsc::channel::<Vec<u8>>(waiting);

        tokio::spawn(async move {
            let mut sent = wire::send(&mut input, tag, &first).await;
            // Sending fails if the worker has died, which its messages tell.
            while sent.is_ok()
                && let Some(reply) = replies.recv().await
            {
                sent = wire::send(&mut input, wire::REPLY, &reply).await;
            }
        });
        Some(sender)
    }

    /// The next message; `None` if the worker has ended. Waiting can be cancelled.
    pub(super) async fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        self.messages.recv().await
    }

    /// Asks a question. Sets `progress` while the query runs, and sends the result to store to
    /// `store`. The second value says whether the worker can answer another question; otherwise
    /// it must be dropped.
    pub(super) async fn ask(
        &mut self,
        question: &Question,
        contents: &[StoredResource],
        store: Option<&mpsc::Sender<io::Result<Bytes>>>,
        progress: &Mutex<Progress>,
    ) -> (Result<Answer, QueryError>, bool) {
        let Ok(encoded) = serde_json::to_vec(question) else {
            return (Err(QueryError::Failed), false);
        };

        let Some(input) = &mut self.input else { return (Err(QueryError::Failed), false) };
        // Sending fails if the worker has died; `cause_of_death` finds out why.
        let _ = wire::send(input, wire::QUESTION, &encoded).await;

        while let Some((tag, payload)) = self.messages.recv().await {
            let message = match handle(tag, &payload, store, progress).await {
                Ok(message) => message,
                Err(error) => return (Err(error), false),
            };

            match message {
                AfterMessage::Ended(result) => {
                    // The memory that a query has used stays with the process.
                    let usable = !matches!(result, Err(QueryError::Memory { .. }));
                    return (result, usable);
                }
                AfterMessage::Pull(index) => {
                    let Some(content) = contents.get(index) else { break };
                    if let Some(ended) = self.feed(content, store, progress).await {
                        return ended;
                    }
                }
                AfterMessage::Handled => {}
            }
        }

        (Err(self.cause_of_death(question).await), false)
    }

    /// Sends content, and handles the worker's messages meanwhile. Returns what
    /// [`ask`](Self::ask) returns if the query ends before the content does.
    async fn feed(
        &mut self,
        content: &StoredResource,
        store: Option<&mpsc::Sender<io::Result<Bytes>>>,
        progress: &Mutex<Progress>,
    ) -> Option<(Result<Answer, QueryError>, bool)> {
        let mut blocks = std::pin::pin!(content.stream());

        loop {
            let (tag, block) = match blocks.next().await {
                Some(Ok(block)) => (wire::BLOCK, block),
                Some(Err(error)) => {
                    return Some((Err(QueryError::Store(error.to_string())), false));
                }
                None => (wire::END, Bytes::new()),
            };

            let input = self.input.as_mut()?;
            let messages = &mut self.messages;
            let mut sending = std::pin::pin!(wire::send(input, tag, &block));

            let sent = loop {
                let message = tokio::select! {
                    sent = &mut sending => break sent,
                    message = messages.recv() => message,
                };

                let Some((tag, payload)) = message else {
                    break Err(io::ErrorKind::BrokenPipe.into());
                };

                match handle(tag, &payload, store, progress).await {
                    Ok(AfterMessage::Handled) => {}
                    // The worker has not read everything, so it exits.
                    Ok(AfterMessage::Ended(result)) => return Some((result, false)),
                    Ok(AfterMessage::Pull(_)) => return Some((Err(QueryError::Failed), false)),
                    Err(error) => return Some((Err(error), false)),
                }
            };

            // Sending fails if the worker has died; the caller finds out why.
            if sent.is_err() || tag == wire::END {
                return None;
            }
        }
    }

    /// Why the worker has ended. Logs what no query or script explains.
    pub(super) async fn death(&mut self) -> Death {
        let (stderr, status) = self.last_words().await;
        if stderr.contains("overflowed its stack") {
            return Death::Stack;
        }
        if stderr.contains("memory allocation") || stderr.contains("out of memory") {
            return Death::Memory;
        }

        #[cfg(unix)]
        {
            use std::os::unix::process::ExitStatusExt;
            const SIGXCPU: i32 = 24;
            if status.and_then(|status| status.signal()) == Some(SIGXCPU) {
                return Death::Time;
            }
        }

        tracing::error!(?status, stderr = %stderr.trim(), "a query worker has failed");
        Death::Unknown
    }

    /// The standard error and the status of the worker, which has ended.
    async fn last_words(&mut self) -> (String, Option<ExitStatus>) {
        let mut stderr = Vec::new();
        let _ = (&mut self.stderr).take(STDERR_BYTES).read_to_end(&mut stderr).await;

        let status = match &mut self.child {
            Some(child) => child.wait().await.ok(),
            None => None,
        };
        (String::from_utf8_lossy(&stderr).into_owned(), status)
    }

    /// Why the worker has ended without an answer.
    async fn cause_of_death(&mut self, question: &Question) -> QueryError {
        match self.death().await {
            Death::Stack => QueryError::Refused("The query recurs too deeply.".into()),
            Death::Memory => {
                QueryError::memory(question.memory_bytes, question.engine == Engine::Sql)
            }
            Death::Time => QueryError::Time { seconds: question.seconds, read: 0, total: None },
            Death::Unknown => QueryError::Failed,
        }
    }
}

/// Handles a message: passes on a part of the result to store, and notes the progress.
async fn handle(
    tag: u8,
    payload: &[u8],
    store: Option<&mpsc::Sender<io::Result<Bytes>>>,
    progress: &Mutex<Progress>,
) -> Result<AfterMessage, QueryError> {
    fn parse<'a, T: serde::Deserialize<'a>>(payload: &'a [u8]) -> Result<T, QueryError> {
        serde_json::from_slice(payload).map_err(|_| QueryError::Failed)
    }

    Ok(match tag {
        wire::PULL => AfterMessage::Pull(parse(payload)?),
        wire::PROGRESS => {
            *progress.lock() = parse(payload)?;
            AfterMessage::Handled
        }
        wire::STORE => {
            let part = Ok(Bytes::copy_from_slice(payload));
            let Some(store) = store else { return Err(QueryError::Failed) };
            // Sending fails if storing has failed; the error of storing says why.
            store.send(part).await.map_err(|_| QueryError::Failed)?;
            AfterMessage::Handled
        }
        wire::ANSWER => AfterMessage::Ended(Ok(parse(payload)?)),
        wire::FAILURE => AfterMessage::Ended(Err(parse(payload)?)),
        _ => return Err(QueryError::Failed),
    })
}

/// The next step after a message of the worker.
enum AfterMessage {
    /// Nothing.
    Handled,
    /// The content of the table with this index is to be sent.
    Pull(usize),
    /// The query has ended.
    Ended(Result<Answer, QueryError>),
}

impl Drop for Worker {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _ = child.start_kill();

        // Waiting for the child leaves no zombie process.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { child.wait().await });
        }
    }
}

/// The running program, even if its file has been replaced: a worker of another
/// version might not understand this one.
fn this_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

fn command(program: &Path, memory_bytes: u64) -> Command {
    let mut command = Command::new(program);
    command.arg(wire::COMMAND).arg(memory_bytes.to_string()).env_clear();

    // The allocator reserves 1 GiB of address space by default, which would count
    // as used memory.
    command.env("MIMALLOC_ARENA_RESERVE", "16M");

    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());

    // A signal to the server's process group must not reach the worker.
    #[cfg(unix)]
    command.process_group(0).arg0("larder");
    command.kill_on_drop(true);
    command
}

/// Reads messages as they come, so that waiting for one can be cancelled.
fn messages(mut output: ChildStdout, max_bytes: usize) -> mpsc::Receiver<(u8, Vec<u8>)> {
    let (sender, receiver) = mpsc::channel(WAITING_MESSAGES);
    tokio::spawn(async move {
        while let Ok(Some(message)) = wire::receive(&mut output, max_bytes).await {
            if sender.send(message).await.is_err() {
                return;
            }
        }
    });
    receiver
}
