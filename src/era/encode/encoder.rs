//! What an era adds to each result.

use std::{io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use rmcp::model::{MetaObject, ResultType};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    dispatch::CacheHint,
    era::Era,
    protocol::{Fault, ProtocolVersion, RequestId, SERVER_INFO},
};

/// A message on its way out: one line of JSON, whole or still being read.
pub enum Encoded {
    /// All of it.
    Whole(Bytes),
    /// Pieces of it. An error ends it before the message is complete, so that
    /// what was cut short never looks whole.
    Pieces(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>),
}

impl Encoded {
    /// All of it in one piece.
    ///
    /// # Errors
    /// When the rest of it cannot be read.
    pub async fn whole(self) -> io::Result<Bytes> {
        match self {
            Self::Whole(bytes) => Ok(bytes),
            Self::Pieces(mut pieces) => {
                let mut whole = Vec::new();
                while let Some(piece) = pieces.next().await {
                    whole.extend_from_slice(&piece?);
                }
                Ok(whole.into())
            }
        }
    }
}

/// What an era adds to a result.
#[derive(Debug, Clone)]
pub struct ResponseEncoder {
    pub(super) era: Era,
    pub(super) versions: Vec<&'static str>,
    pub(super) server: Value,
    /// What stands in a complete result that has no metadata of its own, as
    /// JSON: written once, because it is the same in every one.
    complete: Arc<str>,
}

impl ResponseEncoder {
    /// For replies of that era, from a server of that name that speaks
    /// versions up to `max`.
    pub fn new(era: Era, server: &rmcp::model::Implementation, max: ProtocolVersion) -> Self {
        // A struct of strings always serializes.
        let server = serde_json::to_value(server).unwrap_or_default();
        let complete = match era {
            Era::Legacy => String::new(),
            Era::Modern => {
                let meta = json!({ SERVER_INFO: server });
                format!(r#""resultType":"complete","_meta":{meta}"#)
            }
        };
        let versions = ProtocolVersion::names_up_to(max);
        Self { era, versions, server, complete: complete.into() }
    }

    /// Whose dress it is.
    pub fn era(&self) -> Era {
        self.era
    }

    pub(super) fn meta(&self, meta: &mut Option<MetaObject>) {
        if self.era == Era::Modern {
            let meta = meta.get_or_insert_default();
            meta.0.insert(SERVER_INFO.to_owned(), self.server.clone());
        }
    }

    /// What stands in a result before its own members, each with a comma.
    pub(super) fn members(&self, hint: CacheHint) -> String {
        if self.era != Era::Modern {
            return String::new();
        }
        let (ttl, scope) = (hint.ttl_ms, json!(hint.scope));
        format!(r#"{},"ttlMs":{ttl},"cacheScope":{scope},"#, self.complete)
    }

    pub(super) fn result_type(&self) -> Option<ResultType> {
        (self.era == Era::Modern).then_some(ResultType::COMPLETE)
    }
}

/// A response whose result is an object with neither a type nor metadata yet.
pub(super) fn dressed(
    id: &RequestId,
    result: &impl Serialize,
    encoder: &ResponseEncoder,
) -> Result<Bytes, Fault> {
    let mut json = Vec::with_capacity(SMALL);
    json.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    write_json(&mut json, id)?;
    json.extend_from_slice(br#","result":"#);
    if encoder.complete.is_empty() {
        write_json(&mut json, result)?;
    } else {
        json.push(b'{');
        json.extend_from_slice(encoder.complete.as_bytes());
        let opening = json.len();
        write_json(&mut json, result)?;
        // Its own members go on where it would begin.
        match json.get(opening + 1) {
            Some(b'}') => drop(json.remove(opening)),
            _ => json[opening] = b',',
        }
    }
    json.push(b'}');
    Ok(json.into())
}

#[derive(Serialize)]
struct Frame<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: T,
}

/// What most responses fit in.
const SMALL: usize = 512;

pub(in crate::era) fn frame(id: &RequestId, result: impl Serialize) -> Result<Bytes, Fault> {
    json_of(&Frame { jsonrpc: "2.0", id, result })
}

pub(super) fn json_of(value: &impl Serialize) -> Result<Bytes, Fault> {
    let mut json = Vec::with_capacity(SMALL);
    write_json(&mut json, value)?;
    Ok(json.into())
}

fn write_json(json: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Fault> {
    serde_json::to_writer(json, value).map_err(|error| {
        tracing::error!(%error, "a result does not serialize");
        Fault::Internal("The result could not be written as JSON.".into())
    })
}
