//! Statements over columns of known types.

#![allow(clippy::unwrap_used)]

use proptest::{prelude::*, strategy::BoxedStrategy};
use rusqlite::{Connection, types::Value};

use super::{
    super::{functions::Refusals, guard::Guarded},
    check_facts as check,
    types::{ColumnFacts, TableFacts, ValueSort},
};

fn column(name: &str, sort: ValueSort, kind: &'static str, example: &str) -> ColumnFacts {
    let example = Some(example.to_owned());
    ColumnFacts {
        name: name.into(),
        sort,
        kind,
        example,
        filled: 3,
        has_numeric_texts: false,
        with_blanks: (name == "padded").then(|| (2, "' Ann'".to_owned())),
    }
}

fn tables() -> Vec<TableFacts> {
    let t = vec![
        column("n", ValueSort::Number, "an integer", "5"),
        column("price", ValueSort::Number, "a number", "2.5"),
        column("hour", ValueSort::Text, "text", "'00'"),
        column("cost", ValueSort::Text, "text", "'$1,234.50'"),
        column("name", ValueSort::Text, "text", "'Ann'"),
        column("day", ValueSort::Date, "a date", "'2026-01-31'"),
        column("active", ValueSort::Boolean, "a boolean", "1"),
        column("level", ValueSort::Mixed, "mixed", "1"),
        column("big", ValueSort::BigInteger, "a big integer", "'18446744073709551615'"),
        column("paid", ValueSort::Text, "text", "'1.234,5'"),
        column("born", ValueSort::Text, "text", "'31/12/1999'"),
        column("padded", ValueSort::Text, "text", "' Ann'"),
        column("other thing", ValueSort::Unknown, "null", "NULL"),
    ];
    let u = vec![
        column("id", ValueSort::Number, "an integer", "1"),
        column("hour", ValueSort::Number, "an integer", "7"),
    ];
    vec![TableFacts { name: "t".into(), columns: t }, TableFacts { name: "u".into(), columns: u }]
}

