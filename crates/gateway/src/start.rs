//! Opens a link to an upstream and finds out its protocol era.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use larder_protocol::ProtocolVersion;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use super::{
    account::Account,
    budget::MessageBudget,
    error::UpstreamError,
    guarded::{PANICKED, guarded},
    http,
    link::{Era, Link, Source},
    message::{
        Assembly,
        line::{Incoming, read_line},
    },
    process::Process,
    received::{Capabilities, Discovered, Done, Initialized, VersionName},
    remote_session::{KeptSession, RemoteSession, SavedSession},
    settings::{Settings, Target},
    stderr::LastLines,
    wire,
};

/// How long an upstream may be silent on `server/discover` before it counts as
/// legacy.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the output of a process that has ended may still be read.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// A started upstream.
pub(super) struct Started {
    pub(super) link: Arc<Link>,
    pub(super) child: Child,
    session: Arc<RemoteSession>,
}

/// The tasks of a process. Dropping it ends the process.
pub(super) struct Child {
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
    pub(super) last_lines: LastLines,
}

impl Child {
    /// Ends the process, and waits until nothing is left of it.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        let _ = (&mut self.running).await;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Why a start failed.
pub(super) struct Failed {
    pub(super) reason: String,
    /// The last lines of standard error, for the log.
    pub(super) stderr: String,
    /// What the caller lacks. Then it is no failure of the upstream.
    pub(super) caller: Option<Box<UpstreamError>>,
}

impl From<String> for Failed {
    fn from(reason: String) -> Self {
        Self { reason, stderr: String::new(), caller: None }
    }
}

/// A request of the start has failed.
impl From<UpstreamError> for Failed {
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

/// Starts the process, if there is one, and opens the protocol. `known` is the era that an earlier
/// start has found; `client` is what the client can be asked for; `kept` is where an earlier
/// session of a server over HTTP is found; `account` has the caller's token.
pub(super) async fn start(
    settings: &Arc<Settings>,
    budget: &Arc<MessageBudget>,
    known: &Mutex<Option<Era>>,
    client: &Value,
    kept: Option<&KeptSession>,
    account: Option<&Arc<Account>>,
) -> Result<Started, Failed> {
    if let Some(account) = account {
        // Checked first: without a token, nothing is found out about the upstream.
        account.token(None).await?;
    }

    if let Some(kept) = kept
        && let Some((saved, links)) = kept.load().await
    {
        let resumed = open(settings, budget, client, Some(&saved), Some(kept), account)?;
        resumed.link.skip_ids(links);
        let answer = resumed.link.request::<Done>("ping", json!({}));
        let answer = tokio::time::timeout(PROBE_TIMEOUT, answer).await;

        if let Ok(Ok(_)) = answer {
            resumed.link.set_era(Era::Legacy, saved.capabilities);
            return Ok(resumed);
        }

        tokio::spawn(resumed.child.end());
        if let Ok(Err(error)) = answer
            && error.is_callers()
        {
            return Err(error.into());
        }
    }

    let remembered = *known.lock();
    let era = match remembered {
        Some(era) => era,
        None => {
            let started = open(settings, budget, client, None, kept, account)?;
            if let Some(capabilities) = discover(&started.link).await? {
                started.link.set_era(Era::Modern, capabilities);
                *known.lock() = Some(Era::Modern);
                return Ok(started);
            }
            // Some servers fix the era of a process by its first message.
            tokio::spawn(started.child.end());
            Era::Legacy
        }
    };

    let started = open(settings, budget, client, None, kept, account)?;
    let Started { link, child, session } = &started;
    let opened = async {
        match era {
            Era::Modern => match discover(link).await? {
                Some(capabilities) => Ok(capabilities),
                None => Err("it no longer answers server/discover".to_owned().into()),
            },
            Era::Legacy => initialize(link, session).await,
        }
    };

    let opened = tokio::time::timeout(settings.start_timeout, opened).await;
    let seconds = settings.start_timeout.as_secs_f64();
    let opened = opened.unwrap_or_else(|_| {
        Err(format!("no answer within {seconds} s, upstreams.start_timeout").into())
    });

    match opened {
        Ok(capabilities) => {
            if let Some(kept) = kept
                && let Some(saved) = session.save(capabilities)
            {
                kept.save(&saved).await;
            }
            link.set_era(era, capabilities);
            *known.lock() = Some(era);
            Ok(started)
        }
        Err(failed) => {
            if failed.caller.is_none() {
                *known.lock() = None;
            }
            let stderr = child.last_lines.show();
            tokio::spawn(started.child.end());
            Err(Failed { stderr, ..failed })
        }
    }
}

/// The capabilities of a modern server.
///
/// # Errors
/// The caller has no access, so nothing is known of the era.
async fn discover(link: &Arc<Link>) -> Result<Option<Capabilities>, Failed> {
    let mut params = json!({});
    wire::declare_modern(&mut params, &json!({}));
    let answer = link.request("server/discover", params);

    let Discovered { is_modern, capabilities, instructions } =
        match tokio::time::timeout(PROBE_TIMEOUT, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.is_callers() => return Err(error.into()),
            Ok(Err(_)) | Err(_) => return Ok(None),
        };
    link.set_instructions(instructions);
    Ok(is_modern.then_some(capabilities))
}

/// The capabilities of a legacy server.
async fn initialize(link: &Arc<Link>, session: &RemoteSession) -> Result<Capabilities, Failed> {
    let params = json!({
        "protocolVersion": ProtocolVersion::LATEST_LEGACY.as_str(),
        "capabilities": link.client_capabilities(),
        "clientInfo": wire::client_info(),
    });

    let Initialized { version, capabilities, instructions } =
        link.request("initialize", params).await?;
    link.set_instructions(instructions);
    session.negotiated(version.as_ref().map(VersionName::as_str));
    link.notify("notifications/initialized", &json!({})).await;
    Ok(capabilities)
}

/// Opens a link to the server, and starts the tasks that serve it.
fn open(
    settings: &Arc<Settings>,
    budget: &Arc<MessageBudget>,
    client: &Value,
    saved: Option<&SavedSession>,
    kept: Option<&KeptSession>,
    account: Option<&Arc<Account>>,
) -> Result<Started, Failed> {
    let outlives = kept.map_or_else(Arc::default, |kept| Arc::clone(kept.outlives()));
    let session = Arc::new(RemoteSession::new(saved, outlives));
    let (link, outgoing) = Link::new(Arc::clone(settings), Arc::clone(budget), client.clone());
    let (stop, last_lines) = (CancellationToken::new(), LastLines::default());

    let running = match &settings.target {
        Target::Remote(remote) => {
            let (link, max) = (Arc::clone(&link), settings.max_message);
            let (session, account) = (Arc::clone(&session), account.map(Arc::clone));
            let served = Arc::clone(&link);
            let serving = http::run(remote, max, session, account, link, outgoing, stop.clone())?;
            tokio::spawn(serve(served, stop.clone(), serving))
        }
        Target::Command(command) => {
            let (process, pipes) = Process::spawn(command).map_err(|error| {
                let program = command.line.first().map_or("", String::as_str);
                Failed::from(format!("{program}: {error}"))
            })?;

            let reading = last_lines.clone().read(settings.name.as_str().into(), pipes.stderr);
            // A process may block for ever if its standard error is not read.
            tokio::spawn(serve(Arc::clone(&link), stop.clone(), reading));

            let writing = write(outgoing, pipes.stdin, stop.clone());
            let writing = tokio::spawn(serve(Arc::clone(&link), stop.clone(), writing));
            let reading = read(Arc::clone(&link), pipes.stdout, settings.max_message);
            let running = run(process, Arc::clone(&link), reading, writing, stop.clone());
            tokio::spawn(serve(Arc::clone(&link), stop.clone(), running))
        }
    };

    Ok(Started { link, child: Child { stop, running, last_lines }, session })
}

/// Runs a task of a link. If it panics, the link and the process end, so that calls fail and the next
/// one starts another.
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
        let _ = tokio::time::timeout(LAST_OUTPUT, reading).await;
    }

    link.end(&how);
    // Ends the writer, which closes the input.
    stop.cancel();
    let _ = writing.await;
    process.end().await;
}

/// Reads messages until the output ends.
async fn read(link: Arc<Link>, stdout: ChildStdout, max_message: usize) {
    let mut stdout = BufReader::with_capacity(64 << 10, stdout);
    loop {
        match read_line(&mut stdout, Assembly::of(max_message, &*link, None)).await {
            Ok(Incoming::Message(line)) if line.bytes.trim_ascii().is_empty() => {}
            Ok(Incoming::Message(line)) => link.receive(Source::Shared, line).await,
            Ok(Incoming::Refused { what, why }) => link.refuse_message(Source::Shared, what, why),
            Ok(Incoming::End) | Err(_) => return,
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
