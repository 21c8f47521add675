//! Opens a link to an upstream and finds out its protocol era.

mod negotiation;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
    sync::mpsc,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use self::negotiation::{FirstQuestion, Negotiation, is_answer};
use super::{
    account::Account,
    era::KnownEra,
    error::UpstreamError,
    guarded::{PANICKED, guarded},
    http,
    link::{Era, Link, MessageSource},
    message::{MessageLines, line::IncomingLine},
    process::Process,
    received::Done,
    remote_session::{KeptSession, RemoteSession, SavedSession},
    settings::Target,
    shared::Shared,
    stderr::LastLines,
};

/// The end of the reason of a start that took too long: the setting, for operators.
pub(super) const SETTING: &str = ", upstreams.start_timeout";
/// How long a server over HTTP may take to show that it still knows a session.
const RESUME_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the output of a process that has ended may still be read.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// A started upstream.
pub(super) struct StartedUpstream {
    pub(super) link: Arc<Link>,
    pub(super) child: ProcessTasks,
    session: Arc<RemoteSession>,
}

/// The tasks of a process. Dropping it ends the process.
pub(super) struct ProcessTasks {
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
    pub(super) last_lines: LastLines,
}

impl ProcessTasks {
    /// Ends the process, and waits until nothing is left of it.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        let _ = (&mut self.running).await;
    }
}

impl Drop for ProcessTasks {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Why a start failed.
pub(super) struct StartFailure {
    pub(super) reason: String,
    /// The last lines of standard error, for the log.
    pub(super) stderr: String,
    /// The caller's problem. Then it is no failure of the upstream.
    pub(super) caller: Option<Box<UpstreamError>>,
}

impl From<String> for StartFailure {
    fn from(reason: String) -> Self {
        Self { reason, stderr: String::new(), caller: None }
    }
}

/// A request of the start has failed.
impl From<UpstreamError> for StartFailure {
    fn from(error: UpstreamError) -> Self {
        if error.is_callers() {
            let reason = "the caller has no access".to_owned();
            return Self { reason, stderr: String::new(), caller: Some(Box::new(error)) };
        }

        Self::from(match error {
            UpstreamError::Ended { how, .. } => how.to_string(),
            UpstreamError::NotProcessed { reason, .. } => reason,
            UpstreamError::Invalid { problem, .. } | UpstreamError::NoAnswer { problem, .. } => {
                problem
            }
            UpstreamError::Refused(error) => format!("initialize failed: {}", error.message),
            other => other.to_string(),
        })
    }
}

/// The start of an upstream for one connection.
pub(super) struct Start<'a> {
    pub(super) shared: &'a Shared,
    /// The capabilities of the client.
    pub(super) client: &'a Value,
    /// An earlier session of a server over HTTP, if one may be kept.
    pub(super) kept: Option<&'a KeptSession>,
    /// The caller's token, if the upstream asks for one.
    pub(super) account: Option<&'a Arc<Account>>,
    /// Told when the process runs, or the server was connected to, and is asked for its era.
    pub(super) opened: &'a (dyn Fn() + Sync),
}

/// Why a process cannot be used, and whether another one may be.
struct Unopened {
    failed: StartFailure,
    /// Whether the message of the other era may be the reason.
    may_be_era: bool,
}

impl From<StartFailure> for Unopened {
    fn from(failed: StartFailure) -> Self {
        Self { failed, may_be_era: false }
    }
}

