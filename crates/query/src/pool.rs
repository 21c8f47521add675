//! [`Queries`]: runs queries in worker processes, and keeps some of these for
//! the next query over the same content.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use larder_identity::Owner;
use larder_runtime::spans::inner_span;
use larder_store::store::StoredResource;
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    sync::{OnceCell, mpsc},
    time::timeout,
};
use tracing::Instrument;

use super::{
    Answer, Confinement, Engine, QueryError, QueryLimits, Question,
    process::{Worker, WorkerProgram},
    turns::Turns,
    wire::{self, Progress},
};

/// How long after the time limit a worker that does not stop by itself is killed.
const GRACE: Duration = Duration::from_millis(500);

/// Runs queries.
#[derive(Debug)]
pub struct Queries {
    limits: QueryLimits,
    turns: Turns,
    /// The confinement of the first worker: later workers have the same.
    confinement: OnceCell<Confinement>,
    warm: Arc<Mutex<Vec<Warm>>>,
    /// The number of the next idle worker.
    next: AtomicU64,
}

/// An idle worker with tables.
struct Warm {
    /// The caller and the contents of its tables; see [`key`].
    key: String,
    worker: Worker,
    /// Distinguishes it from later ones with the same key.
    number: u64,
}

impl std::fmt::Debug for Warm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warm").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Queries {
    /// Queries within these limits.
    pub fn new(limits: QueryLimits) -> Self {
        let turns = Turns::new(limits.concurrent, limits.share);
        let confinement = OnceCell::new();
        Self { limits, turns, confinement, warm: Arc::default(), next: AtomicU64::new(0) }
    }

    /// The limits.
    pub fn limits(&self) -> &QueryLimits {
        &self.limits
    }

    /// Runs a query over contents. `caller` is their owner or a reader with whom they are
    /// shared. The whole result is sent to `store`, if the question has a format for it.
    ///
    /// # Errors
    /// [`QueryError`]. What `store` has received by then is not the result.
    pub async fn ask(
        &self,
        caller: &Owner,
        question: &Question,
        contents: &[StoredResource],
        store: Option<&mpsc::Sender<io::Result<Bytes>>>,
    ) -> Result<Answer, QueryError> {
        let limit = self.limits.input_bytes;
        let bytes = contents.iter().map(|content| content.entry.size).sum();
        if bytes > limit {
            return Err(QueryError::Input { bytes, limit });
        }

        let concurrent = self.limits.concurrent.max(1);
        let busy = QueryError::Busy { concurrent };
        let turn = self.turns.next(caller, self.limits.time);
        let turn = turn.instrument(inner_span("query waits for its turn")).await.ok_or(busy)?;

        let key = key(caller, question, contents);
        let progress = Mutex::new(Progress::default());
        let answering = async {
            let mut worker = self.worker(&key).await?;
            let (result, usable) = worker.ask(question, contents, store, &progress).await;

            if usable && question.engine == Engine::Sql && !contents.is_empty() {
                self.keep(key, worker);
            }
            result
        };
        let answering = answering.instrument(inner_span(match question.engine {
            Engine::Sql => "query sql",
            Engine::Jq { .. } => "query jq",
        }));

        let answered = tokio::select! {
            biased;
            answered = timeout(self.limits.time + GRACE, answering) => answered,
            () = turn.has_to_end() => {
                let share = self.limits.share.as_secs();
                let Progress { read, total } = *progress.lock();
                return Err(QueryError::Yielded { share, concurrent, read, total });
            }
        };

        answered.unwrap_or_else(|_| {
            let Progress { read, total } = *progress.lock();
            Err(QueryError::Time { seconds: question.seconds, read, total })
        })
    }

    /// Checks that a query can be read, before there is a content. Columns and functions show only
    /// when it runs.
    ///
    /// # Errors
    /// [`QueryError`], as [`Queries::ask`] returns it.
    pub async fn check(
        &self,
        caller: &Owner,
        engine: Engine,
        text: &str,
    ) -> Result<(), QueryError> {
        let limits = &self.limits;
        let question = Question {
            engine,
            text: text.to_owned(),
            tables: Vec::new(),
            offset: 0,
            limit: 0,
            text_bytes: 0,
            store: None,
            result_bytes: 0,
            seconds: limits.time.as_secs(),
            memory_bytes: limits.memory_bytes,
            input_bytes: 0,
        };
        self.ask(caller, &question, &[], None).await.map(drop)
    }

    /// How far the system confines the workers. Starts one if none has started yet, and tells the
    /// operator what is missing.
    ///
    /// # Errors
    /// No worker can be started.
    pub async fn confinement(&self) -> Result<Confinement, QueryError> {
        let first = self.confinement.get_or_try_init(|| async {
            let (_, confinement) = Worker::start(self.program()).await?;
            confinement.log(self.limits.confinement);
            Ok(confinement)
        });
        first.await.copied()
    }

    /// Sets the metrics of the confinement.
    pub async fn measure(&self) {
        if let Ok(confinement) = self.confinement().await {
            confinement.measure();
        }
    }

    fn program(&self) -> WorkerProgram<'_> {
        WorkerProgram {
            program: self.limits.program.as_deref(),
            memory_bytes: self.limits.memory_bytes,
            message_bytes: wire::MAX_MESSAGE_BYTES,
        }
    }

    /// A worker that has the tables, or a new one.
    async fn worker(&self, key: &str) -> Result<Worker, QueryError> {
        let concurrent = self.limits.concurrent.max(1);
        let mut dropped = Vec::new();

        {
            let mut warm = self.warm.lock();
            if let Some(index) = warm.iter().position(|warm| warm.key == key) {
                return Ok(warm.remove(index).worker);
            }

            // Idle workers count, because each may have as much memory as a busy worker.
            while !warm.is_empty() && warm.len() + self.turns.running() > concurrent {
                dropped.push(warm.remove(0));
            }
        }
        drop(dropped);

        let (worker, confinement) = Worker::start(self.program()).await?;
        confinement.check(self.limits.confinement)?;
        Ok(worker)
    }

    /// Keeps a worker for the next question, for a while.
    fn keep(&self, key: String, worker: Worker) {
        if self.limits.warm.is_zero() {
            return;
        }

        let mut warm = self.warm.lock();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        warm.push(Warm { key, worker, number });

        let idle = Arc::downgrade(&self.warm);
        let after = self.limits.warm;
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let Some(idle) = idle.upgrade() else { return };
            let mut idle = idle.lock();
            let expired = idle.iter().position(|warm| warm.number == number);
            let expired = expired.map(|index| idle.remove(index));
            drop(idle);
            drop(expired);
        });
    }
}

/// Everything that a worker's tables depend on. A worker never serves another caller.
fn key(caller: &Owner, question: &Question, contents: &[StoredResource]) -> String {
    let contents = contents.iter().map(|content| {
        let entry = &content.entry;
        json!([entry.owner, entry.uri, entry.revision, entry.sha256])
    });
    json!([caller, question.tables, contents.collect::<Vec<_>>()]).to_string()
}
