//! The facts that all records of a resource share: their number and columns, and the
//! JSON Pointers of lists. Reads the whole content in bounded memory.

use std::fmt::Write;

use bytes::Bytes;
use futures_util::StreamExt;
use larder_oauth::Owner;
use larder_records::{
    Fault, Layout, List, Lists, Pointer, Record, RecordIndex, RowParser, Splitter,
    preview::Columns,
    words::{count, cut, number},
};
use larder_runtime::compute::{self, Compute, Stop};
use larder_store::store::{RecordsError, StoreError, StoredResource};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::spill::{
    record_columns::{RecordColumns, without_header},
    tool_calls::{call, jq_root},
};

/// A longer record ends the description of the columns.
const MAX_RECORD_BYTES: usize = 8 << 20;
/// The most lists that are named.
const MAX_LISTS: usize = 12;
/// The longest pointer that is shown.
const MAX_POINTER_BYTES: usize = 100;
/// The names in a longer header are cut off.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Facts about the records, in about `budget` bytes; `None` if there are none. `root` is that of
/// a jq filter, if the records are not what jq reads.
pub(super) async fn describe(
    caller: &Owner,
    found: &StoredResource,
    root: Option<&str>,
    budget: usize,
) -> Result<Option<String>, StoreError> {
    let deadline = Instant::now() + compute::search_time();
    let indexing = tokio::time::timeout_at(deadline, found.record_index(caller, None)).await;
    let index = match indexing {
        Ok(Ok(index)) => index,
        Ok(Err(RecordsError::Store(error))) => return Err(error),
        Ok(Err(RecordsError::Fault(fault))) => {
            return Ok(Some(format!("records: none, {fault}\n")));
        }
        Ok(Err(RecordsError::NoRecords)) => return possible_table(found).await,
        // Content without records has no facts about them.
        Ok(Err(_)) => return Ok(None),
        Err(_) => return Ok(Some(too_late())),
    };

    let slot = compute::search_slot(caller.as_str());
    let Ok(slot) = tokio::time::timeout_at(deadline, slot).await else {
        return Ok(Some(too_late()));
    };
    let _slot = slot?;

    let mut survey = Survey::new(&index, columns(found, &index).await?);
    let mut blocks = std::pin::pin!(found.stream());

    while let Some(block) = blocks.next().await {
        let block = block?;
        if Instant::now() >= deadline {
            survey.stopped = Some("it took too long (compute.search_seconds)".to_owned());
            break;
        }

        let adding = Compute::queue(caller.as_str(), move |stop| {
            survey.add(&block, stop);
            survey
        });
        survey = adding.done().await?;

        if survey.stopped.is_some() {
            break;
        }
    }

    survey.finish();
    let jq_root = root.map_or_else(|| jq_root(&index), str::to_owned);
    Ok(Some(survey.text(&index, &jq_root, budget)))
}

/// How text without records may be read as a table.
async fn possible_table(found: &StoredResource) -> Result<Option<String>, StoreError> {
    let Some(dialect) = found.possible_table().await? else { return Ok(None) };

    let mut table = json!({ "uri": found.entry.uri });
    let options = serde_json::to_value(dialect.to_options()).unwrap_or_default();
    if let (Value::Object(table), Value::Object(options)) = (&mut table, options) {
        table.extend(options);
        if dialect.is_plain() {
            table.insert("delimiter".into(), char::from(dialect.delimiter).to_string().into());
        }
    }
    let from = json!({ "from": { "t": table }, "sql": "SELECT * FROM t" });
    Ok(Some(format!("perhaps a table: {}\n", call("query_resource", &from))))
}

fn too_late() -> String {
    "records: not counted in time (compute.search_seconds)\n".to_owned()
}

/// The columns of the header, if there is one.
async fn columns(found: &StoredResource, index: &RecordIndex) -> Result<Columns, StoreError> {
    let Layout::Rows(dialect) = index.layout() else { return Ok(Columns::default()) };
    let Some(header) = index.header() else {
        let head = found.bytes_from(0, MAX_HEADER_BYTES).await?;
        return Ok(without_header(dialect, index, &head.bytes).unwrap_or_default());
    };

    let len = usize::try_from(header.end - header.start).unwrap_or(MAX_HEADER_BYTES);
    let header = found.bytes_from(header.start, len.min(MAX_HEADER_BYTES)).await?;
    Ok(Columns::of_table(RowParser::new(dialect).fields(&header.bytes).into_iter().flatten()))
}

