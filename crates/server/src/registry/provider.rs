//! [`Provider`]: a source of items beside the items that a server's definition registers.
//! Scopes, limits, spilling, audit and metrics apply in front of providers, so none
//! bypasses them.

use std::{
    any::Any,
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use larder_oauth::Identity;
use larder_protocol::{Announcement, ClientFacts, Fault};
use larder_store::{session::SharedParts, store::ChangeFeed};
use rmcp::model::{self, CallToolResult, JsonObject};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::{
    clients::SessionClients,
    complete::CompletionInput,
    offer::{ItemName, Knowledge, Offer},
    provided_tool::{FoundTool, ProvidedTool, unknown_tool},
};
use crate::handler::{Contents, Scope};

/// A caller that follows a resource.
#[derive(Debug, Clone)]
pub struct Subscriber {
    /// The caller.
    pub identity: Identity,
    /// Name and capabilities that the client declares.
    pub client: Arc<ClientFacts>,
    /// The client's session, if it has one.
    pub session: Option<Arc<str>>,
    /// The feed that announces updates to the caller.
    pub feed: ChangeFeed,
}

/// A client that begins to use the server.
#[derive(Debug, Clone, Copy)]
pub struct SessionClient<'a> {
    /// The caller.
    pub identity: &'a Identity,
    /// Name and capabilities that the client declares.
    pub client: &'a Arc<ClientFacts>,
    /// The client's session, if it has one.
    pub session: Option<&'a Arc<str>>,
}

/// Instructions of a provider, for models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions {
    /// The provider's name, if its items have it as a prefix.
    pub name: Option<String>,
    /// The text.
    pub text: Arc<str>,
}

/// A subscription. The resource is followed until the value is dropped; in a session, until
/// the session ends or unsubscribes.
pub type Followed = Box<dyn Any + Send + Sync>;

/// Subscriptions to resources of providers.
#[derive(Default)]
pub struct Subscribed {
    /// The subscriptions.
    pub followed: Vec<Followed>,
    /// The URIs that a provider's server has refused, and why.
    pub refused: Vec<(String, Fault)>,
}

