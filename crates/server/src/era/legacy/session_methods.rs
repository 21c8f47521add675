//! The methods that the session answers itself.

use std::sync::Arc;

use larder_oauth::Identity;
use larder_protocol::{Fault, LogLevel, Method, Params};
use larder_store::{
    session::{Session, Watch},
    store::{LinkTarget, ResourceUri},
};
use serde::Deserialize;

use super::Legacy;
use crate::{dispatch::Reply, registry::Subscriber};

/// The most bytes of the name of a resource that is no URI. The session keeps the name.
const MAX_NAME_BYTES: usize = 8_000;

impl Legacy {
    /// Answers a method of the session. None for other methods.
    pub(super) async fn answer_in_session(
        &self,
        session: &Session,
        method: Method,
        params: &Params,
        identity: &Identity,
    ) -> Result<Option<Reply>, Fault> {
        #[derive(Deserialize)]
        struct SubscribeParams {
            uri: String,
        }

        let session_methods =
            [Method::Subscribe, Method::Unsubscribe, Method::SetLevel, Method::Initialize];
        if !session_methods.contains(&method) {
            return Ok(None);
        }

        self.dispatcher.authorize(method, params, identity)?;
        if method != Method::Initialize && !self.dispatcher.registry().has_handlers() {
            return Err(Fault::MethodNotFound(method.as_str().into()));
        }

        match method {
            Method::Subscribe => {
                let SubscribeParams { uri } = params.parse()?;
                self.subscribe(session, uri, identity).await?;
            }
            Method::Unsubscribe => {
                let SubscribeParams { uri } = params.parse()?;
                self.sessions.unsubscribe(session, &uri).await?;
                self.dispatcher.registry().unsubscribe(&uri, &self.subscriber(session, identity));
            }
            Method::SetLevel => {
                #[derive(Deserialize)]
                struct SetLevelParams {
                    level: LogLevel,
                }

                let SetLevelParams { level } = params.parse()?;
                self.sessions.set_log_level(session, level).await?;
            }
            Method::Initialize => {
                return Err(Fault::InvalidRequest(
                    "This session is already initialized. To begin another one, send initialize without Mcp-Session-Id.".into(),
                ));
            }
            _ => return Ok(None),
        }

        Ok(Some(Reply::Empty))
    }

    async fn subscribe(
        &self,
        session: &Session,
        uri: String,
        identity: &Identity,
    ) -> Result<(), Fault> {
        let name = ResourceUri::parse(&uri);
        let name = name.map_err(|invalid| Fault::invalid_params(invalid.to_string()));

        // A missing link is refused, because it will never exist. All links are URIs.
        let (shared, no_uri) = match name {
            Ok(link) => (self.dispatcher.store().link_target(identity, &link).await?, None),
            Err(invalid) if uri.len() > MAX_NAME_BYTES => return Err(invalid),
            Err(invalid) => (None, Some(invalid)),
        };

        self.sessions.subscribe(session, &uri).await?;
        let subscriber = self.subscriber(session, identity);
        let subscribed = self.dispatcher.registry().subscribe(&[&*uri], &subscriber).await;

        let refusal = match subscribed.refused.into_iter().next() {
            Some((_, refusal)) => {
                let is_own = self.dispatcher.has_own_resource(identity.owner(), &uri).await;
                (!is_own).then_some(refusal)
            }
            // Only servers behind this one have resources whose names are no URIs.
            None => no_uri.filter(|_| subscribed.followed.is_empty()),
        };
        if let Some(refusal) = refusal {
            self.sessions.unsubscribe(session, &uri).await?;
            return Err(refusal);
        }

        if let Some(LinkTarget { owner, uri: resource, until }) = shared {
            let watch = Watch { reader: identity.owner().clone(), link: uri };
            let ttl = until.since(self.dispatcher.store().now());
            self.sessions.watch(&owner, resource.as_str(), watch, ttl).await?;
        }
        Ok(())
    }

    fn subscriber(&self, session: &Session, identity: &Identity) -> Subscriber {
        Subscriber {
            identity: identity.clone(),
            client: Arc::clone(&session.client),
            session: Some(Arc::clone(&session.id)),
            feed: self.dispatcher.store().feed().clone(),
        }
    }
}
