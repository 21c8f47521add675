//! The index of records is kept with the content.

use std::sync::Arc;

use larder_records::{Dialect, Layout, RecordIndex};

use super::{Caller, Harness, Setup, in_pieces};
use crate::store::{Content, Details, Entry, StoreLimits};

/// A list of `items` objects, within an object.
fn list(items: usize) -> Content {
    let items: Vec<_> = (0..items).map(|n| format!("{{\"id\": {n}, \"é\": [{n}]}}")).collect();
    Content::text_stream(in_pieces(format!("{{\"data\": [{}]}}", items.join(",\n"))))
}

/// A table of `rows` rows, each of two lines.
fn table(rows: usize) -> Content {
    let rows: Vec<_> = (0..rows).map(|n| format!("{n},\"a\nb\"\n")).collect();
    let rows = rows.concat();
    Content::text_stream(in_pieces(format!("id,text\n{rows}")))
}

fn typed(mime_type: &str) -> Details {
    Details { mime_type: Some(mime_type.into()), ..Details::default() }
}

fn index(entry: &Entry) -> Arc<RecordIndex> {
    entry.records.clone().expect("it has an index")
}

/// The index of JSON and of a table is stored with the content, and each revision has its own.
/// Content that does not match its type is stored without an index.
pub async fn the_record_index_is_that_of_each_revision(harness: &dyn Harness) {
    let limits = StoreLimits { revisions: 3, ..StoreLimits::default() };
    let store = harness.store(Setup { limits, ..Setup::default() }).await;
    let alice = Caller::new(&store, "alice");

    let rows = Layout::Rows(Dialect::delimited(b','));
    for (uri, mime_type, make, layout, at) in [
        ("test://json", "application/json", list as fn(usize) -> Content, Layout::Json, "/data"),
        ("test://table", "text/csv", table, rows, ""),
    ] {
        let written = alice.create(uri, make(30_000), typed(mime_type)).await;
        let first = index(&written);
        assert_eq!((first.layout(), first.at(), first.total()), (layout, at, 30_000));

        let found = alice.get(uri).await;
        assert_eq!(index(&found.entry), first);

        let updated = alice.update(uri, make(2_000)).await;
        let second = index(&updated);
        assert_eq!((second.layout(), second.total()), (layout, 2_000));
        assert_eq!(index(&alice.get(uri).await.entry), second);

        let revisions = store.revisions(&alice.owner, &super::resource_uri(uri)).await;
        let revisions = revisions.expect("it exists");
        let totals: Vec<_> = revisions.iter().map(|found| index(&found.entry).total()).collect();
        assert_eq!(totals, [30_000, 2_000]);

        alice.update(uri, "[1, 2").await;
        assert_eq!(alice.get(uri).await.entry.records, None);
        let broken = alice.create(uri, "[{]".repeat(20_000), typed("application/json")).await;
        assert_eq!((broken.size, &broken.records), (60_000, &None));
    }
}

/// The index counts towards the quota, as other metadata does.
pub async fn the_record_index_counts(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let indexed = alice.create("test://a", list(5_000), typed("application/json")).await;
    let index = index(&indexed);

    let entry = Entry { records: None, ..Entry::clone(&indexed) };
    assert_eq!(indexed.counted_bytes(), entry.counted_bytes() + index.memory_bytes());
    assert!((500..4_000).contains(&index.memory_bytes()));
}
