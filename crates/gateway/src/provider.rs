//! [`Upstream`]: another MCP server as a provider of the registry.

mod calling;
mod knowing;
mod logged_in;
mod reading;
mod reported;
mod telling;

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use larder_protocol::{Announcement, Fault};
use larder_server::{
    handler::{Contents, IntoToolResult, Scope, ToolError},
    registry::{
        CompletionInput, Followed, FoundTool, Instructions, ItemName, Knowledge, LoginSite, Offer,
        ProvidedTool, Provider, ProviderLogin, ProviderState, SessionClient, SessionClients,
        Subscriber, is_match,
    },
};
use larder_store::{session::SharedParts, store::ResourceUri};
use rmcp::model::{self, CallToolResult, JsonObject};
use serde_json::{Value, json};
use tokio::{sync::broadcast, time::Instant};

use self::{logged_in::ask_to_log_in, reading::Asked};
use super::{
    budget::MessageBudget,
    catalogue::Catalogue,
    connections::{Connections, InUse},
    error::UpstreamError,
    login,
    memory::Folder,
    names::Naming,
    received::{Answer, Completed, GotPrompt, RawResult},
    requests::Requests,
    settings::{Settings, Target},
    shared::Access,
    status::State,
    subscriptions::Follower,
};

/// Another MCP server, started when it is first needed.
pub struct Upstream {
    naming: Naming,
    connections: Connections,
    requests: Requests,
    /// Whether it is a server over HTTP, which can forget a session.
    is_remote: bool,
}

impl Upstream {
    /// The providers for these upstreams. `reserved` are the names of the tools
    /// of this server itself. The names of an upstream's items get a prefix if
    /// there are several upstreams.
    pub fn all<'a>(
        settings: Vec<Settings>,
        reserved: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Arc<dyn Provider>> {
        let reserved: HashSet<String> = reserved.into_iter().map(str::to_owned).collect();
        let is_prefixed = settings.len() > 1;
        let budget = Arc::default();

        let upstreams = settings.into_iter().map(|settings| {
            let reserved = reserved.clone();
            let budget = Arc::clone(&budget);
            let upstream = Self::new(settings, is_prefixed, reserved, budget, Folder::default());
            Arc::new(upstream) as Arc<dyn Provider>
        });
        upstreams.collect()
    }

    /// The provider for one upstream.
    pub(super) fn new(
        settings: Settings,
        is_prefixed: bool,
        reserved: HashSet<String>,
        budget: Arc<MessageBudget>,
        folder: Folder,
    ) -> Self {
        let naming = Naming { upstream: settings.name.clone(), is_prefixed, reserved };
        let is_remote = matches!(settings.target, Target::Remote(_));
        let connections = Connections::new(settings, naming.clone(), budget, folder);
        let requests = Requests::new(&connections.shared.settings);
        Self { naming, connections, requests, is_remote }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.connections.shared.settings
    }

    /// Whether it was made from these.
    pub(super) fn is_of(&self, settings: &Settings, is_prefixed: bool) -> bool {
        self.settings() == settings && self.naming.is_prefixed == is_prefixed
    }

    /// The offer of the upstream to the caller. Starts no process if it is known.
    ///
    /// # Errors
    /// The session's process is on another instance.
    async fn offered(&self, scope: &Scope) -> Result<Option<Arc<Catalogue>>, Fault> {
        self.connections.offered(scope).await.or_else(without_lists)
    }

    /// The caller's connection, and what the upstream offers there. Waits for an
    /// upstream that was never listed, but not for long.
    ///
    /// # Errors
    /// The session's process is on another instance.
    async fn listed(&self, scope: &Scope) -> Result<Option<(InUse, Arc<Catalogue>)>, Fault> {
        let connection = match self.connections.of(scope).await {
            Ok(connection) => connection,
            Err(error) => return without_lists(error),
        };

        let catalogue = connection.catalogue().await;
        Ok(catalogue.map(|catalogue| (connection, catalogue)))
    }

