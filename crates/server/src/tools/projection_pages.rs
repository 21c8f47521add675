//! `pages`: the pages of a list, each by the cursor of the page before, into one resource.

use std::{borrow::Cow, collections::HashSet, io, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use larder_protocol::quote::shortened;
use larder_records::words::count;
use larder_store::store::{Content, Details, Entry, ResourceUri};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;

use super::{
    projection_cursor as cursors,
    projection_each::{OutOfTime, in_time},
    projection_value::ResultValue,
};
use crate::{
    handler::{Context, ToolError},
    registry::Paging,
    spill::left_out::of_result,
};

/// The pages of a list.
pub(super) struct Pages {
    pub(super) entry: Arc<Entry>,
    summary: PagesSummary,
}

/// How many pages came, and how the list has ended.
struct PagesSummary {
    pages: u64,
    records: u64,
    /// The first page that is not whole, and why.
    cut: Option<String>,
    end: End,
}

/// How a list has ended.
enum End {
    /// The server says that no page follows.
    Complete,
    /// Nothing says whether a page follows.
    Unnamed,
    /// More pages follow than were wanted.
    More(String),
    /// A page is missing or wrong, and why.
    Broken(String),
}

impl Pages {
    /// `3 pages of list_issues: 90 records, complete`
    pub(super) fn summary(&self, tool: &str) -> String {
        self.summary.text(tool)
    }

    /// Whether a page is missing or wrong.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.summary.end, End::Broken(_))
    }
}

impl PagesSummary {
    fn text(&self, tool: &str) -> String {
        let end = match (&self.end, &self.cut) {
            (End::Complete | End::Unnamed, Some(cut)) => format!("NOT complete: {cut}"),
            (End::Complete, None) => "complete".to_owned(),
            (End::Unnamed, None) => "no further page is named".to_owned(),
            (End::More(next), None) => format!("NOT complete: more follow ({next})"),
            (End::More(next), Some(cut)) => {
                format!("NOT complete: more follow ({next}), and {cut}")
            }
            (End::Broken(problem), _) => format!("NOT complete: {problem}"),
        };
        format!("{} of {tool}: {}, {end}", count(self.pages, "page"), count(self.records, "record"))
    }
}

/// The next page.
#[derive(Debug, PartialEq)]
enum Next {
    /// There is none.
    None,
    /// Nothing says whether there is one.
    Unnamed,
    /// These arguments select it.
    With(JsonObject),
    /// There is one, and nothing says how to get it.
    Unknown(String),
}

/// Calls a tool for up to `max` pages, and stores their records as NDJSON.
///
/// # Errors
/// The records cannot be stored.
pub(super) async fn call_pages(
    ctx: &Context<()>,
    tool: &str,
    arguments: JsonObject,
    paging: &Paging,
    max: u64,
) -> Result<Pages, ToolError> {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(2);
    let calling = async {
        let mut run = Run::new(arguments, paging);
        let end = run.all(ctx, tool, max, &sender).await;
        drop(sender);
        PagesSummary { pages: run.pages, records: run.records, cut: run.cut, end }
    };

    let lines = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|line| (line, receiver))
    });
    let scope = ctx.scope();
    let uri = ResourceUri::for_result(tool, &scope.random.id())
        .map_err(|error| ToolError::new(error.to_string()))?;
    let details = Details {
        name: Some(format!("Pages of {tool}")),
        mime_type: Some("application/x-ndjson".to_owned()),
        session: scope.session.clone(),
        ..Details::default()
    };
    let content = Content::text_stream(lines);
    let storing = scope.store.create(scope.identity.owner(), uri, content, details);

    let (summary, stored) = tokio::join!(calling, storing);
    match stored {
        Ok(entry) => Ok(Pages { entry, summary }),
        Err(error) => Err(ToolError::new(format!("{error} ({})", summary.text(tool)))),
    }
}

/// The pages so far.
struct Run<'a> {
    paging: &'a Paging,
    /// The arguments that the caller has given.
    given: Vec<String>,
    /// The arguments of the next call.
    arguments: JsonObject,
    /// The arguments of earlier pages.
    seen: HashSet<String>,
    /// The place of the records in the first page, once it was read.
    place: Option<RecordPlace>,
    /// The records of the page before, as lines, and their number.
    before: (String, usize),
    /// Whether the next call finds out if pages are numbered from 0 or from 1.
    probes: bool,
    /// The pages that were asked for, also those without records.
    asked: u64,
    /// The pages with records.
    pages: u64,
    records: u64,
    cut: Option<String>,
}

