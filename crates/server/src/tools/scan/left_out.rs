//! A search that leaves out blocks reports what one that reads all of them reports.

#![allow(clippy::unwrap_used)]

use std::{fmt::Write, sync::Arc};

use larder_oauth::Owner;
use larder_runtime::clock::SystemClock;
use larder_store::store::{
    Details, MemoryLimits, RequiredText, ResourceUri, Store, StoreLimits, StoredResource,
};

use super::{LinePart, LineSink, Search, scan};
use crate::tools::{regex, required_text::required_text};

/// The reported lines.
#[derive(Debug, Default, PartialEq)]
struct Lines(Vec<(char, u64, String)>);

impl LineSink for Lines {
    fn matched(&mut self, part: &LinePart<'_>) {
        let text = String::from_utf8_lossy(part.text).into_owned();
        self.0.push((':', part.line, text));
        self.0.push(('n', part.count, part.offset.to_string()));
    }

    fn context(&mut self, line: u64, text: &[u8]) {
        self.0.push(('-', line, String::from_utf8_lossy(text).into_owned()));
    }

    fn gap(&mut self) {
        self.0.push(('~', 0, String::new()));
    }
}

/// A log of two megabytes that has these texts, each in the line that begins at or after its
/// offset.
async fn stored(texts: &[(usize, &str)]) -> StoredResource {
    let mut log = String::new();
    let mut texts = texts.iter().peekable();

    for n in 0_u32.. {
        let is_due = texts.next_if(|(offset, _)| *offset <= log.len());
        let event = is_due.map_or("ok", |(_, text)| text);
        writeln!(log, "2026-01-01 host-{} {event} took={}ms", n % 500, n * 7919 % 977).unwrap();
        if log.len() > 2_000_000 {
            break;
        }
    }

    // Each test has content of its own, because all tests share the block cache.
    write!(log, "the end of {:?}", std::thread::current().name()).unwrap();

    let owner = Owner::new("left-out");
    let uri = ResourceUri::parse("log://all").unwrap();
    let store =
        Store::memory(Arc::new(SystemClock), MemoryLimits::default(), StoreLimits::default());
    let entry = store.create(&owner, uri, log.into(), Details::default()).await.unwrap();
    store.get(&owner, &entry.uri).await.unwrap()
}

async fn lines(
    found: &StoredResource,
    query: &str,
    context: usize,
    required: Option<RequiredText>,
) -> Lines {
    let matcher = regex::matcher(query, regex::Syntax::default()).unwrap();
    let search = Search {
        matcher,
        required,
        context,
        invert: false,
        counts: true,
        keeps_filters: true,
        escapes: Arc::default(),
    };
    scan(&found.entry.owner, found, search, Lines::default()).await.unwrap()
}

#[tokio::test]
async fn the_lines_are_those_of_a_search_that_reads_all_blocks() {
    let long = format!("long{}long", "x".repeat(700_000));
    let block = 256 << 10;
    let found = stored(&[
        (1_000, "a Timeout of the disk"),
        (block - 40, "a needle near the end of a block"),
        (2 * block - 10, "needles of zinc"),
        (3 * block, &long),
        (1_900_000, "a timeout of the needle"),
    ])
    .await;

    let queries = [
        "a needle",
        "needles?",
        "(?i)a timeout",
        "timeout of",
        "of zinc$",
        "xxlong",
        "^2026.*of zinc",
        "the end of",
        "nothing at all",
        "(?i)DISK",
        "took=1ms",
    ];

    for round in 0..2 {
        for query in queries {
            for context in [0, 1, 7] {
                let all = lines(&found, query, context, None).await;
                let required = required_text(query, regex::Syntax::default());
                assert_eq!(required.is_none(), query == "(?i)DISK", "{query}");
                let some = lines(&found, query, context, required).await;
                assert_eq!(some, all, "{query}, {context} lines of context, round {round}");
            }
        }
    }
}

/// The blocks that a search for this text reads.
async fn read(found: &StoredResource, text: &str) -> Vec<usize> {
    let required = required_text(text, regex::Syntax::default()).unwrap();
    let ranges = found.blocks_to_search(&found.entry.owner, &required, 0).await.unwrap();
    ranges.into_iter().flatten().collect()
}

#[tokio::test]
async fn the_first_search_leaves_out_blocks() {
    let found = stored(&[(300_000, "a needle")]).await;

    assert_eq!(read(&found, "a needle").await, [0, 1, 2]);
    assert_eq!(read(&found, "pineapples").await, [0_usize; 0]);

    let absent = required_text("pineapples", regex::Syntax::default());
    assert_eq!(lines(&found, "pineapples", 0, absent).await, Lines::default());
}

#[tokio::test]
async fn content_that_another_instance_wrote_is_filtered_after_its_first_search() {
    let found = stored(&[(300_000, "a needle")]).await;

    // Filters are found by their owner, so this process has no filter of this owner.
    let mut entry = (*found.entry).clone();
    entry.owner = Owner::new("of another instance");
    let found = StoredResource { entry: Arc::new(entry), ..found };
    let all: Vec<usize> = (0..found.entry.blocks.len()).collect();

    assert_eq!(read(&found, "a needle").await, all);

    lines(&found, "something else", 0, None).await;
    assert_eq!(read(&found, "a needle").await, [0, 1, 2]);
}
