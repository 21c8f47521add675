//! An in-process client of a server, for its tests: [`test()`].

mod answers;
mod connection;
mod reply;

use std::future::IntoFuture;

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use self::reply::{ProgressNote, PromptReply, ResourceReply, TestError, ToolReply};
use self::{
    answers::Answers,
    connection::{Connection, Response},
};
use crate::server::{Running, Server, ServerError};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// Starts a server in this process, and connects a client to it.
///
/// ```
/// use larder::prelude::*;
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: f64, b: f64) -> Sum {
///     Sum { sum: a + b }
/// }
///
/// #[larder::data]
/// struct Sum {
///     sum: f64,
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let client = larder::test(larder::server("calculator").tool(add)).await;
/// let reply = client.call("add", json!({ "a": 1, "b": 2 })).await?;
/// assert_eq!(reply.structured::<Sum>().sum, 3.0);
/// # Ok::<(), larder::TestError>(()) }).unwrap();
/// ```
///
/// The client speaks 2026-07-28, or with [`Test::legacy`] 2025-11-25 in a session. What the
/// server asks it is answered by [`Test::on_form`], [`Test::on_sampling`] and
/// [`Test::roots`]; it declares only what it can answer.
pub fn test<S: Send + Sync + 'static>(server: Server<S>) -> Test {
    Test { server: server.start().boxed(), is_legacy: false, answers: Answers::default() }
}

/// A client that is being set up. Await it.
#[must_use = "nothing starts until it is awaited"]
pub struct Test {
    server: BoxFuture<'static, Result<Running, ServerError>>,
    is_legacy: bool,
    answers: Answers,
}

impl Test {
    /// Speaks 2025-11-25, in a session.
    pub fn legacy(mut self) -> Self {
        self.is_legacy = true;
        self
    }

    /// Fills in forms: the function gets the parameters of `elicitation/create`, and returns
    /// the content, or `None` to decline.
    pub fn on_form(
        mut self,
        fill: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        self.answers.form = Some(Box::new(fill));
        self
    }

    /// Answers `sampling/createMessage` with a text.
    pub fn on_sampling(
        mut self,
        answer: impl Fn(&Value) -> String + Send + Sync + 'static,
    ) -> Self {
        self.answers.sampling = Some(Box::new(answer));
        self
    }

    /// Has these roots, URIs of directories.
    pub fn roots(mut self, uris: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.answers.roots = Some(uris.into_iter().map(Into::into).collect());
        self
    }
}

impl IntoFuture for Test {
    type Output = TestClient;
    type IntoFuture = BoxFuture<'static, TestClient>;

    /// # Panics
    /// If the server does not start.
    fn into_future(self) -> Self::IntoFuture {
        async move {
            let running = self.server.await;
            let running =
                running.unwrap_or_else(|error| panic!("the server does not start: {error}"));

            let client = TestClient {
                capabilities: self.answers.capabilities(),
                connection: Connection::new(running, self.answers),
                is_legacy: self.is_legacy,
            };

            client.initialize().await;
            client
        }
        .boxed()
    }
}

/// A client of a server in this process. The server ends when it is dropped.
pub struct TestClient {
    connection: Connection,
    capabilities: Value,
    is_legacy: bool,
}

impl TestClient {
    /// Calls a tool. An error of the tool is an error here, with its text.
    ///
    /// # Errors
    /// The tool's error, or the protocol's.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolReply, TestError> {
        let params = json!({ "name": tool, "arguments": arguments });
        let reply = self.request("tools/call", params).await?;
        ToolReply::new(reply.result, reply.progress)
    }

    /// Gets a prompt.
    ///
    /// # Errors
    /// The protocol's error.
    pub async fn prompt(&self, name: &str, arguments: Value) -> Result<PromptReply, TestError> {
        let params = json!({ "name": name, "arguments": arguments });
        PromptReply::new(self.request("prompts/get", params).await?.result)
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// The protocol's error.
    pub async fn read(&self, uri: &str) -> Result<ResourceReply, TestError> {
        let reply = self.request("resources/read", json!({ "uri": uri })).await?;
        Ok(ResourceReply::new(reply.result))
    }

    /// All tools.
    ///
    /// # Errors
    /// The protocol's error.
    pub async fn tools(&self) -> Result<Vec<model::Tool>, TestError> {
        self.list("tools/list", "tools").await
    }

    /// All prompts.
    ///
    /// # Errors
    /// The protocol's error.
    pub async fn prompts(&self) -> Result<Vec<model::Prompt>, TestError> {
        self.list("prompts/list", "prompts").await
    }

    /// All resources.
    ///
    /// # Errors
    /// The protocol's error.
    pub async fn resources(&self) -> Result<Vec<model::Resource>, TestError> {
        self.list("resources/list", "resources").await
    }

    /// All resource templates.
    ///
    /// # Errors
    /// The protocol's error.
    pub async fn templates(&self) -> Result<Vec<model::ResourceTemplate>, TestError> {
        self.list("resources/templates/list", "resourceTemplates").await
    }

    async fn list<T: DeserializeOwned>(
        &self,
        method: &str,
        member: &str,
    ) -> Result<Vec<T>, TestError> {
        let mut all = Vec::new();
        let mut params = json!({});

        loop {
            let mut result = self.request(method, params).await?.result;
            let page: Vec<T> = reply::parse(result[member].take())?;
            all.extend(page);

            match result["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(all),
            }
        }
    }

    /// Sends a request, and answers what the server asks before it is done.
    ///
    /// # Errors
    /// The protocol's error.
    async fn request(&self, method: &str, params: Value) -> Result<Response, TestError> {
        let mut sent = params.clone();
        let mut progress = Vec::new();

        loop {
            self.add_metadata(&mut sent);
            let mut exchange = self.connection.request(method, sent).await?;
            progress.append(&mut exchange.progress);
            if exchange.result["resultType"] != "input_required" {
                return Ok(Response { result: exchange.result, progress });
            }

            let answers = self.connection.answers().all(&exchange.result["inputRequests"])?;
            sent = params.clone();
            sent["inputResponses"] = answers;
            sent["requestState"] = exchange.result["requestState"].take();
        }
    }

    fn add_metadata(&self, params: &mut Value) {
        if !self.is_legacy {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
    }

    async fn initialize(&self) {
        if !self.is_legacy {
            return;
        }

        let params = json!({
            "protocolVersion": LEGACY,
            "clientInfo": { "name": "test", "version": "1" },
            "capabilities": self.capabilities,
        });

        let initialized = self.connection.request("initialize", params).await;
        initialized.unwrap_or_else(|error| panic!("the server refuses the client: {error}"));
        self.connection.notify("notifications/initialized").await;
    }
}
