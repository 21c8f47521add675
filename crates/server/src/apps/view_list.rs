//! `view_list`

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    hash::{DefaultHasher, Hash, Hasher},
};

use larder_runtime::clock::Timestamp;
use larder_store::store::Entry;
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_scopes, result};
use crate::{
    handler::{Context, ToolError},
    registry::Tool,
};

/// The tool by which models list what is stored.
const LISTING_TOOL: &str = "list_resources";
/// The most resources of one page.
const MAX_LIMIT: usize = 50;
/// The most resources that one call compares.
const MAX_COMPARED: usize = 100_000;
/// The most folders of one answer.
const MAX_FOLDERS: usize = 500;
/// How many of them are read from the store at once.
const BATCH: usize = 1000;
/// The most bytes of a cursor: a name and a URI, with JSON around them.
const MAX_CURSOR: usize = 16 << 10;

/// Lists stored resources in an order, for the console.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewList {
    /// The sort key. `uri` by default.
    #[serde(default)]
    sort: Sort,
    /// Whether the greatest come first.
    #[serde(default)]
    descending: bool,
    /// Only URIs that begin with this.
    #[serde(default)]
    prefix: Option<String>,
    /// The cursor of the page before.
    #[serde(default)]
    after: Option<String>,
    /// The most resources to return. 50 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: Option<usize>,
    /// Whether resources below the next slash are counted as folders.
    #[serde(default)]
    folders: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Uri,
    Name,
    Size,
    Created,
    Expires,
}

/// A position in the order: the value, then the URI, so that each resource has its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ListPosition(SortKey, String);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
enum SortKey {
    Number(u64),
    Text(String, String),
}

#[derive(Debug, Serialize)]
struct Listed {
    /// All folders, on the first page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    folders: Vec<Folder>,
    /// How many further folders there are, which are not counted.
    #[serde(skip_serializing_if = "is_zero")]
    more_folders: usize,
    resources: Vec<ListedItem>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct ListedItem {
    uri: String,
    name: String,
    mime_type: String,
    size: u64,
    created: String,
    expires: String,
}

pub(super) fn tool<S: Send + Sync + 'static>() -> Tool<S> {
    Tool::new(|ctx: Context<S>, args: ViewList| async move { view(&ctx, args).await })
}

/// A page is found without keeping all resources: each call reads the entries in batches and keeps
/// the first of those that come after its cursor, so its memory is one batch and one page. It costs
/// time in proportion to the number of resources, which is bounded.
async fn view<S>(ctx: &Context<S>, args: ViewList) -> Result<CallToolResult, ToolError> {
    check_scopes(ctx, LISTING_TOOL)?;

    let limit = args.limit.unwrap_or(MAX_LIMIT).clamp(1, MAX_LIMIT);
    let cursor = args.after.as_deref().map(position).transpose()?;
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let owner = ctx.identity().owner();

    let mut first = First::new(limit, args.descending, cursor.clone());

    // The store lists by URI, so a page in this order is one batch.
    let is_in_order = args.sort == Sort::Uri && !args.descending && !args.folders;
    let mut after = cursor.filter(|_| is_in_order).map(|ListPosition(_, uri)| uri);
    let batch = if is_in_order { limit + 1 } else { BATCH };
    let mut compared = 0;
    let mut folders = Folders::default();

    loop {
        let store = ctx.resource_store();
        let page = store.list(owner, prefix, after.as_deref(), batch).await?;
        compared += page.entries.len();
        after = page.entries.last().map(|entry| entry.uri.as_str().to_owned());

        // A store in memory never waits, and other requests need the thread, too.
        tokio::task::yield_now().await;
        for entry in page.entries {
            let is_below = args.folders && folders.count(prefix, &entry);
            if !is_below {
                first.offer(args.sort, &entry);
            }
        }

        if !page.more || is_in_order {
            break;
        }

        if compared >= MAX_COMPARED {
            return Err(ToolError::permanent(format!(
                "There are more than {MAX_COMPARED} resources, which are too many to sort: give \
                 a prefix of their URIs."
            )));
        }
    }

    let (items, more) = first.finish();
    let next = items.last().filter(|_| more).map(|found| {
        // A position always serializes.
        serde_json::to_string(&found.position).unwrap_or_default()
    });

    let resources: Vec<_> = items.into_iter().map(|found| found.item).collect();
    let text = format!("{} resources in order.", resources.len());
    // Further pages have the same folders.
    let folders = if args.after.is_none() { folders } else { Folders::default() };
    let (folders, more_folders) = folders.finish();
    result(text, &Listed { folders, more_folders, resources, next })
}

/// Resources whose URIs go on below a slash, by the part up to it.
#[derive(Debug, Default)]
struct Folders {
    counted: BTreeMap<String, FolderCount>,
    more: BTreeSet<u64>,
}

