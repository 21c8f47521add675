//! Workbooks that tests write.

#![allow(clippy::unwrap_used)]
#![allow(clippy::format_collect, reason = "a workbook of a test is small")]

use std::io::Write;

use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

/// A workbook with these sheets: the name, the state, and the XML below the root.
fn workbook(sheets: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut file = |name: &str, text: String| {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    };

    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let of = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006";
    let numbers = || 1..=sheets.len();

    let parts: String = numbers().map(|n| format!("<Override PartName=\"/xl/worksheets/sheet{n}.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml\"/>")).collect();
    file(
        "[Content_Types].xml",
        format!(
            "<Types xmlns=\"{package}/content-types\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>{parts}</Types>"
        ),
    );
    file(
        "_rels/.rels",
        format!(
            "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"r1\" Type=\"{of}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
        ),
    );

    let listed: String = sheets
        .iter()
        .zip(numbers())
        .map(|((name, state, _), n)| {
            format!("<sheet name=\"{name}\" sheetId=\"{n}\" state=\"{state}\" r:id=\"r{n}\"/>")
        })
        .collect();
    file(
        "xl/workbook.xml",
        format!("<workbook xmlns=\"{main}\" xmlns:r=\"{of}\"><sheets>{listed}</sheets></workbook>"),
    );
    let related: String = numbers().map(|n| format!("<Relationship Id=\"r{n}\" Type=\"{of}/worksheet\" Target=\"worksheets/sheet{n}.xml\"/>")).collect();
    file(
        "xl/_rels/workbook.xml.rels",
        format!(
            "<Relationships xmlns=\"{package}/relationships\">{related}<Relationship Id=\"s\" Type=\"{of}/styles\" Target=\"styles.xml\"/></Relationships>"
        ),
    );
    // Styles: plain, a date, a date and a time, a time, a duration.
    let formats: String =
        [0, 14, 22, 20, 46].iter().map(|format| format!("<xf numFmtId=\"{format}\"/>")).collect();
    file(
        "xl/styles.xml",
        format!(
            "<styleSheet xmlns=\"{main}\"><cellXfs count=\"5\">{formats}</cellXfs></styleSheet>"
        ),
    );

    for ((_, _, xml), n) in sheets.iter().zip(numbers()) {
        file(
            &format!("xl/worksheets/sheet{n}.xml"),
            format!("<worksheet xmlns=\"{main}\">{xml}</worksheet>"),
        );
    }
    zip.finish().unwrap().into_inner()
}

/// The rows of a sheet, from these cells: a number, or a text in quotes, or XML.
fn rows(first: usize, rows: &[&[&str]]) -> String {
    let cell = |row: usize, column: usize, value: &str| {
        let place = format!("{}{row}", letters(u32::try_from(column).unwrap()));
        match value.strip_prefix('\'') {
            _ if value.is_empty() => String::new(),
            _ if value.starts_with('<') => value.replacen("<c", &format!("<c r=\"{place}\""), 1),
            Some(text) => format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{text}</t></is></c>"),
            None => format!("<c r=\"{place}\"><v>{value}</v></c>"),
        }
    };
    let rows = rows.iter().enumerate().map(|(index, cells)| {
        let row = first + index;
        let cells: String =
            cells.iter().enumerate().map(|(at, value)| cell(row, at, value)).collect();
        format!("<row r=\"{row}\">{cells}</row>")
    });
    format!("<sheetData>{}</sheetData>", rows.collect::<String>())
}

fn read(bytes: &[u8], part: Option<&str>, options: &TableOptions) -> (String, Dialect, String) {
    let converted = convert(bytes, part, options).unwrap();
    let Layout::Rows(dialect) = converted.layout else { panic!("it has rows") };
    let told: Vec<_> = converted.notes.into_iter().map(|note| note.text).collect();
    (String::from_utf8(converted.bytes).unwrap(), dialect, told.join("; "))
}

fn options(json: serde_json::Value) -> TableOptions {
    serde_json::from_value(json).unwrap()
}

