//! One entry: a call in, a reply out, messages about it on its outbox while
//! it runs. Knows methods; knows neither HTTP nor eras.

mod admission;
mod discover;
mod instrument;
mod prompts;
mod reply;
mod resources;
mod running;
mod tasks;

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::{BoxFuture, FutureExt, ready};
use rmcp::model::{self, InitializeResult};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

pub use reply::{CacheHint, ReadReply, Reply};
pub use running::{Running, Step};

use crate::{
    admission::Limits,
    auth::Identity,
    handler::{Asking, Control, Paused, Scope, Server},
    protocol::{
        ClientFacts, Fault, LogLevel, Member, Method, Params, ProgressToken, ProtocolVersion, Trace,
    },
    random::Random,
    registry::Registry,
    spill::Spiller,
    store::{Store, StoredBytes},
    task::Tasks,
};

/// How many messages about one call may wait for a slow reader before the
/// handler has to wait, too.
const OUTBOX: usize = 64;

/// Bounds on what one call may be given.
#[derive(Debug, Clone)]
pub struct DispatchLimits {
    /// The most that `resources/read` gives at once, in bytes.
    pub read_bytes: u64,
}

impl Default for DispatchLimits {
    /// 16 MiB.
    fn default() -> Self {
        Self { read_bytes: 16 << 20 }
    }
}

/// A request that an era has accepted.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is asked.
    pub method: Method,
    /// Of what.
    pub params: Params,
    /// Set when the caller wants to hear of progress.
    pub progress_token: Option<ProgressToken>,
    /// The caller's trace, which goes on here.
    pub trace: Option<Trace>,
    /// By whom, and what they may do.
    pub identity: Identity,
    /// What the client says of itself.
    pub client: Arc<ClientFacts>,
    /// The session that what it creates ends with, if with any.
    pub session: Option<Arc<str>>,
    /// Which log messages the caller wants; none without.
    pub log_level: Option<LogLevel>,
    /// How it can ask its client.
    pub asking: Asking,
}

/// Answers calls.
#[derive(Debug)]
pub struct Dispatcher {
    registry: Arc<Registry>,
    store: Store,
    tasks: Arc<dyn Tasks>,
    /// Calls that run on as tasks.
    running: TaskTracker,
    stopping: CancellationToken,
    random: Random,
    limits: ArcSwap<DispatchLimits>,
    principals: Arc<Limits>,
}

impl Dispatcher {
    /// A dispatcher over what a server offers and where its resources lie;
    /// `principals` bounds what one caller runs at once.
    pub fn new(
        registry: Registry,
        store: Store,
        tasks: Arc<dyn Tasks>,
        random: Random,
        limits: DispatchLimits,
        principals: Arc<Limits>,
    ) -> Self {
        let (running, stopping) = (TaskTracker::new(), CancellationToken::new());
        let registry = Arc::new(registry);
        let limits = ArcSwap::from_pointee(limits);
        Self { registry, store, tasks, running, stopping, random, limits, principals }
    }

    /// Waits until no call runs as a task.
    pub async fn drain(&self) {
        self.running.close();
        self.running.wait().await;
        self.running.reopen();
    }

    /// Ends every call that runs, each with an error that says to send it again.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Other bounds from now on.
    pub fn set_limits(&self, limits: DispatchLimits) {
        self.limits.store(Arc::new(limits));
    }

    /// What the server offers.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Where its resources lie.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Begins a call. Nothing happens until it is polled, and dropping it
    /// stops the handler at its next await.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`] and [`Fault::Limited`], before anything of
    /// an answer has gone out.
    pub fn start(self: &Arc<Self>, call: Call) -> Result<Running, Fault> {
        self.authorize(call.method, &call.params, &call.identity)?;
        let permit = self.permit(call.method, &call.identity)?;
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let request_id: Arc<str> = self.random.id().into();
        let tool = instrument::tool(call.method, &call.params);
        let span = instrument::span(call.method, tool.as_deref(), call.trace.as_ref(), &request_id);
        let stored_bytes = StoredBytes::default();
        let mut measured =
            instrument::Measured::new(call.method, tool, &call.params, stored_bytes.clone());
        let cancellation = CancellationToken::new();
        let control = Arc::new(Control::default());
        let owner = call.identity.owner().clone();
        let scope = Arc::new(Scope {
            request_id,
            identity: call.identity,
            client: call.client,
            session: call.session,
            store: self.store.counting(stored_bytes),
            server: Arc::clone(&self.registry) as Arc<dyn Server>,
            random: self.random.clone(),
            progress_token: call.progress_token,
            log_level: call.log_level,
            asking: call.asking.clone(),
            control: Arc::clone(&control),
            read_bytes: self.limits.load().read_bytes,
            outbox,
            cancellation: cancellation.clone(),
        });
        let this = Arc::clone(self);
        let (method, params) = (call.method, call.params);
        let asking = call.asking;
        let cancel_with_task = cancellation.clone();
        let outcome = async move {
            let dispatcher = Arc::clone(&this);
            let mut run: tasks::Run = Box::pin(async move {
                // Also while it goes on as a task.
                let _permit = permit;
                let outcome = dispatcher.run(method, &params, scope).await;
                measured.ended(&outcome);
                outcome
            });
            let ran = tokio::select! {
                biased;
                ran = control.run(&asking, run.as_mut()) => ran?,
                () = this.stopping.cancelled() => return Err(stopped()),
            };
            match ran {
                Ok(outcome) => outcome,
                Err(Paused::InputRequired(required)) => Ok(Reply::InputRequired(required)),
                Err(Paused::Task) => {
                    this.run_on(run, asking, control, owner, cancel_with_task).await
                }
            }
        };
        Ok(Running::new(Box::pin(outcome.instrument(span)), messages, cancellation))
    }

