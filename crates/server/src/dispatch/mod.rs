//! Runs calls. A call goes in; messages and then a reply come out. Knows methods, but
//! neither HTTP nor protocol eras.

mod access_log;
mod admission;
mod callers;
mod discover;
mod end;
mod inner_call;
mod instrument;
mod lifecycle;
mod limits;
mod prompts;
mod reply;
mod reserved;
mod resources;
mod running;
mod steps;
mod stored_arguments;
mod tasks;
mod traffic;

use std::sync::Arc;

pub use access_log::AccessLog;
use arc_swap::ArcSwap;
pub use callers::{CallerCounts, Callers};
pub use end::End;
use futures_util::future::{BoxFuture, FutureExt, ready};
use larder_oauth::{Identity, Owner, Validity};
use larder_protocol::{
    ClientFacts, Fault, LogLevel, Member, Method, Params, ProgressToken, ProtocolVersion, Trace,
    passed_on_meta,
};
use larder_runtime::{in_span::InSpan, random::Random};
use larder_store::{
    store::{Origins, Store, StoredBytes},
    task::Tasks,
};
pub use limits::DispatchLimits;
pub use reply::{CacheHint, ContentReply, HeldReply, ReadReply, Reply, ToolReply};
use rmcp::model::{self, InitializeResult};
pub use running::{Running, Step};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
pub use traffic::{Reader, Traffic, TrafficCounts};

use self::{
    lifecycle::{Deadline, Lifecycle},
    reserved::refused_as_inexact,
    running::Handler,
};
use crate::{
    admission::Limits,
    handler::{
        AskMode, Cancellation, Control, IntoToolResult, Outbox, Polled, Scope, Server,
        StepAccounts, Suspended, ToolError,
    },
    registry::{CallKey, InputReferences, Registry, ResolvedArguments, SessionClient, not_called},
    spill::Spiller,
};

/// A request that passed the checks of its protocol era.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The method's parameters.
    pub params: Params,

    /// The token for progress notifications, if the caller wants them.
    pub progress_token: Option<ProgressToken>,
    /// The caller's trace, which this call continues.
    pub trace: Option<Trace>,

    /// The caller, and what they may do.
    pub identity: Identity,
    /// The client's own description of itself.
    pub client: Arc<ClientFacts>,
    /// The reader of the result, if the called tool is not for pages only.
    pub reader: Reader,
    /// The session whose end deletes the resources that this call creates, if any.
    pub session: Option<Arc<str>>,
    /// The client's session, if it has one.
    pub client_session: Option<Arc<str>>,

    /// The minimum level of log messages for the client. None are sent without it.
    pub log_level: Option<LogLevel>,
    /// How the call can ask its client for input.
    pub asking: AskMode,
    /// Notices when the caller's token is no longer valid. None if the call continues
    /// without its client.
    pub validity: Option<Validity>,
}

/// Runs calls against a registry and a store.
#[derive(Debug)]
pub struct Dispatcher {
    registry: Arc<Registry>,
    store: Store,
    tasks: Arc<dyn Tasks>,

    /// Calls that continue as tasks after their response.
    task_calls: TaskTracker,
    stopping: CancellationToken,

    random: Random,
    limits: ArcSwap<DispatchLimits>,
    caller_limits: Arc<Limits>,
    steps: Arc<dyn StepAccounts>,
    traffic: Arc<Traffic>,
}

/// The longest `_meta` of a request that is passed on to servers behind this one, in bytes.
const MAX_PASSED_ON_META: usize = 16 << 10;
/// The member of `_meta` of a list of tools that names the servers behind this one whose tools may
/// be missing.
const TROUBLED: &str = "larder/upstreams";

impl Dispatcher {
    /// Creates a dispatcher. `caller_limits` limits what each caller uses.
    pub fn new(
        registry: Registry,
        store: Store,
        tasks: Arc<dyn Tasks>,
        random: Random,
        limits: DispatchLimits,
        caller_limits: Arc<Limits>,
    ) -> Self {
        let task_calls = TaskTracker::new();
        let stopping = CancellationToken::new();
        let registry = Arc::new(registry);
        let limits = ArcSwap::from_pointee(limits);
        let traffic = Arc::<Traffic>::default();

        let steps = Arc::new(steps::Accounts {
            registry: Arc::clone(&registry),
            limits: Arc::clone(&caller_limits),
            traffic: Arc::clone(&traffic),
        });

        Self {
            registry,
            store,
            tasks,
            task_calls,
            stopping,
            random,
            limits,
            caller_limits,
            steps,
            traffic,
        }
    }