/// Statements in which text meets a number, and a part of the error of each.
const REFUSED: &[(&str, &str)] = &[
    (
        "SELECT * FROM t WHERE hour > 8",
        "hour is text, such as '00', and 8 is a number: write number(hour) to compare numbers, or '8' to compare texts.",
    ),
    (
        "SELECT * FROM t WHERE 8 <= t.hour",
        "write number(t.hour) to compare numbers, or '8' to compare texts.",
    ),
    ("SELECT * FROM t WHERE hour = 7", "hour is text, such as '00', and 7 is a number"),
    ("SELECT * FROM t WHERE hour IN ('00', 7)", "and 7 is a number"),
    ("SELECT * FROM t WHERE hour BETWEEN 8 AND 17", "and 8 is a number"),
    (
        "SELECT * FROM t WHERE n BETWEEN '2' AND name",
        "name is text, such as 'Ann', and n is an integer, such as 5: write try_number(name) to compare numbers, or CAST(n AS TEXT) to compare texts.",
    ),
    ("SELECT * FROM t WHERE hour IS 7", "and 7 is a number"),
    (
        "SELECT * FROM t WHERE hour > -8",
        "and -8 is a number: write number(hour) to compare numbers, or '-8'",
    ),
    ("SELECT * FROM t WHERE cost > 100", "write number(cost) to compare numbers"),
    (
        "SELECT * FROM t WHERE n = 'five'",
        "'five' is a text, and n is an integer, such as 5: compare with a number, or write CAST(n AS TEXT) to compare texts.",
    ),
    (
        "SELECT * FROM t WHERE price > '1,000'",
        "write the number without quotes, or number('1,000')",
    ),
    (
        "SELECT * FROM t WHERE price <> 'NA'",
        "words for no value are NULL among numbers: write price IS NULL or price IS NOT NULL",
    ),
    ("SELECT * FROM t WHERE active = 'true'", "write 1 for true and 0 for false"),
    (
        "SELECT * FROM t WHERE day > 2025",
        "day is a date, such as '2026-01-31', and 2025 is a number: write a date in quotes",
    ),
    ("SELECT * FROM t WHERE strftime('%Y', day) = 2025", "and 2025 is a number"),
    (
        "SELECT * FROM t WHERE substr(day, 1, 4) >= 2025",
        "SUBSTR(day, 1, 4) is text, and 2025 is a number",
    ),
    ("SELECT * FROM t WHERE n + 1 = '5'", "write 5 without quotes"),
    ("SELECT hour FROM t GROUP BY hour HAVING count(*) > '5'", "write 5 without quotes"),
    (
        "SELECT * FROM t WHERE level > 1",
        "level holds numbers and texts, such as 1, and 1 is a number: write try_number(level)",
    ),
    ("SELECT * FROM t WHERE level = '1'", "write try_number(level)"),
    (
        "SELECT cost * 2 FROM t",
        "cost is text, such as '$1,234.50', and arithmetic needs a number: write number(cost), and || to join texts.",
    ),
    ("SELECT name + hour FROM t", "name is text"),
    ("SELECT * FROM t WHERE name || hour = 7", "name || hour is text, and 7 is a number"),
    ("SELECT * FROM t WHERE 2 * n = hour || 'x'", "hour || 'x' is text"),
    ("SELECT 'a' || 1 + 2 FROM t", "'a' || 1 is text"),
    ("SELECT 2 * hour || n FROM t", "hour || n is text"),
    ("SELECT -hour FROM t", "hour is text"),
    ("SELECT day - 1 FROM t", "write julianday(day) for days"),
    ("SELECT date(day) - date('now') FROM t", "date(day) is text"),
    ("SELECT n + 'x' FROM t", "'x' is a text"),
    ("SELECT level * 2 FROM t", "write try_number(level)"),
    ("SELECT big % 10 FROM t", "write CAST(big AS REAL)"),
    ("SELECT * FROM t WHERE name", "name is text, such as 'Ann', and no condition"),
    ("SELECT * FROM t WHERE n = 1 AND NOT name", "and no condition"),
    (
        "SELECT * FROM t JOIN u ON t.hour = u.hour",
        "t.hour is text, such as '00', and u.hour is an integer, such as 7: write number(t.hour) to compare numbers, or CAST(u.hour AS TEXT)",
    ),
    (
        "SELECT * FROM t JOIN u USING (hour)",
        "t.hour is text, such as '00', and u.hour is an integer",
    ),
    ("SELECT * FROM t NATURAL JOIN u", "t.hour is text"),
    (
        "SELECT * FROM t WHERE hour IN (SELECT id FROM u)",
        "hour is text, such as '00', and id is an integer",
    ),
    ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.name)", "t.name is text"),
    ("SELECT * FROM (SELECT hour AS h FROM t) AS x WHERE x.h > 8", "x.h is text, such as '00'"),
    ("WITH c AS (SELECT hour FROM t) SELECT * FROM c WHERE hour > 8", "hour is text, such as '00'"),
    (
        "WITH c(h, k) AS (SELECT hour, n FROM t), d AS (SELECT * FROM c) SELECT * FROM d WHERE h > 8",
        "h is text, such as '00'",
    ),
    ("SELECT hour AS h FROM t WHERE h > 8", "h is text, such as '00'"),
    ("SELECT CASE hour WHEN 7 THEN 1 END FROM t", "hour is text"),
    ("SELECT CASE WHEN hour > 7 THEN 1 END FROM t", "hour is text"),
    ("SELECT coalesce(hour, '00') > 8 FROM t", "coalesce(hour, '00') is text, such as '00'"),
    ("SELECT coalesce(hour, 0) > 8 FROM t", "coalesce(hour, 0) holds numbers and texts"),
    ("SELECT max(hour) > 8 FROM t", "max(hour) is text, such as '00'"),
    ("SELECT 1 FROM t UNION SELECT 2 FROM t WHERE hour < 3", "hour is text"),
    ("SELECT lag(hour) OVER (ORDER BY n) < 3 FROM t", "is text, such as '00', and 3 is a number"),
    ("SELECT count(*) FILTER (WHERE hour > 8) FROM t", "hour is text"),
    ("SELECT * FROM t ORDER BY hour * 1", "hour is text"),
    ("SELECT (SELECT hour FROM t LIMIT 1) > 3", "is text, such as '00', and 3 is a number"),
    (
        "WITH RECURSIVE c(x, h) AS (SELECT 1, hour FROM t UNION ALL SELECT x + 1, h FROM c WHERE x < 3) SELECT * FROM c WHERE h > 2",
        "h is text",
    ),
    ("SELECT * FROM t AS a, u AS b WHERE (a.hour, a.n) = (b.hour, b.id)", "a.hour is text"),
    ("SELECT * FROM T WHERE \"HOUR\" > 8", "\"HOUR\" is text"),
];