/// The number and size of the resources in a folder and below it.
#[derive(Debug, Default)]
struct FolderCount {
    resources: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Folder {
    /// The prefix of the URIs in the folder.
    prefix: String,
    resources: u64,
    bytes: u64,
}

impl Folders {
    /// Counts a resource in its folder below `prefix`. Returns whether it is in one.
    fn count(&mut self, prefix: &str, entry: &Entry) -> bool {
        let Some(folder) = folder(prefix, entry.uri.as_str()) else { return false };

        if self.counted.len() >= MAX_FOLDERS && !self.counted.contains_key(folder) {
            let mut hasher = DefaultHasher::new();
            folder.hash(&mut hasher);
            self.more.insert(hasher.finish());
            return true;
        }

        let counted = self.counted.entry(folder.to_owned()).or_default();
        counted.resources += 1;
        counted.bytes += entry.size;
        true
    }

    /// The folders in order, and how many more there are.
    fn finish(self) -> (Vec<Folder>, usize) {
        let folders = self
            .counted
            .into_iter()
            .map(|(prefix, FolderCount { resources, bytes })| Folder { prefix, resources, bytes });
        (folders.collect(), self.more.len())
    }
}

/// The part of a URI up to the slash that follows `prefix`; of `a://b/c` first `a://`. None if
/// nothing follows that slash.
fn folder<'a>(prefix: &str, uri: &'a str) -> Option<&'a str> {
    let rest = uri.strip_prefix(prefix)?;
    let slash = rest.find('/')?;
    let slashes = rest[slash..].bytes().take_while(|byte| *byte == b'/').count();
    let end = slash + slashes;
    (end < rest.len()).then(|| &uri[..prefix.len() + end])
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn position(cursor: &str) -> Result<ListPosition, ToolError> {
    let read = (cursor.len() <= MAX_CURSOR).then(|| serde_json::from_str(cursor).ok()).flatten();
    read.ok_or_else(|| ToolError::permanent("The cursor is not valid: begin without `after`."))
}

fn key(sort: Sort, entry: &Entry) -> SortKey {
    let time = |time: Timestamp| SortKey::Number(time.as_millis());

    match sort {
        // People look for a name whatever its case.
        Sort::Name => SortKey::Text(entry.name.to_lowercase(), entry.name.clone()),
        Sort::Uri => SortKey::Number(0),
        Sort::Size => SortKey::Number(entry.size),
        Sort::Created => time(entry.created),
        Sort::Expires => time(entry.expires),
    }
}

/// The first `limit` resources after a cursor.
struct First {
    limit: usize,
    descending: bool,
    cursor: Option<ListPosition>,
    /// The last one in the order is at the top, where a better one replaces it.
    heap: BinaryHeap<FoundResources>,
    more: bool,
}

struct FoundResources {
    position: ListPosition,
    descending: bool,
    item: ListedItem,
}

impl First {
    fn new(limit: usize, descending: bool, cursor: Option<ListPosition>) -> Self {
        Self { limit, descending, cursor, heap: BinaryHeap::new(), more: false }
    }

    fn offer(&mut self, sort: Sort, entry: &Entry) {
        let position = ListPosition(key(sort, entry), entry.uri.as_str().to_owned());
        let order = |one: &ListPosition, other: &ListPosition| ordered(self.descending, one, other);
        if self.cursor.as_ref().is_some_and(|cursor| order(&position, cursor).is_le()) {
            return;
        }

        if self.heap.len() == self.limit {
            self.more = true;
            let last = self.heap.peek();
            if last.is_some_and(|last| order(&position, &last.position).is_ge()) {
                return;
            }

            self.heap.pop();
        }

        let item = ListedItem {
            uri: entry.uri.as_str().to_owned(),
            name: entry.name.clone(),
            mime_type: entry.mime_type.clone(),
            size: entry.size,
            created: entry.created.to_string(),
            expires: entry.expires.to_string(),
        };
        self.heap.push(FoundResources { position, descending: self.descending, item });
    }

    /// The resources in order, and whether there are more.
    fn finish(self) -> (Vec<FoundResources>, bool) {
        (self.heap.into_sorted_vec(), self.more)
    }
}

fn ordered(descending: bool, one: &ListPosition, other: &ListPosition) -> Ordering {
    if descending { other.cmp(one) } else { one.cmp(other) }
}

impl Ord for FoundResources {
    fn cmp(&self, other: &Self) -> Ordering {
        ordered(self.descending, &self.position, &other.position)
    }
}

impl PartialOrd for FoundResources {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FoundResources {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for FoundResources {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_ends_with_the_next_slashes() {
        for (prefix, uri, expected) in [
            ("", "ci://builds/4127", Some("ci://")),
            ("ci://", "ci://builds/4127", Some("ci://builds/")),
            ("ci://builds/", "ci://builds/4127", None),
            ("", "x:many/1", Some("x:many/")),
            ("", "x:1", None),
            ("", "x:a/", None),
            ("x:a", "x:ab/c", Some("x:ab/")),
            ("x:a/", "x:a//b", Some("x:a//")),
            ("y:", "x:1/2", None),
            ("", "x:ä/ö/ü", Some("x:ä/")),
        ] {
            assert_eq!(folder(prefix, uri), expected, "{prefix} {uri}");
        }
    }
}
