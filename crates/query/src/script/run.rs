//! [`Scripts`]: starts scripts; [`Script`]: one that runs.

use std::time::Duration;

use larder_identity::Owner;
use serde_json::value::RawValue;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use super::{
    HandleOperation, ScriptError, ScriptInput, ScriptLimits, ScriptMessage, ScriptOutcome,
    ScriptReply, ScriptStart, accounts::Accounts,
};
use crate::{
    process::{Death, Worker, WorkerProgram},
    turns::{Turn, Turns},
    wire,
};

/// How long after the time limit a worker that does not stop by itself is killed.
const GRACE: Duration = Duration::from_millis(500);
/// The size of a message without the value in it, in bytes.
const ENVELOPE_BYTES: usize = 1 << 10;

/// Runs scripts.
#[derive(Debug)]
pub struct Scripts {
    limits: ScriptLimits,
    turns: Turns,
}

/// A request of a script.
#[derive(Debug)]
pub enum ScriptRequest {
    /// To call a tool.
    Call {
        /// The number of the call.
        id: u64,
        /// The name.
        tool: String,
        /// The arguments.
        arguments: Box<RawValue>,
        /// How many references the arguments have that were handles.
        handles: usize,
    },
    /// To work with stored resources.
    Handle {
        /// The number of the call.
        id: u64,
        /// The operation.
        operation: HandleOperation,
    },
    /// To show a line of console output.
    Log(String),
    /// Nothing more: the script has returned this value.
    Done(Box<RawValue>),
}

/// A script that runs in a worker of its own. Dropping it ends the worker.
pub struct Script {
    limits: ScriptLimits,
    worker: Worker,
    /// The answers on their way to the worker. At most as many as there are open calls.
    replies: mpsc::Sender<Vec<u8>>,
    accounts: Accounts,
    ends: Instant,
    /// The error of a script that runs too long.
    late: ScriptError,
    _turn: Turn,
}

impl Scripts {
    /// Scripts within these limits.
    pub fn new(limits: ScriptLimits) -> Self {
        // A script that has made calls is never ended for another caller.
        let turns = Turns::new(limits.concurrent, limits.time + GRACE);
        Self { limits, turns }
    }

    /// The limits.
    pub fn limits(&self) -> &ScriptLimits {
        &self.limits
    }

    /// Starts a script in a new worker. It ends after `seconds`, at most those of the limits, and
    /// before `call_ends`.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub async fn begin(
        &self,
        caller: &Owner,
        code: String,
        tools: Vec<String>,
        inputs: Vec<ScriptInput>,
        seconds: Option<u64>,
        call_ends: Option<Instant>,
    ) -> Result<Script, ScriptError> {
        let limits = &self.limits;
        let concurrent = limits.concurrent.max(1);
        let turn = self.turns.next(caller, limits.time).await;
        let turn = turn.ok_or(ScriptError::Busy { concurrent })?;

        let most = limits.time.as_secs().max(1);
        let own = seconds.unwrap_or(most).clamp(1, most);
        let now = Instant::now();
        let left = call_ends.map(|end| end.saturating_duration_since(now).as_secs().max(1));
        let (seconds, setting) = match (left, seconds) {
            (Some(left), _) if left < own => (left, "limits.call_timeout"),
            (_, Some(asked)) if asked < most => (own, "the argument seconds"),
            _ => (own, "code.seconds"),
        };

        let program = WorkerProgram {
            program: limits.program.as_deref(),
            memory_bytes: limits.memory_bytes,
            message_bytes: limits.result_bytes.saturating_add(ENVELOPE_BYTES),
        };
        let (mut worker, confinement) = Worker::start(program).await?;
        confinement.check(limits.confinement)?;

        let start = ScriptStart {
            code,
            tools,
            inputs,
            seconds,
            calls_at_once: limits.calls_at_once.max(1),
            result_bytes: limits.result_bytes,
            console_bytes: limits.console_bytes,
        };
        let start = serde_json::to_vec(&start).map_err(|_| ScriptError::Failed)?;
        let replies = worker.write_in_background(wire::SCRIPT, start, limits.calls_at_once.max(1));

        Ok(Script {
            limits: limits.clone(),
            worker,
            replies: replies.ok_or(ScriptError::Failed)?,
            accounts: Accounts::default(),
            ends: now + Duration::from_secs(seconds) + GRACE,
            late: ScriptError::Time { seconds, setting },
            _turn: turn,
        })
    }
}

impl Script {
    /// The next request. Waiting for it can be cancelled.
    ///
    /// # Errors
    /// [`ScriptError`]: the script has ended. Nothing more can be asked of it.
    pub async fn next(&mut self) -> Result<ScriptRequest, ScriptError> {
        let received = timeout_at(self.ends, self.worker.receive()).await;
        let Some((tag, payload)) = received.map_err(|_| self.late.clone())? else {
            return Err(self.cause_of_death().await);
        };

        let message = Some(payload).filter(|_| tag == wire::FROM_SCRIPT);
        let message = message.and_then(|payload| ScriptMessage::parse(&payload));
        let Some(message) = message else { return Err(ScriptError::Failed) };
        self.accounts.receive(&message, &self.limits)?;

        match message {
            ScriptMessage::Call { id, tool, arguments, handles } => {
                Ok(ScriptRequest::Call { id, tool, arguments, handles })
            }
            ScriptMessage::Handle { id, operation } => Ok(ScriptRequest::Handle { id, operation }),
            ScriptMessage::Log { text } => Ok(ScriptRequest::Log(text)),
            ScriptMessage::Done { value } => Ok(ScriptRequest::Done(value)),
            ScriptMessage::Failed { failure } => {
                let ScriptLimits { memory_bytes, result_bytes, .. } = self.limits;
                Err(ScriptError::told(failure, self.late.clone(), memory_bytes, result_bytes))
            }
        }
    }

    /// Answers a call.
    ///
    /// # Errors
    /// [`ScriptError`]: the script has to end.
    pub fn reply(&mut self, id: u64, outcome: ScriptOutcome) -> Result<(), ScriptError> {
        let reply = serde_json::to_vec(&ScriptReply { id, outcome });
        let reply = reply.map_err(|_| ScriptError::Failed)?;
        self.accounts.answer(id, reply.len(), &self.limits)?;

        // The worker has died if nobody takes the answer, which the next request tells.
        let _ = self.replies.try_send(reply);
        Ok(())
    }

    async fn cause_of_death(&mut self) -> ScriptError {
        let bytes = self.limits.memory_bytes;
        match self.worker.death().await {
            Death::Stack => ScriptError::Stack,
            Death::Memory => ScriptError::Memory { bytes },
            Death::Time => self.late.clone(),
            Death::Unknown => ScriptError::Failed,
        }
    }
}