#[test]
fn text_does_not_meet_a_number() {
    for (sql, expected) in REFUSED {
        let problem = check(sql, &tables()).expect_err(sql);
        assert!(problem.contains(expected), "{sql}: {problem}");
    }
}

#[test]
fn what_is_of_one_type_or_of_none_that_is_known_passes() {
    for sql in [
        "SELECT * FROM t WHERE hour > '08' AND n > 5 AND price <> '2.5' AND n = ' 200 '",
        "SELECT * FROM t WHERE hour = name OR hour IN ('00', '01') OR hour BETWEEN '00' AND '05'",
        "SELECT * FROM t WHERE CAST(hour AS INTEGER) > 8 AND number(cost) > 100 AND cost IS NOT NULL",
        "SELECT * FROM t WHERE day > '2025' AND strftime('%Y', day) = '2025' AND CAST(strftime('%Y', day) AS INTEGER) = 2025",
        "SELECT strftime('%s', day) - strftime('%s', 'now'), strftime('%Y', day) + 1, julianday(day) - 1 FROM t",
        "SELECT * FROM t WHERE active AND NOT active AND active = 1 AND active IS TRUE AND n",
        "SELECT * FROM t WHERE level = 1 OR level = 'none' OR level IN (1, 'none')",
        "SELECT * FROM t WHERE price <> '' AND n != ''",
        "SELECT * FROM t WHERE big = 5 AND big > 18446744073709551615 AND big = '18446744073709551615'",
        "SELECT * FROM t WHERE \"other thing\" > 5 AND \"other thing\" = 'x'",
        "SELECT name || n, n || 'x', length(name) + 1, hour LIKE '0%', n LIKE '2%', name REGEXP '^A' FROM t",
        "SELECT * FROM t, json_each(t.name) AS e WHERE e.value > 5 AND e.key = 'x' AND value = 3",
        "SELECT name ->> '$.a' > 5, json_extract(name, '$.a') = 'x', (name ->> '$.a') + 1 FROM t",
        "SELECT name || hour = name, name = 'a' || hour, name ->> '$.a' = 1, name ->> '$.a' + 1 FROM t",
        "SELECT name -> 'a' ->> 'b' = 1, 1 = name ->> '$.a', hour = -1 || '', -n || 'x' = name FROM t",
        "SELECT n + name ->> '$.a', n * hour ->> '$.b' > 2, NOT name || hour = 'x' FROM t",
        "SELECT coalesce(n, 'none') = 'none', ifnull(n, '-') FROM t",
        "SELECT CASE WHEN n > 5 THEN 'big' ELSE n END > 3 FROM t",
        "SELECT CASE n WHEN 1 THEN 'one' WHEN '2' THEN 'two' END = 'one' FROM t",
        "SELECT * FROM t JOIN u ON u.id = t.n AND t.name = CAST(u.hour AS TEXT)",
        "SELECT * FROM (SELECT max(n) AS m, name FROM t GROUP BY name) WHERE m > 3 AND name > 'B'",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 10) SELECT sum(x) FROM c WHERE x > '3'",
        "SELECT * FROM nothing WHERE hour > 8",
        "SELECT coalesce(coalesce(name ->> '$.a', NULL), hour) > 8, coalesce(NULL, n) > 8 FROM t",
        "SELECT x.hour > 3 FROM u AS x",
        "SELECT rowid > 3, t.rowid FROM t",
        "VALUES (1, 'a'), (2, 'b')",
        "SELECT this is no SQL of the parser",
        "SELECT * FROM t WHERE n IN (SELECT id FROM u) AND (SELECT count(*) FROM u) > 3 AND 5",
        "SELECT sum(n) / count(*), avg(price) * 2, round(price, 1) > 0.5, max(n) - min(n) FROM t",
        "SELECT iif(n > 3, 'a', 'b') = 'a', nullif(n, 0) > 1, min(n, price) > 1 FROM t",
        "SELECT date(day, '+1 day') > '2026' AND day = date('now') FROM t",
        "SELECT n = '5' FROM (SELECT n FROM t UNION SELECT id FROM u)",
        "SELECT total(n) OVER w > 3 FROM t WINDOW w AS (PARTITION BY hour ORDER BY n)",
    ] {
        assert!(check(sql, &tables()).is_ok(), "{sql}: {:?}", check(sql, &tables()));
    }
}

