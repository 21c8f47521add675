//! The records and JSON Pointers of matches.

use std::collections::HashMap;

use futures_util::StreamExt;

use crate::{
    auth::Owner,
    compute::Compute,
    preview::{Format, HEAD_BYTES, Sample},
    records::{Layout, Location, Locator},
    store::{StoreError, StoredResource},
};

/// The locations of bytes in structured content, by their offsets.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<u64, Location>);

impl Places {
    /// Locates these bytes, which are in ascending order: reads the content up to
    /// the last of them. Content without records has no locations.
    pub(super) async fn find(
        caller: &Owner,
        found: &StoredResource,
        offsets: Vec<u64>,
    ) -> Result<Self, StoreError> {
        if offsets.is_empty() {
            return Ok(Self::default());
        }
        let Some(layout) = layout(caller, found).await? else { return Ok(Self::default()) };
        let mut locator = Locator::new(layout, offsets.clone());
        let mut blocks = std::pin::pin!(found.map_blocks(caller, |block, _| block));
        while !locator.is_done()
            && let Some(block) = blocks.next().await
        {
            let block = block?;
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
        Ok(Self(offsets.into_iter().zip(locator.finish()).collect()))
    }

    pub(super) fn get(&self, offset: u64) -> Option<&Location> {
        self.0.get(&offset)
    }
}

async fn layout(caller: &Owner, found: &StoredResource) -> Result<Option<Layout>, StoreError> {
    let entry = found.entry.clone();
    let (head, tail) = found.head_and_tail(HEAD_BYTES as u64, 0).await?;
    let detecting = Compute::run(caller.as_str(), HEAD_BYTES, move || {
        Format::detect(&Sample {
            mime_type: Some(&entry.mime_type),
            is_text: true,
            size: entry.size,
            lines: Some(entry.lines),
            head: &head,
            tail: &tail,
            value: None,
        })
    });
    Ok(match detecting.done().await? {
        Format::Json => Some(Layout::Json),
        Format::JsonLines => Some(Layout::JsonLines),
        Format::Csv { delimiter } => Some(Layout::Rows { delimiter }),
        Format::Text | Format::Image { .. } | Format::Binary => None,
    })
}
