//! `query_resource`: SQL takes no text for a number or a date without a word. Values are those of
//! Python.

#![allow(clippy::format_collect, clippy::too_many_lines, reason = "tables of cases, made of text")]

use serde_json::{Value, json};

use super::query::{Service, output_of};

/// The value of an expression in Python, as JSON.
async fn python(lines: &str) -> Value {
    let program = format!("import json, datetime, statistics, re\n{lines}");
    serde_json::from_str(&output_of("python3", &["-c", &program], "").await).unwrap()
}

#[tokio::test]
async fn a_comparison_of_text_with_a_number_is_an_error_with_the_cure_and_the_cure_works() {
    let service = Service::start().await;
    let hours: String = (0..24).map(|hour| format!("{hour:02},{}\n", hour * 2)).collect();
    service.store("x:hours", "text/csv", &format!("hour,visits\n{hours}")).await;
    service.store("x:ids", "text/csv", "id,name\n007,a\n8,b\n21,c\n100,d\n").await;
    let readings: String =
        (0..20).map(|n| format!("{{\"at\":{n},\"t\":\"{}.5\"}}\n", n * 5)).collect();
    service.store("x:readings", "application/x-ndjson", &readings).await;
    service
        .store(
            "x:hosts",
            "application/json",
            r#"[{"port": 80, "up": true}, {"port": 443, "up": false}]"#,
        )
        .await;
    service.store("x:names", "text/csv", "port,name\n0080,http\n0443,https\n").await;
    let both = json!({ "a": "x:hosts", "b": "x:names" });

    for (from, sql, says) in [
        (
            json!("x:hours"),
            "SELECT count(*) FROM t WHERE hour > 8",
            "hour is text, such as '00', and 8 is a number: write number(hour) to compare numbers, or '8' to compare texts.",
        ),
        (
            json!("x:hours"),
            "SELECT sum(visits) FROM t WHERE hour BETWEEN 9 AND 17",
            "hour is text, such as '00', and 9 is a number",
        ),
        (
            json!("x:hours"),
            "SELECT * FROM t WHERE visits = 'none'",
            "'none' is a text, and visits is",
        ),
        (
            json!("x:hours"),
            "WITH h AS (SELECT hour AS x FROM t) SELECT count(*) FROM h WHERE x IN (8, 9)",
            "x is text, such as '00', and 8 is a number",
        ),
        (
            json!("x:hours"),
            "SELECT hour + 1 FROM t",
            "hour is text, such as '00', and arithmetic needs a number",
        ),
        (
            json!("x:ids"),
            "SELECT count(*) FROM t WHERE id > 20",
            "id is text, such as '007', and 20 is a number",
        ),
        (
            json!("x:readings"),
            "SELECT count(*) FROM t WHERE t > 42.5",
            "t is text, such as '0.5', and 42.5 is a number",
        ),
        (
            json!("x:readings"),
            "SELECT avg(at) FROM t WHERE t < at",
            "t is text, such as '0.5', and at is",
        ),
        (
            both.clone(),
            "SELECT count(*) FROM a JOIN b ON a.port = b.port",
            "b.port is text, such as '0080', and a.port is",
        ),
        (
            both.clone(),
            "SELECT count(*) FROM a JOIN b USING (port)",
            "b.port is text, such as '0080', and a.port is",
        ),
        (
            both.clone(),
            "SELECT count(*) FROM a WHERE port IN (SELECT port FROM b)",
            "port is text, such as '0080', and port is",
        ),
    ] {
        let said = service.refusal(json!({ "from": from, "sql": sql })).await;
        assert!(said.starts_with(says), "{sql}: {said}");
    }

    for (from, sql, value) in [
        (
            json!("x:hours"),
            "SELECT count(*) FROM t WHERE number(hour) > 8",
            "sum(h > 8 for h in range(24))",
        ),
        (json!("x:hours"), "SELECT count(*) FROM t WHERE CAST(hour AS INTEGER) > 8", "15"),
        (json!("x:hours"), "SELECT count(*) FROM t WHERE hour > '08'", "15"),
        (
            json!("x:hours"),
            "SELECT sum(visits) FROM t WHERE hour BETWEEN '09' AND '17'",
            "sum(2 * h for h in range(9, 18))",
        ),
        (json!("x:hours"), "SELECT count(*) FROM t WHERE visits = '20'", "1"),
        (json!("x:ids"), "SELECT count(*) FROM t WHERE number(id) > 20", "2"),
        (json!("x:ids"), "SELECT name FROM t WHERE id = '007'", "'a'"),
        (
            json!("x:readings"),
            "SELECT count(*) FROM t WHERE CAST(t AS REAL) > 42.5",
            "sum(n * 5 + .5 > 42.5 for n in range(20))",
        ),
        (both.clone(), "SELECT count(*) FROM a JOIN b ON a.port = number(b.port)", "2"),
    ] {
        let answer = service.query(json!({ "from": from, "sql": sql })).await;
        let expected = python(&format!("print(json.dumps({value}))")).await;
        assert_eq!(answer["rows"], json!([[expected]]), "{sql}");
    }
}

