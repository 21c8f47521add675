//! Lists owners by the usage of each shard.

use super::{Inner, unavailable};
use crate::{
    auth::Owner,
    redis::{cmd, unescape},
    store::{OwnerPage, StoreError},
};

impl Inner {
    /// A page begins at `<shard>:<cursor of HSCAN>`.
    pub(super) async fn owners(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<OwnerPage, StoreError> {
        let (first, cursor) = after.and_then(|after| after.split_once(':')).unwrap_or(("0", "0"));
        let first: usize = first.parse().unwrap_or_default();
        let mut cursor = cursor.to_owned();
        let mut owners = Vec::new();
        for (number, shard) in self.redis.keys().shards().enumerate().skip(first) {
            loop {
                if owners.len() >= limit.max(1) {
                    return Ok(OwnerPage { owners, next: Some(format!("{number}:{cursor}")) });
                }
                let mut scan = cmd("HSCAN");
                scan.arg(shard.single("usage")).arg(&cursor).arg("COUNT").arg(limit.max(1));
                let (next, found): (String, Vec<(String, String)>) =
                    self.redis.query(&scan).await.map_err(unavailable)?;
                // `*` is the sum of all owners.
                let names = found.iter().filter(|(name, _)| name != "*");
                owners.extend(names.filter_map(|(name, _)| unescape(name)).map(Owner::new));
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(OwnerPage { owners, next: None })
    }
}
