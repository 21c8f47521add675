//! The instructions of an upstream, for models.

use std::time::Duration;

use larder_server::registry::{Instructions, SessionClient};
use tokio::time::timeout;

use super::Upstream;
use crate::catalogue::Catalogue;

/// How long the start of a session waits for an upstream that was never listed.
const WAIT: Duration = Duration::from_secs(2);

impl Upstream {
    /// The instructions of the upstream, as far as they are known. The only upstream is started for
    /// them: the client lists its tools next. Of several, a slow one would hold up the others.
    pub(super) async fn told(&self, session: &SessionClient<'_>) -> Option<Instructions> {
        let latest = self.connections.shared.latest.load_full();
        let catalogue = match latest {
            Some(catalogue) => catalogue,
            None if self.naming.is_prefixed => return None,
            None => {
                let SessionClient { identity, client, session } = session;
                let declared = self.connections.declared(identity, client, *session);
                if let Some(remembered) = self.connections.shared.recall(&declared).await {
                    return self.instructions_of(&remembered);
                }
                // An upstream may ask for roots as soon as it runs, and no client can be asked
                // before its session has begun.
                if declared.get("roots").is_some() {
                    return None;
                }

                let listed = async {
                    let connection = self.connections.of_caller(identity, client, *session);
                    let connection = connection.await.ok()?;
                    connection.catalogue().await
                };
                timeout(WAIT, listed).await.ok()??
            }
        };

        self.instructions_of(&catalogue)
    }

    fn instructions_of(&self, catalogue: &Catalogue) -> Option<Instructions> {
        let text = catalogue.instructions.clone()?;
        let name = self.naming.is_prefixed.then(|| self.naming.upstream.clone());
        Some(Instructions { name, text })
    }
}