#[test]
fn texts_that_are_numbers_and_sorted_are_noted() {
    for (sql, expected) in [
        ("SELECT * FROM t ORDER BY cost DESC LIMIT 1", &["cost: number(cost)"][..]),
        (
            "SELECT * FROM t ORDER BY hour, cost, hour",
            &["hour: number(hour)", "cost: number(cost)"],
        ),
        ("SELECT rank() OVER (PARTITION BY name ORDER BY hour) FROM t", &["hour: number(hour)"]),
        ("SELECT * FROM (SELECT cost AS c FROM t ORDER BY c LIMIT 3)", &["cost: number(c)"]),
        ("SELECT * FROM t ORDER BY name, n, day, number(cost), level", &[]),
    ] {
        let notes = check(sql, &tables()).unwrap();
        let notes: Vec<_> = notes
            .iter()
            .map(|note| {
                let (_, reading) = note.text.rsplit_once("before 9: ").unwrap();
                format!(
                    "{}: {}",
                    note.column.as_ref().unwrap(),
                    reading.trim_end_matches(" sorts numbers")
                )
            })
            .collect();
        assert_eq!(notes, expected, "{sql}");
    }
}

#[test]
fn texts_that_only_people_read_as_numbers_or_dates_are_not_compared() {
    for (sql, expected) in [
        (
            "SELECT * FROM t WHERE cost < paid",
            "cost is text, such as '$1,234.50', and paid is text, such as '1.234,5': texts compare letter by letter, so that 10 comes before 9: write number(cost) and number(paid, 'de') to compare numbers, or CAST(cost AS TEXT) to compare texts.",
        ),
        ("SELECT * FROM t WHERE paid >= '9,5'", "number(paid, 'de') and number('9,5', 'de')"),
        ("SELECT * FROM t WHERE '9' > cost", "number('9') and number(cost)"),
        ("SELECT * FROM t WHERE cost BETWEEN '1' AND '9'", "number(cost) and number('1')"),
        ("SELECT * FROM t AS a JOIN t AS b ON a.paid < b.paid", "number(a.paid, 'de')"),
        ("WITH c AS (SELECT paid AS p FROM t) SELECT p > '3' FROM c", "number(p, 'de')"),
        (
            "SELECT * FROM t WHERE born > '01/01/2000'",
            "born is text, such as '31/12/1999', and texts compare letter by letter: write strptime(born, '%d/%m/%Y') to compare dates, such as '2026-01-31', or CAST(born AS TEXT) to compare texts.",
        ),
        ("SELECT * FROM t WHERE born BETWEEN '2000-01-01' AND '2001-01-01'", "strptime(born"),
        ("SELECT * FROM t WHERE day < born", "strptime(born, '%d/%m/%Y')"),
        (
            "SELECT max(born) FROM t",
            "and max compares texts letter by letter: write max(strptime(born, '%d/%m/%Y')), or max(CAST(born AS TEXT)).",
        ),
        ("SELECT min(t.born) OVER (ORDER BY n) FROM t", "min(strptime(t.born, '%d/%m/%Y'))"),
    ] {
        let problem = check(sql, &tables()).expect_err(sql);
        assert!(problem.contains(expected), "{sql}: {problem}");
    }
}

