//! Where the server is: at a fixed host, or where Sentinels say that it is now.

use ::redis::{
    Client, RedisResult, TlsMode,
    sentinel::{Sentinel, SentinelNodeConnectionInfo},
};
use futures_util::future::select_ok;
use tokio::sync::Mutex;

use super::settings::{Kind, Place};

/// Asked anew before each connection, so that a connection that is lost with
/// its server is followed by one to whoever has taken over.
pub(super) enum Finder {
    /// A server, or some of a cluster.
    Fixed(Vec<Client>),
    /// One at least.
    Sentinels { each: Vec<Mutex<Sentinel>>, primary: String, login: SentinelNodeConnectionInfo },
}

impl Finder {
    pub(super) fn new(place: &Place) -> RedisResult<Self> {
        let nodes = place.nodes.iter().cloned();
        let Kind::Sentinels { primary, login } = &place.kind else {
            return Ok(Self::Fixed(nodes.map(Client::open).collect::<RedisResult<_>>()?));
        };
        let each = nodes.map(|node| Ok(Mutex::new(Sentinel::build(vec![node])?)));
        let each = each.collect::<RedisResult<_>>()?;
        let mut node = SentinelNodeConnectionInfo::default();
        node = node.set_redis_connection_info(login.clone());
        if place.is_tls() {
            node = node.set_tls_mode(TlsMode::Secure);
        }
        Ok(Self::Sentinels { each, primary: primary.clone(), login: node })
    }

    /// Those of which any will do.
    pub(super) async fn servers(&self) -> RedisResult<Vec<Client>> {
        match self {
            Self::Fixed(clients) => Ok(clients.clone()),
            Self::Sentinels { each, primary, login } => {
                // All at once, so that one that is gone for good holds up nobody. What one
                // names has itself said that it is the primary.
                let asked = each.iter().map(|sentinel| {
                    Box::pin(async {
                        sentinel.lock().await.async_master_for(primary, Some(login)).await
                    })
                });
                let (client, _) = select_ok(asked).await?;
                Ok(vec![client])
            }
        }
    }
}
