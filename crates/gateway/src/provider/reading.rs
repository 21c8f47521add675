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
    link::Era,
    received::RawResult,
};

const METHOD: &str = "resources/read";

/// A resource that is asked for.
pub(super) struct Asked<'a> {
    /// The upstream's own URI.
    pub(super) uri: &'a str,
    /// Whether the upstream lists it, or no other server can have it.
    pub(super) is_listed: bool,
}

impl Upstream {
    /// Reads a resource by the upstream's own URI. `None` if there is no such resource, and the
    /// upstream does not list it either: it may be another server's. Long contents go
    /// to the store while they arrive. If it does not take them, they are read once more and held
    /// in memory: reading changes nothing.
    pub(super) async fn read_own(
        &self,
        asked: Asked<'_>,
        connection: &InUse,
        scope: &Arc<Scope>,
    ) -> Option<Result<Contents, Fault>> {
        let uri = asked.uri;
        let params = json!({ "uri": uri });
        let read = self.request(connection, METHOD, params.clone(), uri, scope).await;
        let error = match self.contents_of(read, scope).await {
            Err(NoContents::NotStored(error)) => error,
            contents => return found(contents, &asked, connection).await,
        };

        tracing::debug!(upstream = %self.naming.upstream, %error, "a resource is read again");
        scope.control.hold_contents();
        let again = async {
            let link = connection.link().await?;
            self.requests.send(connection, &link, METHOD, params, uri, scope).await
        };

        found(self.contents_of(again.await, scope).await, &asked, connection).await
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

/// The contents that were read. `None` if the upstream has no such resource, and does not list it.
async fn found(
    contents: Result<Contents, NoContents>,
    asked: &Asked<'_>,
    connection: &InUse,
) -> Option<Result<Contents, Fault>> {
    if let Err(NoContents::Upstream(UpstreamError::Refused(error))) = &contents
        && !asked.is_listed
    {
        let era = connection.link().await.ok().and_then(|link| link.era());
        if is_not_found(error, era, asked.uri) {
            return None;
        }
    }

    Some(contents.map_err(NoContents::into_fault))
}

/// Whether an error means that there is no such resource: -32002 in the legacy era, and -32602 in
/// the modern era. Some legacy servers send -32602 with a message that names the resource, and
/// other errors of parameters with the same code.
fn is_not_found(error: &ErrorResponse, era: Option<Era>, uri: &str) -> bool {
    match error.code {
        -32002 => true,
        -32602 => era == Some(Era::Modern) || (error.data.is_none() && error.message.contains(uri)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_era_has_its_own_code_for_a_resource_that_does_not_exist() {
        let named = "Resource a:b not found";
        for (code, era, message, data, is_missing) in [
            (-32002, Era::Legacy, "no", None, true),
            (-32002, Era::Modern, "no", Some(json!(1)), true),
            (-32602, Era::Modern, "no", Some(json!(1)), true),
            (-32602, Era::Legacy, named, None, true),
            (-32602, Era::Legacy, named, Some(json!(1)), false),
            (-32602, Era::Legacy, "locked by Bob", None, false),
            (-32603, Era::Modern, named, None, false),
            (0, Era::Legacy, named, None, false),
        ] {
            let error = ErrorResponse { code, message: message.into(), data };
            assert_eq!(is_not_found(&error, Some(era), "a:b"), is_missing, "{era:?} {error:?}");
        }
    }
}
