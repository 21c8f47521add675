//! Content that others made: tables, JSON and texts in forms that strict readers refuse.

use serde_json::json;
use tokio::process::Command;

use super::query::{Service, text_of};

/// Bytes that a line of Python makes, in base64.
pub(super) async fn python(expression: &str) -> String {
    let program = format!("import base64, gzip\nprint(base64.b64encode({expression}).decode())");
    let output = Command::new("python3").args(["-c", &program]).output().await;
    let output = output.expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text").trim().to_owned()
}

impl Service {
    pub(super) async fn store_bytes(&self, uri: &str, mime_type: &str, base64: &str) {
        let content = json!({ "uri": uri, "mime_type": mime_type, "blob": base64 });
        let stored = self.call("create_resource", content).await;
        assert_eq!(stored["isError"], false, "{stored}");
    }

    async fn described(&self, uri: &str) -> String {
        text_of(&self.call("describe_resource", json!({ "uri": uri })).await)
    }
}

#[tokio::test]
async fn text_in_other_encodings_has_lines_matches_and_rows() {
    let service = Service::start().await;
    let text = r"'name,größe\n' + ''.join(f'Zoë{n},{n}\n' for n in range(2000))";

    for (number, (expression, mime_type, told)) in [
        (format!("({text}).encode('latin-1')"), "text/csv; charset=iso-8859-1", "windows-1252"),
        (format!("({text}).encode('cp1252')"), "text/csv", "windows-1252 (a guess)"),
        (format!("({text}).encode('utf-16')"), "text/csv", "utf-16le"),
        (format!("({text}).encode('utf-16-be')"), "text/csv; charset=utf-16be", "utf-16be"),
        (format!("gzip.compress(({text}).encode())"), "application/gzip", "gzip"),
        (
            format!("gzip.compress(({text}).encode('utf-16'))"),
            "application/octet-stream",
            "gzip, utf-16le",
        ),
        (
            format!("({text}).replace('Zoë7,', 'Zo\\0,').encode()"),
            "application/octet-stream",
            "utf-8",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let uri = format!("text://{number}");
        let stored = python(&expression).await;
        service.store_bytes(&uri, mime_type, &stored).await;

        let described = service.described(&uri).await;
        assert!(described.contains(&format!("text: {told}")), "{expression}: {described}");
        assert!(described.contains("lines: 2,001 lines"), "{described}");
        assert!(described.contains("records: 2,000 records"), "{described}");

        let rows =
            service.rows(&uri, "SELECT count(*), max(größe) FROM t WHERE name LIKE 'Zo%'").await;
        assert_eq!(rows, json!([[2000, 1999]]), "{expression}");

        let found =
            service.call("search_resource", json!({ "uri": uri, "query": "Zoë1999" })).await;
        assert_eq!(found["structuredContent"]["total"], 1, "{expression}: {found}");
        assert_eq!(found["structuredContent"]["rows"][0]["line"], 2001);

        let read = service.call("read_resource", json!({ "uri": uri, "offset": 2000 })).await;
        assert!(text_of(&read).ends_with("Zoë1999,1999\n"), "{}", text_of(&read));

        // The bytes are those that came.
        let bytes = service
            .call("read_resource", json!({ "uri": uri, "unit": "bytes", "limit": 30 }))
            .await;
        let shown = text_of(&bytes);
        assert!(shown.ends_with(&stored[..40]), "{shown}");
    }
}

#[tokio::test]
async fn a_bomb_ends_at_a_limit_that_is_named() {
    let service = Service::start().await;
    let bomb = python("gzip.compress(b'a' * (70 << 20))").await;
    service.store_bytes("text://bomb", "application/gzip", &bomb).await;

    for call in ["search_resource", "read_resource"] {
        let mut arguments = json!({ "uri": "text://bomb" });
        if call == "search_resource" {
            arguments["query"] = "b".into();
        }
        let failed = service.call(call, arguments).await;
        assert_eq!(failed["isError"], true);
        let text = text_of(&failed);
        assert!(text.contains("longer than 67,108,864 bytes when it is decoded"), "{text}");
    }

    let described = service.described("text://bomb").await;
    assert!(described.contains("text: cannot be read: it is longer than"), "{described}");
}

#[tokio::test]
async fn tables_that_others_wrote_are_tables() {
    let service = Service::start().await;

    for (number, (text, sql, rows, told)) in [
        (
            "a,b,c\n1,2,3\n4,5\n6,7,8\n9,10,11\n",
            "SELECT count(*), sum(a), sum(c) FROM t",
            json!([[4, 20, 22]]),
            "1 row does not have 3 fields, first row 2 with 2 fields; missing fields are null",
        ),
        (
            "id;x\n1;2\n3;4;5\n5;6\n7;8\n",
            "SELECT id, x, column_3 FROM t WHERE column_3 IS NOT NULL",
            json!([[3, 4, 5]]),
            "1 row does not have 2 fields, first row 2 with 3 fields; further fields are in column_3",
        ),
        (",a,b\n0,1,2\n1,3,4\n2,5,6\n", "SELECT column_1, a FROM t ORDER BY 1 DESC LIMIT 1", json!([[2, 5]]), ""),
        ("country,2019,2020\nDE,1,2\nFR,3,4\n", "SELECT \"2020\" FROM t WHERE country = 'FR'", json!([[4]]), ""),
        ("Sales report\n\na,b\n1,2\n3,4\n", "SELECT sum(b) FROM t", json!([[6]]), ""),
        ("# made by x\na,b\n1,2\n3,4\n", "SELECT sum(b) FROM t", json!([[6]]), ""),
        ("a,b\n1,2\n3,4\n\nSource: somebody\n", "SELECT sum(b) FROM t", json!([[6]]), "1 row does not have 2 fields, first row 3"),
        ("a,b\r1,2\r3,4\r", "SELECT sum(b) FROM t", json!([[6]]), ""),
        ("1,x,2.5\n2,y,3\n3,z,4\n", "SELECT column_2 FROM t WHERE column_1 = 3", json!([["z"]]), ""),
        ("a,b\n1,\"x\n2,y\n3,z\n", "SELECT b FROM t WHERE a = 3", json!([["z"]]), ""),
        ("a,b\n1,\"x \\\"q\\\", y\"\n2,\"z\"\n3,w\n", "SELECT b FROM t WHERE a = 1", json!([["x \"q\", y"]]), ""),
    ]
    .into_iter()
    .enumerate()
    {
        let uri = format!("table://{number}");
        service.store(&uri, "text/plain", text).await;
        let result = service.call("query_resource", json!({ "from": uri, "sql": sql })).await;
        assert_eq!(result["isError"], false, "{text:?}: {}", text_of(&result));
        assert_eq!(result["structuredContent"]["rows"], rows, "{text:?}");

        assert!(text_of(&result).contains(told), "{text:?}: {}", text_of(&result));
        let described = service.described(&uri).await;
        assert!(described.contains(told), "{text:?}: {described}");
        assert!(described.contains("table: t"), "{text:?}: {described}");
    }
}

#[tokio::test]
async fn what_may_be_a_table_is_named_with_its_options() {
    let service = Service::start().await;
    service.store("table://few", "text/plain", "a;b\n1;2\n").await;
    let described = service.described("table://few").await;
    assert!(described.contains("perhaps a table: query_resource"), "{described}");
    assert!(described.contains(r#""delimiter":";""#), "{described}");
}

#[tokio::test]
async fn json_that_a_strict_parser_refuses_has_records_and_tells_what_was_repaired() {
    let service = Service::start().await;
    let deep = format!("[{{\"a\": 1, \"d\": {}1{}}}]", "[".repeat(200), "]".repeat(200));

    for (number, (text, told)) in [
        ("[{\"a\": 1, \"b\": NaN}, {\"a\": 2}]", "taken as null"),
        ("[{\"a\": 1}, {\"a\": 2, \"t\": \"\\ud83d\"}]", "repaired|U+FFFD"),
        ("[{\"a\": 1, \"x\": 1e400}, {\"a\": 2}]", "beyond the range"),
        ("{\"a\": 1}\n{\"a\": \n{\"a\": 2}\n{\"a\": 3}\n", "1 line skipped"),
        ("// list\n[{\"a\": 1}, {\"a\": 2},]", "1 comment left out"),
        ("{\n\"a\": 1\n}\n{\n\"a\": 2\n}\n", "2 JSON values one after another"),
        ("Here you are:\n```json\n[{\"a\": 1}, {\"a\": 2}]\n```\n", "block of Markdown"),
        ("Found 2 items:\n[{\"a\": 1}, {\"a\": 2}]\n", "16 bytes of text"),
        ("{\"result\": \"[{\\\"a\\\": 1}, {\\\"a\\\": 2}]\"}", "a text within JSON"),
        ("[{'a': 1, 'b': None}, {'a': 2, 'b': True}]", "Python"),
        ("{\"a\": 1}\n{\"a\": 2, \"b\": NaN}\n{\"a\": 3}\n", "1 record repaired"),
        (&deep, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let uri = format!("json://{number}");
        service.store(&uri, "text/plain", text).await;

        let result = service
            .call("query_resource", json!({ "from": uri, "sql": "SELECT a FROM t ORDER BY a" }))
            .await;
        assert_eq!(result["isError"], false, "{text}: {}", text_of(&result));
        let expected = match text {
            _ if text == deep => json!([[1]]),
            _ if text.contains("\"a\": 3") => json!([[1], [2], [3]]),
            _ => json!([[1], [2]]),
        };
        assert_eq!(result["structuredContent"]["rows"], expected, "{text}");
        let said = text_of(&result);
        assert!(told.split('|').any(|told| said.contains(told)), "{text}: {said}");

        // Descriptions name no columns of records that are nested more than 128 levels deep.
        if text != deep {
            let described = service.described(&uri).await;
            assert!(described.contains("- a: integer"), "{text}: {described}");
        }

        // A filter unwraps such a text itself.
        let inner = if text.contains("result") { ".result | fromjson | " } else { "" };
        let filter = json!({ "from": uri, "jq": format!("{inner}.. | .a? // empty") });
        let filtered = service.query(filter).await;
        assert_eq!(filtered["rows"], expected, "{text}");

        // The content is as it came.
        let bytes = service.call("read_resource", json!({ "uri": uri, "unit": "bytes" })).await;
        assert!(text_of(&bytes).ends_with(text), "{text}");
    }
}

#[tokio::test]
async fn columns_and_rows_apart_are_records_for_sql() {
    let service = Service::start().await;
    for (number, value) in [
        json!({ "columns": ["a", "b"], "rows": [[1, "x"], [2, "y"]] }),
        json!({ "success": true, "columns": ["a", "b"], "rows": [[1, "x"], [2, "y"]], "rowCount": 2 }),
        json!({ "schema": { "fields": [{ "name": "a" }, { "name": "b" }] }, "rows": [{ "f": [{ "v": 1 }, { "v": "x" }] }, { "f": [{ "v": 2 }, { "v": "y" }] }] }),
        json!({ "rowType": [{ "name": "a" }, { "name": "b" }], "data": [[1, "x"], [2, "y"]] }),
        json!({ "columns": ["a", "b"], "index": [0, 1], "data": [[1, "x"], [2, "y"]] }),
    ]
    .into_iter()
    .enumerate()
    {
        let uri = format!("columns://{number}");
        service.store(&uri, "application/json", &value.to_string()).await;
        assert_eq!(service.rows(&uri, "SELECT b FROM t WHERE a = 2").await, json!([["y"]]), "{value}");

        let described = service.described(&uri).await;
        assert!(described.contains("- a: integer") && described.contains("- b: text"), "{described}");

        // A filter names the members of the value itself.
        let keys = service.query(json!({ "from": uri, "jq": "keys | length" })).await;
        assert_eq!(keys["rows"], json!([[value.as_object().map(serde_json::Map::len)]]));
    }
}

#[tokio::test]
async fn colours_hide_no_match() {
    let service = Service::start().await;
    let coloured = "\u{1b}[31mERROR\u{1b}[0m: boom\n";

    for (uri, text) in [
        ("log://short", format!("start\n{coloured}")),
        (
            "log://link",
            "x\n\u{1b}]8;;http://a\u{7}ERR\u{1b}[1mOR\u{1b}[m: boom\u{1b}]8;;\u{7}\n".into(),
        ),
    ] {
        service.store(uri, "text/plain", &text).await;
        for query in ["ERROR: boom", "^ERROR: boom$"] {
            let found =
                service.call("search_resource", json!({ "uri": uri, "query": query })).await;
            assert_eq!(found["structuredContent"]["total"], 1, "{uri}: {found}");
        }

        let query = json!({
            "from": uri, "format": "log", "pattern": "^(?P<level>[A-Z]+): (?P<word>\\w+)",
            "sql": "SELECT level, word, line LIKE '%' || char(27) || '%' FROM t WHERE level IS NOT NULL",
        });
        assert_eq!(service.query(query).await["rows"], json!([["ERROR", "boom", 1]]), "{uri}");

        let escapes =
            service.call("search_resource", json!({ "uri": uri, "query": r"\x1b\[" })).await;
        assert!(escapes["structuredContent"]["total"].as_u64() > Some(0), "{escapes}");
    }
}

/// A workbook of two sheets, as Python's zipfile writes it.
const WORKBOOK: &str = r#"
import io, zipfile
def sheet(rows):
    def cell(value):
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f'<c><v>{value}</v></c>'
    body = ''.join('<row>' + ''.join(map(cell, row)) + '</row>' for row in rows)
    return f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{body}</sheetData></worksheet>'
main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
rels = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
package = 'http://schemas.openxmlformats.org/package/2006/relationships'
types = 'application/vnd.openxmlformats-officedocument.spreadsheetml'
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as z:
    z.writestr('[Content_Types].xml', f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/></Types>')
    z.writestr('_rels/.rels', f'<Relationships xmlns="{package}"><Relationship Id="r1" Type="{rels}/officeDocument" Target="xl/workbook.xml"/></Relationships>')
    z.writestr('xl/workbook.xml', f'<workbook xmlns="{main}" xmlns:r="{rels}"><sheets><sheet name="Orders" sheetId="1" r:id="r1"/><sheet name="People" sheetId="2" r:id="r2"/></sheets></workbook>')
    z.writestr('xl/_rels/workbook.xml.rels', f'<Relationships xmlns="{package}"><Relationship Id="r1" Type="{rels}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="{rels}/worksheet" Target="worksheets/sheet2.xml"/></Relationships>')
    z.writestr('xl/worksheets/sheet1.xml', sheet([['id', 'price']] + [[n, n / 2] for n in range(100)]))
    z.writestr('xl/worksheets/sheet2.xml', sheet([['name', 'age'], ['Ann', 31], ['Bob', 27]]))
import base64
print(base64.b64encode(buffer.getvalue()).decode())
"#;

#[tokio::test]
async fn workbooks_and_members_of_archives_have_rows() {
    let service = Service::start().await;

    let workbook = Command::new("python3").args(["-c", WORKBOOK]).output().await;
    let workbook = String::from_utf8(workbook.expect("Python runs").stdout).expect("it is text");
    let mime_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    service.store_bytes("book://x", mime_type, workbook.trim()).await;

    let sum = service
        .call(
            "query_resource",
            json!({ "from": "book://x", "sql": "SELECT sum(price), count(*) FROM t" }),
        )
        .await;
    assert_eq!(sum["structuredContent"]["rows"], json!([[2475.0, 100]]), "{sum}");
    assert!(text_of(&sum).contains("read from the sheet Orders of Orders, People"), "{sum}");
    for (table, expected) in [
        (json!({ "header": false }), json!([[101]])),
        (json!({ "header": true, "skip": 0 }), json!([[100]])),
        (json!({ "skip": 1, "header": false, "nulls": ["0"] }), json!([[100]])),
        (json!({ "format": "csv" }), json!([[100]])),
    ] {
        let mut book = json!({ "uri": "book://x" });
        book.as_object_mut().unwrap().extend(table.as_object().unwrap().clone());
        let count = json!({ "from": { "t": book }, "sql": "SELECT count(*) FROM t" });
        assert_eq!(service.query(count).await["rows"], expected, "{table}");
    }
    let lines = json!({ "from": "book://x", "format": "log", "sql": "SELECT count(*) FROM t" });
    assert!(service.refusal(lines).await.contains("leave format out"));
    let pattern = json!({ "from": "book://x", "pattern": "(?P<a>x)", "sql": "SELECT 1 FROM t" });
    assert!(
        service
            .refusal(pattern)
            .await
            .contains("pattern: for lines of text, and t is read as a table")
    );

    let people = json!({ "from": "book://x", "rows": "/People", "sql": "SELECT age FROM t WHERE name = 'Bob'" });
    assert_eq!(service.query(people).await["rows"], json!([[27]]));
    let described = service.described("book://x").await;
    assert!(
        described.contains("a zip archive or a workbook, for queries: query_resource"),
        "{described}"
    );

    let zip = "(lambda b: (lambda z: (z.writestr('a.csv', 'n,m\\n1,2\\n3,4\\n'), z.writestr('d/b.json', '[{\"n\": 5}]'), z.close(), b.getvalue())[-1])(__import__('zipfile').ZipFile(b, 'w')))(__import__('io').BytesIO())";
    service.store_bytes("zip://x", "application/zip", &python(zip).await).await;
    for (rows, expected) in [("/a.csv", json!([[4]])), ("/d~1b.json", json!([[5]]))] {
        let query = json!({ "from": "zip://x", "rows": rows, "sql": "SELECT sum(n) FROM t" });
        assert_eq!(service.query(query).await["rows"], expected, "{rows}");
    }
    let unnamed = service
        .call("query_resource", json!({ "from": "zip://x", "sql": "SELECT * FROM t" }))
        .await;
    assert!(text_of(&unnamed).contains("Members: a.csv, d/b.json"), "{unnamed}");
}

#[tokio::test]
async fn yaml_and_tables_of_pages_have_rows() {
    let service = Service::start().await;
    for (uri, mime_type, text, expected) in [
        ("yaml://x", "application/yaml", "- {a: 1, b: x}\n- a: 2\n  b: z\n", json!([[2]])),
        ("yaml://y", "text/plain", "---\na: 1\nb: x\n---\na: 2\nb: z\n", json!([[2]])),
        (
            "html://x",
            "text/html",
            "<h1>T</h1><table><tr><th>a<th>b<tr><td>1<td>x<tr><td>2<td>z</table>",
            json!([[2]]),
        ),
        (
            "md://x",
            "text/markdown",
            "# T\n\n| a | b |\n|---|---|\n| 1 | x |\n| 2 | z |\n\nDone.\n",
            json!([[2]]),
        ),
        ("md://y", "text/plain", "| a | b |\n|--:|---|\n| 1 | x |\n| 2 | z |\n", json!([[2]])),
    ] {
        service.store(uri, mime_type, text).await;
        assert_eq!(service.rows(uri, "SELECT a FROM t WHERE b = 'z'").await, expected, "{text}");
    }

    service
        .store_bytes(
            "parquet://x",
            "application/octet-stream",
            &python("b'PAR1' + bytes(40)").await,
        )
        .await;
    let refused = service
        .call("query_resource", json!({ "from": "parquet://x", "sql": "SELECT 1 FROM t" }))
        .await;
    assert!(text_of(&refused).contains("It is Parquet: store it as CSV"), "{refused}");
}