#[test]
fn texts_are_compared_as_they_are_where_that_is_asked_or_means_the_same() {
    for sql in [
        "SELECT * FROM t WHERE cost = paid OR cost IN ('$5') OR paid = '9,5' OR born = '31/12/1999'",
        "SELECT * FROM t WHERE CAST(cost AS TEXT) < '5' AND CAST(born AS TEXT) > '3'",
        "SELECT * FROM t WHERE number(cost) < number(paid, 'de')",
        "SELECT max(strptime(born, '%d/%m/%Y')), max(day), max(name) FROM t",
        "SELECT * FROM t WHERE hour > '08' AND hour BETWEEN '00' AND '12'",
        "SELECT * FROM t WHERE name > 'B' AND name < cost AND day > '2025' AND name < '5'",
        "SELECT * FROM t WHERE padded = ' Ann' OR padded = '' OR trim(padded) = 'Ann' OR padded > 'A'",
    ] {
        assert_eq!(check(sql, &tables()), Ok(Vec::new()), "{sql}");
    }
}

#[test]
fn a_comparison_of_texts_that_may_mislead_is_noted() {
    for (sql, column, count, expected) in [
        (
            "SELECT * FROM t WHERE hour > '8'",
            "hour",
            3,
            "compared as text, of which 10 comes before 9: number(hour) and number('8') compare numbers",
        ),
        (
            "SELECT * FROM t AS a, t AS b WHERE a.hour < b.hour",
            "hour",
            3,
            "compared as text, of which 10 comes before 9: number(a.hour) and number(b.hour) compare numbers",
        ),
        (
            "SELECT * FROM t WHERE padded = 'Ann'",
            "padded",
            2,
            "blanks stand around values, such as ' Ann', and count: trim(padded) compares without",
        ),
        (
            "SELECT * FROM t WHERE 'Ann' <> padded OR padded IN ('Bob')",
            "padded",
            2,
            "blanks stand around values, such as ' Ann', and count: trim(padded) compares without",
        ),
        (
            "SELECT * FROM t AS a JOIN t AS b ON a.name = b.padded",
            "padded",
            2,
            "blanks stand around values, such as ' Ann', and count: trim(b.padded) compares without",
        ),
        (
            "SELECT * FROM t ORDER BY born",
            "born",
            3,
            "sorted as text, not by date: strptime(born, '%d/%m/%Y') sorts dates",
        ),
    ] {
        let notes = check(sql, &tables()).unwrap();
        let told: Vec<_> = notes
            .iter()
            .map(|note| (note.column.as_deref().unwrap(), note.count, note.text.as_str()))
            .collect();
        assert_eq!(told, [(column, count, expected)], "{sql}");
    }
}

#[test]
fn statements_that_are_nested_deeply_end() {
    let run = || {
        for (open, close) in [
            ("(", ")"),
            ("-", ""),
            ("NOT ", ""),
            ("(SELECT ", ")"),
            ("abs(", ")"),
            ("CASE 1 WHEN ", " THEN 1 END"),
            ("1 IN (", ")"),
            ("(1 + ", ")"),
            ("(WITH RECURSIVE c AS (SELECT 1 UNION SELECT 2) SELECT ", ")"),
            ("(SELECT * FROM (SELECT ", "))"),
        ] {
            for depth in [20, 100, 10_000] {
                let sql = format!("SELECT {}n{} FROM t", open.repeat(depth), close.repeat(depth));
                assert!(check(&sql, &tables()).is_ok(), "{open}");
            }
        }
        let chain = format!("SELECT {}1 FROM t", "n + ".repeat(400));
        assert!(check(&chain, &tables()).is_ok());
        let hidden = format!("SELECT {}1 FROM t WHERE hour > 8", "n + ".repeat(400));
        assert!(check(&hidden, &tables()).is_err());
    };
    // The stack of a worker.
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}