impl Start<'_> {
    /// Starts the process, if there is one, and opens the protocol. Waits for as long as the
    /// process lives, at most `start_timeout`.
    pub(super) async fn run(&self) -> Result<StartedUpstream, StartFailure> {
        if let Some(account) = self.account {
            // Checked first: without a token, nothing is found out about the upstream.
            account.token(None).await?;
        }
        if let Some(resumed) = self.resume().await? {
            return Ok(resumed);
        }

        let deadline = Instant::now() + self.shared.settings.start_timeout;
        let known = *self.shared.era.lock();
        let unopened = match self.open_and_ask(FirstQuestion::of(known), deadline).await {
            Ok(started) => return Ok(started),
            Err(unopened) => unopened,
        };

        if !unopened.may_be_era {
            return Err(unopened.failed);
        }
        // Some servers end at the first message of the other era, or fix their era by it.
        let again = self.open_and_ask(FirstQuestion::Initialize, deadline).await;
        again.map_err(|unopened| unopened.failed)
    }

    /// Goes on with the session of an earlier link, if the server still knows it.
    async fn resume(&self) -> Result<Option<StartedUpstream>, StartFailure> {
        let Some(kept) = self.kept else { return Ok(None) };
        let Some((saved, links)) = kept.load().await else { return Ok(None) };

        let resumed = self.open(Some(&saved))?;
        resumed.link.skip_ids(links);
        let answer = resumed.link.request::<Done>("ping", json!({}));
        let answer = tokio::time::timeout(RESUME_TIMEOUT, answer).await;

        if let Ok(Ok(_)) = answer {
            resumed.link.set_era(Era::Legacy, saved.capabilities);
            return Ok(Some(resumed));
        }

        self.discard(resumed.child);
        match answer {
            Ok(Err(error)) if error.is_callers() => Err(error.into()),
            _ => Ok(None),
        }
    }

    /// Opens a link, and finds out its era.
    async fn open_and_ask(
        &self,
        first: FirstQuestion,
        deadline: Instant,
    ) -> Result<StartedUpstream, Unopened> {
        let started = self.open(None)?;
        (self.opened)();
        let StartedUpstream { link, child, session } = &started;
        let negotiation = Negotiation { link, session };

        let found = tokio::time::timeout_at(deadline, negotiation.run(first)).await;
        let unopened = match found {
            Ok(Ok((era, capabilities))) => {
                if let Some(kept) = self.kept
                    && let Some(saved) = session.save(capabilities)
                {
                    kept.save(&saved).await;
                }
                link.set_era(era, capabilities);
                *self.shared.era.lock() = KnownEra::Found(era);
                return Ok(started);
            }
            Ok(Err(error)) => {
                let is_process = matches!(self.shared.settings.target, Target::Command(_));
                let may_be_era = is_process
                    && first == FirstQuestion::Discover
                    && (link.has_ended() || is_answer(&error));
                let failed = StartFailure::from(error);
                let may_be_era = may_be_era && failed.caller.is_none();

                if failed.caller.is_none() {
                    *self.shared.era.lock() = KnownEra::Unknown;
                }
                Unopened { failed, may_be_era }
            }
            Err(_) => {
                let mut era = self.shared.era.lock();
                *era = era.after_silence();
                let seconds = self.shared.settings.start_timeout.as_secs_f64();
                let reason = format!("no answer within {seconds} s{SETTING}");
                StartFailure::from(reason).into()
            }
        };

        let stderr = child.last_lines.show();
        self.discard(started.child);
        Err(Unopened { failed: StartFailure { stderr, ..unopened.failed }, ..unopened })
    }

    /// Ends a process that is not used.
    fn discard(&self, child: ProcessTasks) {
        self.shared.tasks.spawn(child.end());
    }

    /// Opens a link to the server, and starts the tasks that serve it.
    fn open(&self, saved: Option<&SavedSession>) -> Result<StartedUpstream, StartFailure> {
        let Shared { settings, budget, .. } = self.shared;
        let outlives = self.kept.map_or_else(Arc::default, |kept| Arc::clone(kept.outlives()));
        let session = Arc::new(RemoteSession::new(saved, outlives));
        let (link, outgoing) =
            Link::new(Arc::clone(settings), Arc::clone(budget), self.client.clone());
        let stop = CancellationToken::new();
        let last_lines = LastLines::default();

        let running = match &settings.target {
            Target::Remote(remote) => {
                let served = Arc::clone(&link);
                let account = self.account.map(Arc::clone);
                let max = settings.max_message;
                let serving = http::run(
                    remote,
                    max,
                    Arc::clone(&session),
                    account,
                    Arc::clone(&link),
                    outgoing,
                    stop.clone(),
                )?;
                self.shared.tasks.spawn(serve(served, stop.clone(), serving))
            }
            Target::Command(command) => {
                let (process, pipes) = Process::spawn(command).map_err(|error| {
                    let program = command.line.first().map_or("", String::as_str);
                    StartFailure::from(format!("{program}: {error}"))
                })?;

                let reading = last_lines.clone().read(settings.name.as_str().into(), pipes.stderr);
                // A process may block for ever if its standard error is not read.
                tokio::spawn(serve(Arc::clone(&link), stop.clone(), reading));

                let writing = write(outgoing, pipes.stdin, stop.clone());
                let writing = tokio::spawn(serve(Arc::clone(&link), stop.clone(), writing));
                let reading = read(Arc::clone(&link), pipes.stdout, settings.max_message);
                let running = run(process, Arc::clone(&link), reading, writing, stop.clone());
                self.shared.tasks.spawn(serve(Arc::clone(&link), stop.clone(), running))
            }
        };

        Ok(StartedUpstream { link, child: ProcessTasks { stop, running, last_lines }, session })
    }
}