    /// Waits until all calls that run as tasks have ended.
    pub async fn drain(&self) {
        self.task_calls.close();
        self.task_calls.wait().await;
        self.task_calls.reopen();
    }

    /// Ends every running call with an error that asks the client to send it again.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Replaces the limits for new calls.
    pub fn set_limits(&self, limits: DispatchLimits) {
        self.limits.store(Arc::new(limits));
    }

    /// A random ID.
    pub(crate) fn new_id(&self) -> String {
        self.random.id()
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The store of dynamic resources.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The counters of calls and of open streams.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Starts a call. The call runs only while it is polled. Dropping it stops the handler
    /// at its next await.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`] and [`Fault::Limited`], before any part of a response
    /// is sent.
    pub fn start(self: &Arc<Self>, mut call: Call) -> Result<Running, Fault> {
        if let Some(meant) = self.inner_call(&call).or_else(|| self.page_call(&call)) {
            call.params = meant;
        }

        let admitted = self.authorize(call.method, &call.params, &call.identity);
        let permit = admitted.and_then(|()| self.permit(call.method, &call.identity));
        let permit = permit.inspect_err(|fault| self.log_refused(&call, fault))?;

        let (outbox, messages) = Outbox::new();
        let request_id: Arc<str> = self.random.id().into();
        let tool = instrument::tool(call.method, &call.params);
        let span = instrument::span(call.method, tool.as_deref(), call.trace.as_ref(), &request_id);

        let reader = self.reader(&call, tool.as_deref());
        let caller = self.logged_caller(&call, tool.as_deref());
        let stored_bytes = StoredBytes::default();
        let metrics = instrument::CallMetrics::new(
            call.method,
            tool,
            (call.identity.clone(), reader),
            &call.params,
            stored_bytes.clone(),
            Arc::clone(&self.registry),
            Arc::clone(&self.traffic),
        )
        .logged_for(caller);

        let cancellation = Cancellation::default();
        let DispatchLimits { read_bytes, call_timeout, .. } = **self.limits.load();
        let deadline = Deadline::new(call.validity, call_timeout);
        let steps_end = deadline.steps_end();
        let lifecycle = Lifecycle::new(metrics, deadline, cancellation.clone(), permit);

        let control = Arc::new(Control::default());
        let scope = Arc::new(Scope {
            request_id,
            identity: call.identity,
            client: call.client,
            session: call.session,
            client_session: call.client_session,
            store: self.store.counting(stored_bytes).tracing(Origins::default()),
            server: Arc::clone(&self.registry) as Arc<dyn Server>,
            random: self.random.clone(),
            progress_token: call.progress_token,
            passed_on_meta: self.passed_on_meta(call.method, &call.params),
            log_level: call.log_level,
            asking: call.asking.clone(),
            control: Arc::clone(&control),
            steps: Arc::clone(&self.steps),
            read_bytes,
            outbox,
            steps_end,
            cancellation: cancellation.clone(),
        });

        let owner = scope.identity.owner().clone();
        let run = Arc::clone(self).run(call.method, call.params, scope);
        let handler = Handler { run, asking: call.asking, control };
        let outcome = Box::pin(Arc::clone(self).outcome(call.method, handler, lifecycle, owner));
        Ok(Running::new(InSpan::new(span, outcome), messages, cancellation))
    }

    /// The reader of a call's result. Tools for pages are for people only.
    fn reader(&self, call: &Call, tool: Option<&str>) -> Reader {
        let is_for_pages = tool.is_some_and(|tool| self.registry.is_app_only(tool));
        if is_for_pages { Reader::Person } else { call.reader }
    }

    /// The members of the request's `_meta` for servers behind this one, if there may be any.
    fn passed_on_meta(&self, method: Method, params: &Params) -> Option<Arc<model::JsonObject>> {
        let is_passed_on =
            matches!(method, Method::CallTool | Method::GetPrompt | Method::ReadResource);
        if !is_passed_on || self.registry.has_no_providers() {
            return None;
        }

        let bytes = params.member(Member::Meta)?.len();
        if bytes > MAX_PASSED_ON_META {
            tracing::warn!(bytes, "the _meta of a request is too long to be passed on");
            return None;
        }
        passed_on_meta(params).map(Arc::new)
    }

    /// Polls a call until it ends or becomes a task.
    async fn outcome(
        self: Arc<Self>,
        method: Method,
        mut handler: Handler,
        lifecycle: Lifecycle,
        owner: Owner,
    ) -> Result<HeldReply, Fault> {
        let result = tokio::select! {
            biased;
            result = handler.poll() => result,
            (end, fault) = lifecycle.deadline().passed(&self.stopping) => {
                lifecycle.interrupt(end);
                return interrupted(method, end, fault).map(HeldReply::from);
            }
        };

        let outcome = match result {
            Polled::Returned(outcome) => outcome,
            Polled::Failed(fault) => Err(fault),
            Polled::Suspended(Suspended::InputRequired(required)) => {
                Ok(Reply::InputRequired(required))
            }
            Polled::Suspended(Suspended::Task) => match self.tasks.create(&owner).await {
                Ok((view, task)) => {
                    self.continue_as_task(handler, task, lifecycle);
                    return Ok(Reply::TaskCreated(Box::new(view)).into());
                }
                Err(fault) => Err(fault),
            },
        };

        let reader = lifecycle.reader();
        lifecycle.finish(&outcome);
        let held = handler.control.take_held();
        outcome.map(|reply| HeldReply { reply: reply.read_by(reader), held })
    }

    /// Boxes the future of each method. Together in one future they are large, and every
    /// call would move them.
    fn run(
        self: Arc<Self>,
        method: Method,
        params: Params,
        scope: Arc<Scope>,
    ) -> BoxFuture<'static, Result<Reply, Fault>> {
        macro_rules! boxed {
            ($method:ident) => {
                Box::pin(async move { self.$method(&params, scope).await })
            };
        }

        let needs_handlers = matches!(
            method,
            Method::ListResources
                | Method::ListResourceTemplates
                | Method::ReadResource
                | Method::GetTask
                | Method::UpdateTask
                | Method::CancelTask
        );
        if needs_handlers && !self.registry.has_handlers() {
            return ready(Err(Fault::MethodNotFound(method.as_str().into()))).boxed();
        }

        match method {
            Method::Ping => ready(Ok(Reply::Empty)).boxed(),
            Method::Discover => Box::pin(async move { Ok(self.discover(scope).await) }),
            Method::ListTools => boxed!(list_tools),
            Method::CallTool => boxed!(call_tool),
            Method::ListPrompts => boxed!(list_prompts),
            Method::GetPrompt => boxed!(get_prompt),
            Method::Complete => boxed!(complete),
            Method::ListResources => boxed!(list_resources),
            Method::ListResourceTemplates => boxed!(list_templates),
            Method::ReadResource => boxed!(read_resource),
            Method::GetTask => boxed!(get_task),
            Method::UpdateTask => boxed!(update_task),
            Method::CancelTask => boxed!(cancel_task),
            // The protocol eras answer these methods.
            Method::Initialize
            | Method::SetLevel
            | Method::Subscribe
            | Method::Unsubscribe
            | Method::Listen => ready(Err(Fault::MethodNotFound(method.as_str().into()))).boxed(),
        }
    }

