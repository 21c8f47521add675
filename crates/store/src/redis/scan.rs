//! Lists the names in a hash or a sorted set of each shard, in pages.

use super::{Redis, RedisError, Shard, cmd};

/// A page of names, as stored.
pub(crate) struct NamePage {
    /// About as many names as requested; a name may appear more than once.
    pub(crate) names: Vec<String>,
    /// The cursor of the next page, as `<shard>:<cursor>`; `None` after the last page.
    pub(crate) next: Option<String>,
}

impl Redis {
    /// A page of about `limit` names in the key `key` of all shards. `scan` is `HSCAN` or `ZSCAN`,
    /// `after` is [`NamePage::next`] of the previous page.
    pub(crate) async fn scan_names(
        &self,
        scan: &str,
        key: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<NamePage, RedisError> {
        let (first, cursor) = after.and_then(|after| after.split_once(':')).unwrap_or(("0", "0"));
        let first: usize = first.parse().unwrap_or_default();

        let mut cursor = cursor.to_owned();
        let mut names = Vec::new();

        for (number, shard) in self.keys().shards().enumerate().skip(first) {
            loop {
                if names.len() >= limit.max(1) {
                    return Ok(NamePage { names, next: Some(format!("{number}:{cursor}")) });
                }

                let found;
                (cursor, found) = self.scan_shard(scan, key, &shard, &cursor, limit).await?;
                names.extend(found);

                if cursor == "0" {
                    break;
                }
            }
        }

        Ok(NamePage { names, next: None })
    }

    /// Scans one step of a shard. Returns the next cursor, and about `limit` names. The cursor is
    /// `0` before the first step and after the last one.
    pub(crate) async fn scan_shard(
        &self,
        scan: &str,
        key: &str,
        shard: &Shard,
        cursor: &str,
        limit: usize,
    ) -> Result<(String, Vec<String>), RedisError> {
        let mut scan = cmd(scan);
        scan.arg(shard.single(key)).arg(cursor).arg("COUNT").arg(limit.max(1));

        let (next, found): (String, Vec<(String, String)>) = self.query(&scan).await?;
        Ok((next, found.into_iter().map(|(name, _)| name).collect()))
    }
}
