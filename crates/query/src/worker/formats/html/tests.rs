//! Tables of pages, as others write them.

#![allow(clippy::unwrap_used)]

use larder_records::TableOptions;

use super::*;

fn read(html: &str, part: Option<&str>) -> Result<Option<(String, String)>, String> {
    let converted = convert(html.as_bytes(), part, &TableOptions::default())?;
    Ok(converted.map(|converted| {
        let told: Vec<_> = converted.notes.into_iter().map(|note| note.text).collect();
        (String::from_utf8(converted.bytes).unwrap(), told.join("; "))
    }))
}

fn csv_of(html: &str) -> String {
    read(html, None).unwrap().unwrap().0
}

#[test]
fn tables_of_html_become_csv() {
    for (html, csv) in [
        ("<table><tr><th>a<th>b<tr><td>1<td>x &amp; y</table>", "a,b\n1,x & y\n"),
        (
            "<p>x<table><thead><tr><th>a</th></tr></thead><tbody><tr><td> 1\n2 </td></tr></tbody></table>",
            "a\n1 2\n",
        ),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td colspan=2>1</td></tr></table>", "a,b\n1,\n"),
        (
            "<table><tr><td>a<tr><td>1</table><table><tr><td>b<tr><td>1<tr><td>2</table>",
            "b\n1\n2\n",
        ),
        ("<TABLE><TR><TH>a<br>b<TR><TD><b>1</b><script>x</script></TABLE>", "a b\n1\n"),
    ] {
        assert_eq!(csv_of(html), csv, "{html}");
    }
    assert_eq!(read("<p>no table</p>", None), Ok(None));
}

#[test]
fn cells_are_repeated_in_the_rows_and_columns_that_they_span() {
    for (rows, csv) in [
        ("<tr><th>a<th>b<tr><td rowspan=2>x<td>1<tr><td>2", "a,b\nx,1\nx,2\n"),
        ("<tr><th>a<th>b<tr><td>1<td rowspan=3>x<tr><td>2", "a,b\n1,x\n2,x\n"),
        ("<tr><th>a<th>b<th>c<tr><td rowspan=2 colspan=2>x<td>1<tr><td>2", "a,b,c\nx,x,1\nx,x,2\n"),
        ("<tr><th>a<th>b<th>c<tr><td>1<td colspan=2>x", "a,b,c\n1,x,x\n"),
        (
            "<tr><th>a<th>b<tbody><tr><td rowspan=0>x<td>1<tr><td>2<tbody><tr><td>y<td>3",
            "a,b\nx,1\nx,2\ny,3\n",
        ),
        ("<tr><th>a<th>b<tr><td rowspan=3>x<td>1<tr></tr><tr><td>2", "a,b\nx,1\nx,2\n"),
        (
            "<tr><th>a<th>b<tr><td rowspan=2>x<td rowspan=2>1<tr></tr><tr><td>y<td>2",
            "a,b\nx,1\ny,2\n",
        ),
        ("<tr><th>a<th>b<tr><td rowspan=-1>x<td rowspan=many>1<tr><td>y<td>2", "a,b\nx,1\ny,2\n"),
    ] {
        let html = format!("<table>{rows}</table>");
        assert_eq!(csv_of(&html), csv, "{html}");
    }

    let html = "<table><tr><th>a<th>b<tr><td rowspan=2>x<td>1<tr><td>2</table>";
    let told = read(html, None).unwrap().unwrap().1;
    assert!(told.contains("1 cell that span rows or columns is repeated in each"), "{told}");
}

#[test]
fn headers_of_several_rows_and_titles_are_joined_and_told() {
    let html = "<table><tr><th colspan=3>Cities</th></tr><tr><th rowspan=2>City<th colspan=2>People<tr><th>2019<th>2020<tr><td>Bonn<td>1<td>2<tr><td colspan=3>North<tr><td>Kiel<td>3<td>4</table>";
    let (csv, told) = read(html, None).unwrap().unwrap();
    assert_eq!(csv, "City,People_2019,People_2020\nBonn,1,2\nNorth,,\nKiel,3,4\n");
    assert!(
        told.contains("the 2 rows of the header are joined by _; Cities stands above it"),
        "{told}"
    );

    let rows = "<table><tr><th>Name<td>Ann<tr><th>Town<td>Bonn</table>";
    let converted = convert(rows.as_bytes(), None, &TableOptions::default()).unwrap().unwrap();
    let dialect = Dialect { header: false, ..Dialect::delimited(b',') };
    assert_eq!(converted.layout, Layout::Rows(dialect));
}

#[test]
fn tables_that_are_not_closed_are_all_read() {
    let inner = "<table><tr><th>in<tr><td>1</table>";
    for (html, outer) in [
        (format!("<table><tr><th>out<tr><td>{inner}<tr><td>2"), "out\n\"\"\n2\n"),
        ("<table><tr><th>out<tr><td>2<td><table><tr><th>in<tr><td>1".into(), "out\n2,\n"),
        ("<table><tr><th>out<tr><td>2</td></tr><table><tr><th>in<tr><td>1".into(), "out\n2\n"),
        (format!("<table><tr><th>out<tr><td>2</table>{inner}"), "out\n2\n"),
    ] {
        assert_eq!(read(&html, Some("/0")).unwrap().unwrap().0, outer, "{html}");
        assert_eq!(read(&html, Some("/1")).unwrap().unwrap().0, "in\n1\n", "{html}");
    }
}

#[test]
fn a_table_that_is_missing_is_an_error() {
    let two = "<table><tr><td>a<tr><td>1</table><table><tr><td>b<tr><td>1<tr><td>2</table>";
    assert_eq!(read(two, Some("/0")).unwrap().unwrap().0, "a\n1\n");

    for part in ["/2", "/-1", "/people", "/0/1"] {
        let error = read(two, Some(part)).unwrap_err();
        assert!(error.ends_with("Tables of HTML are counted from 0: \"/0\", \"/1\""), "{error}");
    }
    let error = read("<p>no table</p>", Some("/0")).unwrap_err();
    assert_eq!(error, "it has no table 0: it is HTML without tables; leave rows out");
}

#[test]
fn cells_that_span_too_much_are_an_error() {
    let rows = "<tr><td>1".repeat(2_000);
    let html = format!("<table><tr><td rowspan=9000>{}{rows}</table>", "x".repeat(100_000));
    let error = read(&html, None).unwrap_err();
    assert!(error.starts_with("the cells of its tables are longer than"), "{error}");
}
