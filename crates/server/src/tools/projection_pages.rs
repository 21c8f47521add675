//! `pages`: the pages of a list, each by the cursor of the page before, into one resource.

use std::{collections::HashSet, io, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use larder_protocol::quote::shortened;
use larder_records::words::count;
use larder_store::store::{Content, Details, Entry, ResourceUri};
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::projection_each::value_of;
use crate::{
    handler::{Context, ToolError},
    registry::Paging,
};

/// The members that have the cursor of the next page, the surest first.
const CURSORS: [&str; 12] = [
    "nextCursor",
    "next_cursor",
    "nextPageToken",
    "next_page_token",
    "nextToken",
    "next_token",
    "continuationToken",
    "endCursor",
    "next_page",
    "nextPage",
    "next_offset",
    "next",
];
/// The members that hold others about pages.
const PAGINGS: [&str; 8] =
    ["pageInfo", "page_info", "paging", "pagination", "meta", "metadata", "links", "data"];
/// The members that say whether there is a next page.
const FLAGS: [&str; 6] =
    ["has_more", "hasMore", "hasNextPage", "has_next_page", "has_next", "hasNext"];
/// The arguments that take a cursor.
const ARGUMENTS: [&str; 14] = [
    "cursor",
    "next_cursor",
    "nextCursor",
    "page_token",
    "pageToken",
    "next_token",
    "nextToken",
    "continuation_token",
    "continuationToken",
    "after",
    "starting_after",
    "start_cursor",
    "next",
    "token",
];

/// The pages of a list.
pub(super) struct Pages {
    pub(super) entry: Arc<Entry>,
    pages: u64,
    records: u64,
    end: End,
}

/// How a list has ended.
enum End {
    /// No page follows.
    Complete,
    /// More pages follow than were wanted.
    More(String),
    /// A page is missing or wrong, and why.
    Broken(String),
}

impl Pages {
    /// `3 pages of list_issues: 90 records, complete`
    pub(super) fn summary(&self, tool: &str) -> String {
        let end = match &self.end {
            End::Complete => "complete".to_owned(),
            End::More(next) => format!("NOT complete: more follow ({next})"),
            End::Broken(problem) => format!("NOT complete: {problem}"),
        };
        format!("{} of {tool}: {}, {end}", count(self.pages, "page"), count(self.records, "record"))
    }

    /// Whether a page is missing or wrong.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.end, End::Broken(_))
    }
}

/// The next page.
enum Next {
    None,
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
        let mut run =
            Run { arguments, seen: HashSet::new(), before: Vec::new(), pages: 0, records: 0 };
        let end = loop {
            match run.page(ctx, tool, paging).await {
                Err(problem) => break End::Broken(problem),
                Ok((lines, next)) => {
                    ctx.progress(run.pages).of(max).await;
                    // The store has failed if nobody receives, which it says itself.
                    if sender.send(Ok(lines.into())).await.is_err() {
                        break End::Broken("the records could not be stored".to_owned());
                    }
                    match next {
                        Next::None => break End::Complete,
                        Next::Unknown(next) => break End::More(next),
                        Next::With(next) if run.pages == max => {
                            break End::More(Value::Object(next).to_string());
                        }
                        Next::With(next) => run.arguments.extend(next),
                    }
                }
            }
        };
        drop(sender);
        (run.pages, run.records, end)
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

    let ((pages, records, end), stored) = tokio::join!(calling, storing);
    Ok(Pages { entry: stored?, pages, records, end })
}

/// The pages so far.
struct Run {
    /// The arguments of the next call.
    arguments: JsonObject,
    /// The arguments of earlier pages.
    seen: HashSet<String>,
    /// The records of the page before.
    before: Vec<Value>,
    pages: u64,
    records: u64,
}

impl Run {
    /// The records of the next page as lines, and the page after it.
    async fn page(
        &mut self,
        ctx: &Context<()>,
        tool: &str,
        paging: &Paging,
    ) -> Result<(String, Next), String> {
        let number = self.pages + 1;
        if !self.seen.insert(Value::Object(self.arguments.clone()).to_string()) {
            return Err(format!("page {number} would have a cursor that an earlier page had"));
        }

        let called = ctx.call_tool(tool, Value::Object(self.arguments.clone())).await;
        let result = called.map_err(|fault| format!("page {number} failed: {fault}"))?;
        let is_error = result.is_error == Some(true);
        let value = value_of(result);
        if is_error {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            return Err(format!("page {number} failed: {}", shortened(&text)));
        }

        self.check_number(&value, number)?;
        let records = records_of(&value);
        if !records.is_empty() && records == self.before {
            return Err(format!("page {number} has the records of the page before"));
        }

        let next = self.next(&value, records.len(), paging);
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        self.pages = number;
        self.records += records.len() as u64;
        self.before = records;
        Ok((lines, next))
    }

