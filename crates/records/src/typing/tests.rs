#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use ColumnType::{BigInteger, Boolean, DateTime, Integer, List, Mixed, Null, Number, Object, Text};

fn typed<'a>(fields: impl IntoIterator<Item = Field<'a>>) -> TypedColumn {
    let mut typing = ColumnTyping::default();
    for (record, field) in fields.into_iter().enumerate() {
        typing.add(record as u64, field);
    }
    typing.finish()
}

fn csv(fields: &[&str]) -> TypedColumn {
    typed(fields.iter().map(|field| Field::Delimited(field)))
}

fn json(values: &[&str]) -> TypedColumn {
    typed(values.iter().map(|value| Field::Json(value)))
}

fn notes(column: &TypedColumn) -> Vec<String> {
    column.notes("c").iter().map(|note| note.line(false)).collect()
}

fn values<'a>(column: &TypedColumn, fields: &[&'a str]) -> Vec<TypedValue<'a>> {
    let column_type = column.column_type();
    fields.iter().map(|field| column_type.value(Field::Delimited(field))).collect()
}

#[test]
fn a_column_of_csv_has_one_type_over_all_its_values() {
    for (fields, expected) in [
        (&["", "", "  "][..], Null),
        (&["1", "-7", "", " 9", "+3", "9223372036854775807"], Integer),
        (&["1", "18446744073709551615"], BigInteger),
        (&[".097", "5.", "-.5", "+3", "1e5", "2.5E-3", "7"], Number),
        (&["1.10", "2.50", "13.00"], Number),
        (&["18446744073709551615", "0.5"], Number),
        (&["10", "NA", "20"], Integer),
        (&["1.5", "-", "--", "n/a", "NULL", "#N/A", "?"], Number),
        (&["true", "False", "TRUE", "None"], Boolean),
        (&["2026-01-31", "2026-02-01 09:30", "2026-02-01T09:30:00.5+01:00", "-"], DateTime),
        // Texts among numbers.
        (&["1.10", "1.10.1", "1.1"], Text),
        (&["3.9", "3.10", "3.11"], Text),
        (&["3e-5", "12e4", "AB-7"], Text),
        (&["00501", "10001"], Text),
        (&["00", "08", "23"], Text),
        (&["00.5", "1.5"], Text),
        (&["+491512345678", "+4415123456"], Text),
        (&["+1", "+44", ""], Text),
        (&["+1"], Text),
        (&[" +1", "+0.5 ", "NA"], Text),
        (&["+1", "+491512345678"], Text),
        (&["+99999999999999999999"], Text),
        (&["+1", "44"], Integer),
        (&["+1", "-44"], Integer),
        (&["+0.5", "0"], Number),
        (&["1,234", "5"], Text),
        (&["$5.00", "12 %", "2,5"], Text),
        (&["true", "1"], Text),
        (&["true", "maybe"], Text),
        (&["2026-13-31", "2026-01-31"], Text),
        (&["inf", "1"], Text),
        (&["1e999", "1"], Text),
        (&["0x1F", "1"], Text),
        (&["1_000", "1"], Text),
        (&["NA", "-"], Text),
        (&["NA", "GB", "7"], Text),
        (&["-5", "−5"], Text),
    ] {
        assert_eq!(csv(fields).column_type(), expected, "{fields:?}");
    }
}

#[test]
fn values_of_json_keep_their_types() {
    for (values, expected) in [
        (&["null", "null"][..], Null),
        (&["1", "-2", "null"], Integer),
        (&["18446744073709551615", "1"], BigInteger),
        (&["1", "0.5", "1e3"], Number),
        (&["\"1\"", "\"00501\""], Text),
        (&["1", "\"NaN\"", "\"N/A\"", "\"\""], Integer),
        (&["1", "\"none\""], Mixed),
        (&["1", "\"1\""], Mixed),
        (&["true", "false", "null"], Boolean),
        (&["true", "1"], Mixed),
        (&["\"true\""], Text),
        (&["\"2026-01-31\"", "null"], DateTime),
        (&["\"2026-01-31\"", "\"soon\""], Text),
        (&["[1]", "[]"], List),
        (&["{}", "{\"a\":1}"], Object),
        (&["{}", "[]"], Mixed),
        (&["\"\"", "\"a\""], Text),
        (&["\"\"", "[1]"], Mixed),
        (&["\"\""], Text),
        (&["1e400", "1"], Mixed),
    ] {
        assert_eq!(json(values).column_type(), expected, "{values:?}");
    }
}