/// The place of the records in a page.
enum RecordPlace {
    /// In the list at this path.
    List(Vec<String>),
    /// The records are the object's only value.
    Value,
}

impl RecordPlace {
    fn of(page: &Value) -> Self {
        cursors::list_of(page).map_or(Self::Value, Self::List)
    }
}

impl<'a> Run<'a> {
    fn new(arguments: JsonObject, paging: &'a Paging) -> Self {
        Self {
            paging,
            given: arguments.keys().cloned().collect(),
            arguments,
            seen: HashSet::new(),
            place: None,
            before: (String::new(), 0),
            probes: false,
            asked: 0,
            pages: 0,
            records: 0,
            cut: None,
        }
    }

    /// Sends the records of up to `max` pages.
    async fn all(
        &mut self,
        ctx: &Context<()>,
        tool: &str,
        max: u64,
        sender: &mpsc::Sender<io::Result<Bytes>>,
    ) -> End {
        loop {
            let (result, exact) = match self.call(ctx, tool).await {
                Ok(called) => called,
                Err(end) => return end,
            };
            let (lines, next) = match self.read(result, exact) {
                Ok(read) => read,
                Err(problem) => return End::Broken(problem),
            };

            ctx.progress(self.pages).of(max).await;
            // The store has failed if nobody receives, which it says itself.
            if !lines.is_empty() && sender.send(Ok(lines.into())).await.is_err() {
                return End::Broken("the records could not be stored".to_owned());
            }

            match next {
                Next::None => return End::Complete,
                Next::Unnamed => return End::Unnamed,
                Next::Unknown(next) => return End::More(next),
                Next::With(_) if self.asked >= max && self.probes => {
                    return End::More("by the argument page".to_owned());
                }
                Next::With(next) if self.asked >= max => {
                    return End::More(Value::Object(next).to_string());
                }
                Next::With(next) => self.arguments.extend(next),
            }
        }
    }

    /// Calls the tool for the next page.
    async fn call(
        &mut self,
        ctx: &Context<()>,
        tool: &str,
    ) -> Result<(CallToolResult, Option<Box<RawValue>>), End> {
        let number = self.pages + 1;
        let arguments = Value::Object(self.arguments.clone());
        let shown = arguments.to_string();
        if !self.seen.insert(shown.clone()) {
            let problem = format!("page {number} would have a cursor that an earlier page had");
            return Err(End::Broken(problem));
        }

        match in_time(ctx, ctx.call_exactly(tool, arguments)).await {
            Ok(Ok(called)) => Ok(called),
            Ok(Err(fault)) => Err(End::Broken(format!("page {number} failed: {fault}"))),
            Err(OutOfTime::NotCalled | OutOfTime::Unfinished) if number > 1 => {
                Err(End::More(format!("{shown}; the time of this call was over")))
            }
            Err(_) => Err(End::Broken("the time of this call was over before page 1".to_owned())),
        }
    }

    /// The records of a page as lines, and the page after it.
    fn read(
        &mut self,
        result: CallToolResult,
        exact: Option<Box<RawValue>>,
    ) -> Result<(String, Next), String> {
        let number = self.pages + 1;
        let is_error = result.is_error == Some(true);
        let left_out = of_result(&result);
        let page = ResultValue::of(result, exact);
        self.asked += 1;
        if is_error {
            return Err(format!("page {number} failed: {}", shortened(&page.text())));
        }

        self.check_number(&page.value, number)?;
        let place = self.place.get_or_insert_with(|| RecordPlace::of(&page.value));
        let records = records_of(&page, place)
            .ok_or_else(|| format!("page {number} has no list where page 1 has it"))?;

        let mut lines = String::new();
        for record in &records {
            lines += record;
            lines.push('\n');
        }
        if std::mem::take(&mut self.probes) && lines == self.before.0 {
            // The page without a number is page 1, which counts once.
            self.asked -= 1;
            return Ok((String::new(), Next::With(with("page", json!(2)))));
        }
        if !records.is_empty() && lines == self.before.0 {
            return Err(format!("page {number} has the records of the page before"));
        }

        let next = self.next(&page.value, records.len());
        let next = self.believed(next, &page.value, left_out);
        // A page without records is the end of the list.
        if !records.is_empty() || number == 1 {
            self.pages = number;
        }
        self.records += records.len() as u64;
        self.before = (lines.clone(), records.len());
        Ok((lines, next))
    }