    /// Checks that a page is the page that was asked for.
    fn check_number(&self, value: &Value, number: u64) -> Result<(), String> {
        let asked = self.arguments.get("page").and_then(Value::as_u64);
        let got = value.get("page").and_then(Value::as_u64);
        match (asked, got) {
            (Some(asked), Some(got)) if asked != got && number > 1 => {
                Err(format!("page {asked} was asked for, and page {got} came"))
            }
            _ => Ok(()),
        }
    }

    /// The arguments of the page after one with this value.
    fn next(&self, value: &Value, records: usize, paging: &Paging) -> Next {
        let takes = |name: &str| paging.arguments.iter().any(|argument| argument == name);
        let flag = flag(value);
        if flag == Some(false) {
            return Next::None;
        }

        if let Some((member, cursor)) = cursor(value) {
            let given = format!("{member} is {}", shortened(&cursor.to_string()));
            if let Some(argument) = &paging.configured {
                return Next::With(with(argument, cursor));
            }
            if let Some(arguments) = cursor.as_str().and_then(|url| of_url(url, &takes)) {
                return Next::With(arguments);
            }

            let same = [member.as_str()].into_iter();
            let names = match member.as_str() {
                "next_page" | "nextPage" => vec!["page"],
                "next_offset" => vec!["offset"],
                "next" if cursor.is_number() => vec!["page", "offset"],
                _ => Vec::new(),
            };
            let mut names = names.into_iter().chain(ARGUMENTS).chain(same).chain(["page"]);
            return match names.find(|name| takes(name)) {
                Some(argument) => Next::With(with(argument, cursor)),
                None => Next::Unknown(given),
            };
        }

        // Without a cursor, pages have numbers or offsets, until one has fewer records.
        let is_last = records == 0 || (!self.before.is_empty() && records < self.before.len());
        let number = |name: &str| self.arguments.get(name).and_then(Value::as_u64);
        match flag {
            None if is_last => Next::None,
            _ if takes("page") => Next::With(with("page", json!(number("page").unwrap_or(1) + 1))),
            _ if takes("offset") => {
                let next = number("offset").unwrap_or(0) + records as u64;
                Next::With(with("offset", json!(next)))
            }
            Some(true) => Next::Unknown("the server says so, without a cursor".to_owned()),
            _ => Next::None,
        }
    }
}

fn with(argument: &str, value: Value) -> JsonObject {
    [(argument.to_owned(), value)].into_iter().collect()
}

/// The arguments in the query of a URL of the next page.
fn of_url(url: &str, takes: &impl Fn(&str) -> bool) -> Option<JsonObject> {
    let url = reqwest::Url::parse(url).ok()?;
    let pairs = url.query_pairs().filter(|(name, _)| takes(name));
    let arguments: JsonObject = pairs
        .map(|(name, value)| {
            let value = value.parse::<u64>().map_or_else(|_| json!(value), |number| json!(number));
            (name.into_owned(), value)
        })
        .collect();
    (!arguments.is_empty()).then_some(arguments)
}

/// The parts of a value that may speak of pages.
fn parts(value: &Value) -> impl Iterator<Item = &Value> {
    let below = PAGINGS.iter().filter_map(|name| value.get(*name));
    let deeper = value
        .get("data")
        .into_iter()
        .flat_map(|data| PAGINGS.iter().filter_map(|name| data.get(*name)));
    [value].into_iter().chain(below).chain(deeper).filter(|part| part.is_object())
}

fn flag(value: &Value) -> Option<bool> {
    parts(value).find_map(|part| FLAGS.iter().find_map(|name| part.get(*name)?.as_bool()))
}

/// The member with the cursor of the next page.
fn cursor(value: &Value) -> Option<(String, Value)> {
    let is_cursor = |value: &&Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_u64().is_some_and(|number| number > 0),
        _ => false,
    };
    parts(value).find_map(|part| {
        CURSORS.iter().find_map(|name| {
            let cursor = part.get(*name).filter(is_cursor)?;
            Some(((*name).to_owned(), cursor.clone()))
        })
    })
}

/// The records of a page: its longest list, or the value itself.
fn records_of(value: &Value) -> Vec<Value> {
    if let Value::Array(items) = value {
        return items.clone();
    }

    let members = |value: &Value| {
        value.as_object().into_iter().flat_map(JsonObject::values).cloned().collect::<Vec<_>>()
    };
    let near = members(value);
    let below: Vec<_> = near.iter().filter(|value| value.is_object()).flat_map(members).collect();
    let lists = near.into_iter().chain(below).filter_map(|value| match value {
        Value::Array(items) => Some(items),
        _ => None,
    });
    lists.max_by_key(Vec::len).unwrap_or_else(|| vec![value.clone()])
}
