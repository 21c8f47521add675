//! The functions in SQLite, with guards, against SQLite without them.

#![allow(clippy::unwrap_used)]

use rusqlite::{Connection, types::Value};

use super::{super::guard::Guarded, Refusals, add};

struct Functions {
    connection: Connection,
    refusals: Refusals,
}

impl Functions {
    /// A table `t` with columns `a`, `b` and `c` of these rows.
    fn over(rows: &str) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        let refusals = Refusals::default();
        add(&connection, &refusals).unwrap();
        fill(&connection, rows);
        Self { connection, refusals }
    }

    fn rows(&self, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        let guarded = match Guarded::new(sql) {
            Guarded::Text(text) => text,
            _ => sql.to_owned(),
        };
        let rows = rows(&self.connection, &guarded);
        rows.map_err(|error| self.refusals.take().map_or(error, |refusal| refusal.text(None)))
    }

    fn text(&self, sql: &str) -> String {
        match self.rows(&format!("SELECT {sql}")) {
            Ok(rows) => match &rows[0][0] {
                Value::Null => "NULL".into(),
                Value::Integer(number) => number.to_string(),
                Value::Real(number) => format!("{number:?}"),
                Value::Text(text) => text.clone(),
                Value::Blob(_) => "a blob".into(),
            },
            Err(error) => format!("! {error}"),
        }
    }
}

fn fill(connection: &Connection, rows: &str) {
    connection
        .execute_batch(&format!("CREATE TABLE t (a, b, c); INSERT INTO t VALUES {rows}"))
        .unwrap();
}

fn rows(connection: &Connection, sql: &str) -> Result<Vec<Vec<Value>>, String> {
    let mut statement = connection.prepare(sql).map_err(|error| error.to_string())?;
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|index| row.get(index)).collect());
    rows.unwrap().collect::<rusqlite::Result<_>>().map_err(|error| error.to_string())
}

#[test]
fn what_passes_is_what_sqlite_answers() {
    const ROWS: &str = "(1, 'x', 2.5), (2, 'y', -0.1), (NULL, 'z', 1e300), (9007199254740993, 'Z', 0.1), \
        (-4, 'a', 1e-9), (2, NULL, 0.2), (7, 'ab', NULL), (-9007199254740993, 'x', -1e300)";
    let own = Functions::over(ROWS);
    let plain = Connection::open_in_memory().unwrap();
    fill(&plain, ROWS);

    for sql in [
        "SELECT sum(a), avg(a), total(a), sum(c), avg(c), total(c), sum(a + c) FROM t",
        "SELECT sum(a), total(c), min(a), max(c) FROM t WHERE a > 100000000000000000",
        "SELECT b, max(a), c FROM t",
        "SELECT b, min(c), count(*), a FROM t WHERE b IS NOT NULL",
        "SELECT b, max(a) AS m, c FROM t GROUP BY b HAVING max(a) > 0 ORDER BY max(a) DESC, b",
        "SELECT max(b), min(b), max(b COLLATE NOCASE), max(DISTINCT a) FILTER (WHERE c > 0) FROM t",
        "SELECT a, max(a, c, 0), min(a, 3), max(b, 'b') FROM t",
        "SELECT rowid, sum(a) OVER (ORDER BY rowid ROWS 2 PRECEDING), avg(c) OVER w, max(a) OVER w, min(b) OVER w, total(c) OVER (ORDER BY rowid ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t WINDOW w AS (ORDER BY rowid ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "SELECT (SELECT max(x.a) FROM t AS x WHERE x.b = t.b), min((SELECT max(c) FROM t)) FROM t",
        "SELECT abs(a), round(c, 2), round(c), sign(c), CAST(c AS INTEGER), CAST('12.5 ' AS REAL), CAST(a AS TEXT) FROM t",
        "SELECT lower(b), upper('abc'), b LIKE 'X%', b LIKE '_', 'a_b' LIKE 'a\\_b' ESCAPE '\\', a LIKE '2%', c LIKE '%e%', lower(c) FROM t",
        "SELECT date('2026-01-31', '+1 month'), datetime('2026-01-31T10:00:00+02:00'), time('12:30'), julianday('2026-01-31'), unixepoch('2026-01-31 00:00:01'), strftime('%Y-W%W', '2026-01-31'), date(1735689600, 'unixepoch'), date(NULL), strftime('%H', '12:30'), date(2460000.5), date('2026-01-31 10:00:00.123'), datetime(1735689600, 'auto'), date('now') > '2020', timediff('2026-01-31', '2025-01-01')",
        "SELECT count(DISTINCT b COLLATE NOCASE), group_concat(b, '-') FROM (SELECT b FROM t ORDER BY b COLLATE NOCASE, rowid)",
        "SELECT sum(a) FROM t WHERE 0",
        "SELECT total(a), avg(a) FROM t WHERE 0",
        "SELECT sum(1), sum('12'), sum(' 1.5 '), max(a) + 1 FROM t",
    ] {
        assert_eq!(own.rows(sql), rows(&plain, sql), "{sql}");
    }

    // An overflow is SQLite's error as well.
    let sql = "SELECT sum(a) FROM (SELECT 9223372036854775807 AS a UNION ALL SELECT 1)";
    assert_eq!(own.rows(sql), Err("integer overflow".into()));
    assert_eq!(rows(&plain, sql), Err("integer overflow".into()));
}