/// Expressions over the columns `n`, `price`, `name` and `hour`: numbers, texts, conditions.
fn expressions() -> (BoxedStrategy<String>, BoxedStrategy<String>, BoxedStrategy<String>) {
    let number = prop_oneof![
        Just("n".to_owned()),
        Just("price".to_owned()),
        (-5..20i32).prop_map(|n| n.to_string()),
        Just("length(name)".to_owned()),
    ];
    let text = prop_oneof![
        Just("name".to_owned()),
        Just("hour".to_owned()),
        "[a-c0-9]{0,2}".prop_map(|text| format!("'{text}'")),
    ];

    let number = number.prop_recursive(3, 12, 2, |inner| {
        let op = prop_oneof![Just("+"), Just("-"), Just("*"), Just("/"), Just("%")];
        prop_oneof![
            (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            inner.clone().prop_map(|a| format!("abs({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("coalesce({a}, {b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("max({a}, {b})")),
        ]
    });
    let text = text.prop_recursive(2, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            inner.clone().prop_map(|a| format!("upper({a})")),
            inner.prop_map(|a| format!("substr({a}, 1, 1)")),
        ]
    });

    let order = || prop_oneof![Just("="), Just("<>"), Just("<"), Just(">="), Just("IS")];
    let condition = prop_oneof![
        (number.clone(), order(), number.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        (text.clone(), order(), text.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        (number.clone(), number.clone(), number.clone())
            .prop_map(|(a, b, c)| format!("{a} BETWEEN {b} AND {c}")),
        (text.clone(), text.clone()).prop_map(|(a, b)| format!("{a} IN ({b}, 'Ann')")),
        (text.clone(), "[a-c%_]{0,3}").prop_map(|(a, b)| format!("{a} LIKE '{b}'")),
        (-3..9i32).prop_map(|n| format!("n = '{n}'")),
    ];
    (number.boxed(), text.boxed(), condition.boxed())
}

fn statement() -> impl Strategy<Value = String> {
    let (number, text, condition) = expressions();
    let aggregate = prop_oneof![
        Just("sum"),
        Just("avg"),
        Just("min"),
        Just("max"),
        Just("total"),
        Just("count")
    ];
    prop_oneof![
        (number.clone(), text.clone(), condition.clone())
            .prop_map(|(a, b, c)| format!("SELECT {a}, {b} FROM t WHERE {c} ORDER BY rowid")),
        (aggregate.clone(), number.clone(), text.clone(), condition.clone()).prop_map(
            |(f, a, b, c)| format!("SELECT {b}, {f}({a}) FROM t WHERE {c} GROUP BY 1 ORDER BY 1, 2")
        ),
        (number.clone(), condition.clone(), condition.clone()).prop_map(|(a, c, d)| format!(
            "WITH c AS (SELECT {a} AS x, hour AS y FROM t WHERE {c} OR {d}) SELECT x, y, count(*) FROM c GROUP BY x, y ORDER BY x, y"
        )),
        (aggregate, number, condition).prop_map(|(f, a, c)| format!(
            "SELECT n, {f}({a}) OVER (PARTITION BY hour ORDER BY n ROWS 2 PRECEDING) FROM t WHERE {c} ORDER BY 1, 2"
        )),
    ]
}

fn rows(connection: &Connection, sql: &str) -> Result<Vec<Vec<Value>>, String> {
    let mut statement = connection.prepare(sql).map_err(|error| error.to_string())?;
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|index| row.get(index)).collect());
    rows.unwrap().collect::<rusqlite::Result<_>>().map_err(|error| error.to_string())
}

fn filled() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let table = "CREATE TABLE t (n INTEGER, price REAL, name TEXT, hour TEXT);
        INSERT INTO t VALUES (1, 0.5, 'Ann', 'b'), (2, -1.25, 'bob', 'a'), (NULL, 3, 'Cy', 'b'),
            (7, NULL, NULL, 'c'), (-3, 1e10, 'ann', 'a'), (2, 0.1, 'x y', NULL), (5, 2.5, '', 'b')";
    connection.execute_batch(table).unwrap();
    connection
}

proptest! {
    #[test]
    fn statements_over_columns_of_one_type_are_those_of_sqlite(sql in statement()) {
        prop_assert!(check(&sql, &tables()).is_ok());

        let plain = filled();
        let own = filled();
        super::super::functions::add(&own, &Refusals::default()).unwrap();
        let guarded = match Guarded::new(&sql) {
            Guarded::Text(text) => text,
            _ => sql.clone(),
        };
        prop_assert_eq!(rows(&own, &guarded), rows(&plain, &sql));
    }
}