#[tokio::test]
async fn a_text_among_numbers_is_named_with_its_row_and_number_reads_it() {
    let service = Service::start().await;
    service
        .store("x:sales", "text/csv", "shop,amount\nA,\"1,234\"\nB,999\nA,\"2,000\"\nB,15\n")
        .await;
    service.store("x:prices", "text/csv", "item,price\na,$5.00\nb,$10.00\nc,\"$1,250.75\"\n").await;
    service.store("x:preise", "text/csv", "item;preis\na;2,5\nb;10,25\nc;1.000,5\n").await;
    service
        .store("x:shares", "application/json", r#"[{"p": "12 %"}, {"p": "7.5 %"}, {"p": null}]"#)
        .await;
    service
        .store(
            "x:mixed",
            "application/json",
            r#"[{"n": 10}, {"n": "NA"}, {"n": 20}, {"n": {"a": 1}}]"#,
        )
        .await;

    for (uri, call, says) in [
        (
            "x:sales",
            "sum(amount)",
            "sum takes numbers, not the text \"1,234\" (amount in row 1 of t): number(amount) reads it as 1234.",
        ),
        (
            "x:sales",
            "avg(amount)",
            "avg takes numbers, not the text \"1,234\" (amount in row 1 of t)",
        ),
        ("x:sales", "max(amount)", "max takes numbers, or words, not the text \""),
        (
            "x:sales",
            "sum(CAST(amount AS INTEGER))",
            "CAST takes texts that are numbers as a whole, not the text \"1,234\"",
        ),
        ("x:sales", "median(amount)", "median takes numbers, not the text \"1,234\""),
        ("x:sales", "sum(amount) OVER (ORDER BY shop)", "sum takes numbers, not the text \""),
        (
            "x:prices",
            "total(price)",
            "total takes numbers, not the text \"$5.00\" (price in row 1 of t): number(price) reads it as 5.",
        ),
        (
            "x:prices",
            "min(price)",
            "min takes numbers, or words, not the text \"$1,250.75\" (price in row 3 of t)",
        ),
        (
            "x:preise",
            "sum(preis)",
            "sum takes numbers, not the text \"2,5\" (preis in row 1 of t): number(preis, 'de') reads it as 2.5.",
        ),
        (
            "x:shares",
            "avg(p)",
            "avg takes numbers, not the text \"12 %\" (p in row 1 of t): number(p) reads it as 12.",
        ),
    ] {
        let said =
            service.refusal(json!({ "from": uri, "sql": format!("SELECT {call} FROM t") })).await;
        assert!(said.starts_with(says), "{call}: {said}");
    }

    for (uri, sql, value) in [
        (
            "x:sales",
            "SELECT shop, sum(number(amount)) FROM t GROUP BY shop",
            "[['A', 3234], ['B', 1014]]",
        ),
        ("x:sales", "SELECT shop, max(number(amount)) FROM t", "[['A', 2000]]"),
        (
            "x:prices",
            "SELECT sum(number(price)), max(number(price)), median(number(price)) FROM t",
            "[[5 + 10 + 1250.75, 1250.75, 10.0]]",
        ),
        ("x:preise", "SELECT sum(number(preis, 'de')) FROM t", "[[2.5 + 10.25 + 1000.5]]"),
        (
            "x:shares",
            "SELECT avg(number(p)), stddev(number(p)) FROM t",
            "[[9.75, statistics.stdev([12, 7.5])]]",
        ),
        (
            "x:mixed",
            "SELECT max(try_number(n)), avg(try_number(n)), sum(try_number(n)) FROM t",
            "[[20, 15.0, 30]]",
        ),
    ] {
        let expected = python(&format!("print(json.dumps({value}))")).await;
        assert_eq!(service.rows(uri, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn dates_are_read_by_their_format_and_nothing_else_is_a_date() {
    let service = Service::start().await;
    let days = ["31/12/2025", "01/02/2026", "15/01/2026"];
    service.store("x:days", "text/csv", &format!("day\n{}\n", days.join("\n"))).await;
    service.store("x:epochs", "text/csv", "ms\n1735689600000\n1767225600000\n").await;

    for (uri, call, says) in [
        (
            "x:days",
            "date(day)",
            "date takes dates as 2026-01-31 or 2026-01-31 12:30:00, not the text \"31/12/2025\" (day in row 1 of t): strptime(day, '%d/%m/%Y') makes ISO text of it.",
        ),
        ("x:days", "strftime('%Y-%m', day)", "strftime takes dates as 2026-01-31"),
        (
            "x:days",
            "strptime(day, '%m/%d/%Y')",
            "strptime takes texts of the format \"%m/%d/%Y\", not the text \"31/12/2025\"",
        ),
        (
            "x:epochs",
            "datetime(ms, 'unixepoch')",
            "datetime reads no date in 1735689600000: 'unixepoch' counts seconds; divide smaller units, as in datetime(x / 1000, 'unixepoch').",
        ),
        (
            "x:epochs",
            "date(ms)",
            "date reads no date in 1735689600000: a number without a modifier is a Julian day",
        ),
    ] {
        let said =
            service.refusal(json!({ "from": uri, "sql": format!("SELECT {call} FROM t") })).await;
        assert!(said.starts_with(says), "{call}: {said}");
    }

    let dates = "f = lambda d: datetime.datetime.strptime(d, '%d/%m/%Y')\n";
    let expected = python(&format!("{dates}print(json.dumps([[f(d).strftime('%Y-%m-%d'), f(d).strftime('%A')[:2] and (f(d).weekday() + 1) % 7] for d in {days:?}]))")).await;
    let sql = "SELECT strptime(day, '%d/%m/%Y') AS d, CAST(strftime('%w', strptime(day, '%d/%m/%Y')) AS INTEGER) FROM t";
    assert_eq!(service.rows("x:days", sql).await, expected);
    let sql = "SELECT count(*), count(try_strptime(day, '%m/%d/%Y')) FROM t";
    assert_eq!(service.rows("x:days", sql).await, json!([[3, 1]]));
    let sql = "SELECT datetime(ms / 1000, 'unixepoch') FROM t";
    assert_eq!(
        service.rows("x:epochs", sql).await,
        json!([["2025-01-01 00:00:00"], ["2026-01-01 00:00:00"]])
    );
}

#[tokio::test]
async fn letters_and_groups_are_those_of_python() {
    let service = Service::start().await;
    let names = ["Ärger", "ÉCOLE", "москва", "ΟΔΟΣ", "straße"];
    service.store("x:names", "text/csv", &format!("name\n{}\n", names.join("\n"))).await;
    let expected =
        python(&format!("print(json.dumps([[n.lower(), n.upper()] for n in {names:?}]))")).await;
    assert_eq!(service.rows("x:names", "SELECT lower(name), upper(name) FROM t").await, expected);
    let sql = "SELECT count(*) FROM t WHERE name LIKE 'ä%' OR name LIKE '%cole' OR name LIKE 'М_СКВА' OR name = 'οδος' COLLATE NOCASE";
    assert_eq!(service.rows("x:names", sql).await, json!([[4]]));

    service.store("x:days", "text/csv", "d\n2025-12\n2026-01\n").await;
    for (by, python_by) in [
        ("$2_$1", r"\2_\1"),
        (r"\2.\1", r"\2.\1"),
        ("${2}x", r"\2x"),
        ("$year/", r"\1/"),
        ("$0!", r"\g<0>!"),
    ] {
        let pattern = r"(?P<year>\d+)-(?P<month>\d+)";
        let sql = format!("SELECT regexp_replace(d, '{pattern}', '{by}') FROM t");
        let program = format!(
            "print(json.dumps([[re.sub(r'{pattern}', r'{python_by}', d)] for d in ['2025-12', '2026-01']]))"
        );
        assert_eq!(service.rows("x:days", &sql).await, python(&program).await, "{by}");
    }
    let missing = json!({ "from": "x:days", "sql": "SELECT regexp_replace(d, '-', '$1') FROM t" });
    assert!(service.refusal(missing).await.contains("no group \"1\": it has no groups"));
    let missing =
        json!({ "from": "x:days", "sql": "SELECT regexp_extract(d, '(\\d+)', 2) FROM t" });
    assert!(service.refusal(missing).await.contains("no group \"2\": it has group 1"));
}

#[tokio::test]
async fn texts_that_are_sorted_although_they_are_numbers_are_told() {
    let service = Service::start().await;
    service.store("x:prices", "text/csv", "item,price\na,$5.00\nb,$10.00\nc,$9.00\n").await;
    let sql = "SELECT item FROM t ORDER BY price DESC LIMIT 1";
    let answer = service.query(json!({ "from": "x:prices", "sql": sql })).await;
    assert_eq!(answer["rows"], json!([["c"]]));
    let note = &answer["notes"][0];
    assert_eq!((&note["column"], &note["kind"]), (&json!("price"), &json!("text")));
    assert_eq!(
        note["text"],
        "sorted as text, of which 10 comes before 9: number(price) sorts numbers"
    );
    let sql = "SELECT item FROM t ORDER BY number(price) DESC LIMIT 1";
    let answer = service.query(json!({ "from": "x:prices", "sql": sql })).await;
    assert_eq!((&answer["rows"], answer.get("notes")), (&json!([["b"]]), None));
}

#[tokio::test]
async fn texts_that_are_numbers_or_dates_to_people_are_not_compared() {
    let service = Service::start().await;
    let content = "day;open;close\n31/12/2019;9,5;10,25\n01/02/2020;10,0;9,75\n";
    service.store("x:quotes", "text/csv", content).await;

    for (sql, cure, cured, rows) in [
        (
            "SELECT count(*) FROM t WHERE close < open",
            "write number(close, 'de') and number(open, 'de') to compare numbers",
            "SELECT count(*) FROM t WHERE number(close, 'de') < number(open, 'de')",
            json!([[1]]),
        ),
        (
            "SELECT count(*) FROM t WHERE day > '31/01/2020'",
            "write strptime(day, '%d/%m/%Y') to compare dates",
            "SELECT count(*) FROM t WHERE strptime(day, '%d/%m/%Y') > '2020-01-31'",
            json!([[1]]),
        ),
        (
            "SELECT max(day) FROM t",
            "write max(strptime(day, '%d/%m/%Y'))",
            "SELECT max(strptime(day, '%d/%m/%Y')) FROM t",
            json!([["2020-02-01"]]),
        ),
    ] {
        let refusal = service.refusal(json!({ "from": "x:quotes", "sql": sql })).await;
        assert!(refusal.contains(cure), "{sql}: {refusal}");
        assert_eq!(service.rows("x:quotes", cured).await, rows, "{cured}");
    }
}

#[tokio::test]
async fn values_with_blanks_around_or_colours_within_are_told() {
    let service = Service::start().await;
    service.store("x:padded", "text/csv", "n, name\n1, Ann\n2, Bob\n").await;
    let sql = "SELECT count(*) FROM t WHERE name = 'Ann'";
    let answer = service.query(json!({ "from": "x:padded", "sql": sql })).await;
    assert_eq!(answer["rows"], json!([[0]]));
    let told = &answer["notes"][0]["text"];
    assert_eq!(
        told,
        "blanks stand around values, such as ' Ann', and count: trim(name) compares without"
    );
    let sql = "SELECT count(*) FROM t WHERE trim(name) = 'Ann'";
    let answer = service.query(json!({ "from": "x:padded", "sql": sql })).await;
    assert_eq!((&answer["rows"], answer.get("notes")), (&json!([[1]]), None));

    service.store("x:log", "text/plain", "\u{1b}[31mERROR\u{1b}[0m: boom\nINFO: ok\n").await;
    let sql = "SELECT count(*) FROM t WHERE line LIKE 'ERROR: b%'";
    let answer = service.query(json!({ "from": "x:log", "sql": sql })).await;
    assert_eq!(answer["rows"], json!([[0]]));
    assert_eq!(
        answer["notes"][0]["text"],
        "1 of 2 is coloured by terminal escapes, which stand between letters: plain(line) removes them"
    );
    let sql = "SELECT plain(line) FROM t WHERE plain(line) LIKE 'ERROR: b%'";
    assert_eq!(service.rows("x:log", sql).await, json!([["ERROR: boom"]]));
}

#[tokio::test]
async fn a_key_that_a_record_has_twice_is_told() {
    let service = Service::start().await;
    for (uri, media_type, content) in [
        ("x:list", "application/json", "[{\"a\": 0}, {\"a\": 1, \"b\": 5, \"a\": 2}]"),
        ("x:lines", "application/x-ndjson", "{\"a\": 0}\n{\"a\": 1, \"b\": 5, \"\\u0061\": 2}\n"),
        ("x:map", "application/json", "{\"k\": {\"a\": 0}, \"l\": {\"a\": 1, \"a\": 2}}"),
    ] {
        service.store(uri, media_type, content).await;
        let answer = service.query(json!({ "from": uri, "sql": "SELECT a FROM t" })).await;
        assert_eq!(answer["rows"], json!([[0], [2]]), "{uri}");
        let note = &answer["notes"][0];
        assert_eq!((&note["count"], &note["first"]), (&json!(1), &json!(1)), "{uri}");
        assert_eq!(note["text"], "1 record with a key twice, of which the last value counts");
    }
}

#[tokio::test]
async fn columns_without_rows_are_an_empty_table() {
    let service = Service::start().await;
    let content = r#"{"columns": [{"name": "a"}, {"name": "b"}], "rows": []}"#;
    service.store("x:none", "application/json", content).await;

    assert_eq!(service.rows("x:none", "SELECT count(*) FROM t").await, json!([[0]]));
    assert_eq!(service.rows("x:none", "SELECT a, b FROM t").await, json!([]));
}
