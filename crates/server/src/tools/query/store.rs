//! `into`: a result becomes a resource of the caller.

use std::{io, sync::Arc, time::Duration};

use futures_util::stream;
use larder_query::{Answer, Engine, Queries, Question, ResultFormat};
use larder_store::store::{Content, Details, Entry, StoredResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::tool_error;
use crate::handler::{Context, ToolError};

/// How many parts of the result may wait for the store.
const WAITING_PARTS: usize = 4;

/// The place and form of a stored result.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Into {
    /// The URI to store it under, which is overwritten. If omitted, the server
    /// makes one that cannot be guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    /// A short name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The time to live in seconds. One day by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    ttl: Option<u64>,
    /// By default csv for sql, and ndjson for jq.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<Stored>,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Stored {
    Ndjson,
    Csv,
    Json,
}

impl Into {
    pub(super) fn format(&self, engine: Engine) -> ResultFormat {
        match (self.format, engine) {
            (Some(Stored::Ndjson), _) | (None, Engine::Jq { .. }) => ResultFormat::Ndjson,
            (Some(Stored::Csv), _) | (None, Engine::Sql) => ResultFormat::Csv,
            (Some(Stored::Json), _) => ResultFormat::Json,
        }
    }
}

/// Runs the query, and stores its result as it arrives. A query that fails stores nothing.
pub(super) async fn ask<S>(
    ctx: &Context<S>,
    queries: &Queries,
    question: &Question,
    contents: &[StoredResource],
    into: &Into,
) -> Result<(Answer, Arc<Entry>), ToolError> {
    let (sender, receiver) = mpsc::channel(WAITING_PARTS);
    let parts = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|part| (part, receiver))
    });

    let mime_type = match question.store {
        Some(ResultFormat::Csv) => "text/csv",
        Some(ResultFormat::Json) => "application/json",
        _ => "application/x-ndjson",
    };
    let details = Details {
        name: into.name.clone(),
        mime_type: Some(mime_type.into()),
        ttl: into.ttl.map(Duration::from_secs),
        ..Details::default()
    };

    let uri = into.uri.clone().unwrap_or_else(|| ctx.mint_uri());
    let storing = ctx.create_resource(uri, Content::text_stream(parts)).details(details);

    let asking = async {
        let owner = ctx.identity().owner();
        let answer = queries.ask(owner, question, contents, Some(&sender)).await;
        if answer.is_err() {
            // The upload must not be committed.
            let _ = sender.send(Err(io::Error::other("the query failed"))).await;
        }
        drop(sender);
        answer
    };

    let (answer, stored) = tokio::join!(asking, storing);
    match (answer, stored) {
        (Ok(answer), Ok(entry)) => Ok((answer, entry)),
        (Err(error), Err(stored)) if is_of_query(&stored) => Err(tool_error(&error)),
        (_, Err(error)) => Err(error.into()),
        (Err(error), Ok(_)) => Err(tool_error(&error)),
    }
}

/// Whether the upload failed because the query did.
fn is_of_query(error: &larder_store::store::StoreError) -> bool {
    matches!(error, larder_store::store::StoreError::Input { .. })
}
