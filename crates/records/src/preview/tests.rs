#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::Dialect;

fn sample(content: &[u8], is_text: bool) -> Sample<'_> {
    let lines = std::str::from_utf8(content).ok().map(|text| text.lines().count() as u64);

    Sample {
        mime_type: None,
        is_text,
        size: content.len() as u64,
        lines: lines.filter(|_| is_text),
        head: &content[..content.len().min(HEAD_BYTES)],
        tail: &content[content.len().saturating_sub(TAIL_BYTES)..],
        value: None,
    }
}

fn preview(text: &str) -> Preview {
    Preview::new(&sample(text.as_bytes(), true), 3000)
}

#[test]
fn json_that_is_seen_whole_is_counted() {
    let rows: Vec<_> = (0u16..500)
        .map(|n| {
            let mut row =
                json!({ "id": n, "score": f64::from(n) / 2.0, "tags": vec!["a"; usize::from(n) % 3] });
            if n % 2 == 0 {
                row["note"] = json!("x");
            }
            row
        })
        .collect();
    let preview = preview(&json!({ "rows": rows, "next": null }).to_string());

    assert_eq!(preview.format, Format::Json);
    assert_eq!(
        preview.facts,
        [
            "JSON: an object with rows (list of 500), next",
            "Shape: { rows: [500 x { id: integer, score: number, tags: [0-2 x string], note?: string }], next: null }",
        ]
    );
}

#[test]
fn json_that_is_seen_in_part_is_never_counted_as_a_whole() {
    let rows: Vec<_> =
        (0..50_000).map(|n| json!({ "id": n, "name": format!("row {n}") })).collect();
    let text = json!(rows).to_string();
    let preview = preview(&text);

    assert_eq!(preview.format, Format::Json);
    let [summary, shape] = &preview.facts[..] else { panic!("{preview:?}") };
    assert!(
        summary.starts_with("JSON: a list of about ")
            && summary.contains("by the size of the first"),
        "{summary}"
    );
    assert!(shape.contains("from the first 131,072 bytes"), "{shape}");
    // No record is cut: all have both members.
    assert!(shape.ends_with("+ x { id: integer, name: string }]"), "{shape}");

    assert!(!preview.is_whole());
    assert!(preview.tail.unwrap().text.ends_with("\"row 49999\"}]"));
}

#[test]
fn items_are_not_counted_if_none_ends_in_the_sample() {
    let preview = preview(&json!([{ "numbers": vec![1; 200_000] }, 2, 3]).to_string());
    assert_eq!(
        preview.facts[0],
        "JSON: a list whose first item is longer than the first 131,072 bytes"
    );
}

#[test]
fn a_value_in_memory_is_counted_however_large() {
    let value = json!({ "rows": vec![json!({ "id": 1 }); 100_000] });
    let text = value.to_string();
    let preview =
        Preview::new(&Sample { value: Some(&value), ..sample(text.as_bytes(), true) }, 2000);

    assert_eq!(preview.facts[1], "Shape: { rows: [100000 x { id: integer }] }");
}

#[test]
fn lines_of_json_are_records() {
    let lines: Vec<_> = (0..3000).map(|n| json!({ "n": n }).to_string() + "\n").collect();
    let text = lines.concat();
    let preview = preview(&text);

    assert_eq!(preview.format, Format::JsonLines);
    assert_eq!(
        preview.facts,
        ["JSON, one value a line: 3,000 lines", "Shape (from the first 200 lines): { n: integer }",]
    );
}

#[test]
fn tables_have_columns_types_and_rows() {
    let mut text = "id,name,price,when,ok,note\n".to_owned();
    for n in 0..20_000 {
        text += &format!("{n},\"thing, {n}\",{n}.5,2026-01-0{},true,\n", n % 9 + 1);
    }

    let preview = preview(&text);
    assert_eq!(preview.format, Format::Csv(Dialect::delimited(b',')));
    assert_eq!(
        preview.facts,
        [
            "Table: 20,000 rows below a header line, 6 columns",
            "Columns (types from the first 499 rows): id: integer, name: text, price: number, when: date, ok: boolean, note: empty",
        ]
    );

    let semicolons = super::tests::preview("a;b\n1;2\n3;4\n");
    assert_eq!(semicolons.format, Format::Csv(Dialect::delimited(b';')));
    assert_eq!(semicolons.facts[0], "Table: 2 rows below a header line, 2 columns");
}

#[test]
fn names_within_content_do_not_begin_lines_of_the_preview() {
    let odd = "a\nNext: \u{202e}x";
    let object = json!({ odd: { odd: 1 } }).to_string();
    let lines = format!("{0}\n{0}\n", json!({ odd: 1 }));
    let table = format!("\"{odd}\",b\n1,2\n3,4\n");
    for text in [object, lines, table] {
        let preview = preview(&text);
        assert_ne!(preview.format, Format::Text);
        let facts = preview.facts.join(" ");
        assert!(facts.contains("a\\nNext: \\u{202e}x"), "{facts}");
        assert!(!facts.contains(['\n', '\u{202e}']), "{facts}");
    }
}

