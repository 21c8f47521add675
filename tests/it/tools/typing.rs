//! The types of columns: the same for SQL, jq and descriptions, and told where they are a choice.
//! Python computes the values.

use serde_json::{Value, json};

use super::query::{Service, output_of, text_of};

/// The output of a Python program as JSON, with an input as JSON.
async fn python(program: &str, input: Value) -> Value {
    let program = format!("import csv, io, json, sys\ndata = json.load(sys.stdin)\n{program}");
    let printed = output_of("python3", &["-c", &program], &input.to_string()).await;
    serde_json::from_str(&printed).unwrap()
}

/// The first paragraph of an answer in SQL.
async fn head(service: &Service, from: &str, sql: &str) -> String {
    let result = service.call("query_resource", json!({ "from": from, "sql": sql })).await;
    assert_eq!(result["isError"], false, "{sql}: {}", text_of(&result));
    text_of(&result).split("\n\n").next().unwrap().to_owned()
}

async fn jq(service: &Service, from: &str, filter: &str) -> Value {
    let answer = service.query(json!({ "from": from, "jq": filter, "slurp": true })).await;
    answer["rows"][0][0].clone()
}

/// CSV with one column besides a number for each row.
fn column(name: &str, fields: &[&str]) -> String {
    let rows = (1..).zip(fields).map(|(n, field)| format!("{n},{field}\n"));
    format!("n,{name}\n") + &rows.collect::<String>()
}

const TEXTS: [(&str, &[&str]); 9] = [
    ("version", &["1.10", "1.10.1", "1.1"]),
    ("part", &["3e-5", "12e4", "AB-7"]),
    ("section", &["3.9", "3.10", "3.1"]),
    ("zip", &["00501", "10001", "20002"]),
    ("phone", &["+491512345678", "+4415123456", "+1"]),
    ("code", &["007", "7", "07"]),
    ("amount", &["1,5", "1.50", "1.5"]),
    ("flag", &["true", "TRUE", "yes"]),
    ("late", &["1.0", "1", "soon"]),
];

#[tokio::test]
async fn a_column_of_texts_is_text_as_written_everywhere() {
    let service = Service::start().await;
    for (name, fields) in TEXTS {
        let quoted: Vec<_> = fields.iter().map(|field| format!("\"{field}\"")).collect();
        let quoted: Vec<_> = quoted.iter().map(String::as_str).collect();
        let text = column(name, &quoted);
        service.store("x:texts", "text/csv", &text).await;
        let expected = python(
            "rows = list(csv.reader(io.StringIO(data)))[1:]\nprint(json.dumps([[r[1]] for r in rows]))",
            json!(text),
        )
        .await;
        let all = format!("SELECT {name} FROM t ORDER BY n");
        assert_eq!(service.rows("x:texts", &all).await, expected, "{name}");
        for field in fields {
            let one = format!("SELECT {name} FROM t WHERE {name} = '{field}'");
            assert_eq!(service.rows("x:texts", &one).await, json!([[field]]), "{one}");
        }
        let groups = format!("SELECT count(*) FROM t GROUP BY {name}");
        assert_eq!(service.rows("x:texts", &groups).await, json!([[1], [1], [1]]), "{name}");
        let join = format!("SELECT count(*) FROM t a JOIN t b ON a.{name} = b.{name}");
        assert_eq!(service.rows("x:texts", &join).await, json!([[3]]), "{name}");
        assert_eq!(jq(&service, "x:texts", &format!("map([.{name}])")).await, expected, "{name}");
        for format in ["csv", "json", "ndjson"] {
            let into = json!({ "uri": "x:stored", "format": format });
            service.query(json!({ "from": "x:texts", "sql": all, "into": into })).await;
            assert_eq!(service.rows("x:stored", "SELECT * FROM t").await, expected, "{name}");
        }
    }
    // The groups of a log's pattern.
    let log = "python 3.10 ok\npython 3.10.1 ok\npython 3.1 ok\nperl 5.30\n";
    service.store("x:log", "text/plain", log).await;
    let log = async |sql: &str| {
        let pattern = r"^(?P<what>python) (?P<version>[\d.]+)";
        let answer = service.query(json!({ "from": "x:log", "sql": sql, "pattern": pattern }));
        answer.await["rows"].clone()
    };
    let one = log("SELECT line_no, version FROM t WHERE version = '3.10'").await;
    assert_eq!(one, json!([[1, "3.10"]]));
    let all = log("SELECT version FROM t").await;
    assert_eq!(all, json!([["3.10"], ["3.10.1"], ["3.1"]]));
}