/// Runs a task of a link. If it panics, the link and the process end, so that calls fail and the
/// next one starts another.
async fn serve(link: Arc<Link>, stop: CancellationToken, task: impl Future<Output = ()>) {
    if guarded(link.name(), task).await.is_err() {
        link.end(PANICKED);
        stop.cancel();
    }
}

/// Lets a process run until it ends or is stopped.
async fn run(
    mut process: Process,
    link: Arc<Link>,
    reading: impl Future<Output = ()>,
    writing: tokio::task::JoinHandle<()>,
    stop: CancellationToken,
) {
    let mut reading = std::pin::pin!(reading);
    let mut output_ended = false;

    let how = tokio::select! {
        how = process.ended() => how,
        () = &mut reading => {
            output_ended = true;
            // A process that closes its output usually ends.
            match tokio::time::timeout(LAST_OUTPUT, process.ended()).await {
                Ok(how) => how,
                Err(_) => "it closed its output".to_owned(),
            }
        }
        () = stop.cancelled() => "stopped".to_owned(),
    };

    if !output_ended && !stop.is_cancelled() {
        output_ended = tokio::time::timeout(LAST_OUTPUT, &mut reading).await.is_ok();
    }

    link.end(&how);
    // Ends the writer, which closes the input.
    stop.cancel();
    let _ = writing.await;

    // The last output of a process is read, so that it is not held up.
    let mut ending = std::pin::pin!(process.end());
    tokio::select! {
        () = &mut ending => return,
        () = &mut reading, if !output_ended => {}
    }
    ending.await;
}

/// Reads messages until the output ends.
async fn read(link: Arc<Link>, stdout: ChildStdout, max_message: usize) {
    let stdout = BufReader::with_capacity(64 << 10, stdout);
    let mut lines = MessageLines::new(stdout, max_message, &*link);
    loop {
        match lines.read().await {
            Ok(IncomingLine::Message(line)) if line.bytes.trim_ascii().is_empty() => {}
            Ok(IncomingLine::Message(line)) => link.receive(MessageSource::Shared, line).await,
            Ok(IncomingLine::Refused { what, why }) => {
                link.refuse_message(MessageSource::Shared, what, why);
            }
            Ok(IncomingLine::End) | Err(_) => return,
        }
    }
}

/// Writes messages until there are no more, then closes the input.
async fn write(
    mut outgoing: mpsc::Receiver<Bytes>,
    mut stdin: ChildStdin,
    stop: CancellationToken,
) {
    let writing = async {
        while let Some(message) = outgoing.recv().await {
            let written = async {
                stdin.write_all(&message).await?;
                stdin.write_all(b"\n").await?;
                stdin.flush().await
            };
            if written.await.is_err() {
                // The process ends, or has closed its input.
                return;
            }
        }
    };

    tokio::select! {
        () = writing => {}
        () = stop.cancelled() => {}
    }
}
