//! The contents of a resource that an upstream has read.

use larder_protocol::Fault;
use larder_server::handler::{Contents, ReadContent, ReceivedText, Scope, decode_base64};
use larder_store::store::{Content, StoreError};

use super::{
    error::UpstreamError,
    names::Naming,
    received::{ReadAnswer, ReceivedBody, ReceivedContent},
};

/// Why a result has no contents.
pub(super) enum NoContents {
    /// The upstream refuses, or its result is not what the protocol says.
    Upstream(UpstreamError),
    /// The store did not take a long content while it arrived.
    NotStored(StoreError),
}

impl NoContents {
    pub(super) fn into_fault(self) -> Fault {
        match self {
            Self::Upstream(error) => error.into_fault(),
            Self::NotStored(error) => error.into(),
        }
    }
}

/// The contents in an answer of `resources/read`. Long ones come from the store, where they have
/// arrived.
pub(super) async fn of_answer(
    answer: ReadAnswer,
    naming: &Naming,
    scope: &Scope,
) -> Result<Contents, NoContents> {
    let ReadAnswer { first, further, mut meta } = answer;
    if let Some(meta) = &mut meta {
        naming.offer_members(meta);
    }

    let first = of_one(first, naming, scope).await?;
    let mut others = Vec::with_capacity(further.len());
    for content in further {
        others.push(of_one(content, naming, scope).await?);
    }
    Ok(Contents::of(first, others).with_meta(meta))
}

async fn of_one(
    content: ReceivedContent,
    naming: &Naming,
    scope: &Scope,
) -> Result<ReadContent, NoContents> {
    let ReceivedContent { mut uri, mime_type, mut meta, body } = content;
    if let Some(uri) = &mut uri {
        naming.offer(uri);
    }
    if let Some(meta) = &mut meta {
        naming.offer_members(meta);
    }

    let (ReceivedBody::Text(name) | ReceivedBody::Blob(name)) = &body;
    let content = match (scope.control.take_content(name), body) {
        (Some(received), _) => stored(received, naming, scope).await?,
        (None, ReceivedBody::Text(text)) => Content::from(text),
        (None, ReceivedBody::Blob(blob)) => {
            Content::from(decode_base64(&blob).map_err(|_| not_base64(naming))?)
        }
    };

    Ok(ReadContent { uri, mime_type, meta, content })
}

/// Content that has arrived in the store.
async fn stored(
    received: ReceivedText,
    naming: &Naming,
    scope: &Scope,
) -> Result<Content, NoContents> {
    match received.upload {
        Ok(arrived) => scope.store.in_transit(arrived).await.map_err(NoContents::NotStored),
        Err(StoreError::NotAsAnnounced(_)) => Err(not_base64(naming)),
        Err(error) => Err(NoContents::NotStored(error)),
    }
}

fn not_base64(naming: &Naming) -> NoContents {
    let name = naming.upstream.as_str().into();
    let problem = "its blob is not base64".to_owned();
    NoContents::Upstream(UpstreamError::Invalid { name, problem })
}