#[tokio::test]
async fn numbers_in_any_notation_are_numbers() {
    let service = Service::start().await;
    for fields in [
        &[".097", "0.12", ".5"][..],
        &["1", " 9", "12 ", "\t7"],
        &["+3", "-4", "+0.5"],
        &["5.", "6", "-7."],
        &["1e3", "2.5E-1", "-1E+2", "4e0"],
        &["-.5", "+.25", "0.05"],
    ] {
        service.store("x:numbers", "text/csv", &column("v", fields)).await;
        let expected = python(
            "v = [float(x) for x in data]\nprint(json.dumps([[round(sum(v), 9), max(v), min(v), sum(x > 0.1 for x in v)]]))",
            json!(fields),
        )
        .await;
        let sql = "SELECT round(total(v), 9), max(v) + 0.0, min(v) + 0.0, count(*) FILTER (WHERE v > 0.1) FROM t";
        assert_eq!(service.rows("x:numbers", sql).await, expected, "{fields:?}");
        let above = jq(&service, "x:numbers", "map(select(.v > 0.1)) | length").await;
        assert_eq!(above, expected[0][3], "{fields:?}");
        let texts = "SELECT count(*) FROM t WHERE typeof(v) = 'text'";
        assert_eq!(service.rows("x:numbers", texts).await, json!([[0]]), "{fields:?}");
        let found = format!("SELECT count(*) FROM t WHERE v = '{}'", fields[0]);
        assert_eq!(service.rows("x:numbers", &found).await, json!([[1]]), "{found}");
    }
}

