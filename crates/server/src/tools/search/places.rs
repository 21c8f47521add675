//! The records and JSON Pointers of matches.

use std::collections::HashMap;

use futures_util::StreamExt;
use larder_oauth::Owner;
use larder_records::{Layout, Location, Locator, Pointer};
use larder_runtime::compute::Compute;
use larder_store::store::{BLOCK_BYTES, StoreError, StoredResource};

/// Longer JSON Pointers are left out, in bytes.
pub(super) const POINTER_BYTES: usize = 200;

/// The locations of bytes in structured content, by their offsets.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The layout of the content, if it has records.
    pub(super) layout: Option<Layout>,
    /// The pointer to the records of JSON that `read_resource` gives by default, if it is known.
    pub(super) records: Option<Pointer>,
    locations: HashMap<u64, Location>,
}

impl Places {
    /// Locates these bytes, which are in ascending order: reads the content up to
    /// the last of them, and to the end of the first record if it has at most `longest` bytes.
    /// Content without records has no locations.
    pub(super) async fn find(
        caller: &Owner,
        found: &StoredResource,
        offsets: Vec<u64>,
        longest: usize,
    ) -> Result<Self, StoreError> {
        if offsets.is_empty() {
            return Ok(Self::default());
        }

        let Some(layout) = found.layout().await? else { return Ok(Self::default()) };
        let mut locator = Locator::new(layout, offsets.clone()).with_extent(longest as u64);
        let records = records_at(caller, found, layout).await;
        if let Some(at) = &records {
            locator = locator.with_records(at.clone());
        }

        let all = std::iter::once(0..found.entry.blocks.len()).collect();
        let mut blocks = std::pin::pin!(found.map_blocks(caller, all, false, |block, _| block));
        while !locator.is_done()
            && let Some(block) = blocks.next().await
        {
            let (_, block) = block?;

            let scanning = Compute::queue(caller.as_str(), move |_| {
                let is_valid = locator.feed(&block).is_ok();
                (locator, is_valid)
            });
            let (scanned, is_valid) = scanning.done().await?;
            locator = scanned;
            if !is_valid {
                break;
            }
        }

        let locations = offsets.into_iter().zip(locator.finish()).collect();
        Ok(Self { layout: Some(layout), records, locations })
    }

    pub(super) fn get(&self, offset: u64) -> Option<&Location> {
        self.locations.get(&offset)
    }
}

/// The pointer to the records of JSON that `read_resource` gives by default, if it is known
/// or soon found.
async fn records_at(caller: &Owner, found: &StoredResource, layout: Layout) -> Option<Pointer> {
    let is_quick = found.entry.records.is_some() || found.entry.size <= BLOCK_BYTES as u64;
    if layout != Layout::Json || !is_quick {
        return None;
    }

    let index = found.record_index(caller, None).await.ok()?;
    index.at().parse().ok()
}
