//! The encoder of an era, and encoded messages.

use std::{io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use larder_protocol::{Fault, ProtocolVersion, RequestId, SERVER_INFO};
use larder_runtime::held::{Held, HeldBytes};
use rmcp::model::{MetaObject, ResultType};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    dispatch::{CacheHint, Traffic},
    era::Era,
};

/// An encoded message: one line of JSON, complete or as a stream.
pub enum Encoded {
    /// The complete message.
    Complete(Bytes),
    /// The message in chunks. An error ends the stream before the message is complete, so a
    /// truncated message is never valid.
    Chunks(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>),
}

impl Encoded {
    /// The message, which holds this memory until all of its bytes are sent or dropped.
    pub(super) fn holding(self, held: Held) -> Self {
        if held.is_empty() {
            return self;
        }

        match self {
            Self::Complete(bytes) => Self::Complete(HeldBytes::new(bytes, held).into_bytes()),
            Self::Chunks(chunks) => {
                let held = Arc::new(held);
                let chunks = chunks.map_ok(move |chunk| HeldBytes::part(chunk, &held).into_bytes());
                Self::Chunks(chunks.boxed())
            }
        }
    }

    /// Collects the message.
    ///
    /// # Errors
    /// The rest of the message cannot be read.
    pub async fn into_bytes(self) -> io::Result<Bytes> {
        match self {
            Self::Complete(bytes) => Ok(bytes),
            Self::Chunks(mut chunks) => {
                let mut message = Vec::new();
                while let Some(chunk) = chunks.next().await {
                    message.extend_from_slice(&chunk?);
                }
                Ok(message.into())
            }
        }
    }
}

/// Adds the members that a protocol era requires to results.
#[derive(Debug, Clone)]
pub struct ResponseEncoder {
    pub(super) era: Era,
    pub(super) versions: Vec<&'static str>,
    pub(super) server: Value,
    /// The members of a complete result that has no metadata of its own, as JSON. Cached
    /// because they are the same in all results.
    complete_members: Arc<str>,
    traffic: Arc<Traffic>,
}

impl ResponseEncoder {
    /// Creates an encoder for an era. `server` is the server's identity, `max` its latest
    /// protocol version; `traffic` counts the results of tools.
    pub fn new(
        era: Era,
        server: &rmcp::model::Implementation,
        max: ProtocolVersion,
        traffic: Arc<Traffic>,
    ) -> Self {
        // A struct of strings always serializes.
        let server = serde_json::to_value(server).unwrap_or_default();

        let complete_members = match era {
            Era::Legacy => String::new(),
            Era::Modern => {
                let meta = json!({ SERVER_INFO: server });
                format!(r#""resultType":"complete","_meta":{meta}"#)
            }
        };

        let versions = ProtocolVersion::names_up_to(max);
        Self { era, versions, server, complete_members: complete_members.into(), traffic }
    }

    /// The era of the replies.
    pub fn era(&self) -> Era {
        self.era
    }

    pub(super) fn add_server_info(&self, meta: &mut Option<MetaObject>) {
        if self.era == Era::Modern {
            let meta = meta.get_or_insert_default();
            meta.0.insert(SERVER_INFO.to_owned(), self.server.clone());
        }
    }

    /// The members that precede a result's own, each with a trailing comma. `meta` is the metadata
    /// of the result itself.
    pub(super) fn leading_members(
        &self,
        hint: CacheHint,
        meta: Option<MetaObject>,
    ) -> Result<String, Fault> {
        let mut members = match meta {
            None => self.complete_members.to_string(),
            mut meta => {
                self.add_server_info(&mut meta);
                let meta = String::from_utf8_lossy(&to_json(&meta)?).into_owned();
                let result_type = match self.era {
                    Era::Legacy => "",
                    Era::Modern => r#""resultType":"complete","#,
                };
                format!(r#"{result_type}"_meta":{meta}"#)
            }
        };

        if self.era == Era::Modern {
            let ttl = hint.ttl_ms;
            let scope = json!(hint.scope);
            members += &format!(r#","ttlMs":{ttl},"cacheScope":{scope}"#);
        }
        if !members.is_empty() {
            members.push(',');
        }
        Ok(members)
    }

    /// Counts a message with the result of a tool, as it is sent.
    pub(super) fn count_returned(&self, message: Encoded) -> Encoded {
        match message {
            Encoded::Complete(bytes) => {
                self.traffic.add_returned(bytes.len());
                Encoded::Complete(bytes)
            }
            Encoded::Chunks(chunks) => {
                let traffic = Arc::clone(&self.traffic);
                let counted = chunks.inspect_ok(move |chunk| traffic.add_returned(chunk.len()));
                Encoded::Chunks(counted.boxed())
            }
        }
    }

    pub(super) fn result_type(&self) -> Option<ResultType> {
        (self.era == Era::Modern).then_some(ResultType::COMPLETE)
    }
}

/// Encodes a response whose result is an object with neither a result type nor metadata.
pub(super) fn response(
    id: &RequestId,
    result: &impl Serialize,
    encoder: &ResponseEncoder,
) -> Result<Bytes, Fault> {
    let mut json = Vec::with_capacity(INITIAL_CAPACITY);
    json.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    write_json(&mut json, id)?;
    json.extend_from_slice(br#","result":"#);

    if encoder.complete_members.is_empty() {
        write_json(&mut json, result)?;
    } else {
        json.push(b'{');
        json.extend_from_slice(encoder.complete_members.as_bytes());
        let brace = json.len();
        write_json(&mut json, result)?;
        // Replaces the opening brace, so that the result's own members follow.
        match json.get(brace + 1) {
            Some(b'}') => drop(json.remove(brace)),
            _ => json[brace] = b',',
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

/// Initial capacity for a response, in bytes. Most responses fit.
const INITIAL_CAPACITY: usize = 512;

pub(in crate::era) fn frame(id: &RequestId, result: impl Serialize) -> Result<Bytes, Fault> {
    to_json(&Frame { jsonrpc: "2.0", id, result })
}

pub(super) fn to_json(value: &impl Serialize) -> Result<Bytes, Fault> {
    let mut json = Vec::with_capacity(INITIAL_CAPACITY);
    write_json(&mut json, value)?;
    Ok(json.into())
}

fn write_json(json: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Fault> {
    serde_json::to_writer(json, value).map_err(|error| {
        tracing::error!(%error, "a result cannot be encoded as JSON");
        Fault::Internal("The result cannot be encoded as JSON.".into())
    })
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use larder_runtime::held::Counted;

    /// Memory of a result, which lives as long as it counts.
    struct Memory(#[allow(dead_code, reason = "it is counted")] Arc<()>);

    impl Counted for Memory {
        fn bytes(&self) -> usize {
            1
        }

        fn shrink(&mut self, _: usize) {}
    }

    #[tokio::test]
    async fn a_message_in_chunks_counts_until_its_last_chunk_is_dropped() {
        let counts = Arc::new(());
        let mut held = Held::default();
        held.add(Box::new(Memory(Arc::clone(&counts))));
        let chunks = ["a", "b"].map(|chunk| Ok(Bytes::from_static(chunk.as_bytes())));

        let message = Encoded::Chunks(stream::iter(chunks).boxed()).holding(held);
        let Encoded::Chunks(mut chunks) = message else { panic!("it has chunks") };
        drop(chunks.next().await);
        let last = chunks.next().await;
        drop(chunks);

        assert_eq!(Arc::strong_count(&counts), 2);
        drop(last);
        assert_eq!(Arc::strong_count(&counts), 1);
    }
}
