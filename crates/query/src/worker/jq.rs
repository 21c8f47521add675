//! jq filters, by jaq. Nothing that a filter can name reaches out of it.

mod arithmetic;
mod compile;
mod input;
mod natives;
mod number;
mod paths;
mod regex;
mod rewrite;
mod value;
mod write;

use jaq_core::{Ctx, Vars, data, unwrap_valr};
use jaq_json::{Map, Num, Val};
use larder_records::{
    Layout, Pointer, Record, Splitter,
    notes::Notes,
    typing::{ColumnNames, ColumnType, Field, TypedValue},
    words::cut,
};
use serde_json::Value;

use self::{
    compile::{Filter, compile},
    input::{end_of_value, not_json, parse, root},
    value::JqValue,
    write::write_value,
};
use super::{
    Deadline,
    channel::{Channel, Oddity},
    decode::{self, MAX_RECORD, Sink, content_error},
    output::{ReturnedWindow, StoredResult},
    profile::Profile,
};
use crate::{
    Answer, Column, QueryError, Question, ReadCounts, ResultFormat, Table, wire::Progress,
};

type Data = data::JustLut<JqValue>;

/// Checks that a filter compiles.
pub(super) fn check(filter: &str) -> Result<(), QueryError> {
    compile(filter).map(drop)
}

pub(super) fn answer(
    question: &Question,
    slurp: bool,
    channel: &mut Channel,
) -> Result<Answer, QueryError> {
    let deadline = Deadline::new(question);
    let filter = compile(&question.text)?;

    let [table] = &question.tables[..] else {
        let problem = "jq reads one resource; use sql to read several.";
        return Err(QueryError::Refused(problem.into()));
    };

    let stored = match question.store {
        Some(ResultFormat::Csv) => {
            let problem = "jq results are stored as ndjson or json; csv needs sql.";
            return Err(QueryError::Refused(problem.into()));
        }
        format => format.map(|format| StoredResult::new(question, format)),
    };

    let window = ReturnedWindow::new(question, String::new());
    let mut run = Run {
        filter,
        deadline,
        window,
        stored,
        line: Vec::new(),
        slurped: slurp.then(Vec::new),
        rows: 0,
        root: String::new(),
        notes: Notes::default(),
    };

    let counts = run.inputs(table, channel)?;
    if let Some(inputs) = run.slurped.take() {
        run.input(inputs.into_iter().collect(), channel)?;
    }

    if let Some(stored) = run.stored {
        stored.finish(channel)?;
    }

    let column = Column { name: "value".into(), kind: "json".into() };
    let answer = run.window.finish(vec![column], counts);
    Ok(Answer { notes: run.notes, ..answer })
}

struct Run<'a> {
    filter: Filter,
    deadline: Deadline,
    window: ReturnedWindow<'a>,
    stored: Option<StoredResult>,
    /// The output that is being written.
    line: Vec<u8>,
    slurped: Option<Vec<Val>>,
    rows: u64,
    /// Describes the only input in errors, because filters often assume another structure.
    root: String,
    notes: Notes,
}

