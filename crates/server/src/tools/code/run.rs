//! [`Run`]: one run of code, from its start to its result.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use larder_query::{Script, ScriptError, ScriptInput, ScriptOutcome, ScriptRequest};
use larder_store::store::{Details, Entry, Origins};
use parking_lot::Mutex;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::value::RawValue;

use super::{
    Coding, ValuePlace, consent::Consent, console::Console, ledger::Ledger, outcome::outcome,
};
use crate::{
    handler::{Context, Scope, ToolError},
    registry::{CALL_TOOL, QUERYING_TOOL, Registry},
    spill::tool_calls::type_and_size,
};

/// One run of code.
pub(super) struct Run<'a> {
    /// The context of the calls, which notes from which servers their content comes.
    ctx: Context<()>,
    outer: &'a Context<()>,
    origins: Origins,
    coding: &'a Coding,
    /// The tools that the caller may see, and whether each only reads.
    tools: BTreeMap<String, bool>,
    consent: Consent,
    ledger: Mutex<Ledger>,
}

impl<'a> Run<'a> {
    /// Prepares a run, and asks the user about tools that write.
    ///
    /// # Errors
    /// The run must not begin.
    pub(super) async fn new(
        outer: &'a Context<()>,
        coding: &'a Coding,
        code: &str,
    ) -> Result<Self, ToolError> {
        let registry = Registry::from_scope(outer.scope());
        let tools = registry.callable_tools(outer.scope()).await;
        let mut tools = tools.map_err(|fault| ToolError::new(fault.to_string()))?;
        tools.remove(super::NAME);
        tools.remove(CALL_TOOL);

        let asked: BTreeMap<_, _> = tools
            .iter()
            .filter(|(name, _)| !adds_only(name))
            .map(|(name, only_reads)| (name.clone(), *only_reads))
            .collect();
        let consent = Consent::ask(outer, coding.writes, &asked, code).await?;

        let origins = Origins::default();
        let store = outer.resource_store().tracing(origins.clone());
        let scope = Scope { store, ..Scope::clone(outer.scope()) };
        let ctx = Context::new(Arc::new(scope), Arc::new(()));
        Ok(Self { ctx, outer, origins, coding, tools, consent, ledger: Mutex::default() })
    }

    pub(super) fn ctx(&self) -> &Context<()> {
        &self.ctx
    }

    pub(super) fn coding(&self) -> &Coding {
        self.coding
    }

    /// Why a tool must not be called, which may change something. `None` if it may be called.
    pub(super) fn refusal(&self, tool: &str) -> Option<String> {
        let only_reads = self.tools.get(tool) == Some(&true) || adds_only(tool);
        if only_reads { None } else { self.consent.refusal(tool) }
    }

    /// The servers whose content the run has read.
    pub(super) fn origins(&self) -> Arc<[Arc<str>]> {
        self.origins.names()
    }

    /// Runs the code; its result.
    ///
    /// # Errors
    /// Why it has none, and which calls it has made.
    pub(super) async fn finish(
        self,
        code: String,
        inputs: Vec<ScriptInput>,
        seconds: Option<u64>,
        into: Option<ValuePlace>,
    ) -> Result<CallToolResult, ToolError> {
        let scope = self.outer.scope();
        let tools = self.tools.keys().cloned().collect();
        let owner = scope.identity.owner();
        let scripts = &self.coding.scripts;

        let mut console = Console::default();
        let begun = scripts.begin(owner, code, tools, inputs, seconds, scope.steps_end).await;
        let ended = match begun {
            Ok(script) => self.drive(script, &mut console).await,
            Err(error) => Err(error),
        };

        // The value and the results may have content of all these servers.
        scope.store.add_origins(self.origins.names().iter().cloned());
        match ended {
            Ok(value) => self.returned(&value, into, &console).await,
            Err(error) => Err(self.failed(&error, &console).await),
        }
    }

    /// Does what the script asks for until it has ended. Calls that have not ended by then are
    /// cancelled.
    async fn drive(
        &self,
        mut script: Script,
        console: &mut Console,
    ) -> Result<Box<RawValue>, ScriptError> {
        let mut calls: FuturesUnordered<BoxFuture<'_, (u64, ScriptOutcome)>> =
            FuturesUnordered::new();
        let mut done: u64 = 0;

        loop {
            let request = tokio::select! {
                request = script.next() => request?,
                Some((id, outcome)) = calls.next(), if !calls.is_empty() => {
                    self.ledger.lock().end(id, &outcome);
                    script.reply(id, outcome)?;
                    done += 1;
                    self.outer.progress(done).await;
                    continue;
                }
            };

            match request {
                ScriptRequest::Call { id, tool, arguments, handles } => {
                    self.ledger.lock().begin(id, &tool, Some(&arguments));
                    let call = async move {
                        let called = self.call_tool(&tool, &arguments, handles).await;
                        (id, outcome(called))
                    };
                    calls.push(call.boxed());
                }
                ScriptRequest::Handle { id, operation } => {
                    self.ledger.lock().begin(id, "stored content", None);
                    let call = async move { (id, outcome(self.operate(operation).await)) };
                    calls.push(call.boxed());
                }
                ScriptRequest::Log(line) => {
                    console.add(&line, self.coding.scripts.limits().console_bytes);
                }
                ScriptRequest::Done(value) => return Ok(value),
            }
        }
    }

    /// The result of a run that has returned a value.
    async fn returned(
        &self,
        value: &RawValue,
        into: Option<ValuePlace>,
        console: &Console,
    ) -> Result<CallToolResult, ToolError> {
        let text = match into {
            None => value.get().to_owned(),
            Some(place) => stored_at("The value", &*place.store(&self.ctx, value.get()).await?),
        };

        let mut content = vec![ContentBlock::text(text)];
        let ledger = self.ledger.lock();
        let calls = (!ledger.is_empty()).then(|| format!("{}.", ledger.summary()));
        let notes: Vec<_> = calls.into_iter().chain(console.told()).collect();
        if !notes.is_empty() {
            content.push(ContentBlock::text(notes.join("\n")));
        }
        Ok(CallToolResult::success(content))
    }

    /// The error of a run: the reason, the calls that were made, and where their results are.
    async fn failed(&self, error: &ScriptError, console: &Console) -> ToolError {
        let mut parts = vec![error.to_string()];
        let (is_empty, summary, lines) = {
            let ledger = self.ledger.lock();
            (ledger.is_empty(), ledger.summary(), ledger.lines())
        };

        if is_empty {
            parts.push("No tool was called.".to_owned());
        } else {
            parts.push(format!("{summary}. Do not repeat calls that are done."));
            let details = Details {
                name: Some("Calls of code that has ended".to_owned()),
                mime_type: Some("application/x-ndjson".to_owned()),
                session: self.ctx.scope().session.clone(),
                ..Details::default()
            };
            let uri = self.ctx.mint_uri();
            let stored = self.ctx.create_resource(uri, lines).details(details).await;
            parts.push(match stored {
                Ok(entry) => stored_at("Their results", &entry),
                Err(error) => format!("Their results cannot be stored: {error}"),
            });
        }

        parts.extend(console.told());
        ToolError::new(parts.join("\n"))
    }
}

/// Whether a tool changes nothing but may add answers to the caller's resources.
fn adds_only(tool: &str) -> bool {
    tool == QUERYING_TOOL
}

fn stored_at(what: &str, entry: &Entry) -> String {
    format!("{what} ({}) stored until {}:\n{}", type_and_size(entry), entry.expires, entry.uri)
}