    async fn list_tools(&self, params: &Params, scope: Arc<Scope>) -> Result<Reply, Fault> {
        if !self.registry.has_tools() {
            return Err(Fault::MethodNotFound(Method::ListTools.as_str().into()));
        }

        let page = self.registry.tools_page(parse_cursor(params)?.as_deref(), scope).await?;
        let mut result = model::ListToolsResult::with_all_items(page.items);
        result.next_cursor = page.next;
        if let Some(troubled) = self.registry.troubled_providers() {
            let meta = result.meta.get_or_insert_default();
            meta.0.insert(TROUBLED.to_owned(), troubled);
        }
        Ok(Reply::Tools(result, self.list_hint(self.registry.has_provided_tools())))
    }

    async fn list_templates(&self, params: &Params, scope: Arc<Scope>) -> Result<Reply, Fault> {
        let page = self.registry.templates_page(parse_cursor(params)?.as_deref(), scope).await?;
        let mut result = model::ListResourceTemplatesResult::with_all_items(page.items);
        result.next_cursor = page.next;
        Ok(Reply::Templates(result, self.list_hint(self.registry.has_provided_resources())))
    }

    /// The cache hint for a list. A provider may give each caller another list.
    fn list_hint(&self, provided: bool) -> CacheHint {
        if provided { CacheHint::NO_CACHE } else { self.definition_hint() }
    }

