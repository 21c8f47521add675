//! Lists owners by the usage of each shard.

use larder_identity::Owner;

use super::{RedisState, unavailable};
use crate::{
    redis::unescape,
    store::{OwnerPage, StoreError},
};

impl RedisState {
    pub(super) async fn owners(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<OwnerPage, StoreError> {
        let found = self.redis.scan_names("HSCAN", "usage", after, limit).await;
        let found = found.map_err(unavailable)?;

        // `*` is the sum of all owners; the names of owners are escaped.
        let names = found.names.iter().filter(|name| *name != "*");
        let owners = names.filter_map(|name| unescape(name)).map(Owner::new).collect();
        Ok(OwnerPage { owners, next: found.next })
    }
}