/// Collects the facts, block by block.
struct Survey {
    splitter: Splitter,
    records: RecordColumns,
    lists: Option<Lists>,
    /// Records that are not JSON.
    skipped: u64,
    /// Why not all records were read.
    stopped: Option<String>,
}

impl Survey {
    fn new(index: &RecordIndex, columns: Columns) -> Self {
        let layout = index.layout();
        let at: Pointer = index.at().parse().unwrap_or_default();
        Self {
            splitter: Splitter::new(layout, at, MAX_RECORD_BYTES),
            records: RecordColumns::new(columns, index),
            lists: (layout == Layout::Json).then(|| Lists::default().with_maps()),
            skipped: 0,
            stopped: None,
        }
    }

    fn add(&mut self, block: &Bytes, stop: &Stop) {
        if self.lists.as_mut().is_some_and(|lists| lists.feed(block).is_err()) {
            self.lists = None;
        }

        self.split(|splitter, sink| {
            splitter.feed(block, |record, bytes| {
                if !stop.is_set() {
                    sink(record, bytes);
                }
            })
        });
    }

    fn split(
        &mut self,
        pass: impl FnOnce(&mut Splitter, &mut dyn FnMut(Record, &[u8])) -> Result<(), Fault>,
    ) {
        let Self { splitter, records, skipped, .. } = self;
        let mut sink = |_: Record, bytes: &[u8]| {
            if !records.add(bytes) {
                *skipped += 1;
            }
        };

        if let Err(fault) = pass(splitter, &mut sink) {
            self.stopped = Some(fault.to_string());
        }
    }

    fn finish(&mut self) {
        if self.stopped.is_none() {
            self.split(|splitter, sink| splitter.finish(sink));
        }
    }

    fn text(self, index: &RecordIndex, jq_root: &str, budget: usize) -> String {
        let at = index.at();
        let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
        let mut text = format!("records: {}{place}\n", count(index.total(), "record"));

        let mut line = |label: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{label}: {value}");
        };
        line("table", &format!("t; jq root: {jq_root}"));

        if let Layout::Rows(dialect) = index.layout()
            && let Some(told) = dialect.told()
        {
            line("how", &told);
        }
        if let Some(told) = self.records.misfits.told() {
            line("rows", &told);
        }

        let complete = self.stopped.is_none();
        let lists = self.lists.filter(|_| complete);
        if let Some((lists, maps)) = lists.and_then(|lists| lists.finish_with_maps().ok())
            && let Some((label, named)) = lists_and_maps(&lists, &maps, at)
        {
            line(label, &named);
        }

        if self.skipped > 0 {
            line("skipped", &format!("{}, not JSON", count(self.skipped, "record")));
        }

        let columns = self.records.columns;
        let of = match &self.stopped {
            None => "all records".to_owned(),
            Some(why) => {
                format!("the first {}; {why}", count(columns.records(), "record"))
            }
        };

        let columns = columns.lines(budget.saturating_sub(text.len()));
        let _ = write!(text, "columns (of {of}):\n{columns}");
        text
    }
}

/// The lists and maps, the largest first, with a label; `None` if there is only the list of the
/// records or the object that they are the members of.
fn lists_and_maps(
    lists: &[List],
    maps: &[List],
    records_at: &str,
) -> Option<(&'static str, String)> {
    let of = |List { at, items }: &List, what: &str| {
        let at = at.to_string();
        let at = if at.is_empty() { "the whole value" } else { cut(&at, MAX_POINTER_BYTES) };
        (*items, format!("{at} ({what}{})", number(*items)))
    };

    let maps = maps.iter().filter(|map| !map.at.is_empty() || !records_at.is_empty());
    let maps: Vec<_> = maps.map(|map| of(map, "map of ")).collect();
    if maps.is_empty() && lists.iter().all(|list| list.at.is_empty()) {
        return None;
    }

    let label = if maps.is_empty() { "lists" } else { "lists and maps" };
    let mut named: Vec<_> = lists.iter().map(|list| of(list, "")).chain(maps).collect();
    named.sort_by_key(|(items, _)| std::cmp::Reverse(*items));

    let more = named.len() > MAX_LISTS;
    let mut named: Vec<_> = named.into_iter().take(MAX_LISTS).map(|(_, named)| named).collect();
    named.extend(more.then(|| "…".to_owned()));
    Some((label, named.join(", ")))
}