    /// Sends a request, or goes on with the one that an earlier round has begun.
    async fn request(
        &self,
        connection: &InUse,
        method: &'static str,
        params: Value,
        what: &str,
        scope: &Arc<Scope>,
    ) -> Result<RawResult, UpstreamError> {
        if let Some(resumed) = self.requests.resume(scope).await {
            return resumed;
        }

        let requests = &self.requests;
        let again = params.clone();
        let link = connection.link().await?;
        match requests.send(connection, &link, method, params, what, scope).await {
            Err(UpstreamError::NotProcessed { .. }) => {}
            Err(UpstreamError::Login(login)) => {
                if !ask_to_log_in(&login, scope).await {
                    return Err(UpstreamError::Login(login));
                }
            }
            answer => return answer,
        }

        let link = connection.link().await?;
        requests.send(connection, &link, method, again, what, scope).await
    }

    /// Reads the answer of a method.
    fn read_answer<T: Answer>(&self, method: &str, result: RawResult) -> Result<T, UpstreamError> {
        result.read().map_err(|problem| self.invalid(&format!("{method}: {problem}")))
    }

    fn invalid(&self, problem: &str) -> UpstreamError {
        let name = self.naming.upstream.as_str().into();
        UpstreamError::Invalid { name, problem: problem.to_owned() }
    }
}

/// The lists of an upstream that cannot be reached: none, unless the session must move.
fn without_lists<T>(error: UpstreamError) -> Result<Option<T>, Fault> {
    match error {
        error @ UpstreamError::OtherInstance { .. } => Err(error.into_fault()),
        error => {
            tracing::warn!(%error);
            Ok(None)
        }
    }
}

#[async_trait]
impl Provider for Upstream {
    fn state(&self) -> Option<ProviderState> {
        Some(self.reported())
    }

    /// Everything, because nothing is known before the start.
    fn offers(&self, _: Offer) -> bool {
        true
    }

    async fn tools(&self, scope: &Arc<Scope>) -> Result<Vec<Arc<ProvidedTool>>, Fault> {
        let offered = self.offered(scope).await?;
        if offered.is_none()
            && self.connections.shared.login().is_some()
            && let Some(connection) = self.connections.open_of(scope)
            && connection.login_needed().is_some()
        {
            return Ok(vec![Arc::new(self.login_tool())]);
        }

        // The tools of an upstream that is down stay listed.
        let offered = offered.or_else(|| self.connections.shared.latest.load_full());
        let tools = offered.iter().flat_map(|catalogue| &catalogue.tools);
        Ok(tools.map(|tool| Arc::clone(&tool.provided)).collect())
    }

    async fn tool(&self, name: &str, scope: &Arc<Scope>) -> Result<Option<FoundTool>, Fault> {
        if !self.naming.may_offer(name) {
            return Ok(None);
        }

        if let Some(catalogue) = self.offered(scope).await? {
            let listed = catalogue.tool(name).map(|tool| Arc::clone(&tool.provided));
            // The call says why the tools are not known.
            let unlisted = catalogue.tools_error().map(|_| FoundTool::Unlisted);
            return Ok(listed.map(FoundTool::Listed).or(unlisted));
        }

        // The call says why the upstream does not start.
        let known = self.known_tool(name).map(FoundTool::Listed);
        Ok(Some(known.unwrap_or(FoundTool::Unlisted)))
    }

    fn known_tool(&self, name: &str) -> Option<Arc<ProvidedTool>> {
        self.connections
            .known(|catalogue| catalogue.tool(name).map(|tool| Arc::clone(&tool.provided)))
    }

    fn knowledge(&self, item: ItemName<'_>) -> Knowledge {
        self.known_item(item)
    }

    fn lists_tool(&self, name: &str) -> bool {
        let is_login =
            || self.connections.shared.login().is_some() && name == self.login_tool_name();
        self.known_tool(name).is_some() || is_login()
    }

    fn offered_tool(&self, own_name: &str) -> Option<String> {
        let offered = |catalogue: &Catalogue| catalogue.offered_tool(own_name).map(str::to_owned);
        self.connections.known(offered).filter(|offered| offered != own_name)
    }

    fn offered_resource(&self, own_uri: &str) -> Option<String> {
        let offered = self.naming.offered_uri(own_uri);
        if offered == own_uri {
            return None;
        }

        self.connections.known(|catalogue| catalogue.has_resource(&offered).then_some(()))?;
        Some(offered)
    }

