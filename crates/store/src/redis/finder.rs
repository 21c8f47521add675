//! [`Finder`]: finds the server to connect to, either fixed hosts or the primary that Sentinels
//! name.

use ::redis::{
    Client, RedisResult, TlsMode,
    sentinel::{Sentinel, SentinelNodeConnectionInfo},
};
use futures_util::future::select_ok;
use tokio::sync::Mutex;

use super::settings::{Address, ServerKind};

/// Finds the server before each connection, so that a reconnect after a failover reaches the new
/// primary.
pub(super) enum Finder {
    /// A single server, or several nodes of a cluster.
    Fixed(Vec<Client>),
    /// At least one Sentinel.
    Sentinels { each: Vec<Mutex<Sentinel>>, primary: String, login: SentinelNodeConnectionInfo },
}

impl Finder {
    pub(super) fn new(address: &Address) -> RedisResult<Self> {
        let nodes = address.nodes.iter().cloned();
        let ServerKind::Sentinels { primary, login } = &address.kind else {
            return Ok(Self::Fixed(nodes.map(Client::open).collect::<RedisResult<_>>()?));
        };

        let each = nodes.map(|node| Ok(Mutex::new(Sentinel::build(vec![node])?)));
        let each = each.collect::<RedisResult<_>>()?;

        let mut node = SentinelNodeConnectionInfo::default();
        node = node.set_redis_connection_info(login.clone());
        if address.is_tls() {
            node = node.set_tls_mode(TlsMode::Secure);
        }

        Ok(Self::Sentinels { each, primary: primary.clone(), login: node })
    }

    /// The servers to try, in the order of attempts.
    pub(super) async fn servers(&self) -> RedisResult<Vec<Client>> {
        match self {
            Self::Fixed(clients) => Ok(clients.clone()),
            Self::Sentinels { each, primary, login } => {
                // All Sentinels are asked at once, so that a dead one delays nothing. The client
                // checks that the server that they name is the primary.
                let queries = each.iter().map(|sentinel| {
                    Box::pin(async {
                        sentinel.lock().await.async_master_for(primary, Some(login)).await
                    })
                });

                let (client, _) = select_ok(queries).await?;
                Ok(vec![client])
            }
        }
    }
}