#[test]
fn texts_that_are_no_numbers_are_refused_with_the_cure() {
    for (value, cure) in [
        ("1,234", "number(x) reads it as 1234"),
        ("$5.00", "number(x) reads it as 5"),
        ("2,5", "number(x, 'de') reads it as 2.5"),
        ("12 %", "number(x) reads it as 12"),
        ("NA", "try_number(x) is NULL where the text is no number"),
    ] {
        let own = Functions::over(&format!("(10, 1, 1), ('{value}', 2, 2), (20, 3, 3)"));
        for call in [
            "sum(a)",
            "avg(a)",
            "total(a)",
            "median(a)",
            "percentile(a, 90)",
            "stddev(a)",
            "variance(a)",
            "max(abs(a))",
            "max(round(a, 1))",
            "max(sqrt(a))",
            "max(CAST(a AS REAL))",
            "sum(CAST(a AS INTEGER))",
            "sum(CAST(a AS DECIMAL(10, 2)))",
            "max(a)",
            "min(a)",
            "max(a, 3)",
            "sum(a) OVER (ORDER BY b)",
            "max(a) OVER (ORDER BY b)",
            "median(a) OVER (ORDER BY b)",
        ] {
            let said = own.rows(&format!("SELECT {call} FROM t")).unwrap_err();
            assert!(
                said.contains(&format!("not the text \"{value}\"")),
                "{call} of {value}: {said}"
            );
            assert!(said.ends_with(&format!(": {cure}.")), "{call} of {value}: {said}");
        }
    }
}

#[test]
fn extremes_of_texts_are_words_or_in_the_order_of_their_numbers() {
    for (values, call, expected) in [
        ("'b', 'a', 'C'", "max(a)", "b"),
        ("'2026-01-31', '2025-12-31'", "max(a)", "2026-01-31"),
        ("'00501', '10001'", "max(a)", "10001"),
        ("'1.10', '1.10.1', '1.1'", "max(a)", "1.10.1"),
        ("'10', 'x', '9'", "max(a)", "x"),
        ("'7', NULL, '5'", "min(a)", "5"),
        (
            "'9', '10'",
            "max(a)",
            "! max takes numbers, or words, not the text \"9\": number(x) reads it as 9.",
        ),
        (
            "'9', '10'",
            "min(a)",
            "! min takes numbers, or words, not the text \"10\": number(x) reads it as 10.",
        ),
        (
            "'$9.00', '$10.00'",
            "max(a)",
            "! max takes numbers, or words, not the text \"$9.00\": number(x) reads it as 9.",
        ),
        (
            "'1,234', '999'",
            "max(a)",
            "! max takes numbers, or words, not the text \"999\": number(x) reads it as 999.",
        ),
        (
            "7, '42.5'",
            "max(a)",
            "! max takes numbers, or words, not the text \"42.5\": number(x) reads it as 42.5.",
        ),
        (
            "'kr 9', 'kr 10'",
            "max(a)",
            "! max takes numbers, or words, not the text \"kr 9\": number(x) reads it as 9.",
        ),
        (
            "'9 lei', '10 lei'",
            "max(a)",
            "! max takes numbers, or words, not the text \"9 lei\": number(x) reads it as 9.",
        ),
        ("'user 9', 'user 10'", "max(a)", "user 9"),
        ("'1_0', '9'", "max(a)", "9"),
        ("'$9.00', '$10.00', NULL", "max(number(a))", "10.0"),
        ("10, 'NA', 20", "max(try_number(a))", "20"),
    ] {
        let rows: Vec<_> = values.split(", ").map(|value| format!("({value}, 0, 0)")).collect();
        let own = Functions::over(&rows.join(", "));
        assert_eq!(own.text(&format!("{call} FROM t")), expected, "{call} of {values}");
    }

    // Groups are compared by themselves, and frames, too.
    let own = Functions::over("('n', 1, 1), ('n', 2, 2), ('t', 'x', 3), ('t', 'y', 4)");
    let groups = own.rows("SELECT max(b) FROM t GROUP BY a").unwrap();
    assert_eq!(groups, [vec![Value::Integer(2)], vec![Value::Text("y".into())]]);
    let frames = own.rows("SELECT max(b) OVER (PARTITION BY a ORDER BY c ROWS 1 PRECEDING) FROM t");
    assert_eq!(frames.unwrap().len(), 4);

    // A frame forgets what has left it.
    let own =
        Functions::over("('9', 1, 1), ('10', 2, 2), ('11', 3, 3), (NULL, 4, 4), ('12', 5, 5)");
    let sql = "SELECT min(a) OVER (ORDER BY b ROWS 1 PRECEDING) FROM t WHERE b > 1";
    let frames = own.rows(sql).unwrap();
    let expected = ["10", "10", "11", "12"].map(|text| vec![Value::Text(text.into())]);
    assert_eq!(frames, expected);
    assert!(own.rows(&sql.replace("b > 1", "1")).unwrap_err().contains("not the text \"10\""));
}