    async fn instructions(&self, session: &SessionClient<'_>) -> Option<Instructions> {
        self.told(session).await
    }

    async fn call_tool(
        &self,
        tool: &ProvidedTool,
        arguments: JsonObject,
        scope: Arc<Scope>,
    ) -> Result<CallToolResult, Fault> {
        self.call_unlisted(&tool.listed.name, arguments, scope).await
    }

    async fn call_unlisted(
        &self,
        name: &str,
        arguments: JsonObject,
        scope: Arc<Scope>,
    ) -> Result<CallToolResult, Fault> {
        let started = Instant::now();
        let called = self.call_logged_in(name, arguments, &scope).await;
        let called = called.map_err(UpstreamError::of_call);

        let statistics = &self.connections.shared.statistics;
        statistics.count_call(self.naming.label(), started, called.as_ref().err());

        match called {
            Ok(result) => Ok(result),
            Err(error @ (UpstreamError::Refused(_) | UpstreamError::OtherInstance { .. })) => {
                Err(error.into_fault())
            }
            Err(error) if error.is_permanent() => {
                Ok(ToolError::permanent(error.to_string()).into_tool_result())
            }
            Err(error) => Ok(ToolError::new(error.to_string()).into_tool_result()),
        }
    }

    async fn prompts(&self, scope: &Arc<Scope>) -> Result<Vec<model::Prompt>, Fault> {
        let offered = self.offered(scope).await?;
        Ok(offered.map(|catalogue| catalogue.prompts()).unwrap_or_default())
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: &JsonObject,
        scope: &Arc<Scope>,
    ) -> Option<Result<model::GetPromptResult, Fault>> {
        if !self.naming.may_offer(name) {
            return None;
        }

        let (connection, catalogue) = match self.logged_in(scope).await {
            Ok(listed) => listed?,
            Err(fault) => return Some(Err(fault)),
        };

        let own_name = catalogue.own_prompt(name)?;
        let params = json!({ "name": own_name, "arguments": arguments });
        let got = async {
            let method = "prompts/get";
            let result = self.request(&connection, method, params, own_name, scope).await?;
            let GotPrompt(mut prompt) = self.read_answer(method, result)?;
            for message in &mut prompt.messages {
                self.naming.offer_block(&mut message.content);
            }
            Ok(prompt)
        };

        Some(got.await.map_err(UpstreamError::into_fault))
    }

    async fn resources(&self, scope: &Arc<Scope>) -> Result<Vec<model::Resource>, Fault> {
        let offered = self.offered(scope).await?;
        Ok(offered.map(|catalogue| catalogue.resources()).unwrap_or_default())
    }

    async fn templates(&self, scope: &Arc<Scope>) -> Result<Vec<model::ResourceTemplate>, Fault> {
        let offered = self.offered(scope).await?;
        Ok(offered.map(|catalogue| catalogue.templates()).unwrap_or_default())
    }

    async fn read(&self, uri: &str, scope: &Arc<Scope>) -> Option<Result<Contents, Fault>> {
        // The store has already been searched for URIs that Larder names itself.
        if uri.starts_with("larder:") {
            return None;
        }

        let own = self.naming.own_uri(uri)?;
        let (connection, catalogue) = match self.logged_in(scope).await {
            Ok(listed) => listed?,
            Err(fault) => return Some(Err(fault)),
        };
        if !catalogue.has_resources() {
            return None;
        }

        let is_listed = self.naming.is_prefixed || catalogue.covers(uri);
        self.read_own(Asked { uri: &own, is_listed }, &connection, scope).await
    }

    fn has_part(&self, uri: &str, parameters: &[&str]) -> bool {
        self.connections.known(|known| known.has_part(uri, parameters).then_some(())).is_some()
    }

