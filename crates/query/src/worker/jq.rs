//! jq filters, by jaq. Nothing that a filter can name reaches out of it: `env`,
//! `halt`, `input`, `debug`, `stderr` and imports are undefined.

use jaq_core::{
    Compiler, Ctx, Vars, data,
    load::{Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Map, Num, Val, read, write};
use larder_records::{
    Fault, Layout, Pointer, Scanner, Splitter,
    notes::Notes,
    repair_member, repair_value,
    typing::{ColumnNames, ColumnType, Field, TypedValue},
    words::{count, cut},
};
use serde_json::Value;

use super::{
    Deadline,
    channel::Channel,
    decode::{self, MAX_RECORD, Sink, content_error},
    output::{Stored, Window},
    profile::Profile,
};
use crate::{
    Answer, Column, QueryError, Question, ReadCounts, ResultFormat, Table, wire::Progress,
};

type Data = data::JustLut<Val>;
type Filter = jaq_core::compile::Filter<jaq_core::Native<Data>>;

/// The names of jaq that reach out of a filter.
const UNDEFINED: [&str; 13] = [
    "env",
    "halt",
    "halt_error",
    "input",
    "inputs",
    "input_filename",
    "input_line_number",
    "debug",
    "debug_empty",
    "stderr",
    "stderr_empty",
    "get_search_list",
    "repl",
];

/// Definitions of what jq has and jaq does not.
const DEFINITIONS: &str = include_str!("definitions.jq");

/// How jaq says that a path leads through null, which it does not make an object.
const THROUGH_NULL: &str = "cannot use null as iterable";
const NULL_HINT: &str = " To set a path through null, use setpath, or .a = {b: 1} for .a.b = 1.";

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
        format => format.map(|format| Stored::new(question, format)),
    };

    let window = Window::new(question, String::new());
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

fn compile(text: &str) -> Result<Filter, QueryError> {
    let is_defined = |name: &str| !UNDEFINED.contains(&name);
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let own = jaq_core::load::parse(DEFINITIONS, |parser| parser.defs()).unwrap_or_default();
    let defs = defs.filter(|def| is_defined(def.name)).chain(own);

    let funs = jaq_core::funs::<Data>().chain(jaq_std::funs()).chain(jaq_json::funs());
    let funs = funs.filter(|(name, ..)| is_defined(name));

    let arena = Arena::default();
    let modules = Loader::new(defs)
        .load(&arena, File { code: text, path: () })
        .map_err(|errors| refused(&load_error(&errors)))?;

    let compiled = Compiler::default().with_funs(funs).compile(modules);
    compiled.map_err(|errors| {
        let undefined = errors.iter().flat_map(|(_, errors)| errors).next();
        refused(&undefined.map_or_else(
            || "it does not compile".to_owned(),
            |(name, kind)| format!("{} {} is not defined", kind.as_str(), cut(name, 100)),
        ))
    })
}

fn load_error(errors: &jaq_core::load::Errors<&str, ()>) -> String {
    use jaq_core::load::Error;
    let near = |rest: &str| match rest.trim() {
        "" => "at its end".to_owned(),
        rest => format!("near {:?}", cut(rest, 40)),
    };

    match errors.iter().map(|(_, error)| error).next() {
        Some(Error::Io(_)) => "modules cannot be imported".into(),
        Some(Error::Lex(errors)) => match errors.first() {
            Some((expected, found)) => {
                format!("expected {} {}", expected.as_str(), near(found))
            }
            None => "it is not a filter".into(),
        },
        Some(Error::Parse(errors)) => match errors.first() {
            Some((expected, found)) => {
                format!("expected {} {}", expected.as_str(), near(found))
            }
            None => "it is not a filter".into(),
        },
        None => "it is not a filter".into(),
    }
}

/// The error of a filter that cannot be run.
fn refused(problem: &str) -> QueryError {
    QueryError::Refused(format!("jq: {problem}."))
}