    /// The next page, in view of the reason to believe that the server did not send all. A page that
    /// is followed may itself be cut.
    fn believed(&mut self, next: Next, value: &Value, left_out: Option<String>) -> Next {
        if matches!(next, Next::None | Next::Unnamed)
            && let Some(reason) = left_out
        {
            return Next::Unknown(reason);
        }

        // A cursor, which left_out may name first, is followed.
        let cut = cursors::cut(value).or_else(|| left_out.filter(|reason| is_at_end(reason)));
        if self.cut.is_none() {
            self.cut = cut.map(|reason| format!("page {} is cut: {reason}", self.pages + 1));
        }
        next
    }

    /// Checks that a page is the page that was asked for.
    fn check_number(&self, value: &Value, number: u64) -> Result<(), String> {
        let asked = self.arguments.get("page").and_then(cursors::whole_number);
        match (asked, cursors::page_number(value)) {
            (Some(asked), Some(got)) if asked != got && number > 1 => {
                Err(format!("page {asked} was asked for, and page {got} came"))
            }
            _ => Ok(()),
        }
    }

    /// The page after a page with this value and so many records.
    fn next(&mut self, value: &Value, records: usize) -> Next {
        let flag = cursors::flag(value);
        if flag == Some(false) {
            return Next::None;
        }
        if let Some((member, cursor)) = cursors::cursor(value) {
            return self.by_cursor(&member, cursor);
        }

        let is_empty = records == 0 || cursors::has_null_cursor(value);
        let is_short = self.pages > 0 && records < self.before.1;
        match flag {
            None if is_empty => Next::None,
            None if is_short => Next::Unnamed,
            flag => self.by_number(value, records, flag == Some(true)),
        }
    }

    fn by_cursor(&self, member: &str, cursor: Value) -> Next {
        let takes = |name: &str| self.paging.arguments.iter().any(|argument| argument == name);
        let is_given = |name: &str| self.given.iter().any(|given| given == name);
        let told = format!("{member} is {}", shortened(&cursor.to_string()));

        if let Some(argument) = &self.paging.configured {
            return Next::With(with(argument, cursor));
        }
        if let Some(arguments) = cursor.as_str().and_then(|url| cursors::of_url(url, &takes)) {
            return Next::With(arguments);
        }
        match cursors::argument_of(member, &cursor, &takes, &is_given) {
            Some(argument) => Next::With(with(&argument, cursor)),
            None => Next::Unknown(told),
        }
    }

    /// Without a cursor, pages have numbers or offsets.
    fn by_number(&mut self, value: &Value, records: usize, is_told: bool) -> Next {
        let takes = |name: &str| self.paging.arguments.iter().any(|argument| argument == name);
        let asked = |name: &str| self.arguments.get(name);
        let prefers_offset = asked("offset").is_some() && asked("page").is_none();

        if takes("page") && !prefers_offset {
            let known = asked("page").and_then(cursors::whole_number);
            let known = known
                .or_else(|| cursors::page_number(value))
                .or_else(|| self.paging.starts.get("page").copied());
            let page = known.map_or(1, |number| number.saturating_add(1));
            let next = as_asked(asked("page"), page);
            self.probes = known.is_none();
            return Next::With(with("page", next));
        }
        if takes("offset") {
            let start = asked("offset").and_then(cursors::whole_number);
            let start = start.or_else(|| self.paging.starts.get("offset").copied());
            let offset = start.unwrap_or(0).saturating_add(records as u64);
            return Next::With(with("offset", as_asked(asked("offset"), offset)));
        }

        if is_told {
            Next::Unknown("the server says so, without a cursor".to_owned())
        } else {
            Next::Unnamed
        }
    }
}

/// Whether the reason is a sentence at the end of the text, not a member about further pages.
fn is_at_end(reason: &str) -> bool {
    reason.starts_with("it ends with")
}

/// A number in the form in which the caller has given the argument.
fn as_asked(asked: Option<&Value>, number: u64) -> Value {
    match asked {
        Some(Value::String(_)) => number.to_string().into(),
        _ => number.into(),
    }
}

