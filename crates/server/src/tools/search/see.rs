//! [`See`]: the call of `read_resource` that shows a match.

use larder_oauth::Owner;
use larder_records::{Compactor, Layout, Location, words::number};
use larder_store::store::{BLOCK_BYTES, RecordsError, StoreError, StoredResource};
use memchr::memmem;
use serde_json::{Value, json};

use super::{
    super::wording::at_revision,
    SearchResource,
    places::{POINTER_BYTES, Places},
    rows::{MatchRow, Row, Rows},
};

/// The bytes that the call reads before and after a match in a long line.
const AROUND_BYTES: usize = 1_000;
/// The most bytes and lines that the call reads before the line of a match.
const BEFORE_BYTES: usize = 4_000;
const BEFORE_LINES: u64 = 10;
/// Longer matches are looked for in a record by their first bytes.
const MATCH_BYTES: usize = 2_000;
/// The most bytes besides the record in an answer of `read_resource`.
const BESIDES_BYTES: usize = 100;

/// The call that shows a match.
pub(super) struct See {
    /// The place of the match, in words.
    pub(super) what: String,
    /// The arguments of `read_resource`.
    pub(super) read: Value,
}

impl See {
    /// The call that shows the first match, whose answer has about `budget` bytes. It reads the
    /// record if that shows the match as it is written; otherwise lines, or bytes where the stored
    /// content was searched.
    pub(super) async fn first(
        caller: &Owner,
        found: &StoredResource,
        is_stored: bool,
        args: &SearchResource,
        rows: &Rows,
        places: &Places,
        budget: usize,
    ) -> Result<Option<Self>, StoreError> {
        let first = rows.items.iter().find_map(|row| match row {
            Row::Match(row) => Some(row),
            Row::Gap | Row::Context { .. } => None,
        });
        let Some(row) = first else { return Ok(None) };

        let see = match Self::record(caller, found, args, row, places, budget).await? {
            Some(see) => see,
            None if is_stored && (row.is_long || row.len + BEFORE_BYTES > budget) => {
                Self::bytes(args, row, budget)
            }
            None => Self::lines(found, args, row).await?,
        };
        let read = at_revision(see.read, args.revision);
        Ok(Some(Self { read, ..see }))
    }

    async fn record(
        caller: &Owner,
        found: &StoredResource,
        args: &SearchResource,
        row: &MatchRow,
        places: &Places,
        budget: usize,
    ) -> Result<Option<Self>, StoreError> {
        let place = row.at.first().copied().unwrap_or_default();
        let (Some(layout), Some(location)) = (places.layout, places.get(place)) else {
            return Ok(None);
        };
        let Location { record: Some(record), at, .. } = location else { return Ok(None) };
        if at.to_string().len() > POINTER_BYTES {
            return Ok(None);
        }

        let room = budget.saturating_sub(BESIDES_BYTES);
        let Some(text) = text_of(caller, found, layout, location, room).await? else {
            return Ok(None);
        };

        let len = usize::try_from(row.found.end - row.found.start).unwrap_or(MATCH_BYTES);
        let matched = match len {
            0 => Vec::new(),
            len => found.bytes_from(row.found.start, len.min(MATCH_BYTES)).await?.bytes,
        };
        if memmem::find(&text, &matched).is_none() {
            return Ok(None);
        }

        let mut read = json!({ "uri": args.uri, "unit": "records", "offset": record, "limit": 1 });
        // The default records may be others than those around the match.
        if layout == Layout::Json && places.records.as_ref() != Some(at) {
            read["at"] = json!(at.to_string());
        }
        Ok(Some(Self { what: format!("record {}", number(*record)), read }))
    }

    async fn lines(
        found: &StoredResource,
        args: &SearchResource,
        row: &MatchRow,
    ) -> Result<Self, StoreError> {
        let from = row.start.saturating_sub(BEFORE_BYTES as u64);
        let before = match usize::try_from(row.start - from).unwrap_or(0) {
            0 => Vec::new(),
            len => found.bytes_from(from, len).await?.bytes,
        };

        // The first line is cut, unless the content begins with it.
        let lines = memchr::memchr_iter(b'\n', &before).count() as u64;
        let lines = lines.saturating_sub(u64::from(from > 0)).min(BEFORE_LINES);

        // Line N has the offset N - 1.
        let offset = row.line.saturating_sub(lines + 1);
        Ok(Self {
            what: format!("around line {}", number(row.line)),
            read: json!({ "uri": args.uri, "offset": offset, "limit": 2 * BEFORE_LINES }),
        })
    }

    fn bytes(args: &SearchResource, row: &MatchRow, budget: usize) -> Self {
        let len = usize::try_from(row.found.end - row.found.start).unwrap_or(usize::MAX);
        let around = (budget.saturating_sub(len) / 2).min(AROUND_BYTES);

        let from = row.found.start.saturating_sub(around as u64);
        let limit = len.saturating_add(2 * around).clamp(1, budget);
        let what = format!("around byte {}", number(row.found.start));
        Self {
            what,
            read: json!({ "uri": args.uri, "unit": "bytes", "offset": from, "limit": limit }),
        }
    }
}

/// The record in the answer of `read_resource`, if it has at most `room` bytes.
async fn text_of(
    caller: &Owner,
    found: &StoredResource,
    layout: Layout,
    Location { record, at, extent, .. }: &Location,
    room: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    let is_indexed = found.entry.records.as_ref().is_some_and(|index| index.at() == at.to_string());
    if is_indexed || found.entry.size <= BLOCK_BYTES as u64 {
        let reading = async {
            let at = (layout == Layout::Json).then_some(at);
            let index = found.record_index(caller, at).await?;
            found.records(caller, &index, record.unwrap_or_default(), 1, room).await
        };

        return match reading.await {
            Ok(window) => Ok(window.too_long.is_none().then_some(window.text)),
            Err(RecordsError::Store(error)) => Err(error),
            Err(_) => Ok(None),
        };
    }

    // An index at another pointer would need the whole content.
    let Some(extent) = extent else { return Ok(None) };
    let len = usize::try_from(extent.end - extent.start).unwrap_or(usize::MAX);
    if len == 0 || len > room {
        return Ok(None);
    }

    let raw = found.bytes_from(extent.start, len).await?.bytes;
    if layout != Layout::Json {
        return Ok(Some(raw));
    }

    let mut text = Vec::with_capacity(raw.len());
    Compactor::default().feed(&raw, &mut text);
    Ok(Some(text))
}
