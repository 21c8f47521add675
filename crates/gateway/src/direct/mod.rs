//! [`Direct`]: a client of one server with no registry in between, for a person at a terminal. It
//! uses the same links as upstreams do, so it speaks both eras over HTTP and standard input and
//! output, and goes on with a stream that was cut.

mod error;
pub mod login;
mod pages;

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use larder_oauth::Identity;
use larder_protocol::LogLevel;
use larder_server::registry::{LoginSite, ProvidedTool};
use rmcp::model;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::pages::ListPages;
pub use self::{error::DirectError, login::DirectLogin};
use crate::{
    account::Account,
    error::UpstreamError,
    link::{Answered, CallEvent, Era, ExpectedAnswer, Link, OpenedRequest},
    memory::Folder,
    names::Naming,
    received::{InputRequest, InputRequired, Question, RawResult, Round, Verbatim},
    settings::Settings,
    shared::Shared,
    start::{ProcessTasks, Start, StartedUpstream},
    wire,
};

/// How often a modern server may ask during one request.
const MAX_ROUNDS: usize = 64;
/// Attends a request: is told of its progress, and answers the server's questions.
#[async_trait]
pub trait Attendant: Send + Sync {
    /// The least severe log messages that are wanted; `None` for none.
    fn log_level(&self) -> Option<LogLevel>;

    /// Is told how far the request is.
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>);

    /// Is told a log message of the server.
    fn log(&self, level: LogLevel, logger: Option<&str>, data: &Value);

    /// Answers a question of the server.
    ///
    /// # Errors
    /// Why there is no answer, for the server.
    async fn answer(&self, method: &str, params: &Value) -> Result<Value, String>;
}

/// A client of one server.
pub struct Direct {
    link: Arc<Link>,
    child: ProcessTasks,
    /// The person, as whose requests all are sent.
    identity: Identity,
    /// Has the tasks of the link.
    shared: Shared,
}

impl Direct {
    /// Starts or connects to a server, and finds out its era. `capabilities` is what the attendant
    /// can be asked for, `site` where logins are kept, for a server whose settings have one.
    ///
    /// # Errors
    /// The server cannot be started or reached, or wants a login.
    pub async fn open(
        settings: Settings,
        capabilities: &Value,
        site: Option<&LoginSite>,
    ) -> Result<Self, DirectError> {
        let naming = Naming {
            upstream: settings.name.as_str().into(),
            is_prefixed: false,
            reserved: HashSet::new(),
        };
        let shared = Shared::new(settings, naming, Arc::default(), Folder::default());
        if let (Some(login), Some(site)) = (shared.login(), site) {
            login.open(site);
        }

        let identity = Identity::local();
        let account = Account::of(&shared.access, &identity).map(Arc::new);
        let start = Start {
            shared: &shared,
            client: capabilities,
            kept: None,
            account: account.as_ref(),
            opened: &|| {},
        };

        match start.run().await {
            Ok(StartedUpstream { link, child, .. }) => Ok(Self { link, child, identity, shared }),
            Err(failed) => Err(DirectError::of_start(failed, shared.login())),
        }
    }