    async fn complete(
        &self,
        reference: &model::Reference,
        argument: &str,
        input: &CompletionInput,
        scope: &Arc<Scope>,
    ) -> Option<Result<model::CompleteResult, Fault>> {
        let (connection, catalogue) = match self.listed(scope).await {
            Ok(listed) => listed?,
            Err(fault) => return Some(Err(fault)),
        };

        let own = if let Some(name) = reference.as_prompt_name() {
            json!({ "type": "ref/prompt", "name": catalogue.own_prompt(name)? })
        } else {
            let template = reference.as_resource_uri()?;
            if !catalogue.has_template(template) {
                return None;
            }
            json!({ "type": "ref/resource", "uri": self.naming.own_uri(template)? })
        };

        let params = json!({
            "ref": own,
            "argument": { "name": argument, "value": input.value },
            "context": { "arguments": input.arguments },
        });
        let completed = async {
            let method = "completion/complete";
            let result = self.request(&connection, method, params, argument, scope).await?;
            let Completed(mut completed) = self.read_answer(method, result)?;
            self.naming.offer_meta(&mut completed.meta);
            Ok(completed)
        };

        Some(completed.await.map_err(UpstreamError::into_fault))
    }

    async fn subscribe(
        &self,
        uri: &str,
        subscriber: &Subscriber,
    ) -> Option<Result<Followed, Fault>> {
        // The store holds the resources that Larder names itself.
        if uri.starts_with("larder:") {
            return None;
        }

        let own = self.naming.own_uri(uri)?;
        let offered = ResourceUri::of_listed(uri);

        let Subscriber { identity, client, session, .. } = subscriber;
        let connection = self.connections.of_caller(identity, client, session.as_ref());
        let connection = connection.await.inspect_err(|error| tracing::warn!(%error)).ok()?;
        Some(connection.follow(own, offered, subscriber).await)
    }

    fn unsubscribe(&self, uri: &str, subscriber: &Subscriber) {
        let Subscriber { identity, client, session, .. } = subscriber;
        let (Some(own), Some(session)) = (self.naming.own_uri(uri), session) else { return };

        if let Some(connection) = self.connections.find(identity.owner(), client, session) {
            connection.subscriptions.remove(&own, &Follower::Session(Arc::clone(session)));
        }
    }

    fn announce_to(&self, changes: broadcast::Sender<Announcement>) {
        // Every call passes the same channel, so a `set` that fails changes nothing.
        let _ = self.connections.shared.changes.set(changes);
    }

    fn share_sessions(&self, parts: &SharedParts) {
        // Called once, before the first use, so `set` succeeds.
        let _ = self.connections.shared.parts.set(parts.clone());
    }

    fn exchanges_tokens(&self) -> bool {
        matches!(self.connections.shared.access, Access::Exchange(_))
    }

    fn has_logins(&self) -> bool {
        self.connections.shared.login().is_some()
    }

    fn open_logins(&self, site: &LoginSite) {
        if let Some(login) = self.connections.shared.login() {
            login.open(site);
        }
    }

    fn login(&self) -> Option<Arc<dyn ProviderLogin>> {
        login::provided(self.connections.shared.login()?)
    }

    fn reach_clients(&self, clients: Weak<dyn SessionClients>) {
        // Called once, before the first use, so `set` succeeds.
        let _ = self.connections.shared.clients.set(clients);
    }

    fn roots_changed(&self, session: &str) -> bool {
        self.connections.roots_changed(session)
    }

    fn end_session(&self, id: &str) {
        self.connections.end_session(id);
    }

    fn origin(&self) -> Option<Arc<str>> {
        Some(self.naming.upstream.as_str().into())
    }

    fn accepts(&self, origin: Option<&str>) -> bool {
        let accept = &self.connections.shared.settings.accept;
        accept.iter().any(|pattern| is_match(pattern, origin.unwrap_or("larder")))
    }

    fn is_ready(&self) -> bool {
        let is_required = self.connections.shared.settings.required;
        !is_required || !self.connections.lives().is_failing()
    }

    fn is_degraded(&self) -> bool {
        self.connections.lives().state() == State::Degraded
    }

    fn count_kept_out(&self, bytes: u64) {
        self.connections.shared.statistics.count_kept_out(bytes);
    }

    async fn retire(&self, grace: Duration) {
        let _ = tokio::time::timeout(grace, self.connections.unused()).await;
        self.close().await;
    }

    async fn close(&self) {
        self.requests.close();
        self.connections.close().await;
    }
}