/// Lists and runs items, possibly different ones for each caller. Methods for kinds of
/// items that a provider does not offer keep their defaults.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// Whether the provider can offer items of this kind.
    fn offers(&self, what: Offer) -> bool;

    /// Whether its items of this kind replace registered items, so that none can be added.
    fn replaces(&self, _what: Offer) -> bool {
        false
    }

    /// The tools of this caller.
    async fn tools(&self, _scope: &Arc<Scope>) -> Result<Vec<Arc<ProvidedTool>>, Fault> {
        Ok(Vec::new())
    }

    /// The tool of that name, if this caller has it or may have it.
    async fn tool(&self, _name: &str, _scope: &Arc<Scope>) -> Result<Option<FoundTool>, Fault> {
        Ok(None)
    }

    /// The tool with this name, if it is known without a request to the provider's server.
    fn known_tool(&self, _name: &str) -> Option<Arc<ProvidedTool>> {
        None
    }

    /// The knowledge of an item without a request to the provider's server.
    fn knowledge(&self, item: ItemName<'_>) -> Knowledge {
        if self.offers(item.kind()) { Knowledge::Unknown } else { Knowledge::Foreign }
    }

    /// Whether the provider has listed a tool of that name to somebody.
    fn lists_tool(&self, name: &str) -> bool {
        self.known_tool(name).is_some()
    }

    /// The name under which a tool is offered that has this name at the provider's server, if it is
    /// known and another one. A page that the server has made calls its tools by their names there.
    fn offered_tool(&self, _own_name: &str) -> Option<String> {
        None
    }

    /// The URI under which a resource is offered that has this URI at the provider's server, if it
    /// is known and another one.
    fn offered_resource(&self, _own_uri: &str) -> Option<String> {
        None
    }

    /// The instructions of the provider, for models. Waits for one that was never used, but not for
    /// long.
    async fn instructions(&self, _session: &SessionClient<'_>) -> Option<Instructions> {
        None
    }

    /// Calls a tool that [`Provider::tool`] has found.
    async fn call_tool(
        &self,
        tool: &ProvidedTool,
        _arguments: JsonObject,
        _scope: Arc<Scope>,
    ) -> Result<CallToolResult, Fault> {
        Err(unknown_tool(&tool.listed.name))
    }

    /// Calls a tool that [`Provider::tool`] has found [unlisted](FoundTool::Unlisted).
    async fn call_unlisted(
        &self,
        name: &str,
        _arguments: JsonObject,
        _scope: Arc<Scope>,
    ) -> Result<CallToolResult, Fault> {
        Err(unknown_tool(name))
    }

    /// The prompts of this caller.
    async fn prompts(&self, _scope: &Arc<Scope>) -> Result<Vec<model::Prompt>, Fault> {
        Ok(Vec::new())
    }

    /// Gets a prompt. `None` if this caller has no prompt with this name.
    async fn get_prompt(
        &self,
        _name: &str,
        _arguments: &JsonObject,
        _scope: &Arc<Scope>,
    ) -> Option<Result<model::GetPromptResult, Fault>> {
        None
    }

    /// The static resources of this caller.
    async fn resources(&self, _scope: &Arc<Scope>) -> Result<Vec<model::Resource>, Fault> {
        Ok(Vec::new())
    }

    /// The templates of this caller.
    async fn templates(&self, _scope: &Arc<Scope>) -> Result<Vec<model::ResourceTemplate>, Fault> {
        Ok(Vec::new())
    }

    /// Reads a static resource. `None` if this caller has no resource with this URI.
    async fn read(&self, _uri: &str, _scope: &Arc<Scope>) -> Option<Result<Contents, Fault>> {
        None
    }

    /// Whether the provider itself is known to have the part of a resource that these query
    /// parameters of the URI select.
    fn has_part(&self, _uri: &str, _parameters: &[&str]) -> bool {
        false
    }

    /// Suggests values for an argument. `None` if the prompt or template is not
    /// the provider's.
    async fn complete(
        &self,
        _reference: &model::Reference,
        _argument: &str,
        _input: &CompletionInput,
        _scope: &Arc<Scope>,
    ) -> Option<Result<model::CompleteResult, Fault>> {
        None
    }

    /// Follows a resource: announces its updates to the subscriber. `None` if the
    /// resource cannot be the provider's; an error if the provider's server refuses it.
    async fn subscribe(
        &self,
        _uri: &str,
        _subscriber: &Subscriber,
    ) -> Option<Result<Followed, Fault>> {
        None
    }

    /// Stops following a resource for a session.
    fn unsubscribe(&self, _uri: &str, _subscriber: &Subscriber) {}

    /// Gives the provider the channel for changes of its lists, which is the same each time.
    fn announce_to(&self, _changes: broadcast::Sender<Announcement>) {}

    /// Whether the provider's server gets tokens in exchange for the tokens of callers.
    fn exchanges_tokens(&self) -> bool {
        false
    }

    /// Whether callers log in at the provider's server.
    fn has_logins(&self) -> bool {
        false
    }

    /// Gives the provider the parts that logins need. Called once, before the first call.
    fn open_logins(&self, _site: &super::LoginSite) {}

    /// The logins that the provider needs, if it needs any and [`Provider::open_logins`] was
    /// called.
    fn login(&self) -> Option<Arc<dyn super::ProviderLogin>> {
        None
    }

    /// Gives the provider the means to share the state of sessions with the other instances
    /// that serve them. Called at most once, before the first use.
    fn share_sessions(&self, _parts: &SharedParts) {}

    /// Gives the provider the clients of sessions. Called at most once, before the first use.
    fn reach_clients(&self, _clients: Weak<dyn SessionClients>) {}

    /// The roots of a session's client have changed. Returns whether the provider works for the
    /// session.
    fn roots_changed(&self, _session: &str) -> bool {
        false
    }

    /// Ends the work that was started for a client's session, which has ended.
    fn end_session(&self, _id: &str) {}

    /// The name of the other server that the provider's content comes from, if there is one.
    fn origin(&self) -> Option<Arc<str>> {
        None
    }

    /// Whether content of this origin may be an argument of the provider's tools; `None` is
    /// the origin of content that callers and this server have stored.
    fn accepts(&self, _origin: Option<&str>) -> bool {
        true
    }

    /// Whether the provider can serve calls. `true` for a provider that the server does not
    /// require.
    fn is_ready(&self) -> bool {
        true
    }

    /// Whether the provider serves calls, but offers only a part of its items.
    fn is_degraded(&self) -> bool {
        false
    }

    /// The provider's state, if the provider is another server.
    fn state(&self) -> Option<ProviderState> {
        None
    }

    /// Counts bytes of a call's result that were stored instead of sent.
    fn count_kept_out(&self, _bytes: u64) {}

    /// Waits until the running calls have ended, at most for `grace`, and ends all work of
    /// the provider. The provider gets no new calls.
    async fn retire(&self, _grace: Duration) {
        self.close().await;
    }

    /// Ends all work of the provider.
    async fn close(&self) {}
}

/// The state of another server behind this one, for operators. Errors may contain data of
/// callers, so the state has only their class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderState {
    /// The name in the configuration.
    pub name: String,
    /// `idle`, `no_access`, `needs_login`, `starting`, `down`, `up` or `degraded`.
    pub state: &'static str,
    /// Why a part of its lists is not offered.
    pub degraded: Option<String>,
    /// How many tools it has offered last.
    pub tools: Option<usize>,
    /// The class of its last error, such as `start` or `timeout`.
    pub last_error: Option<&'static str>,
    /// The seconds since the last error.
    pub error_seconds_ago: Option<u64>,
}

impl ProviderState {
    /// Whether a list of tools may lack those of the server.
    pub(super) fn may_lack_tools(&self) -> bool {
        match self.state {
            "down" | "degraded" => true,
            "starting" | "needs_login" | "no_access" => self.tools.is_none(),
            _ => false,
        }
    }

    /// The trouble that a client is told of.
    pub(super) fn trouble(&self) -> Value {
        let Self { name, state, degraded, last_error, .. } = self;
        let last_error = last_error.filter(|_| *state == "down").map(str::to_owned);
        let mut trouble = json!({ "name": name, "state": state });
        if let Some(problem) = degraded.clone().or(last_error) {
            trouble["problem"] = problem.into();
        }
        trouble
    }
}