struct Run<'a> {
    filter: Filter,
    deadline: Deadline,
    window: Window<'a>,
    stored: Option<Stored>,
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

    /// The whole content is the only input.
    fn document(&mut self, table: &Table, channel: &mut Channel) -> Result<ReadCounts, QueryError> {
        let mut bytes = Vec::new();
        let mut scanner = Scanner::new(Layout::Json, Pointer::default());
        let fault = |fault: Fault| content_error(&table.name, &fault);

        let mut content = channel.content(0)?;
        content.blocks(|block, _| {
            bytes.extend_from_slice(block);
            // A value that is too deep would exhaust the stack.
            scanner.feed(block, |_| {}).map_err(fault)
        })?;
        drop(content);
        scanner.finish(|_| {}).map_err(fault)?;

        let value = parse(&bytes).ok_or_else(|| QueryError::Content {
            table: table.name.clone(),
            problem: "it is not JSON".into(),
        })?;

        let size = bytes.len() as u64;
        drop(bytes);

        self.root = root(&value);
        self.take(value, channel)?;
        Ok(ReadCounts { rows: 1, bytes: size, skipped: 0 })
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

        let mut take = |bytes: &[u8], member: bool, pending: &mut Vec<Val>| {
            let value = if member { parse_member(bytes) } else { parse(bytes) };
            let repaired = || {
                let json = if member { repair_member(bytes) } else { repair_value(bytes) };
                let json = json?;
                repaired.push(counts.rows);
                if member { parse_member(&json) } else { parse(&json) }
            };
            match value.or_else(repaired) {
                Some(value) => {
                    counts.rows += 1;
                    pending.push(value);
                }
                None if lines => counts.skipped += 1,
                None => failed = Some(counts.rows),
            }
        };

        content.blocks(|block, content| {
            let fed = splitter.feed(block, |record, bytes| {
                take(bytes, record.value > record.start, &mut pending);
            });
            fed.map_err(|fault| content_error(&table.name, &fault))?;
            pending.drain(..).try_for_each(|value| self.take(value, content.channel()))
        })?;

        let finished = splitter.finish(|record, bytes| {
            take(bytes, record.value > record.start, &mut pending);
        });
        finished.map_err(|fault| content_error(&table.name, &fault))?;
        let bytes = content.bytes;
        for record in &repaired {
            content.channel().tell_repaired(*record);
        }
        pending.drain(..).try_for_each(|value| self.take(value, content.channel()))?;

        if let Some(record) = failed {
            let problem = format!("record {record} is not JSON");
            return Err(QueryError::Content { table: table.name.clone(), problem });
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

        for output in filter.id.run((ctx, value)).map(unwrap_valr) {
            deadline.check(progress)?;
            let output = output.map_err(|error| {
                let text = error.to_string();
                let hint = if text.starts_with(THROUGH_NULL) { NULL_HINT } else { "" };
                QueryError::Refused(format!("jq: {}.{hint}{root}", cut(&text, 300)))
            })?;

            let shown = window.next();
            if !shown && stored.is_none() {
                continue;
            }

            line.clear();
            write_value(line, &output);
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

/// Writes a value as jq does: 1 and not 1.0, null for what is no number.
fn write_value(to: &mut Vec<u8>, value: &Val) {
    let mut separator: &[u8] = b"";

    match value {
        Val::Num(Num::Float(number)) if number.is_nan() => to.extend_from_slice(b"null"),
        Val::Num(Num::Float(number)) if number.is_infinite() => {
            let largest: &[u8] = b"-1.7976931348623157e+308";
            to.extend_from_slice(&largest[usize::from(*number > 0.0)..]);
        }
        Val::Num(Num::Float(number)) if number.fract() == 0.0 && number.abs() < 1e17 => {
            to.extend_from_slice(format!("{number:.0}").as_bytes());
        }
        Val::Arr(items) => {
            to.push(b'[');
            for item in items.iter() {
                to.extend_from_slice(std::mem::replace(&mut separator, b","));
                write_value(to, item);
            }
            to.push(b']');
        }
        Val::Obj(members) => {
            to.push(b'{');
            for (key, value) in members.iter() {
                to.extend_from_slice(std::mem::replace(&mut separator, b","));
                write_value(to, key);
                to.push(b':');
                write_value(to, value);
            }
            to.push(b'}');
        }
        // Writing to a list cannot fail.
        other => drop(write::write(to, &write::Pp::default(), 0, other)),
    }
}

/// Describes an input: `The input is an object with items, total.`
fn root(value: &Val) -> String {
    const LISTED: usize = 20;

    match value {
        Val::Arr(items) => {
            format!(" The input is a list of {}.", count(items.len() as u64, "item"))
        }
        Val::Obj(members) => {
            let names = members.keys().take(LISTED).map(|name| match name {
                Val::TStr(name) => cut(&String::from_utf8_lossy(name), 100).to_owned(),
                name => name.to_string(),
            });
            let more = if members.len() > LISTED { ", …" } else { "" };
            format!(" The input is an object with {}{more}.", names.collect::<Vec<_>>().join(", "))
        }
        _ => String::new(),
    }
}

/// A JSON value that is not nested too deeply.
fn parse(bytes: &[u8]) -> Option<Val> {
    let mut scanner = Scanner::new(Layout::Json, Pointer::default());
    scanner.feed(bytes, |_| {}).and_then(|()| scanner.finish(|_| {})).ok()?;

    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    read::parse_single(bytes).ok()
}

fn parse_member(bytes: &[u8]) -> Option<Val> {
    let object = read::parse_single(&[b"{", bytes, b"}"].concat()).ok()?;
    let Val::Obj(members) = object else { return None };
    let (key, value) = members.iter().next()?;

    let name = |name: &'static str| Val::utf8_str(name);
    let pairs = [(name("key"), key.clone()), (name("value"), value.clone())];
    Some(Val::obj(pairs.into_iter().collect()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_valid() {
        for filter in ["del(.a)", "@csv", "@tsv", "INDEX(.a)", "tostream", "fromstream(.)"] {
            assert!(compile(filter).is_ok(), "{filter}");
        }

        let said = compile("env").err().map(|error| error.to_string());
        assert_eq!(said.as_deref(), Some("jq: filter env is not defined."));
    }
}
