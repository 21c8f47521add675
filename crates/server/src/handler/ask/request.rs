//! Sending one request to the client and reading its response.

use std::time::Duration;

use larder_protocol::{Fault, Outgoing, RequestId};
use serde_json::{Value, json};

use super::capability::Capability;
use crate::handler::{AskMode, Context, ResponseRouter, ToolError};

/// The time in which a client in a session has to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);

/// The maximum number of times that a task sends a request whose responses are invalid.
const MAX_ATTEMPTS: u32 = 3;

/// The reason why the client's answer is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The client does not declare the capability, or there is no connection on
    /// which to send the request.
    #[error("{0}")]
    Unsupported(String),
    /// The client responded with an error or with an invalid result.
    #[error("{0}")]
    Refused(String),
    /// The client did not respond in time.
    #[error("The client did not answer in time.")]
    TimedOut,
}

impl AskError {
    /// The client's result is not valid.
    pub(super) fn invalid(problem: &str) -> Self {
        Self::Refused(format!("The client's answer cannot be used: {problem}"))
    }
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> Self {
        Self::new(error.to_string())
    }
}

impl<S> Context<S> {
    /// Sends a request in the way that the call supports. `parse` reads the
    /// result; its error says what is invalid.
    pub(super) async fn ask<T>(
        &self,
        key: &str,
        capability: Capability,
        method: &'static str,
        params: Value,
        parse: impl Fn(Value) -> Result<T, String>,
    ) -> Result<T, AskError> {
        let is_declared = capability.is_declared_in(&self.client().capabilities);

        match &self.scope().asking {
            AskMode::Unavailable(reason) => Err(AskError::Unsupported((*reason).to_owned())),
            AskMode::RoundTrips(_) if !is_declared => {
                self.fail(Fault::MissingCapability { required: capability.declaration() }).await
            }
            AskMode::RoundTrips(_) if self.scope().control.task().is_some() => {
                self.ask_in_task(key, json!({ "method": method, "params": params }), parse).await
            }
            AskMode::RoundTrips(rounds) => {
                Ok(rounds.ask(key, json!({ "method": method, "params": params }), parse).await)
            }
            AskMode::OnStream(_) if !is_declared => Err(AskError::Unsupported(format!(
                "The client cannot be asked: it does not declare the capability {}.",
                capability.declaration()
            ))),
            AskMode::OnStream(route) => self.ask_on_stream(&**route, method, params, parse).await,
        }
    }

    async fn ask_on_stream<T>(
        &self,
        route: &dyn ResponseRouter,
        method: &'static str,
        params: Value,
        parse: impl Fn(Value) -> Result<T, String>,
    ) -> Result<T, AskError> {
        let id = RequestId::String(format!("larder-{}", self.scope().random.id()).into());
        let response = route.expect(&id);
        self.send(Outgoing::Ask { id, method, params }).await;

        match tokio::time::timeout(RESPONSE_TIMEOUT, response).await {
            Ok(Ok(Ok(result))) => parse(result).map_err(|problem| AskError::invalid(&problem)),
            Ok(Ok(Err(error))) => Err(AskError::Refused(error)),
            Ok(Err(_)) => Err(AskError::Refused("The session has ended.".into())),
            Err(_) => Err(AskError::TimedOut),
        }
    }

    /// Sends a request by the task's state. A key is used once in a task's life
    /// (SEP-2663: Task Update Requests), so a repeated request gets a new key.
    async fn ask_in_task<T>(
        &self,
        key: &str,
        request: Value,
        parse: impl Fn(Value) -> Result<T, String>,
    ) -> Result<T, AskError> {
        let Some(task) = self.scope().control.task() else {
            return Err(AskError::Unsupported("The call is not a task.".into()));
        };

        let mut attempt = 1;
        loop {
            let key = if attempt == 1 { key.to_owned() } else { format!("{key}_{attempt}") };
            let response = task
                .ask(&key, &request)
                .await
                .map_err(|fault| AskError::Refused(fault.to_string()))?;
            let result = response.await.map_err(|_| {
                AskError::Refused("The task ended before the client answered.".into())
            })?;

            match parse(result) {
                Ok(parsed) => return Ok(parsed),
                Err(problem) if attempt == MAX_ATTEMPTS => return Err(AskError::invalid(&problem)),
                Err(_) => attempt += 1,
            }
        }
    }
}