    async fn call_tool(&self, params: &Params, scope: Arc<Scope>) -> Result<Reply, Fault> {
        let name = params.required_text(Member::Name)?;
        let stored = self.registry.stored_arguments(&name);
        let owner = scope.identity.owner();
        let mut arguments = stored_arguments::read(&name, params, stored, owner).await?;
        let projection = match self.projection(&name, &mut arguments, &scope).await {
            Ok(projection) => projection,
            Err(problem) => {
                let refused = not_called(&name, &problem);
                return Ok(Reply::CallTool(Box::new(refused.into())));
            }
        };

        let is_inexact = self.is_inexact(&name, params);
        if is_inexact && let Some(refused) = refused_as_inexact(&name, projection.as_ref()) {
            return Ok(Reply::CallTool(Box::new(refused.into())));
        }
        let sent = if is_inexact { arguments.clone() } else { None };
        let arguments = match arguments {
            None => None,
            Some(given) => match self.resolved(&name, given, &scope).await? {
                ResolvedArguments::Ready(arguments) => Some(arguments),
                ResolvedArguments::Refused(problem) => {
                    let refused = ToolError::new(problem).into_tool_result();
                    return Ok(Reply::CallTool(Box::new(refused.into())));
                }
            },
        };

        // References have put other values into the arguments.
        if sent.is_some() && sent == arguments {
            self.pass_on_exactly(&name, params, &scope);
        }

        let spiller = Spiller::new(&scope);
        spiller.receive(&name);
        let references = InputReferences::Resolved { max_bytes: self.limits.load().ref_bytes };
        let given = arguments.as_ref();
        let fanned = self.registry.fan_out(&name, given, projection.as_ref(), references, &scope);
        if let Some(answer) = Box::pin(fanned).await {
            return Ok(Reply::CallTool(Box::new(answer.into())));
        }

        let tells_changes = self.registry.tells_changes(&name);
        let control = Arc::clone(&scope.control);
        let key = tells_changes.then(|| CallKey::new(&scope, &name, arguments.as_ref()));
        let result = self.registry.call_tool(&name, arguments, Arc::clone(&scope)).await?;
        let result = match (&projection, key) {
            (None, None) => spiller.bounded(&name, result).await,
            (None, Some(key)) => Box::pin(spiller.compared(&name, key, result)).await,
            (Some(projection), _) => {
                Box::pin(self.registry.project(&name, projection, result, &scope)).await
            }
        };

        let exact = control.exact_content(result.structured_content.as_ref());
        Ok(Reply::CallTool(Box::new(ToolReply { exact, ..result.into() })))
    }

    /// The arguments with the content that they refer to.
    async fn resolved(
        &self,
        tool: &str,
        arguments: Value,
        scope: &Arc<Scope>,
    ) -> Result<ResolvedArguments, Fault> {
        let max = self.limits.load().ref_bytes;
        let resolved = self.registry.resolve_references(tool, arguments, scope, max);
        Box::pin(resolved).await
    }

    /// The result of `initialize`.
    pub async fn initialize(
        &self,
        version: ProtocolVersion,
        client: &SessionClient<'_>,
    ) -> InitializeResult {
        discover::initialize(&self.registry, version, client).await
    }
}

/// The last message of a call that was interrupted. What a tool could not do in time is for
/// the model to know, which can ask for less.
fn interrupted(method: Method, end: End, fault: Fault) -> Result<Reply, Fault> {
    if method == Method::CallTool && end == End::TimedOut {
        let result = ToolError::new(fault.to_string()).into_tool_result();
        return Ok(Reply::CallTool(Box::new(result.into())));
    }

    Err(fault)
}

fn parse_cursor(params: &Params) -> Result<Option<String>, Fault> {
    #[derive(Deserialize)]
    struct Paged {
        #[serde(default)]
        cursor: Option<String>,
    }

    Ok(params.parse::<Paged>()?.cursor)
}