#[test]
fn numbers_and_dates_are_read_from_texts() {
    let own = Functions::over("(1, 1, 1)");
    for (sql, expected) in [
        ("number('1,234')", "1234"),
        ("number('$5.00') + 1", "6.0"),
        ("number('12 %')", "12"),
        ("number('2,5', 'de')", "2.5"),
        ("number('1.234,5', ',')", "1234.5"),
        ("number(NULL)", "NULL"),
        ("number(7)", "7"),
        ("number(2.5, 'de')", "2.5"),
        (
            "number('NA')",
            "! number takes texts that are numbers, not the text \"NA\": try_number(x) is NULL where the text is no number.",
        ),
        (
            "number('2,5')",
            "! number takes texts that are numbers, not the text \"2,5\": number(x, 'de') reads it as 2.5.",
        ),
        (
            "number('1', 'xx')",
            "! number knows no locale \"xx\": give 'de', 'fr', 'en', or the mark before decimals, ',' or '.'",
        ),
        ("try_number('NA')", "NULL"),
        ("try_number('$5')", "5"),
        ("strptime('31/12/2025', '%d/%m/%Y')", "2025-12-31"),
        ("date(strptime('31/12/2025', '%d/%m/%Y'), '+1 day')", "2026-01-01"),
        ("strptime(NULL, '%d')", "NULL"),
        ("try_strptime('soon', '%d/%m/%Y')", "NULL"),
        (
            "strptime('31/12/2025', '%Y-%m-%d')",
            "! strptime takes texts of the format \"%Y-%m-%d\", not the text \"31/12/2025\": strptime(x, '%d/%m/%Y') makes ISO text of it.",
        ),
        (
            "strptime('2025', 'yyyy')",
            "! \"yyyy\" is no format of strptime: write fields such as '%d/%m/%Y %H:%M:%S'",
        ),
        (
            "try_strptime('2025', '%Q')",
            "! \"%Q\" is no format of strptime: write fields such as '%d/%m/%Y %H:%M:%S'",
        ),
        ("lower('ÄÖ')", "äö"),
        ("upper('straße')", "STRASSE"),
        ("'ÄPFEL' LIKE 'äpf%'", "1"),
        ("'Ä' = 'ä' COLLATE NOCASE", "1"),
        ("regexp_replace('2025-12', '(\\d+)-(\\d+)', '$2_$1')", "12_2025"),
        ("regexp_extract('ab12', '[a-z]+(\\d+)')", "12"),
        ("regexp_extract('ab12', '(?P<n>\\d+)', 'n')", "12"),
        ("regexp_extract('ab', '\\d')", "NULL"),
        (
            "regexp_extract('ab12', '[a-z]+(\\d+)', 2)",
            "! the regular expression has no group \"2\": it has group 1",
        ),
    ] {
        assert_eq!(own.text(sql), expected, "{sql}");
    }
}

#[test]
fn dates_that_sqlite_does_not_read_are_refused() {
    let own = Functions::over("(1, 1, 1)");
    for (sql, expected) in [
        ("date('31/12/2025')", "strptime(x, '%d/%m/%Y') makes ISO text of it"),
        ("strftime('%Y', '12/31/2025')", "strptime(x, '%m/%d/%Y') makes ISO text of it"),
        ("julianday('2025-1-5')", "strptime(x, '%Y-%m-%d') makes ISO text of it"),
        ("datetime(1735689600000, 'unixepoch')", "datetime(x / 1000, 'unixepoch')"),
        ("date('1735689600000', 'unixepoch')", "date(x / 1000, 'unixepoch')"),
        ("date(1735689600000000, 'auto')", "date(x / 1000000, 'unixepoch')"),
        ("date(100000000000, 'unixepoch')", "date(x / 1000, 'unixepoch')"),
        ("date(1735689600)", "write date(x, 'unixepoch') for seconds since 1970"),
        ("date(2025)", "a number without a modifier is a Julian day"),
        ("date('20251231')", "strptime(x, '%Y%m%d') for digits of a date"),
        ("date('2025-02-31')", "there is no such day"),
        ("date('12:30')", "it has a time only"),
        ("date('soon')", "try_strptime is NULL where a text has another format"),
        ("date('2025-01-01', '+1 fortnight')", "its modifiers are"),
        ("timediff('2025-01-01', 'x')", "try_strptime"),
    ] {
        let said = own.text(sql);
        assert!(said.starts_with("! ") && said.contains(expected), "{sql}: {said}");
    }
    assert_eq!(own.text("date(253402300799, 'unixepoch')"), "9999-12-31");
}