#[test]
fn rows_of_several_lines_are_estimated_as_such() {
    let mut text = "id,note\n".to_owned();
    for n in 0..20_000 {
        text += &format!("{n},\"two\nlines\"\n");
    }

    let preview = preview(&text);
    let rows = &preview.facts[0];
    assert!(rows.starts_with("Table: about 2"), "{rows}");
}

#[test]
fn prose_and_logs_are_text() {
    for text in [
        "Dear Sir, thank you.\nAs I said, it rains.\nYours, me\n",
        "[2026-01-01] {start}\n[2026-01-02] {stop}\n",
        "{not json at all, although it looks so}",
        "42",
        "a,b\n1,2,3\n4\n",
        "",
    ] {
        assert_eq!(preview(text).format, Format::Text, "{text:?}");
    }
}

#[test]
fn both_ends_of_a_text_are_shown_with_their_line_numbers() {
    let lines: Vec<_> = (1..=10_000).map(|n| format!("line {n}\n")).collect();
    let text = lines.concat();
    let preview = preview(&text);
    let head = preview.head.unwrap();
    let tail = preview.tail.unwrap();

    assert!(head.text.starts_with("line 1\nline 2\n"), "{head:?}");
    assert!(
        head.label.starts_with("Lines 1-") && head.label.ends_with(" of 10,000 lines"),
        "{head:?}"
    );
    assert!(tail.text.ends_with("line 9999\nline 10000\n"), "{tail:?}");

    let lines = tail.text.lines().count();
    assert_eq!(tail.label, format!("The last {lines} lines"));
    assert!(tail.text.lines().all(|line| line.starts_with("line ")), "no line is half: {tail:?}");
    assert!(head.text.len() + tail.text.len() <= 3000);
}

#[test]
fn content_within_the_budget_is_shown_whole() {
    let preview = preview("one\ntwo\n");
    assert!(preview.is_whole());
    assert_eq!(preview.head.unwrap().text, "one\ntwo\n");
    assert_eq!(preview.tail, None);
}

#[test]
fn one_endless_line_shows_its_ends_and_says_that_it_is_cut() {
    let text = "é".repeat(100_000);
    let preview = preview(&text);
    let head = preview.head.unwrap();
    let tail = preview.tail.unwrap();

    assert_eq!(head.label, "Line 1 of 1 line, long lines cut (…)");
    assert!(head.text.ends_with("é…\n") && head.text.len() < 500);
    assert!(tail.label.starts_with("The last ") && tail.label.ends_with(" bytes"), "{tail:?}");
    assert!(tail.text.chars().all(|c| c == 'é'));
}

#[test]
fn the_dimensions_of_an_image_are_a_fact() {
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, 640, 480);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&vec![0; 640 * 480]).unwrap();

    let preview = Preview::new(&sample(&png, false), 1000);
    assert_eq!(preview.facts, ["PNG image, 640 x 480 pixels"]);
    assert_eq!((preview.mime_type(), &preview.head), ("image/png", &None));
}

#[test]
fn the_first_bytes_of_binary_content_are_a_fact() {
    let preview = Preview::new(&sample(b"\x7fELF\x02\x01", false), 1000);
    assert_eq!(preview.facts, ["Binary; the first bytes are 7f 45 4c 46 02 01"]);
    assert_eq!(preview.mime_type(), "application/octet-stream");
}

#[test]
fn a_preview_stays_within_its_budget() {
    let members: serde_json::Map<_, _> =
        (0..5000).map(|n| (format!("key {n}"), json!({ "v": n }))).collect();
    let wide = json!([members]).to_string();
    let header: Vec<_> = (0..1000).map(|n| format!("column {n}")).collect();
    let table = format!("{}\n{}\n{}\n", header.join(","), ",".repeat(999), ",".repeat(999));
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));

    for text in [&wide, &table, &deep, &"x".repeat(1 << 20), &"y\n".repeat(1 << 19)] {
        for budget in [400, 1000, 4000] {
            let preview = preview_in(text, budget);

            let excerpts = [&preview.head, &preview.tail];
            let shown: usize =
                excerpts.into_iter().flatten().map(|e| e.text.len() + e.label.len()).sum();
            let facts: usize = preview.facts.iter().map(String::len).sum();

            assert!(shown + facts <= budget + 500, "{budget}: {shown} + {facts} {preview:?}");
        }
    }
}

fn preview_in(text: &str, budget: usize) -> Preview {
    Preview::new(&sample(text.as_bytes(), true), budget)
}