fn with(argument: &str, value: Value) -> JsonObject {
    [(argument.to_owned(), value)].into_iter().collect()
}

/// The records of a page, as JSON: the items of its list, or the value itself without a list. `None`
/// if another value is in place of the list.
fn records_of<'a>(page: &'a ResultValue, place: &RecordPlace) -> Option<Vec<Cow<'a, str>>> {
    let RecordPlace::List(path) = place else { return Some(vec![page.json()]) };
    if let Some(items) = page.items(path) {
        return Some(items);
    }

    let at = path.iter().try_fold(&page.value, |value, step| value.get(step));
    let is_missing = page.value.is_object() && at.is_none_or(Value::is_null);
    is_missing.then(Vec::new)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rmcp::model::ContentBlock;

    use super::*;

    fn paging(names: &[&str]) -> Paging {
        let arguments = names.iter().map(|name| (*name).to_owned()).collect();
        Paging { arguments, configured: None, starts: [].into() }
    }

    fn read(run: &mut Run<'_>, text: &str) -> Result<(String, Next), String> {
        run.read(CallToolResult::success(vec![ContentBlock::text(text)]), None)
    }

    fn next(arguments: &Value) -> Next {
        Next::With(arguments.as_object().unwrap().clone())
    }

    #[test]
    fn pages_are_numbered_from_0_where_page_1_is_another_page() {
        let paging = paging(&["page"]);
        for (second, after) in [("[1,2]", 2), ("[3,4]", 2)] {
            let mut run = Run::new(JsonObject::new(), &paging);
            assert_eq!(read(&mut run, "[1,2]").unwrap().1, next(&json!({ "page": 1 })));
            assert!(run.probes);
            run.arguments.extend(with("page", json!(1)));
            let (lines, following) = read(&mut run, second).unwrap();
            assert_eq!(following, next(&json!({ "page": after })));
            assert_eq!(lines.is_empty(), second == "[1,2]");
        }

        let mut run = Run::new(JsonObject::new(), &paging);
        let first = read(&mut run, r#"{"page":"0","items":[1]}"#).unwrap();
        assert_eq!((first.1, run.probes), (next(&json!({ "page": 1 })), false));
        let asked = json!({ "page": "3" }).as_object().unwrap().clone();
        let mut run = Run::new(asked, &paging);
        assert_eq!(read(&mut run, "[1]").unwrap().1, next(&json!({ "page": "4" })));
    }

    #[test]
    fn a_list_is_complete_only_where_the_server_says_so() {
        let paging = paging(&["cursor"]);
        for (text, expected) in [
            (r#"{"items":[1],"nextCursor":null}"#, Next::None),
            (r#"{"items":[1],"has_more":false}"#, Next::None),
            (r#"{"items":[]}"#, Next::None),
            (r#"{"items":[1]}"#, Next::Unnamed),
            (
                r#"{"items":[1],"has_more":false,"truncated":true}"#,
                Next::Unknown("\"truncated\" is true".to_owned()),
            ),
            (r#"{"items":[1.10],"nextCursor":"b"}"#, next(&json!({ "cursor": "b" }))),
        ] {
            let mut run = Run::new(JsonObject::new(), &paging);
            assert_eq!(read(&mut run, text).unwrap().1, expected, "{text}");
        }

        let mut run = Run::new(JsonObject::new(), &paging);
        let cut = r#"{"items":[19.90],"nextCursor":"b","partial":true}"#;
        assert_eq!(read(&mut run, cut).unwrap().0, "19.90\n");
        assert_eq!(run.cut.as_deref(), Some("page 1 is cut: partial is true"));
    }

    #[test]
    fn the_list_of_the_first_page_is_that_of_all() {
        let paging = paging(&["cursor"]);
        let mut run = Run::new(JsonObject::new(), &paging);
        read(&mut run, r#"{"items":[1,2],"tags":["a"],"nextCursor":"b"}"#).unwrap();
        let second = read(&mut run, r#"{"items":[3],"tags":["a","b"],"nextCursor":"c"}"#).unwrap();
        assert_eq!(second.0, "3\n");
        let third = read(&mut run, r#"{"tags":["a","b"],"nextCursor":null}"#).unwrap();
        assert_eq!(third, (String::new(), Next::None));
        assert_eq!((run.pages, run.records), (2, 3));
        assert!(read(&mut run, r#"{"items":"none"}"#).is_err());
    }
}