#[tokio::test]
async fn words_for_no_value_among_numbers_are_null_and_told() {
    let service = Service::start().await;
    let sql = "SELECT avg(v), max(v), count(v), count(*) FILTER (WHERE v > 0) FROM t";
    let counted = json!([[15.0, 20, 2, 2]]);
    for word in [
        "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "-", "--", "?", "#N/A", "<NA>",
        "\\N", "..", "#DIV/0!", "missing", " NA ",
    ] {
        service.store("x:words", "text/csv", &column("v", &["10", word, "20"])).await;
        assert_eq!(service.rows("x:words", sql).await, counted, "{word}");
        let told = head(&service, "x:words", sql).await;
        let note = format!("v: 1 of 3 is {}, taken as null (first in record 2)", word.trim());
        assert!(told.contains(&note), "{word}: {told}");
        let nulls = jq(&service, "x:words", "map(.v) | [add, length, index(null)]").await;
        assert_eq!(nulls, json!([30, 3, 1]), "{word}");
        let described = service.call("describe_resource", json!({ "uri": "x:words" })).await;
        assert!(text_of(&described).contains("- v: integer, 1 (33.3 %) null"), "{described}");
    }
    let answer = service.query(json!({ "from": "x:words", "sql": sql })).await;
    let note = json!({ "kind": "null", "table": "t", "column": "v", "count": 1, "first": 1,
        "text": "1 of 3 is NA, taken as null (first in record 2)" });
    assert_eq!(answer["notes"], json!([note]));
    let other = service.query(json!({ "from": "x:words", "sql": "SELECT max(n) FROM t" })).await;
    assert_eq!(other.get("notes"), None, "a note is about what is read");

    for (mime, text, rows) in [
        ("application/json", r#"[{"v":10},{"v":"NaN"},{"v":20}]"#, json!([[30, 2]])),
        ("application/json", r#"[{"v":10},{"v":""},{"v":20}]"#, json!([[30, 2]])),
        ("application/x-ndjson", "{\"v\":10}\n{\"v\":\"N/A\"}\n{\"v\":20}\n", json!([[30, 2]])),
        ("text/csv", "v,w\n10,a\n-,b\nNA,c\n20,d\n", json!([[30, 2]])),
        ("text/csv", "v,w\ntrue,a\nNA,b\nFALSE,c\n", json!([[1, 2]])),
    ] {
        service.store("x:other", mime, text).await;
        let sum = "SELECT sum(v), count(v) FROM t";
        assert_eq!(service.rows("x:other", sum).await, rows, "{text}");
        let told = head(&service, "x:other", sum).await;
        assert!(told.contains("taken as null"), "{text}: {told}");
    }
    // A word is a value where others are no numbers.
    for fields in [&["NA", "GB", "7"][..], &["NA", "none", "-"], &["?", "!", "1"]] {
        service.store("x:texts", "text/csv", &column("v", fields)).await;
        let all = "SELECT group_concat(v, ' ') FROM t";
        assert_eq!(service.rows("x:texts", all).await, json!([[fields.join(" ")]]));
        assert!(!head(&service, "x:texts", all).await.contains("null"), "{fields:?}");
    }
}

#[tokio::test]
async fn booleans_are_booleans_in_sql_and_jq() {
    let service = Service::start().await;
    for fields in [
        &["true", "False", "TRUE"][..],
        &["True", "true", "", "false"],
        &[" true", "FALSE ", "false"],
        &["false", "false"],
        &["true", "NA", "true"],
        &["TRUE"],
    ] {
        service.store("x:flags", "text/csv", &column("active", fields)).await;
        let expected = python(
            "on = [x.strip().lower() == 'true' for x in data]\noff = [x.strip().lower() == 'false' for x in data]\nprint(json.dumps([[sum(on), sum(off)]]))",
            json!(fields),
        )
        .await;
        let sql = "SELECT (SELECT count(*) FROM t WHERE active), (SELECT count(*) FROM t WHERE NOT active)";
        assert_eq!(service.rows("x:flags", sql).await, expected, "{fields:?}");
        let filter = "[(map(select(.active)) | length), (map(select(.active == false)) | length)]";
        assert_eq!(json!([jq(&service, "x:flags", filter).await]), expected, "{fields:?}");
    }
}

#[tokio::test]
async fn integers_beyond_64_bits_are_exact() {
    let service = Service::start().await;
    let ids = [
        "18446744073709551615",
        "18446744073709551614",
        "9223372036854775808",
        "18446744073709551615",
        "7",
        "-9223372036854775809",
        "9223372036854775807",
    ];
    let json_text = format!("[{}]", ids.map(|id| format!("{{\"id\":{id}}}")).join(","));
    let csv = column("id", &ids);
    let lines = ids.map(|id| format!("{{\"id\": {id}}}\n")).concat();
    let ordered = python(
        "ids = sorted(int(x) for x in data)\nprint(json.dumps([[str(x)] for x in ids]))",
        json!(ids),
    )
    .await;
    for (mime, text) in
        [("application/json", &json_text), ("text/csv", &csv), ("application/x-ndjson", &lines)]
    {
        service.store("x:ids", mime, text).await;
        let rows = async |sql: &str| service.rows("x:ids", sql).await;
        assert_eq!(rows("SELECT id FROM t ORDER BY id").await, ordered, "{mime}");
        assert_eq!(
            rows("SELECT count(*) FROM t GROUP BY id ORDER BY 1 DESC LIMIT 2").await,
            json!([[2], [1]])
        );
        assert_eq!(
            rows("SELECT count(DISTINCT id), max(id), min(id) FROM t").await,
            json!([[6, "18446744073709551615", "-9223372036854775809"]])
        );
        for (condition, count) in [
            ("id = 18446744073709551615", 2),
            ("id = '18446744073709551614'", 1),
            ("id = 7", 1),
            ("id > 9223372036854775807", 4),
            ("id > 7.5", 5),
            ("id = -9223372036854775809", 1),
            ("id IN (9223372036854775808, 9223372036854775807, 5)", 2),
            ("id BETWEEN 0 AND 18446744073709551614", 4),
        ] {
            let sql = format!("SELECT count(*) FROM t WHERE {condition}");
            assert_eq!(rows(&sql).await, json!([[count]]), "{mime}: {sql}");
        }
        let told = head(&service, "x:ids", "SELECT id FROM t").await;
        assert!(told.contains("id: 5 of 7 are beyond 64 bits, such as"), "{told}");
        let distinct = jq(&service, "x:ids", "(if type == \"array\" and (.[0] | type) == \"array\" then .[0] else . end) | map(.id) | unique | length").await;
        assert_eq!(distinct, json!(6), "{mime}");
    }
    let from = json!({ "a": "x:ids", "b": "x:csv" });
    service.store("x:csv", "text/csv", &csv).await;
    let join = json!({ "from": from, "sql": "SELECT count(*) FROM a JOIN b ON a.id = b.id" });
    assert_eq!(service.query(join).await["rows"], json!([[9]]));
    let into = json!({ "from": "x:ids", "sql": "SELECT id FROM t", "into": { "uri": "x:stored" } });
    service.query(into).await;
    assert_eq!(service.rows("x:stored", "SELECT id FROM t ORDER BY id").await, ordered);
}

#[tokio::test]
async fn describe_sql_and_jq_have_the_same_columns_and_types() {
    let service = Service::start().await;
    let csv = "id,ID,,zip,price,on,day,id_2\n\
        1,a,x,00501,1.50,true,2026-01-31,p\n2,b,,10001,NA,False,2026-02-01,q\n3,c,y,20002,2,TRUE,-,r,extra\n";
    service.store("x:table", "text/csv", csv).await;
    let answer = service.query(json!({ "from": "x:table", "sql": "SELECT * FROM t" })).await;
    let names: Vec<_> =
        answer["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["id", "ID_3", "column_3", "zip", "price", "on", "day", "id_2", "column_9"]);
    let keys = jq(&service, "x:table", ".[2] | keys_unsorted").await;
    assert_eq!(keys, json!(names));
    let described = service.call("describe_resource", json!({ "uri": "x:table" })).await;
    let described = text_of(&described);
    let types = ["integer", "text", "text", "text", "number", "boolean", "date", "text", "text"];
    for (name, kind) in names.iter().zip(types) {
        let is_column = |end: &str| described.contains(&format!("\n- {name}: {kind}{end}"));
        assert!(is_column(",") || is_column(";"), "{name} {kind}: {described}");
    }
    let of_sql = service
        .rows("x:table", "SELECT typeof(id), typeof(zip), typeof(price), typeof(\"on\"), typeof(day) FROM t LIMIT 1")
        .await;
    assert_eq!(of_sql, json!([["integer", "text", "real", "integer", "text"]]));
    let of_jq =
        jq(&service, "x:table", ".[0] | map_values(type) | [.id, .zip, .price, .on, .day]").await;
    assert_eq!(of_jq, json!(["number", "string", "number", "boolean", "string"]));
    // Each column is reachable under its name, and finds the values that are shown.
    for name in names {
        let sql = format!("SELECT count(*) FROM t a JOIN t b ON a.\"{name}\" = b.\"{name}\"");
        let same = format!(
            "SELECT sum(n * n) FROM (SELECT count(*) AS n FROM t WHERE \"{name}\" IS NOT NULL GROUP BY \"{name}\")"
        );
        assert_eq!(service.rows("x:table", &sql).await, service.rows("x:table", &same).await);
    }
}

#[tokio::test]
async fn columns_with_one_name_are_all_reachable_and_told() {
    let service = Service::start().await;
    for (mime, text, sql, rows, told) in [
        (
            "application/json",
            r#"{"US": {"key": "x", "n": 1}, "DE": {"key": "y", "n": 2}}"#,
            "SELECT key, key_2, n FROM t",
            json!([["US", "x", 1], ["DE", "y", 2]]),
            "key_2: named key in the content, as column key is",
        ),
        (
            "application/x-ndjson",
            "{\"id\":1,\"ID\":\"a\",\"Id\":true}\n",
            "SELECT id, ID_2, id_3 FROM t",
            json!([[1, "a", 1]]),
            "ID_2: named ID in the content, as column id is",
        ),
        (
            "text/csv",
            "a,A,a,a_2\n1,2,3,4\n",
            "SELECT a, A_3, a_4, a_2 FROM t",
            json!([[1, 2, 3, 4]]),
            "A_3: named A in the content, as column a is",
        ),
        (
            "text/csv",
            ",v,\n0,1,2\n",
            "SELECT column_1, v, column_3 FROM t",
            json!([[0, 1, 2]]),
            "column_1: without a name in the content",
        ),
        (
            "application/json",
            r#"{"items": [{"key": 1, "KEY": 2, "value": 3}, 4]}"#,
            "SELECT key, key_2, value FROM t",
            json!([[1, 2, 3], [null, null, 4]]),
            "KEY_2: named KEY in the content",
        ),
    ] {
        service.store("x:names", mime, text).await;
        assert_eq!(service.rows("x:names", sql).await, rows, "{text}");
        let head = head(&service, "x:names", sql).await;
        assert!(head.contains(told), "{text}: {head}");
    }
    let log = "a line\n";
    service.store("x:log", "text/plain", log).await;
    let arguments = json!({ "from": "x:log", "sql": "SELECT line, line_2 FROM t", "pattern": "(?P<line>[a-z]+) " });
    assert_eq!(service.query(arguments).await["rows"], json!([["a line", "a"]]));

    // A result that is stored keeps all its columns.
    service.store("x:a", "text/csv", "a,b\n1,2\n3,4\n").await;
    service.store("x:b", "text/csv", "a,b\n1,5\n3,6\n").await;
    for format in ["ndjson", "json", "csv"] {
        let into = json!({ "uri": "x:stored", "format": format });
        let from = json!({ "x": "x:a", "y": "x:b" });
        let sql = "SELECT x.a, y.a, x.b, y.b AS B FROM x JOIN y ON x.a = y.a ORDER BY 1";
        let answer = service.query(json!({ "from": from, "sql": sql, "into": into })).await;
        let names: Vec<_> =
            answer["columns"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
        assert_eq!(names, ["a", "a_2", "b", "B_2"]);
        assert_eq!(answer["notes"][0]["text"], "a further column a of the result");
        let stored = service.rows("x:stored", "SELECT a, a_2, b, b_2 FROM t").await;
        assert_eq!(stored, json!([[1, 1, 2, 5], [3, 3, 4, 6]]), "{format}");
    }
}

#[tokio::test]
async fn a_value_that_is_shown_is_found() {
    const COLUMNS: usize = 60;
    const PYTHON: &str = r#"
import random
random.seed(data)
pools = [
    lambda: str(random.randint(-99, 99)), lambda: str(random.randint(0, 2**65)), lambda: f"{random.randint(0, 999)}.{random.randint(0, 99)}",
    lambda: random.choice(["true", "False", "TRUE"]), lambda: random.choice(["00501", "007", "+491512345678"]),
    lambda: random.choice(["3e-5", "12e4", ".5", "5.", "+3", " 9"]), lambda: random.choice(["1.10", "1.1", "1.10.1", "3.9"]),
    lambda: random.choice(["NA", "-", "", " ", "None"]), lambda: random.choice(["2026-01-31", "2026-02-01T09:30:00Z"]),
    lambda: "".join(random.choices("aé'\",;\n 1.-", k=random.randint(1, 5))),
]
def column():
    used = random.sample(pools, random.randint(1, 3))
    return [random.choice(used)() for _ in range(10)]
columns = [column() for _ in range(60)]
out = io.StringIO()
writer = csv.writer(out)
writer.writerow([f"c{n}" for n in range(60)])
writer.writerows(zip(*columns))
print(json.dumps(out.getvalue()))
"#;
    let service = Service::start().await;
    for seed in 0..3 {
        let text = python(PYTHON, json!(seed)).await;
        service.store("x:any", "text/csv", text.as_str().unwrap()).await;
        for column in (0..COLUMNS).map(|n| format!("c{n}")) {
            let groups =
                format!("SELECT {column}, count(*) FROM t WHERE {column} IS NOT NULL GROUP BY 1");
            let groups = service.rows("x:any", &groups).await;
            for group in groups.as_array().unwrap() {
                let literal = match &group[0] {
                    Value::String(text) => format!("'{}'", text.replace('\'', "''")),
                    number => number.to_string(),
                };
                let found = format!("SELECT count(*) FROM t WHERE {column} = {literal}");
                assert_eq!(
                    service.rows("x:any", &found).await,
                    json!([[group[1]]]),
                    "{found}: {text}"
                );
            }
        }
    }
}
