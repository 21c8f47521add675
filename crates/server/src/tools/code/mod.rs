//! `run_code`

mod consent;
mod console;
mod handles;
mod ledger;
mod outcome;
mod run;
mod signature;
mod tool_calls;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use larder_query::Scripts;
use larder_store::store::{Details, Entry, StoreError};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

pub(super) use self::signature::signature;

/// The name of the tool, which code cannot call.
pub(super) const NAME: &str = "run_code";

/// The longest stored code, in bytes.
const MAX_CODE_BYTES: u64 = 1 << 20;

/// The rule for tools that do not say that they only read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodeWrites {
    /// The user of the host is asked once for each run. Where nobody can be asked, code cannot call
    /// them.
    #[default]
    Ask,
    /// Code calls them.
    Allow,
}

/// Options of `run_code`.
#[derive(Debug, Clone)]
pub struct Coding {
    /// The workers of the code.
    pub scripts: Arc<Scripts>,
    /// The rule for tools that do not say that they only read.
    pub writes: CodeWrites,
    /// Whether code can store values.
    pub may_store: bool,
    /// The most bytes of stored content that the arguments of one call may refer to.
    pub ref_bytes: u64,
}

/// Runs JavaScript, the body of an async function; returns its value. Tools are functions: await
/// server.tool({…}) or call("tool", {…}); Promise.all works. A large result is a handle {uri, size}
/// with .jq(filter) .sql("… FROM t") .records({offset, limit}) .lines .text .search(regex) .value(),
/// and an argument for any tool. larder.open(uri), larder.sql({a: handle, b: handle}, "…"),
/// larder.store(value, {uri?, name?, ttl?}). Return little; console.log is shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunCode {
    /// const rows = await larder.open(uri).then(h => h.jq(".[].id")); return rows.length
    #[serde(default)]
    code: Option<String>,
    /// In place of code: that of stored code.
    #[serde(default)]
    uri: Option<String>,
    /// {name: URI}: handles inputs.name.
    #[serde(default)]
    inputs: BTreeMap<String, String>,
    /// Stores the value: {uri?, name?, ttl?}.
    #[serde(default)]
    #[schemars(extend("x-larder-listed" = { "type": "object" }))]
    into: Option<ValuePlace>,
    /// The most time.
    #[serde(default)]
    #[schemars(range(min = 1))]
    seconds: Option<u64>,
}

/// The place of a value that code stores or returns.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ValuePlace {
    /// The URI; the server makes one that cannot be guessed if it is left out.
    #[serde(default)]
    uri: Option<String>,
    /// A short name.
    #[serde(default)]
    name: Option<String>,
    /// The time to live in seconds.
    #[serde(default)]
    #[schemars(range(min = 1))]
    ttl: Option<u64>,
}

impl ValuePlace {
    /// Stores a value there.
    ///
    /// # Errors
    /// The store's error.
    async fn store(self, ctx: &Context<()>, json: &str) -> Result<Arc<Entry>, StoreError> {
        let details = Details {
            name: self.name,
            ttl: self.ttl.map(Duration::from_secs),
            session: ctx.scope().session.clone(),
            ..Details::default()
        };
        let uri = self.uri.unwrap_or_else(|| ctx.mint_uri());
        outcome::store(ctx, uri, json, details).await
    }
}

pub(super) fn tool<S: Send + Sync + 'static>(coding: Coding) -> Tool<S> {
    let coding = Arc::new(coding);
    Tool::new(move |ctx: Context<S>, args: RunCode| {
        let coding = Arc::clone(&coding);
        async move { run_code(&ctx.without_state(), args, &coding).await }
    })
    .name(NAME)
}

async fn run_code(
    ctx: &Context<()>,
    args: RunCode,
    coding: &Coding,
) -> Result<CallToolResult, ToolError> {
    let code = match (args.code, &args.uri) {
        (Some(code), None) => code,
        (None, Some(uri)) => stored_code(ctx, uri).await?,
        _ => return Err(ToolError::new("Give exactly one of code and uri.")),
    };
    if args.into.is_some() {
        super::query::check_may_store(ctx, coding.may_store)?;
    }

    let inputs = handles::inputs(ctx, args.inputs).await?;
    let run = run::Run::new(ctx, coding, &code).await?;
    run.finish(code, inputs, args.seconds, args.into).await
}

/// The code that a resource has.
async fn stored_code(ctx: &Context<()>, uri: &str) -> Result<String, ToolError> {
    let found = handles::found(ctx, uri).await?;
    let text = handles::whole_text(ctx, found, MAX_CODE_BYTES).await?;
    text.ok_or_else(|| ToolError::new(format!("The code has more than {MAX_CODE_BYTES} bytes.")))
}
