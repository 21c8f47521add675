//! `resources/read` of an upstream's resource.

use std::sync::Arc;

use larder_protocol::{ErrorResponse, Fault};
use larder_server::handler::{Contents, Scope};
use serde_json::json;

use super::Upstream;
use crate::{
    connections::InUse,
    content::{self, NoContents},
    error::UpstreamError,
    received::RawResult,
};

const METHOD: &str = "resources/read";

impl Upstream {
    /// Reads a resource by the upstream's own URI. `None` if there is no such resource. Long
    /// contents go to the store while they arrive. If it does not take them, they are read once
    /// more and held in memory: reading changes nothing.
    pub(super) async fn read_own(
        &self,
        uri: &str,
        connection: &InUse,
        scope: &Arc<Scope>,
    ) -> Option<Result<Contents, Fault>> {
        let params = json!({ "uri": uri });
        let read = self.request(connection, METHOD, params.clone(), uri, scope).await;
        let error = match self.contents_of(read, scope).await {
            Err(NoContents::NotStored(error)) => error,
            contents => return found(contents),
        };

        tracing::debug!(upstream = %self.naming.upstream, %error, "a resource is read again");
        scope.control.hold_contents();
        let again = async {
            let link = connection.link().await?;
            self.requests.send(connection, &link, METHOD, params, uri, scope).await
        };

        found(self.contents_of(again.await, scope).await)
    }

    async fn contents_of(
        &self,
        read: Result<RawResult, UpstreamError>,
        scope: &Scope,
    ) -> Result<Contents, NoContents> {
        let answer = read.and_then(|result| self.read_answer(METHOD, result));
        content::of_answer(answer.map_err(NoContents::Upstream)?, &self.naming, scope).await
    }
}

/// What was read. `None` if the upstream has no such resource.
fn found(contents: Result<Contents, NoContents>) -> Option<Result<Contents, Fault>> {
    match contents {
        // Not found is -32002 in the legacy era, and -32602 in the modern era.
        Err(NoContents::Upstream(UpstreamError::Refused(ErrorResponse {
            code: -32002 | -32602,
            ..
        }))) => None,
        contents => Some(contents.map_err(NoContents::into_fault)),
    }
}
