//! Methods that concern the session itself.

use serde::Deserialize;

use super::Legacy;
use crate::{
    auth::Identity,
    dispatch::Reply,
    protocol::{Fault, LogLevel, Method, Params},
    session::{Session, Watch},
    store::{ResourceUri, Shared},
};

impl Legacy {
    /// Answers what concerns the session itself.
    pub(super) async fn in_session(
        &self,
        session: &Session,
        method: Method,
        params: &Params,
        identity: &Identity,
    ) -> Result<Option<Reply>, Fault> {
        #[derive(Deserialize)]
        struct Subscribed {
            uri: String,
        }
        let mine = [Method::Subscribe, Method::Unsubscribe, Method::SetLevel, Method::Initialize];
        if !mine.contains(&method) {
            return Ok(None);
        }
        self.dispatcher.authorize(method, params, identity)?;
        match method {
            Method::Subscribe => {
                let Subscribed { uri } = params.parse()?;
                let name = ResourceUri::parse(&uri);
                let name = name.map_err(|e| Fault::invalid_params(e.to_string()))?;
                // A link that is not there will never be.
                let shared = self.dispatcher.store().leads_to(identity, &name).await?;
                self.sessions.subscribe(session, &uri).await?;
                if let Some(Shared { owner, uri: resource, until }) = shared {
                    let watch = Watch { reader: identity.owner().clone(), link: uri };
                    let lasting = until.since(self.dispatcher.store().now());
                    self.sessions.watch(&owner, resource.as_str(), watch, lasting).await?;
                }
            }
            Method::Unsubscribe => {
                let Subscribed { uri } = params.parse()?;
                self.sessions.unsubscribe(session, &uri).await?;
            }
            Method::SetLevel => {
                #[derive(Deserialize)]
                struct Level {
                    level: LogLevel,
                }
                let Level { level } = params.parse()?;
                self.sessions.set_log_level(session, level).await?;
            }
            Method::Initialize => {
                return Err(Fault::InvalidRequest(
                    "This session is initialized already; send initialize without Mcp-Session-Id to begin another.".into(),
                ));
            }
            _ => return Ok(None),
        }
        Ok(Some(Reply::Empty))
    }
}