#[test]
fn values_have_the_type_of_their_column() {
    let fields = [".097", "5.", "+3", " 9", "NA", "", "  "];
    let expected = [
        TypedValue::Number(0.097),
        TypedValue::Number(5.0),
        TypedValue::Integer(3),
        TypedValue::Integer(9),
        TypedValue::Null,
        TypedValue::Null,
        TypedValue::Null,
    ];
    assert_eq!(values(&csv(&fields), &fields), expected);

    assert_eq!(values(&csv(&["  "]), &["  "]), [TypedValue::Null]);

    let fields = ["true", " False", "-"];
    let expected = [TypedValue::Boolean(true), TypedValue::Boolean(false), TypedValue::Null];
    assert_eq!(values(&csv(&fields), &fields), expected);

    let fields = ["18446744073709551615", "+7", "-0", "NA"];
    let big = |digits: &'static str| TypedValue::BigInteger(digits.into());
    let expected = [big("18446744073709551615"), big("7"), big("0"), TypedValue::Null];
    assert_eq!(values(&csv(&fields), &fields), expected);

    let mixed = json(&["18446744073709551615", "\"a\"", "1", "true", "[ 1 ]"]).column_type();
    let value = |json| mixed.value(Field::Json(json));
    assert_eq!(value("18446744073709551615"), TypedValue::Text("18446744073709551615".into()));
    assert_eq!(value("\"a\\u0062\""), TypedValue::Text("ab".into()));
    assert_eq!((value("1"), value("true")), (TypedValue::Integer(1), TypedValue::Boolean(true)));
    assert_eq!(value("[ 1 ]"), TypedValue::Json("[ 1 ]"));
    assert_eq!(value("1.5"), TypedValue::Number(1.5));
}

#[test]
fn notes_say_what_was_taken_for_null_and_what_stays_text() {
    for (column, expected) in [
        (csv(&["10", "NA", "20"]), "c: 1 of 3 is NA, taken as null (first in record 2)"),
        (csv(&["1", "n/a", "-", "-"]), "c: 3 of 4 are - or n/a, taken as null (first in record 2)"),
        (json(&["1", "\"NaN\""]), "c: 1 of 2 is \"NaN\", taken as null (first in record 2)"),
        (
            csv(&["2026-01-31", "0000-00-00"]),
            "c: 1 of 2 is 0000-00-00, taken as null (first in record 2)",
        ),
        (json(&["1", "\"\""]), "c: 1 of 2 is \"\", taken as null (first in record 2)"),
        (
            csv(&["1.10", "1.10.1", "1.1"]),
            "c: text as written: 1 of 3 is no number, such as 1.10.1 (record 2)",
        ),
        (
            csv(&["3.9", "3.10"]),
            "c: text as written, as of versions: 1 of 2 is like 3.10, whose last zero others lack",
        ),
        (
            csv(&["1", "18446744073709551615"]),
            "c: 1 of 2 is beyond 64 bits, such as 18446744073709551615: all are text as written, compared as numbers",
        ),
        (
            csv(&["00501", "10001", "1", "SW1A", "N1", " "]),
            "c: text as written: 2 of 5 are no numbers, such as SW1A (record 4)",
        ),
        (
            csv(&["3.9", "NA", "3.10"]),
            "c: text as written, as of versions: 1 of 3 is like 3.10, whose last zero others lack",
        ),
        (
            csv(&["1.50", "2.5", "7"]),
            "c: 1 of 3 is written with zeros at the end and read as a number, such as 1.50",
        ),
        (
            csv(&["3.10", "3.11"]),
            "c: 1 of 2 is written with zeros at the end and read as a number, such as 3.10",
        ),
        (
            csv(&["0.1234567890123456789", "1"]),
            "c: 1 of 2 is rounded to 64 bits, such as 0.1234567890123456789",
        ),
        (csv(&["12e4", "1"]), "c: 1 of 2 is read as a number with an exponent, such as 12e4"),
        (json(&["true", "2"]), "c: 1 of 2 is true or false, which sql reads as 1 and 0"),
    ] {
        assert_eq!(notes(&column), [expected]);
    }

    for silent in [
        csv(&["00501", "10001"]),
        csv(&["1.10", "2.50", "13.00"]),
        csv(&["3.11", "3.12"]),
        csv(&["a", "b", "1"]),
        csv(&["12.50", "8"]),
        csv(&["", "1"]),
        json(&["1", "\"a\""]),
        json(&["null", "true"]),
    ] {
        assert_eq!(notes(&silent), Vec::<String>::new(), "{silent:?}");
    }
}