    /// Sends a request and waits for its result, whatever questions the server has meanwhile.
    /// Dropping the future tells the server that nobody waits any more.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn request(
        &self,
        method: &'static str,
        params: Value,
        attendant: &dyn Attendant,
    ) -> Result<Value, DirectError> {
        self.link.set_log_level(attendant.log_level()).await;
        let mut next = params.clone();

        for _ in 0..MAX_ROUNDS {
            let result = self.send(method, next, attendant).await?;
            let required = match result.round() {
                Ok(Round::Complete(result)) => return read(result),
                Ok(Round::Asks(required)) => required,
                Err(problem) => return Err(DirectError::Invalid(problem.to_string())),
            };

            let InputRequired { requests, state } = required;
            let mut responses = serde_json::Map::new();
            for (key, InputRequest { method, params }) in requests {
                let answer = attendant.answer(&method, &params).await;
                responses.insert(key, answer.map_err(DirectError::Unanswered)?);
            }

            next = params.clone();
            wire::add_param(&mut next, "inputResponses", Value::Object(responses));
            if let Some(state) = state {
                wire::add_param(&mut next, "requestState", json!(state));
            }
        }

        Err(DirectError::Unanswered(format!("it has asked {MAX_ROUNDS} times")))
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// As [`Direct::request`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        attendant: &dyn Attendant,
    ) -> Result<Value, DirectError> {
        if self.link.era() == Some(Era::Modern) {
            // Some arguments are also headers, which the definition says.
            self.learn_headers(attendant).await;
        }
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", params, attendant).await
    }

    async fn learn_headers(&self, attendant: &dyn Attendant) {
        let Ok(tools) = self.list("tools/list", "tools", attendant).await else { return };
        let provided = tools.into_iter().filter_map(|tool| {
            let tool = model::Tool::deserialize(tool).ok()?;
            Some((tool.name.to_string(), Arc::new(ProvidedTool::new(tool, None))))
        });

        let provided: Vec<_> = provided.collect();
        self.link.mirrored.set(provided.iter().map(|(name, tool)| (name, tool)));
    }

    /// All items of a list, page after page.
    ///
    /// # Errors
    /// As [`Direct::request`].
    pub async fn list(
        &self,
        method: &'static str,
        member: &str,
        attendant: &dyn Attendant,
    ) -> Result<Vec<Value>, DirectError> {
        let mut pages = ListPages::default();
        let mut params = json!({});
        loop {
            let page = self.request(method, params, attendant).await?;
            match pages.add(page, member).map_err(DirectError::Invalid)? {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(pages.items),
            }
        }
    }

    /// Ends the session or the process, and waits until that is done.
    pub async fn close(self) {
        self.child.end().await;
    }

    /// Sends a request, and waits for its response.
    async fn send(
        &self,
        method: &'static str,
        mut params: Value,
        attendant: &dyn Attendant,
    ) -> Result<RawResult, DirectError> {
        let opened = self.link.open(Some(self.identity.clone()), ExpectedAnswer::Other);
        let opened = opened.map_err(|error| self.failed(error))?;
        let OpenedRequest { id, mut answer, mut events, era, .. } = opened;
        let _running = RunningRequest { link: &self.link, id };

        wire::add_meta(&mut params, "progressToken", json!(id));
        if era == Some(Era::Modern) {
            wire::declare_modern(&mut params, self.link.client_capabilities());
            if let Some(level) = attendant.log_level() {
                wire::add_meta(&mut params, "io.modelcontextprotocol/logLevel", json!(level));
            }
        }
        self.link.send(wire::request(id, method, &params, None)).await;

        let timeout = self.link.call_timeout();
        let mut deadline = Instant::now() + timeout;
        let answered = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    tokio::select! {
                        biased;
                        // Events that are ready are told, also if the answer is there already.
                        () = self.handle(event, attendant) => {}
                        // The request may end while a person is asked.
                        answered = &mut answer => break answered,
                    }
                    deadline = Instant::now() + timeout;
                }
                answered = &mut answer => break answered,
                () = tokio::time::sleep_until(deadline) => {
                    return Err(DirectError::TimedOut(timeout));
                }
            }
        };

        // Events from before the answer are told before it.
        while let Ok(event) = events.try_recv() {
            match event {
                CallEvent::Question(Question { id, .. }) => {
                    self.link.refuse(&id, "The call has ended.");
                }
                event => self.handle(event, attendant).await,
            }
        }

        let answered = answered.unwrap_or_else(|_| Err(self.link.ended_during(method)));
        let Answered { result, .. } = answered.map_err(|error| self.failed(error))?;
        Ok(result)
    }

    async fn handle(&self, event: CallEvent, attendant: &dyn Attendant) {
        match event {
            CallEvent::Progress { progress, total, message, .. } => {
                attendant.progress(progress, total, message.as_deref());
            }
            CallEvent::Log { level, logger, data, .. } => {
                if attendant.log_level().is_some_and(|lowest| level >= lowest) {
                    attendant.log(level, logger.as_deref(), &data);
                }
            }
            CallEvent::Question(Question {
                id, request: InputRequest { method, params }, ..
            }) => match attendant.answer(&method, &params).await {
                Ok(result) => self.link.send(wire::response(&id, result)).await,
                Err(reason) => self.link.refuse(&id, &reason),
            },
            CallEvent::Withdrawn(_) | CallEvent::ElicitationCompleted(_) => {}
        }
    }

    fn failed(&self, error: UpstreamError) -> DirectError {
        DirectError::of(error, self.shared.login(), &self.child.last_lines)
    }
}

fn read(result: RawResult) -> Result<Value, DirectError> {
    let read = result.read::<Verbatim>();
    read.map(|Verbatim(value)| value).map_err(|problem| DirectError::Invalid(problem.to_string()))
}

/// A request that is cancelled when nobody waits for it any more.
struct RunningRequest<'a> {
    link: &'a Link,
    id: i64,
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        if self.link.forget(self.id) {
            let params = json!({ "requestId": self.id, "reason": "The caller no longer waits." });
            self.link.try_send(wire::notification("notifications/cancelled", &params));
        }
    }
}
