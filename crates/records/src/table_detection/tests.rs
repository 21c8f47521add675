use proptest::prelude::*;

use super::*;

const COMMA: Dialect = Dialect::delimited(b',');

fn table(text: &str) -> Option<Dialect> {
    match undeclared(text, false) {
        Verdict::Table(dialect) => Some(dialect),
        Verdict::Perhaps(_) | Verdict::No => None,
    }
}

#[test]
fn tables_that_others_wrote_are_tables() {
    let semicolon = Dialect::delimited(b';');
    let tab = Dialect::delimited(b'\t');
    let skipping = |skip| Dialect { skip, ..COMMA };
    let without_header = |dialect| Dialect { header: false, ..dialect };

    for (text, dialect) in [
        // Ragged rows.
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", COMMA),
        ("a,b,c\n1,2,3\n4,5,6,7\n6,7,8\n", COMMA),
        ("id;x\n1;2\n3\n4;5\n6;7\n", semicolon),
        ("id\tname\n1\tA\n2\tB\tC\n3\tC\n", tab),
        ("id,name\n1,Smith, John\n2,Ann\n3,Bob\n4,Cy\n", COMMA),
        // An empty first name.
        (",a,b\n0,1,2\n1,3,4\n2,5,6\n", COMMA),
        (",name\r\n0,x\r\n1,y\r\n", COMMA),
        // Years as names.
        ("country,2019,2020\nDE,1,2\nFR,3,4\n", COMMA),
        ("2019,2020,2021\n1,2,3\n4,5,6\n", COMMA),
        // Lines above.
        ("Sales report\na,b\n1,2\n3,4\n", skipping(1)),
        ("Sales report\n\nMade on Monday, by me\n\na,b,c\n1,2,3\n3,4,5\n", skipping(4)),
        ("Report\r\n\r\na,b\r\n1,2\r\n3,4\r\n", skipping(2)),
        // Comments.
        ("# made by x\n# on y\na,b\n1,2\n3,4\n", Dialect { comment: Some(b'#'), ..COMMA }),
        ("a,b\n1,2\n# checked\n3,4\n", Dialect { comment: Some(b'#'), ..COMMA }),
        ("%x\na;b\n1;2\n3;4\n", Dialect { comment: Some(b'%'), ..semicolon }),
        ("#id,n\n1,2\n3,4\n", COMMA),
        // A note below.
        ("a,b\n1,2\n3,4\n\nSource: somebody\n", COMMA),
        ("a,b\n1,2\n3,4\nTotal of all\nSource: somebody\n", COMMA),
        // Carriage returns only.
        ("a,b\r1,2\r3,4\r", COMMA),
        ("Title\ra;b\r1;2\r3;4", Dialect { skip: 1, ..semicolon }),
        ("# by me\ra,b\r1,2\r3,4\r", skipping(1)),
        // Without a header.
        ("1,x,2.5\n2,y,3\n3,z,4\n", without_header(COMMA)),
        ("2026-01-01;3\n2026-01-02;4\n2026-01-03;5\n", without_header(semicolon)),
        ("1\t2\n3\t4\n5\t6\n", without_header(tab)),
        // Quotes.
        ("a,b\n1,\"x\n2,y\n3,z\n", Dialect { quote: None, ..COMMA }),
        ("a,b\n1,\"x \\\"q\\\", y\"\n2,\"z\"\n3,w\n", Dialect { escape: Some(b'\\'), ..COMMA }),
        ("a,b\n1,'x, y'\n2,'z'\n3,'w, v'\n", Dialect { quote: Some(b'\''), ..COMMA }),
        // A byte order mark.
        ("\u{feff}a,b\n1,2\n3,4\n", COMMA),
        // Decimal commas, and a comma in a text.
        ("a;b\n1,5;2,5\n3,5;4,5\n", semicolon),
        ("n;name\n1;Doe, John\n2;Roe, Jane\n3;Poe, Ann\n", semicolon),
    ] {
        assert_eq!(table(text), Some(dialect), "{text:?}");
    }
}

