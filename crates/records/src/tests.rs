use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The texts of the records, with the content cut into blocks of this size.
fn records(content: &str, layout: Layout, at: &str, block: usize) -> Result<Vec<String>, Fault> {
    let pointer: Pointer = at.parse().expect("it is a pointer");
    let mut splitter = Splitter::new(layout, pointer, 1 << 20);
    let mut found = Vec::new();
    let mut add = |record: Record, bytes: &[u8]| {
        assert_eq!(record.number, found.len() as u64);
        let text = String::from_utf8(bytes.to_vec()).expect("it is text");
        assert_eq!(text, content[to(record.start)..to(record.end)]);
        found.push(text);
    };

    for block in content.as_bytes().chunks(block) {
        splitter.feed(block, &mut add)?;
    }
    splitter.finish(&mut add)?;
    Ok(found)
}

fn pointed(text: &str) -> Pointer {
    text.parse().expect("it is a pointer")
}

fn to(offset: u64) -> usize {
    usize::try_from(offset).expect("it is small")
}

/// The records with blocks of every size, so that a block ends at every byte.
fn records_of_every_cut(content: &str, layout: Layout, at: &str) -> Vec<String> {
    let whole = records(content, layout, at, content.len().max(1)).expect("it has records");
    for block in 1..=content.len().min(40) {
        assert_eq!(records(content, layout, at, block).as_ref(), Ok(&whole), "blocks of {block}");
    }
    whole
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        "[a-z\"\\\\/~{}\\[\\],: \n\u{e4}\u{1F980}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-c\"\\\\~/{]{0,3}", inner), 0..5)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// JSON with a long list, in which a few bytes may be wrong.
fn any_long_list() -> impl Strategy<Value = Vec<u8>> {
    let long = "[a-z\"\\\\{}\\[\\],: ]{60,140}".prop_map(Value::from);
    let value = prop_oneof![6 => any_json(), 1 => long];
    let byte = prop::sample::select(&b"\"\\{}[],: \n\t\x0b1-+.aE_\xC3"[..]);
    let change = (any::<prop::sample::Index>(), byte, 0..3);
    let changes = prop::collection::vec(change, 0..3);

    (prop::collection::vec(value, 0..40), any::<bool>(), any::<bool>(), changes).prop_map(
        |(items, in_object, pretty, changes)| {
            let value =
                if in_object { json!({"n": 1, "rows": items, "z": 2}) } else { items.into() };
            let to_text = if pretty { serde_json::to_vec_pretty } else { serde_json::to_vec };
            let mut text = to_text(&value).expect("it is JSON");

            for (at, byte, change) in changes {
                let at = at.index(text.len());
                match change {
                    0 => text[at] = byte,
                    1 => text.insert(at, byte),
                    _ => drop(text.remove(at)),
                }
            }

            text
        },
    )
}

