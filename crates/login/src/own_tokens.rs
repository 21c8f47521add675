//! The server as the issuer of the access tokens that it checks itself, without a request.

use async_trait::async_trait;
use larder_oauth::{OwnSession, OwnTokens};

use super::{
    LoginServer,
    records::{Grant, Records},
};

#[async_trait]
impl OwnTokens for LoginServer {
    async fn jwk_set(&self) -> Result<Vec<u8>, String> {
        let keys = self.keys.public().await.map_err(|error| error.to_string())?;
        Ok(keys.to_string().into_bytes())
    }

    async fn session(&self, id: &str) -> Result<Option<OwnSession>, String> {
        let found = self.records.read::<Grant>(&Records::grant(id)).await;
        let found = found.map_err(|problem| problem.to_string())?;
        Ok(found.map(|found| {
            let Grant { user, client, .. } = found.value;
            OwnSession {
                principal: user.principal(),
                groups: user.person.groups,
                client: client.label,
            }
        }))
    }
}
