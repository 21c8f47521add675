//! How a started upstream is asked for its protocol era.
//!
//! A process is asked twice if need be, and goes on after an error: it may have to install itself
//! first, and most servers answer an unknown method with an error. Only a process that ends, or
//! that refuses `initialize` because another message came first, is started again.

use std::{sync::Arc, time::Duration};

use larder_protocol::ProtocolVersion;
use serde_json::json;

use crate::{
    era::KnownEra,
    error::UpstreamError,
    link::{Era, Link},
    received::{Capabilities, Discovered, Initialized, VersionName},
    remote_session::RemoteSession,
    wire,
};

/// How long `server/discover` is asked alone. Then `initialize` follows on the same link, for a
/// server that leaves unknown methods unanswered; a slow one finds both, and answers one of them.
const ALONE: Duration = Duration::from_secs(3);

/// The first question to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstQuestion {
    /// `server/discover`, of the modern era.
    Discover,
    /// `initialize`, of the legacy era.
    Initialize,
}

impl FirstQuestion {
    /// The question that fits what is known.
    pub(super) fn of(known: KnownEra) -> Self {
        match known {
            KnownEra::Unknown | KnownEra::Found(Era::Modern) => Self::Discover,
            KnownEra::Found(Era::Legacy) | KnownEra::Silent => Self::Initialize,
        }
    }
}

/// A link whose era is being found out.
pub(super) struct Negotiation<'a> {
    pub(super) link: &'a Arc<Link>,
    pub(super) session: &'a RemoteSession,
}

impl Negotiation<'_> {
    /// Waits for the answers that show the era. Without answers, until the link ends.
    pub(super) async fn run(
        &self,
        first: FirstQuestion,
    ) -> Result<(Era, Capabilities), UpstreamError> {
        match first {
            FirstQuestion::Discover => self.discover_first().await,
            FirstQuestion::Initialize => match self.initialize().await {
                Err(refused) if is_answer(&refused) => {
                    // The server may have been replaced by one of the other era.
                    let modern = self.discover().await?;
                    modern.map(|found| self.modern(found)).ok_or(refused)
                }
                initialized => Ok(self.legacy(initialized?).await),
            },
        }
    }

    async fn discover_first(&self) -> Result<(Era, Capabilities), UpstreamError> {
        let mut discovering = std::pin::pin!(self.discover());
        match tokio::time::timeout(ALONE, &mut discovering).await {
            Ok(Ok(Some(found))) => return Ok(self.modern(found)),
            Ok(Ok(None)) => {
                let initialized = self.initialize().await?;
                return Ok(self.legacy(initialized).await);
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => {}
        }

        let mut initializing = std::pin::pin!(self.initialize());
        let mut is_refused = false;
        let mut refusal = None;

        loop {
            tokio::select! {
                biased;
                discovered = &mut discovering, if !is_refused => match discovered? {
                    Some(found) => return Ok(self.modern(found)),
                    None => is_refused = true,
                },
                initialized = &mut initializing, if refusal.is_none() => match initialized {
                    Ok(initialized) => return Ok(self.legacy(initialized).await),
                    // A modern server has not answered the other question yet.
                    Err(error) if is_answer(&error) && !is_refused => refusal = Some(error),
                    Err(error) => return Err(error),
                },
            }

            if is_refused && let Some(refusal) = refusal {
                return Err(refusal);
            }
        }
    }

    /// The capabilities of a modern server. `None` if the server has answered that it is none.
    async fn discover(&self) -> Result<Option<Capabilities>, UpstreamError> {
        let mut params = json!({});
        wire::declare_modern(&mut params, &json!({}));

        match self.link.request_patiently("server/discover", params).await {
            Ok(Discovered { is_modern, capabilities, instructions }) => {
                self.link.set_instructions(instructions);
                Ok(is_modern.then_some(capabilities))
            }
            Err(error) if is_answer(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn initialize(&self) -> Result<Initialized, UpstreamError> {
        let params = json!({
            "protocolVersion": ProtocolVersion::LATEST_LEGACY.as_str(),
            "capabilities": self.link.client_capabilities(),
            "clientInfo": wire::client_info(),
        });
        self.link.request_patiently("initialize", params).await
    }

    fn modern(&self, found: Capabilities) -> (Era, Capabilities) {
        // A session that `initialize` has opened meanwhile belongs to the other era.
        self.session.forget();
        (Era::Modern, found)
    }

    async fn legacy(&self, initialized: Initialized) -> (Era, Capabilities) {
        let Initialized { version, capabilities, instructions } = initialized;
        self.link.set_instructions(instructions);
        self.session.negotiated(version.as_ref().map(VersionName::as_str));
        self.link.notify("notifications/initialized", &json!({})).await;
        (Era::Legacy, capabilities)
    }
}

/// Whether the upstream itself has answered so.
pub(super) fn is_answer(error: &UpstreamError) -> bool {
    let is_one = matches!(
        error,
        UpstreamError::Refused(_)
            | UpstreamError::Status(_)
            | UpstreamError::Invalid { .. }
            | UpstreamError::NoAnswer { .. }
    );
    is_one && !error.is_callers()
}