/// The pointers to all values in a value.
fn pointers(value: &Value, at: &Pointer, all: &mut Vec<Pointer>) {
    all.push(at.clone());
    let mut child = |name: String, value: &Value| {
        let mut at = at.clone();
        at.push(name);
        pointers(value, &at, all);
    };

    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| child(index.to_string(), item));
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| child(name.clone(), value));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn json_has_the_records_that_serde_json_finds(value in any_json(), pretty in any::<bool>(), block in 1_usize..20) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.expect("it is JSON");

        let mut all = Vec::new();
        pointers(&value, &Pointer::default(), &mut all);

        for at in all {
            let at = at.to_string();
            let found = records(&text, Layout::Json, &at, block).expect("it has records");
            let parsed = |text: &String| serde_json::from_str::<Value>(text).expect("it is JSON");

            match value.pointer(&at).expect("it is there") {
                Value::Array(items) => {
                    prop_assert_eq!(&found.iter().map(parsed).collect::<Vec<_>>(), items);
                }
                Value::Object(members) => {
                    let object = format!("{{{}}}", found.join(","));
                    prop_assert_eq!(parsed(&object), Value::Object(members.clone()));
                    prop_assert_eq!(found.len(), members.len());
                }
                scalar => prop_assert_eq!(found.iter().map(parsed).collect::<Vec<_>>(), vec![scalar.clone()]),
            }
        }

        prop_assert!(records(&text, Layout::Json, "/zz/0", block).expect("it is JSON").is_empty());
    }

    #[test]
    fn rows_agree_with_the_csv_crate(text in "[ab\",;\r\n\u{e4}]{0,60}") {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let mut starts = Vec::new();
        let mut fields = Vec::new();

        for row in reader.records() {
            let row = row.expect("it is a row");
            starts.push(row.position().expect("it was read").byte());
            fields.push(row);
        }

        let layout = Layout::Rows(Dialect::delimited(b','));
        let found = records_of_every_cut(&text, layout, "");
        prop_assert_eq!(found.len(), fields.len().saturating_sub(1), "the first row is the header");

        for (found, row) in found.iter().zip(fields.iter().skip(1)) {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(found.as_bytes());
            let again = reader.records().next().expect("there is a row").expect("it is a row");
            prop_assert_eq!(&again, row);
        }
    }

    #[test]
    fn rows_of_any_dialect_agree_with_the_csv_crate(
        text in "[ab;\"'#\\\\\r\n]{0,60}",
        quote in prop::sample::select(vec![None, Some(b'"'), Some(b'\'')]),
        escape in prop::sample::select(vec![None, Some(b'\\')]),
        skip in 0_u32..3,
        header in any::<bool>(),
    ) {
        let dialect = Dialect { delimiter: b';', quote, escape, comment: None, skip, header };
        let mut reader = dialect.reader().from_reader(dialect.below(&text).as_bytes());
        let rows: Vec<_> = reader.records().map(|row| row.expect("it is a row")).collect();
        let rows = &rows[usize::from(header).min(rows.len())..];

        let found = records_of_every_cut(&text, Layout::Rows(dialect), "");
        prop_assert_eq!(found.len(), rows.len());

        let mut parser = RowParser::new(dialect);
        for (found, row) in found.iter().zip(rows) {
            let fields = parser.fields(found.as_bytes()).expect("it is a row");
            prop_assert_eq!(fields.collect::<Vec<_>>(), row.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_index_finds_each_record_again(lines in prop::collection::vec("[a-z]{0,900}", 0..60), block in 1_usize..9000) {
        let json = serde_json::to_string(&lines).expect("it is JSON");
        let ndjson: String = lines.iter().fold(String::new(), |text, line| format!("{text}{line:?}
"));
        let table: String = std::iter::once("name\n".to_owned()).chain(lines.iter().map(|l| format!("\"{l}\n\"\n"))).collect();

        for (text, layout) in [(json, Layout::Json), (ndjson, Layout::JsonLines), (table, Layout::Rows(Dialect::delimited(b',')))] {
            let mut scanner = Scanner::new(layout, Pointer::default());
            let mut index = RecordIndex::new(layout, &Pointer::default());
            let mut all = Vec::new();

            for block in text.as_bytes().chunks(block) {
                scanner.feed(block, |record| { index.add(record); all.push(record); }).expect("it has records");
            }
            scanner.finish(|record| { index.add(record); all.push(record); }).expect("it has records");
            index.finish(&scanner);

            let stored = serde_json::to_string(&index).expect("it serialises");
            let index: RecordIndex = serde_json::from_str(&stored).expect("it is read back");

            prop_assert_eq!(index.total(), lines.len() as u64);
            prop_assert_eq!(index.nearest(lines.len() as u64), None);

            for (number, expected) in (0..).zip(&all) {
                let mark = index.nearest(number).expect("it has that record");
                prop_assert!(expected.start - mark.offset < 6 << 10, "the way is short");

                let mut scanner = index.scanner(mark);
                let mut found = None;
                let rest = &text.as_bytes()[to(mark.offset)..];
                let mut look = |record: Record| if record.number == number { found = Some(record) };
                scanner.feed(rest, &mut look).expect("it has records");
                scanner.finish(&mut look).expect("it has records");

                prop_assert_eq!(found.as_ref(), Some(expected));
            }
        }
    }
}

proptest! {
    #[test]
    fn words_give_the_lists_that_single_bytes_give(text in any_long_list(), block in 64_usize..400) {
        let lists = |block: usize| {
            let mut lists = Lists::default();
            text.chunks(block).try_for_each(|block| lists.feed(block))?;
            lists.finish_with_index()
        };
        // Blocks that are shorter than a word are scanned byte by byte.
        let expected = lists(7);
        prop_assert_eq!(&lists(text.len().max(1)), &expected);
        prop_assert_eq!(&lists(block), &expected);
    }
}

#[test]
fn members_have_their_key_and_their_value() {
    let text = r#" {"a" : 1, "b\"" :{"c":[2]} } "#;
    assert_eq!(records_of_every_cut(text, Layout::Json, ""), [r#""a" : 1"#, r#""b\"" :{"c":[2]}"#]);
    assert_eq!(records_of_every_cut(text, Layout::Json, "/b\"/c"), ["2"]);

    let mut values = Vec::new();
    let mut scanner = Scanner::new(Layout::Json, Pointer::default());
    scanner
        .feed(text.as_bytes(), |r| values.push(&text[to(r.value)..to(r.end)]))
        .expect("it is JSON");

    assert_eq!(values, ["1", r#"{"c":[2]}"#]);
    assert_eq!(scanner.container(), Some(Container::Object));
}

#[test]
fn a_pointer_has_one_form_for_each_item() {
    let text = r#"{"a": [[1], [2], {"01": [3]}]}"#;
    assert_eq!(records_of_every_cut(text, Layout::Json, "/a/0"), ["1"]);
    assert_eq!(records_of_every_cut(text, Layout::Json, "/a/1"), ["2"]);
    assert_eq!(records_of_every_cut(text, Layout::Json, "/a/2/01"), ["3"]);
    for other in ["/a/01", "/a/+1", "/a/00", "/a/ 1", "/a/-"] {
        assert!(records_of_every_cut(text, Layout::Json, other).is_empty(), "{other}");
    }
}

#[test]
fn lines_have_no_line_break_and_only_logs_have_blank_records() {
    let text = "{\"a\":1}\r\n\n  \r\n2\n\"x\"";
    assert_eq!(records_of_every_cut(text, Layout::JsonLines, ""), ["{\"a\":1}", "2", "\"x\""]);
    assert_eq!(records_of_every_cut("a\r\n\nb\n", Layout::Log, ""), ["a", "", "b"]);
}

#[test]
fn rows_span_lines_within_quotes() {
    let layout = Layout::Rows(Dialect::delimited(b'\t'));
    let text = "\u{feff}a\tb\r\n1\t\"x\ny\"\"\r\n\"\r\n\r\n2\tz";
    assert_eq!(records_of_every_cut(text, layout, ""), ["1\t\"x\ny\"\"\r\n\"", "2\tz"]);

    let mut scanner = Scanner::new(layout, Pointer::default());
    scanner.feed(text.as_bytes(), |_| {}).expect("there are rows");
    assert_eq!(scanner.header(), Some(3..6));
}

#[test]
fn malformed_json_is_refused_with_the_offset_of_the_fault() {
    let fault = |text: &str| records(text, Layout::Json, "", 3).expect_err("it is no JSON");
    assert_eq!(fault("[1 2]"), Fault::Malformed { offset: 3 });
    assert_eq!(fault("[1}"), Fault::Malformed { offset: 2 });
    assert_eq!(fault("{1:2}"), Fault::Malformed { offset: 1 });
    assert_eq!(fault("[1,]"), Fault::Malformed { offset: 3 });
    assert_eq!(fault("[1,\"a"), Fault::Truncated { offset: 5 });
    assert_eq!(fault(""), Fault::Truncated { offset: 0 });
    assert_eq!(fault("[1]\n[2]\n"), Fault::Malformed { offset: 4 });
    assert_eq!(fault("hello world"), Fault::Malformed { offset: 6 });

    let deep = "[".repeat(200_000);
    assert_eq!(fault(&deep), Fault::TooDeep { offset: MAX_DEPTH as u64 });
    let nested = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
    assert!(records(&nested, Layout::Json, "", 7).is_ok());
}

#[test]
fn a_record_over_the_limit_is_refused() {
    let mut splitter = Splitter::new(Layout::Log, Pointer::default(), 10);
    assert_eq!(splitter.feed(b"short\n12345", |_, _| {}), Ok(()));
    let fault = Fault::TooLong { offset: 6, limit: 10 };
    assert_eq!(splitter.feed(b"67890-", |_, _| {}), Err(fault));
}

#[test]
fn lists_are_found_at_their_pointers() {
    let value = json!({
        "meta": {"tags": ["a"], "none": {}, "n": 1}, "items": [{"a": [1, 2]}, [], 3], "a/b": [],
        "last": {"x": {"rows": [1, 2, [3]]}},
    });

    for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("it is JSON")] {
        for block in 1..text.len() {
            let mut lists = Lists::default();
            for block in text.as_bytes().chunks(block) {
                lists.feed(block).expect("it is JSON");
            }

            let found = lists.finish().expect("it is JSON");
            let found: Vec<_> = found.iter().map(|l| (l.at.to_string(), l.items)).collect();
            let expected = [("/meta/tags", 1), ("/items", 3), ("/a~1b", 0), ("/last/x/rows", 3)];
            assert_eq!(found, expected.map(|(at, items)| (at.to_owned(), items)));
        }
    }

    let mut lists = Lists::default();
    lists.feed(b"[[1], 2]").expect("it is JSON");
    assert_eq!(lists.finish().expect("it is JSON"), [List { at: Pointer::default(), items: 2 }]);
}

#[test]
fn an_index_stays_small() {
    let layout = Layout::Log;
    let mut index = RecordIndex::new(layout, &Pointer::default());
    for number in 0..1_000_000_u64 {
        let start = number * 5_000;
        index.add(Record { number, start, value: start, end: start + 4_999 });
    }

    assert!(serde_json::to_string(&index).expect("it serialises").len() < 32 << 10);
    assert!(index.memory_bytes() < 70_000);

    let mark = index.nearest(999_999).expect("it has that record");
    assert!(999_999 - mark.number < 512);
    assert_eq!(mark.offset, mark.number * 5_000);
}

/// The records that an index finds, each on one line.
fn compact_records(text: &str, index: &RecordIndex) -> Vec<String> {
    let Some(mark) = index.nearest(0) else { return Vec::new() };
    let mut scanner = index.scanner(mark);
    let mut found = Vec::new();
    let rest = &text.as_bytes()[to(mark.offset)..];
    scanner.feed(rest, |record| found.push(record)).expect("it has records");
    scanner.finish(|record| found.push(record)).expect("it has records");

    let compacted = |Record { start, end, .. }: Record| {
        let mut line = Vec::new();
        compact_record(&text.as_bytes()[to(start)..to(end)], index.container(), &mut line);
        String::from_utf8(line).expect("it is text")
    };
    found.into_iter().map(compacted).collect()
}

#[test]
fn the_outermost_list_is_indexed_wherever_blocks_end() {
    let cases = [
        (json!([1, [2, 3], {"a": []}]), "", Container::List, "1 [2,3] {\"a\":[]}"),
        (
            json!({"errors": [], "items": [{"a": [1, 2]}, "b"], "n": 1}),
            "/items",
            Container::List,
            "{\"a\":[1,2]} \"b\"",
        ),
        (
            json!({"data": {"rows": [1, 2]}, "z": {"y": {"x": [1, 2, 3]}}}),
            "/data/rows",
            Container::List,
            "1 2",
        ),
        (
            json!({"a": {"x": [1]}, "b": {"y": [2]}}),
            "",
            Container::Object,
            "{\"a\":{\"x\":[1]}} {\"b\":{\"y\":[2]}}",
        ),
        (json!({"a": {"x": [1]}, "b": {"y": [2]}, "c": [3]}), "/c", Container::List, "3"),
        (json!({"a": 1, "b": "x y"}), "", Container::Object, "{\"a\":1} {\"b\":\"x y\"}"),
        (json!("one value"), "", Container::Scalar, "\"one value\""),
        (json!([]), "", Container::List, ""),
    ];

    for (value, at, container, records) in cases {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("it is JSON")] {
            for block in 1..=text.len() {
                let mut indexers =
                    [Indexer::new(Layout::Json), Indexer::at(Layout::Json, pointed(at))];
                for block in text.as_bytes().chunks(block) {
                    for indexer in &mut indexers {
                        indexer.feed(block).expect("it is JSON");
                    }
                }

                let [found, known] = indexers.map(|indexer| indexer.finish().expect("it is JSON"));
                assert_eq!(found, known, "{text} in blocks of {block}");
                let index = found.expect("it has a value there");
                assert_eq!((index.at(), index.container()), (at, container), "{text}");

                let lines = compact_records(&text, &index);
                assert_eq!(lines.len() as u64, index.total());
                assert_eq!(lines.join(" "), records);
            }
        }
    }
}

#[test]
fn content_without_a_value_at_the_pointer_has_no_index() {
    let mut indexer = Indexer::at(Layout::Json, pointed("/b"));
    indexer.feed(b"{\"a\": []}").expect("it is JSON");
    assert_eq!(indexer.finish(), Ok(None));
}

#[test]
fn truncated_content_has_no_index() {
    let mut indexer = Indexer::new(Layout::Json);
    indexer.feed(b"{\"a\": [").expect("it may be JSON");
    assert!(matches!(indexer.finish(), Err(Fault::Truncated { .. })));
}

#[test]
fn white_space_within_strings_is_kept() {
    let mut out = Vec::new();
    compact_record(br#"{ "a\\" : "b \" c" , "d": [ 1 ] }"#, Container::List, &mut out);
    assert_eq!(out, br#"{"a\\":"b \" c","d":[1]}"#);
}