#[test]
fn prose_logs_and_lists_are_no_tables() {
    for text in [
        "Dear Sir, thank you.\nAs I said, it rains.\nYours, me\n",
        "We came, we saw, we won.\nThey came, they saw, they lost.\nAll came, all saw, all slept.\n",
        "2026-01-01 12:00:00,123 INFO started\n2026-01-01 12:00:01,456 WARN late\n2026-01-01 12:00:02,789 INFO done\n",
        "[2026-01-01] {start}, x\n[2026-01-02] {stop}, y\n[2026-01-03] {stop}, y\n",
        "fn main() {\n    let a = f(1, 2);\n    let b = g(3, 4);\n}\n",
        "first item\nsecond item\nthird item\n",
        "42",
        "",
    ] {
        assert_eq!(table(text), None, "{text:?}");
    }
}

#[test]
fn what_may_be_a_table_is_told() {
    let uneven = "a,b,c\n1,2,3\n4,5\n6\n7,8,9\n1,2\n4,5,6\n";
    assert_eq!(undeclared(uneven, false), Verdict::Perhaps(COMMA));
    assert_eq!(undeclared("a,b\n1,2\n", false), Verdict::Perhaps(COMMA));
    assert_eq!(declared(uneven, false, b','), COMMA);
}

#[test]
fn a_row_that_is_cut_does_not_count() {
    let head = "a,b\n1,2\n3,4\n5,\"6, and\n7";
    assert_eq!(undeclared(head, true), Verdict::Table(COMMA));
    assert_eq!(undeclared(head, false), Verdict::Table(Dialect { quote: None, ..COMMA }));
    assert_eq!(complete_rows(head, COMMA), Some("a,b\n1,2\n3,4\n"));

    // The quote stands for inches.
    let inches = format!("{head}\n{}", "8,9\n".repeat(10_000));
    assert_eq!(complete_rows(&inches, COMMA), None);
    assert_eq!(undeclared(&inches, true), Verdict::Table(Dialect { quote: None, ..COMMA }));
}

#[test]
fn declared_tables_are_read_as_they_are_written() {
    assert_eq!(declared("a;b\n1;2\n3;4\n", false, b','), Dialect::delimited(b';'));
    assert_eq!(declared("a\n1\n2\n", false, b','), COMMA);
    assert_eq!(declared("", false, b'\t'), Dialect::delimited(b'\t'));
    assert_eq!(declared("a,b\n1,2,3\n", false, b','), COMMA);
    assert_eq!(declared("1,Ann,3\n2,Bob,4\n", false, b','), Dialect { header: false, ..COMMA });
    assert_eq!(declared("name,city\nAnn,Rome\nBob,Oslo\n", false, b','), COMMA);
}

proptest! {
    #[test]
    fn any_text_has_a_verdict(text in "[a1,;|\t\"'#%\\\\\r\n \u{e4}\u{feff}]{0,200}") {
        let _ = undeclared(&text, text.len() % 2 == 0);
        let _ = declared(&text, false, b',');
        let _ = declared(&text, false, b'\t');
    }
}

#[test]
fn a_first_line_names_the_delimiter() {
    for (text, delimiter) in [
        ("sep=;\na;b\n1,5;2\n", b';'),
        ("\u{feff}SEP=|\r\na|b\r\n1|2\r\n", b'|'),
        ("sep=\t\na\tb\n1\t2\n", b'\t'),
    ] {
        let expected = Dialect { skip: 1, ..Dialect::delimited(delimiter) };
        assert_eq!(declared(text, false, b','), expected, "{text:?}");
        assert_eq!(undeclared(text, false), Verdict::Table(expected), "{text:?}");
    }

    for text in ["sep=a\n1;2\n", "sep=;;\n", "sep=", "sep\u{e9}=;\n", "a,b\nsep=;\n1,2\n"] {
        assert_eq!(declared(text, false, b',').skip, 0, "{text:?}");
    }
}