impl Run<'_> {
    /// Runs the filter on each input of the content, in its order.
    fn inputs(&mut self, table: &Table, channel: &mut Channel) -> Result<ReadCounts, QueryError> {
        match (table.layout, &table.rows) {
            (Layout::Json, None) => self.document(table, channel),
            (Layout::Json | Layout::JsonLines, _) => self.records(table, channel),
            (Layout::Rows(_) | Layout::Log, _) => self.rows(table, channel),
        }
    }

    /// The whole content is the only input, or each of the values that it has one after another.
    fn document(&mut self, table: &Table, channel: &mut Channel) -> Result<ReadCounts, QueryError> {
        let mut bytes = Vec::new();
        let mut content = channel.content(0)?;
        content.blocks(|block, _| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        drop(content);

        let size = bytes.len() as u64;
        let json = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        let mut values = Vec::new();
        let mut rest = json.trim_ascii_start();

        while !rest.is_empty() || values.is_empty() {
            let (value, after) = rest.split_at(end_of_value(rest));
            values.push(parse(value).ok_or_else(|| not_json(table, value))?);
            rest = after.trim_ascii_start();
        }
        drop(bytes);

        if let [value] = &values[..] {
            self.root = root(value);
        }
        let rows = values.len() as u64;
        values.into_iter().try_for_each(|value| self.take(value, channel))?;
        Ok(ReadCounts { rows, bytes: size, skipped: 0 })
    }

    /// Each record is an input; a member of an object is `{key, value}`.
    fn records(&mut self, table: &Table, channel: &mut Channel) -> Result<ReadCounts, QueryError> {
        let at = table.rows.as_deref().unwrap_or_default().parse();
        let at: Pointer = at.map_err(|error| QueryError::Refused(format!("rows: {error}.")))?;

        let mut splitter = Splitter::new(table.layout, at.clone(), MAX_RECORD);
        let mut counts = ReadCounts::default();
        let lines = table.layout == Layout::JsonLines;
        let mut failed = None;
        let mut repaired = Vec::new();
        let mut content = channel.content(0)?;
        let mut pending = Vec::new();

        let mut take = |record: Record, bytes: &[u8], pending: &mut Vec<Val>| {
            let value = match input::of_record(record, bytes) {
                Some(value) => Some(value),
                None => input::repaired(record, bytes).inspect(|_| repaired.push(record.number)),
            };
            match value {
                Some(value) => {
                    counts.rows += 1;
                    pending.push(value);
                }
                None if lines => counts.skipped += 1,
                None => failed = failed.or(Some(record.number)),
            }
        };

        content.blocks(|block, content| {
            let fed = splitter.feed(block, |record, bytes| take(record, bytes, &mut pending));
            fed.map_err(|fault| content_error(&table.name, &fault))?;
            pending.drain(..).try_for_each(|value| self.take(value, content.channel()))
        })?;

        let finished = splitter.finish(|record, bytes| take(record, bytes, &mut pending));
        finished.map_err(|fault| content_error(&table.name, &fault))?;
        let bytes = content.bytes;
        for record in &repaired {
            content.channel().tell(Oddity::Repaired, *record);
        }
        pending.drain(..).try_for_each(|value| self.take(value, content.channel()))?;

        if let Some(number) = failed {
            return Err(decode::broken(&table.name, number));
        }
        if !lines && splitter.scanner().container().is_none() {
            return Err(decode::no_value(&table.name, &at));
        }

        Ok(ReadCounts { bytes, ..counts })
    }

    /// Each row is an input: an object of its columns, whose values have the types that sql sees.
    fn rows(&mut self, table: &Table, channel: &mut Channel) -> Result<ReadCounts, QueryError> {
        let deadline = self.deadline;
        // The columns of lines need no pass to be known.
        let is_plain = table.layout == Layout::Log && table.pattern.is_none();
        let (mut columns, types) = if is_plain {
            (ColumnNames::of_header(decode::LINE_COLUMNS), Vec::new())
        } else {
            let profile = Profile::new(0, table, channel, &deadline)?;
            let all = (0..profile.columns.len()).collect();
            self.notes.extend(profile.notes(&all));

            let types = all.iter().map(|column| profile.column_type(*column)).collect();
            (profile.columns, types)
        };

        self.root = input::row(columns.names());
        let keys = columns.names().iter().map(|name| Val::utf8_str(name.clone())).collect();
        let mut objects = Objects { keys, types, row: Map::default(), run: self };
        let mut content = channel.content(0)?;
        let at = Pointer::default();
        decode::read(table, &at, &mut columns, &mut content, &deadline, None, &mut objects)
    }

    fn take(&mut self, value: Val, channel: &mut Channel) -> Result<(), QueryError> {
        match &mut self.slurped {
            Some(inputs) => inputs.push(value),
            None => self.input(value, channel)?,
        }
        Ok(())
    }

    fn input(&mut self, value: Val, channel: &mut Channel) -> Result<(), QueryError> {
        self.rows += 1;
        let progress = Progress { read: self.rows, total: None };
        channel.progress(progress)?;

        let Self { filter, deadline, window, stored, line, root, .. } = self;
        let ctx = Ctx::<Data>::new(&filter.lut, Vars::new([]));

        for output in filter.id.run((ctx, JqValue(value))).map(unwrap_valr) {
            deadline.check(progress)?;
            let output = output.map_err(|error| {
                QueryError::Refused(format!("jq: {}.{root}", cut(&error.to_string(), 300)))
            })?;

            let shown = window.next();
            if !shown && stored.is_none() {
                continue;
            }

            line.clear();
            write_value(line, &output.0);
            if let Some(stored) = stored {
                stored.add(line, channel)?;
            }

            if shown {
                line.push(b'\n');
                let text = String::from_utf8_lossy(line);
                window.add(&text, || {
                    vec![serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.trim()))]
                });
            }
        }

        deadline.check(progress)
    }
}

/// Makes an input of each row.
struct Objects<'a, 'b> {
    /// The names of the columns.
    keys: Vec<Val>,
    types: Vec<ColumnType>,
    row: Map,
    run: &'a mut Run<'b>,
}

impl Sink for Objects<'_, '_> {
    fn field(&mut self, _: u64, column: usize, field: Field<'_>) {
        let column_type = self.types.get(column).copied().unwrap_or_default();
        let value = match column_type.value(field) {
            TypedValue::Null => Val::Null,
            TypedValue::Boolean(value) => Val::Bool(value),
            TypedValue::Integer(number) => Val::Num(Num::from_integral(number)),
            TypedValue::Number(number) => Val::Num(Num::Float(number)),
            TypedValue::BigInteger(digits) => match Num::from_str_radix(&digits, 10) {
                Some(number) => Val::Num(number),
                None => Val::utf8_str(digits.into_owned()),
            },
            TypedValue::Text(text) => Val::utf8_str(text.into_owned()),
            TypedValue::Json(json) => parse(json.as_bytes()).unwrap_or(Val::Null),
        };

        if let Some(key) = self.keys.get(column) {
            self.row.insert(key.clone(), value);
        }
    }

    fn end(&mut self, channel: &mut Channel) -> Result<(), QueryError> {
        let row = std::mem::take(&mut self.row);
        self.run.take(Val::obj(row), channel)
    }
}