#[test]
fn cells_are_written_as_they_are_shown() {
    let cells = [
        ("1", "1"),
        ("1.5", "1.5"),
        ("'00501", "00501"),
        ("<c s=\"1\"><v>45000</v></c>", "2023-03-15"),
        ("<c s=\"2\"><v>45000.5</v></c>", "2023-03-15 12:00:00"),
        ("<c s=\"3\"><v>0.375</v></c>", "09:00:00"),
        ("<c s=\"4\"><v>1.5</v></c>", "36:00:00"),
        ("<c t=\"b\"><v>1</v></c>", "true"),
        ("<c t=\"e\"><v>#N/A</v></c>", "#N/A"),
        ("<c t=\"e\"><v>#DIV/0!</v></c>", "#DIV/0!"),
        ("<c t=\"str\"><f>\"a\"</f><v>a</v></c>", "a"),
        ("<c><f>1+1</f><v>2</v></c>", "2"),
    ];
    for (cell, expected) in cells {
        let sheet = rows(1, &[&["'name", "'v"], &["'x", cell]]);
        let (csv, ..) =
            read(&workbook(&[("A", "visible", &sheet)]), None, &TableOptions::default());
        assert_eq!(csv, format!("name,v\nx,{expected}\n"), "{cell}");
    }
}

#[test]
fn a_sheet_is_chosen_and_the_others_are_named() {
    let sheet = |name: &str| rows(1, &[&["'a", "'b"], &[&format!("'{name}"), "1"]]);
    let one = sheet("one");
    let two = sheet("two");
    let three = sheet("three");
    let bytes = workbook(&[
        ("Empty", "visible", "<sheetData/>"),
        ("Hidden", "hidden", &one),
        ("In/Out", "visible", &two),
        ("Last", "visible", &three),
    ]);
    let none = TableOptions::default();

    let (csv, _, told) = read(&bytes, None, &none);
    assert_eq!(csv, "a,b\ntwo,1\n");
    assert!(told.contains("the sheet In/Out of Empty, Hidden, In/Out, Last; rows names another one, such as \"/Empty\""), "{told}");
    assert_eq!(read(&bytes, Some("/Hidden"), &none).0, "a,b\none,1\n");
    assert_eq!(read(&bytes, Some("/In~1Out"), &none).0, "a,b\ntwo,1\n");
    assert_eq!(read(&bytes, Some("/Last"), &none).0, "a,b\nthree,1\n");

    let error = convert(&bytes, Some("/Empty"), &none).unwrap_err();
    assert!(error.starts_with("its sheet Empty is empty. Sheets: Empty, Hidden"), "{error}");
    let error = convert(&bytes, Some("/last"), &none).unwrap_err();
    assert!(error.starts_with("it has no sheet last. Sheets: "), "{error}");
}

#[test]
fn options_say_which_row_has_the_names() {
    let sheet = rows(3, &[&["'x", "1"], &["'y", "2"], &["'z", "3"]]);
    let bytes = workbook(&[("A", "visible", &sheet)]);

    let (_, dialect, _) = read(&bytes, None, &options(serde_json::json!({ "header": false })));
    assert!(!dialect.header);
    let (_, dialect, _) = read(&bytes, None, &options(serde_json::json!({ "header": true })));
    assert!(dialect.header);

    // Rows are those of the sheet, of which the first two are empty.
    for (skip, expected) in [(0, "x,1\ny,2\nz,3\n"), (2, "x,1\ny,2\nz,3\n"), (4, "z,3\n")] {
        let (csv, dialect, _) = read(&bytes, None, &options(serde_json::json!({ "skip": skip })));
        assert_eq!((&*csv, dialect.skip), (expected, 0), "{skip}");
    }

    let given = options(serde_json::json!({ "delimiter": ";", "quote": "" }));
    let (_, dialect, _) = read(&bytes, None, &given);
    assert_eq!((dialect.delimiter, dialect.quote), (b',', Some(b'"')));
}

#[test]
fn merged_cells_are_repeated_and_formulas_without_values_are_told() {
    let sheet = rows(
        1,
        &[
            &["'Report"],
            &["'team", "'name", "'n"],
            &["'red", "'Ann", "1"],
            &["", "'Bob", "<c><f>C3+1</f></c>"],
            &["'blue", "'Cid", "<c><f>C4+1</f><v></v></c>"],
        ],
    );
    let merged =
        "<mergeCells count=\"2\"><mergeCell ref=\"A1:C1\"/><mergeCell ref=\"A3:A4\"/></mergeCells>";
    let bytes = workbook(&[("A", "visible", &format!("{sheet}{merged}"))]);

    let (csv, _, told) = read(&bytes, None, &TableOptions::default());
    assert_eq!(csv, "Report,,\nteam,name,n\nred,Ann,1\nred,Bob,\nblue,Cid,\n");
    assert!(told.contains("1 merged cell is repeated in each of its rows and columns"), "{told}");
    assert!(
        told.contains("2 formulas without a stored value, first in C4, taken as null"),
        "{told}"
    );
}

#[test]
fn columns_have_letters() {
    for (column, expected) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")] {
        assert_eq!(letters(column), expected);
    }
}