#[test]
fn what_a_check_of_a_statement_needs_is_known() {
    let versions = csv(&["1.10", "1.10.1", "1.1"]);
    assert_eq!((versions.numeric(), versions.filled()), (2, 3));
    let why = versions.why_text().map(|why| (why.record, &*why.text));
    assert_eq!(why, Some((1, "1.10.1")));

    let hours = csv(&["00", "08", "23"]);
    assert_eq!(hours.why_text().map(|why| &*why.text), Some("00"));
    assert_eq!(json(&["\"42.5\""]).numeric(), 1);
    assert_eq!(csv(&["a", "b"]).why_text(), None);
    assert_eq!(csv(&["1", "2"]).why_text(), None);
}

#[test]
fn names_are_unique_in_sql_and_those_of_the_content_come_first() {
    for (header, expected) in [
        (&["id", "ID", "id_2", "id"][..], &["id", "ID_3", "id_2", "id_4"][..]),
        (&["", " ", "column_1"], &["column_1_2", "column_2", "column_1"]),
        (&[" a ", "ä", "Ä", "a\0b"], &["a", "ä", "Ä", "a\u{fffd}b"]),
    ] {
        let names = ColumnNames::of_header(header.iter().copied());
        assert_eq!(names.names(), expected, "{header:?}");
        for (column, name) in names.names().iter().enumerate() {
            assert_eq!(names.find(&name.to_ascii_uppercase()), Some(column), "{name}");
        }
    }

    let names = ColumnNames::of_header(["id", "ID", ""]);
    let notes: Vec<_> = names.renamed().iter().map(|r| r.note(&names).line(false)).collect();
    let expected = [
        "ID_2: named ID in the content, as column id is",
        "column_3: without a name in the content",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn decimals_compare_as_numbers_of_any_size() {
    let ordered = [
        "-18446744073709551616",
        "-18446744073709551615",
        "-9223372036854775809",
        "-1e3",
        "-1",
        "-0.5",
        "0",
        "0.05",
        "0.5",
        "1",
        "9",
        "10",
        "1e1000",
        "a",
        "b",
    ];
    for (left, a) in ordered.iter().enumerate() {
        for (right, b) in ordered.iter().enumerate() {
            assert_eq!(compare_decimals(a, b), left.cmp(&right), "{a} {b}");
        }
    }
    for (a, b) in [("1", "1.0"), ("10", "1e1"), ("0", "-0.0"), ("100", "+1.0e+02"), ("007", "7")] {
        assert_eq!(compare_decimals(a, b), std::cmp::Ordering::Equal, "{a} {b}");
    }
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        "[+-]?[0-9]{0,3}\\.?[0-9]{0,3}([eE][+-]?[0-9]{1,2})?",
        prop::sample::select(vec!["", "NA", "-", "true", "FALSE", "2026-01-31", " ", "1.10.1"])
            .prop_map(str::to_owned),
        "[ -~é]{0,6}",
    ]
}

proptest! {
    #[test]
    fn the_type_does_not_depend_on_the_order_of_values(
        (fields, shuffled) in prop::collection::vec(field(), 0..12)
            .prop_flat_map(|fields| (Just(fields.clone()), Just(fields).prop_shuffle()))
    ) {
        let of = |fields: &[String]| {
            let column = typed(fields.iter().map(|field| Field::Delimited(field)));
            (column.column_type(), column.filled(), column.null_words(), column.numeric())
        };
        prop_assert_eq!(of(&fields), of(&shuffled));
    }

    #[test]
    fn texts_stay_as_they_are_written(fields in prop::collection::vec(field(), 1..12)) {
        let column = typed(fields.iter().map(|field| Field::Delimited(field)));
        for field in &fields {
            match column.column_type().value(Field::Delimited(field)) {
                TypedValue::Text(text) if column.column_type() == Text => prop_assert_eq!(text, field.as_str()),
                TypedValue::Null => prop_assert!(
                    field.trim().is_empty() || column.null_words() > 0,
                    "{:?} is lost", field
                ),
                TypedValue::Text(text) => prop_assert_eq!(column.column_type(), DateTime, "{}", text),
                TypedValue::BigInteger(digits) => {
                    prop_assert_eq!(compare_decimals(&digits, field), std::cmp::Ordering::Equal);
                }
                TypedValue::Integer(number) => {
                    prop_assert_eq!(field.trim().parse::<i64>().ok(), Some(number));
                }
                TypedValue::Number(number) => {
                    prop_assert_eq!(field.trim().parse::<f64>().ok(), Some(number));
                }
                TypedValue::Boolean(value) => {
                    prop_assert_eq!(field.trim().to_lowercase(), value.to_string());
                }
                TypedValue::Json(_) => prop_assert!(false, "CSV has no JSON"),
            }
        }
    }

    #[test]
    fn the_order_of_decimals_is_that_of_integers(a in any::<i128>(), b in any::<i128>()) {
        prop_assert_eq!(compare_decimals(&a.to_string(), &b.to_string()), a.cmp(&b));
    }
}
