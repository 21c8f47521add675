//! The connection to a server in this process: the stdio transport over a pipe in memory.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex},
    sync::{Mutex as AsyncMutex, oneshot},
};

use super::{
    answers::Answers,
    reply::{ProgressNote, TestError, parse},
};
use crate::server::Running;

/// The bytes that fit into the pipe before the writer waits.
const PIPE_BYTES: usize = 64 * 1024;

pub(super) struct Connection {
    shared: Arc<Shared>,
    next: AtomicU64,
}

struct Shared {
    /// Requests without a response yet, by ID.
    pending: Mutex<HashMap<u64, Pending>>,
    answers: Answers,
    output: AsyncMutex<DuplexStream>,
}

struct Pending {
    done: oneshot::Sender<Result<Response, TestError>>,
    progress: Vec<ProgressNote>,
}

/// A response, and the progress that came before it.
pub(super) struct Response {
    pub(super) result: Value,
    pub(super) progress: Vec<ProgressNote>,
}

impl Connection {
    pub(super) fn new(server: Running, answers: Answers) -> Self {
        let (output, server_input) = duplex(PIPE_BYTES);
        let (server_output, input) = duplex(PIPE_BYTES);

        // The server ends with its input, when the connection is dropped.
        tokio::spawn(server.serve_io(server_input, server_output));

        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            answers,
            output: AsyncMutex::new(output),
        });

        let weak = Arc::downgrade(&shared);
        tokio::spawn(async move {
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Some(shared) = weak.upgrade() else { return };
                let Ok(message) = serde_json::from_str(&line) else { continue };
                shared.receive(message).await;
            }

            if let Some(shared) = weak.upgrade() {
                // Each waiting request gets an error.
                shared.pending.lock().clear();
            }
        });

        Self { shared, next: AtomicU64::new(1) }
    }

    pub(super) fn answers(&self) -> &Answers {
        &self.shared.answers
    }

    pub(super) async fn request(
        &self,
        method: &str,
        mut params: Value,
    ) -> Result<Response, TestError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        params["_meta"]["progressToken"] = json!(id);

        let (done, response) = oneshot::channel();
        self.shared.pending.lock().insert(id, Pending { done, progress: Vec::new() });

        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.shared.send(&message).await;
        response.await.unwrap_or_else(|_| Err(TestError::local("the server has ended")))
    }

    pub(super) async fn notify(&self, method: &str) {
        self.shared.send(&json!({ "jsonrpc": "2.0", "method": method })).await;
    }
}

impl Shared {
    /// A server that has ended gives no response, which is an error of the request.
    async fn send(&self, message: &Value) {
        let line = format!("{message}\n");
        let _ = self.output.lock().await.write_all(line.as_bytes()).await;
    }

    async fn receive(&self, mut message: Value) {
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);

        match (message.get("id").cloned(), method.as_deref()) {
            (Some(id), Some(method)) => {
                let response = match self.answers.one(method, &message["params"]) {
                    Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                    Err(error) => {
                        let error = json!({ "code": -32601, "message": error.message() });
                        json!({ "jsonrpc": "2.0", "id": id, "error": error })
                    }
                };
                self.send(&response).await;
            }
            (Some(id), None) => {
                let pending = id.as_u64().and_then(|id| self.pending.lock().remove(&id));
                let Some(Pending { done, progress }) = pending else { return };

                let response = match message.get("error") {
                    Some(error) => Err(TestError::of_protocol(error)),
                    None => Ok(Response { result: message["result"].take(), progress }),
                };
                // The test may have given up.
                let _ = done.send(response);
            }
            (None, Some("notifications/progress")) => {
                let params = message["params"].take();
                let token = params["progressToken"].as_u64().unwrap_or_default();
                if let (Some(pending), Ok(note)) =
                    (self.pending.lock().get_mut(&token), parse(params))
                {
                    pending.progress.push(note);
                }
            }
            _ => {}
        }
    }
}
