//! `read_resource` with `"unit": "records"`.

use larder_oauth::Owner;
use larder_protocol::quote::quoted;
use larder_records::{
    Layout, Pointer, RecordIndex,
    words::{count, number},
};
use larder_runtime::compute;
use larder_store::store::{Kind, RecordWindow, RecordsError, StoredResource};
use serde_json::{Value, json};

use super::wording::{call_at_revision, revision_suffix, span};
use crate::handler::ToolError;

/// The default number of records.
const DEFAULT_RECORDS: u64 = 200;
/// The longest pointer: it comes back in the next call.
const MAX_POINTER_BYTES: usize = 200;

/// Which records to read.
pub(super) struct Request<'a> {
    pub(super) at: Option<&'a str>,
    pub(super) offset: u64,
    pub(super) limit: Option<u64>,
    pub(super) revision: Option<u64>,
}

/// The records, one to a line, below a line that says which they are.
pub(super) async fn read(
    caller: &Owner,
    found: &StoredResource,
    request: &Request<'_>,
    budget: usize,
) -> Result<String, ToolError> {
    let at = request.at.map(pointer).transpose()?;
    let limit = request.limit.unwrap_or(DEFAULT_RECORDS);

    let time = compute::search_time();
    let reading = async {
        let index = found.record_index(caller, at.as_ref()).await?;
        let window = found.records(caller, &index, request.offset, limit, budget).await?;
        Ok::<_, RecordsError>((index, window))
    };

    let read = tokio::time::timeout(time, reading).await.map_err(|_| {
        ToolError::new(format!(
            "Finding the records took longer than {} seconds (compute.search_seconds) and was stopped. Read without at, or lines: {}.",
            time.as_secs_f64(),
            request.call(found, json!({ "offset": 0, "limit": 200 }))
        ))
    })?;
    let (index, window) = read.map_err(|error| tool_error(found, request, error))?;

    if let Some(start) = window.too_long {
        let part = found.bytes_from(start, budget).await?;
        let mut text = request.head_of_part(found, &index, &window, part.range.end, limit);
        text.push_str("\n\n");
        text.push_str(&String::from_utf8_lossy(&part.bytes));
        return Ok(text);
    }

    let mut text = request.head(found, &index, &window, limit);
    text.push_str("\n\n");

    if let Some(header) = &window.header {
        text.push_str(&String::from_utf8_lossy(header));
        text.push('\n');
    }

    text.push_str(&String::from_utf8_lossy(&window.text));
    Ok(text)
}

fn pointer(at: &str) -> Result<Pointer, ToolError> {
    if at.len() > MAX_POINTER_BYTES {
        return Err(ToolError::new(format!(
            "at has {} bytes; at most {MAX_POINTER_BYTES} are allowed.",
            at.len()
        )));
    }

    at.parse().map_err(|error| ToolError::new(format!("at: {error}.")))
}

impl Request<'_> {
    /// A call of `read_resource` for the same resource and revision.
    fn call(&self, found: &StoredResource, arguments: Value) -> String {
        let mut all = json!({ "uri": found.entry.uri });
        if let (Value::Object(all), Value::Object(arguments)) = (&mut all, arguments) {
            all.extend(arguments);
        }

        call_at_revision("read_resource", all, self.revision)
    }

    /// The call that reads records from `offset` on.
    fn next(&self, found: &StoredResource, offset: u64, limit: u64) -> String {
        let mut arguments = json!({ "unit": "records", "offset": offset, "limit": limit });
        if let Some(at) = self.at {
            arguments["at"] = at.into();
        }
        self.call(found, arguments)
    }

    /// The head of the first part of a record, which ends at the byte `end`.
    fn head_of_part(
        &self,
        found: &StoredResource,
        index: &RecordIndex,
        window: &RecordWindow,
        end: u64,
        limit: u64,
    ) -> String {
        let name = format!("{}{}{}", found.entry.uri, revision_suffix(self.revision), place(index));
        let first = window.records.start;
        let total = count(index.total(), "record");

        let bytes = self.call(found, json!({ "unit": "bytes", "offset": end }));
        let after = if first + 1 < index.total() {
            format!(" The record after it: {}.", self.next(found, first + 1, limit))
        } else {
            String::new()
        };

        format!(
            "The beginning of record {} of {total} of {name}: the record is longer than one result. Not complete; the rest of it, part by part: {bytes}.{after}",
            number(first + 1)
        )
    }

    fn head(
        &self,
        found: &StoredResource,
        index: &RecordIndex,
        window: &RecordWindow,
        limit: u64,
    ) -> String {
        let place = place(index);
        let name = format!("{}{}{place}", found.entry.uri, revision_suffix(self.revision));
        let all = index.total();
        let total = count(all, "record");
        let first = window.records.start;
        let end = window.records.end;

        match first == end {
            true if all == 0 => format!("{name} has no records. Complete."),
            true => format!(
                "No record at offset {} of {name}: it has {total}. Next: {}.",
                number(first),
                self.next(found, all.saturating_sub(limit), limit)
            ),
            false if first == 0 && end == all => format!("All of {name}: {total}. Complete."),
            false if end == all => {
                format!("{} of {name}. This is the end.", span("Record", first, end, &total))
            }
            false => format!(
                "{} of {name}. Not complete; next: {}.",
                span("Record", first, end, &total),
                self.next(found, end, limit)
            ),
        }
    }
}

/// ` at /items`, if the records are not those of the whole value.
fn place(index: &RecordIndex) -> String {
    match index.layout() {
        Layout::Json if !index.at().is_empty() => format!(" at {}", index.at()),
        _ => String::new(),
    }
}

fn tool_error(found: &StoredResource, request: &Request<'_>, error: RecordsError) -> ToolError {
    let entry = &found.entry;
    let instead = match entry.kind {
        Kind::Text => {
            let lines = request.call(found, json!({ "offset": 0, "limit": 200 }));
            format!("Read its lines: {lines}")
        }
        Kind::Binary => {
            let bytes = request.call(found, json!({ "unit": "bytes" }));
            format!("Read its bytes: {bytes}")
        }
    };

    let at = request.at.unwrap_or_default();
    match error {
        RecordsError::Store(error) => error.into(),
        RecordsError::NoRecords => ToolError::new(format!(
            "{} ({}) has no records: it is not JSON, NDJSON, CSV or TSV. {instead}.",
            entry.uri, entry.mime_type
        )),
        RecordsError::NotJson => ToolError::new(format!(
            "at is for JSON, and {} ({}) is not. Leave it out.",
            entry.uri, entry.mime_type
        )),
        RecordsError::NothingAt => ToolError::new(format!(
            "{} has no value at {}. describe_resource names the pointers of its lists.",
            entry.uri,
            quoted(at)
        )),
        RecordsError::Fault(fault) => {
            ToolError::new(format!("{} has no records: {fault}. {instead}.", entry.uri))
        }
    }
}
