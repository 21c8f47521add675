//! Load: connections with one request in flight each.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::wire::{Connection, Prepared};

/// The protocol of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// 2026-07-28, stateless.
    Modern,
    /// 2025-11-25, in a number of sessions.
    Sessions(usize),
    /// 2025-11-25, without a session.
    Sessionless,
}

/// The request that a client repeats.
#[derive(Debug, Clone)]
pub struct Work {
    pub speech: Speech,
    pub method: &'static str,
    pub params: Value,
    pub token: Option<String>,
    /// Text near the beginning of each response's body.
    pub expect: &'static str,
    /// The least bytes of each response's body.
    pub at_least: usize,
}

impl Work {
    /// `tools/call echo`
    pub fn echo(speech: Speech) -> Self {
        Self {
            speech,
            method: "tools/call",
            params: json!({ "name": "echo", "arguments": { "text": "hello, world" } }),
            token: None,
            expect: "hello, world",
            at_least: 0,
        }
    }

    /// `resources/read` of ten megabytes.
    pub fn read(speech: Speech) -> Self {
        Self {
            method: "resources/read",
            params: json!({ "uri": "bench://large" }),
            expect: "level=info",
            at_least: crate::large().len(),
            ..Self::echo(speech)
        }
    }

    /// A request with an ID and, if given, a session.
    pub fn request(&self, session: Option<&str>, id: usize) -> Prepared {
        let mut params = self.params.clone();
        let mut headers = Vec::new();
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let name = self.params.get("name").or(self.params.get("uri")).and_then(Value::as_str);
        match self.speech {
            Speech::Modern => {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                headers.push(("mcp-protocol-version", "2026-07-28"));
                headers.push(("mcp-method", self.method));
                headers.extend(name.map(|name| ("mcp-name", name)));
            }
            Speech::Sessions(_) | Speech::Sessionless => {
                headers.push(("mcp-protocol-version", "2025-11-25"));
                headers.extend(session.map(|session| ("mcp-session-id", session)));
            }
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": self.method, "params": params });
        Prepared::post(&body.to_string(), &headers)
    }

    /// Starts a session.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn session(&self, address: SocketAddr) -> io::Result<String> {
        let initialize = Self {
            speech: Speech::Sessionless,
            method: "initialize",
            params: json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "bench", "version": "1" },
            }),
            ..self.clone()
        };
        let mut connection = Connection::open(address).await?;
        let (head, _) = connection.exchange(&initialize.request(None, 1), |_| {}).await?;
        let session = head
            .session
            .clone()
            .ok_or_else(|| io::Error::other(format!("no session: {head:?}")))?;
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut headers =
            vec![("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        connection.exchange(&Prepared::post(body, &headers), |_| {}).await?;
        Ok(session)
    }

    /// Measures requests per second over a number of connections.
    ///
    /// # Errors
    /// When a response is not as expected: fast errors must not count.
    pub async fn run(
        &self,
        address: SocketAddr,
        connections: usize,
        time: Duration,
    ) -> io::Result<f64> {
        let sessions = match self.speech {
            Speech::Sessions(many) => {
                try_join_all((0..many).map(|_| self.session(address))).await?
            }
            _ => Vec::new(),
        };
        let mut open = Vec::with_capacity(connections);
        for index in 0..connections {
            // Connections that share a session need distinct request IDs.
            let requests = match sessions.len() {
                0 => vec![self.request(None, 1)],
                many => (index % many..many)
                    .step_by(connections)
                    .map(|session| self.request(Some(&sessions[session]), index + 1))
                    .collect(),
            };
            let mut connection = Connection::open(address).await?;
            // The first response is checked in full, and not counted.
            self.check(&mut connection, &requests[0]).await?;
            open.push((connection, requests));
        }
        let begun = Instant::now();
        let end = begun + time;
        let calls = try_join_all(open.into_iter().map(|(mut connection, requests)| async move {
            let mut count = 0_usize;
            while Instant::now() < end {
                let request = &requests[count % requests.len()];
                let (head, length) = connection.exchange(request, |_| {}).await?;
                if head.status != 200 || length < self.at_least {
                    return Err(io::Error::other(format!("{head:?} with {length} bytes")));
                }
                count += 1;
            }
            Ok(count)
        }));
        let counts = awake(calls).await?;
        #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        Ok(counts.into_iter().sum::<usize>() as f64 / begun.elapsed().as_secs_f64())
    }

    async fn check(&self, connection: &mut Connection, request: &Prepared) -> io::Result<()> {
        let mut beginning = Vec::new();
        let (head, length) = connection
            .exchange(request, |piece| {
                let room = 4096_usize.saturating_sub(beginning.len());
                beginning.extend_from_slice(&piece[..piece.len().min(room)]);
            })
            .await?;
        let expected = memchr::memmem::find(&beginning, self.expect.as_bytes()).is_some();
        if head.status == 200 && expected && length >= self.at_least {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&beginning);
        Err(io::Error::other(format!("{head:?} with {length} bytes: {body}")))
    }
}

/// Runs work on a core that never sleeps: waking one costs the server several microseconds for each
/// response on a virtual machine, and clients are on other machines where servers are used.
async fn awake<T>(work: impl Future<Output = T>) -> T {
    let spin = async {
        loop {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        result = work => result,
        () = spin => unreachable!("it never ends"),
    }
}