    /// Each method's future lies on the heap by itself: all of them together
    /// are large, and would be moved about with every call.
    fn run<'a>(
        &'a self,
        method: Method,
        params: &'a Params,
        scope: Arc<Scope>,
    ) -> BoxFuture<'a, Result<Reply, Fault>> {
        match method {
            Method::Ping => ready(Ok(Reply::Empty)).boxed(),
            Method::Discover => ready(Ok(self.discover())).boxed(),
            Method::ListTools => Box::pin(self.list_tools(params, scope)),
            Method::CallTool => Box::pin(self.call_tool(params, scope)),
            Method::ListPrompts => Box::pin(self.list_prompts(params, scope)),
            Method::GetPrompt => Box::pin(self.get_prompt(params, scope)),
            Method::Complete => Box::pin(self.complete(params, scope)),
            Method::ListResources => Box::pin(self.list_resources(params, scope)),
            Method::ListResourceTemplates => Box::pin(self.list_templates(params, scope)),
            Method::ReadResource => Box::pin(self.read_resource(params, scope)),
            Method::GetTask => Box::pin(self.get_task(params, scope)),
            Method::UpdateTask => Box::pin(self.update_task(params, scope)),
            Method::CancelTask => Box::pin(self.cancel_task(params, scope)),
            // These concern a session or a connection: the eras answer them.
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
        let page = self.registry.tools_of(cursor_of(params)?.as_deref(), scope).await?;
        let mut result = model::ListToolsResult::with_all_items(page.items);
        result.next_cursor = page.next;
        Ok(Reply::Tools(result, self.listed(self.registry.has_custom_tools())))
    }

    async fn list_templates(&self, params: &Params, scope: Arc<Scope>) -> Result<Reply, Fault> {
        let page = self.registry.templates_of(cursor_of(params)?.as_deref(), scope).await?;
        let mut result = model::ListResourceTemplatesResult::with_all_items(page.items);
        result.next_cursor = page.next;
        Ok(Reply::Templates(result, self.listed(self.registry.has_custom_resources())))
    }

    /// For whom a list is: a handler may give each caller another one.
    fn listed(&self, custom: bool) -> CacheHint {
        if custom { CacheHint::OWN } else { self.definition() }
    }

    async fn call_tool(&self, params: &Params, scope: Arc<Scope>) -> Result<Reply, Fault> {
        let name = params.required_text(Member::Name)?;
        let arguments = match params.member(Member::Arguments) {
            None => None,
            Some(raw) => {
                let parsed: Value = serde_json::from_slice(raw).map_err(|e| {
                    Fault::invalid_params(format!("The arguments of {name} cannot be read: {e}"))
                })?;
                if !parsed.is_object() {
                    return Err(Fault::invalid_params("\"arguments\" must be an object."));
                }
                Some(parsed)
            }
        };
        let spiller = Spiller::new(&scope);
        let result = self.registry.call_tool(&name, arguments, scope).await?;
        let result = spiller.bounded(&name, result).await;
        Ok(Reply::CallTool(Box::new(result)))
    }

    /// What `initialize` answers.
    pub fn initialize(&self, version: ProtocolVersion) -> InitializeResult {
        discover::initialize(&self.registry, version)
    }
}

/// Of a call that does not end in time: nobody can know whether it did its work.
fn stopped() -> Fault {
    Fault::Unavailable("The server is stopping. Send the request again.".into())
}

fn cursor_of(params: &Params) -> Result<Option<String>, Fault> {
    #[derive(Deserialize)]
    struct Paged {
        #[serde(default)]
        cursor: Option<String>,
    }
    Ok(params.parse::<Paged>()?.cursor)
}
