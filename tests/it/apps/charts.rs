//! Charts of `view_window`.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{
    parts::{store, window},
    server, showing,
};
use crate::support::Modern;

/// A table whose figures are known: `n` counts the rows, `day` has a date for each ten of them, and
/// the last rows have what no sample of the first shows.
fn measured() -> String {
    let mut csv = "n,day,region,units,late\n".to_owned();
    for n in 0..5_000_u32 {
        let day = format!("2026-{:02}-{:02}", 1 + n / 28 % 12, 1 + n % 28);
        let region = ["north", "south", ""][n as usize % 3];
        let late = if n < 4_000 { String::new() } else { (n * 2).to_string() };
        writeln!(csv, "{n},{day},{region},{},{late}", n * 37 % 101).unwrap();
    }
    csv
}

async fn chart(client: &Modern, uri: &str, chart: Value, limit: u64) -> Value {
    window(client, json!({ "uri": uri, "as": "chart", "limit": limit, "chart": chart })).await
}

#[tokio::test]
async fn a_chart_has_figures_of_all_rows() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    store(&client, "x:csv", "text/csv", &measured()).await;

    let found = window(&client, json!({ "uri": "x:csv", "as": "chart" })).await;
    let columns = found["columns"].as_array().unwrap();
    let of = |name: &str| columns.iter().find(|column| column["name"] == name).unwrap();
    assert_eq!((&found["rows"], &of("day")["dates"]), (&json!(5_000), &json!(5_000)));
    assert_eq!((&of("late")["values"], &of("late")["numbers"]), (&json!(1_000), &json!(1_000)));
    assert_eq!((&of("region")["numbers"], &of("region")["dates"]), (&json!(0), &json!(0)));

    // A single peak of any row is in its bucket.
    let line = json!({ "kind": "line", "y": ["units", "late"] });
    let line = chart(&client, "x:csv", line, 50).await;
    let buckets = line["buckets"].as_array().unwrap();
    assert_eq!((buckets.len(), &line["single"]), (50, &json!(false)));
    assert_eq!((&line["rows"], &line["placed"]), (&json!(5_000), &json!(5_000)));
    let counts: u64 = buckets.iter().map(|bucket| bucket[2].as_u64().unwrap()).sum();
    assert_eq!(counts, 5_000);
    assert_eq!((&buckets[0][0], &buckets[49][1]), (&json!(1), &json!(5_000)));
    for bucket in buckets {
        let [first, last] = [0, 1].map(|at| bucket[at].as_u64().unwrap());
        let units = (first - 1..last).map(|n| u32::try_from(n * 37 % 101).unwrap());
        let units: Vec<u32> = units.collect();
        let count = u32::try_from(units.len()).unwrap();
        let mean = f64::from(units.iter().sum::<u32>()) / f64::from(count);
        assert_eq!(bucket[4], *units.iter().min().unwrap(), "{bucket}");
        assert!((bucket[5].as_f64().unwrap() - mean).abs() < 1e-9, "{bucket}");
        assert_eq!(bucket[6], *units.iter().max().unwrap(), "{bucket}");
    }
    let late = json!({ "column": "late", "values": 1_000, "count": 1_000, "min": 8_000, "mean": 8_999.0, "max": 9_998 });
    assert_eq!(line["figures"][1], late);

    // Few values across: each has a point of its own, exactly.
    let days = json!({ "kind": "line", "x": "day", "y": ["n"] });
    let days = chart(&client, "x:csv", days, 400).await;
    assert_eq!((&days["across"], &days["single"]), (&json!("time"), &json!(true)));
    assert_eq!(days["buckets"].as_array().unwrap().len(), 336);
    assert_eq!(days["buckets"][0][0], json!(1_767_225_600.0));
}

#[tokio::test]
async fn groups_and_bins_count_all_rows() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    store(&client, "x:csv", "text/csv", &measured()).await;

    let bars = chart(&client, "x:csv", json!({ "kind": "bars", "x": "region" }), 10).await;
    let expected = json!([["north", 1_667, 1_667], ["south", 1_667, 1_667], [null, 1_666, 1_666]]);
    assert_eq!((&bars["bars"], &bars["groups"]), (&expected, &json!(3)));
    let summed = json!({ "kind": "bars", "x": "day", "y": ["units"], "by": "max" });
    let summed = chart(&client, "x:csv", summed, 3).await;
    assert_eq!((summed["bars"].as_array().unwrap().len(), &summed["groups"]), (3, &json!(336)));

    let bins = chart(&client, "x:csv", json!({ "kind": "histogram", "y": ["units"] }), 20).await;
    let counted: Vec<_> = bins["bins"].as_array().unwrap().iter().collect();
    assert_eq!((counted.len(), &bins["whole"]), (17, &json!(true)));
    for bin in counted {
        let [from, to] = [0, 1].map(|at| bin[at].as_f64().unwrap());
        let in_it = |n: &u32| (from..to).contains(&f64::from(n * 37 % 101));
        assert_eq!(bin[2], (0..5_000).filter(in_it).count(), "{bin}");
    }
}

#[tokio::test]
async fn odd_columns_are_drawn_as_far_as_they_have_numbers() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let odd = r#"[{"a\"b":1,"m":"x","d":"2026-02-30"},{"a\"b":null,"m":2.5},{"m":"7","d":"2026-01-31T10:00:00+02:00"},{"a\"b":9007199254740993}]"#;
    store(&client, "x:odd", "application/json", odd).await;
    let columns = window(&client, json!({ "uri": "x:odd", "as": "chart" })).await["columns"].take();
    // No calendar has the first date, so the column is none of dates.
    assert_eq!((&columns[2]["values"], &columns[2]["dates"]), (&json!(2), &json!(1)));

    let line = json!({ "kind": "line", "y": ["a\"b", "m"] });
    let line = chart(&client, "x:odd", line, 10).await;
    assert_eq!(line["figures"][0]["max"], "9007199254740993", "a page would round it");
    assert_eq!((&line["figures"][1]["count"], &line["figures"][1]["max"]), (&json!(2), &json!(7)));

    store(&client, "x:same", "text/csv", "v\n5\n5\n").await;
    let same = chart(&client, "x:same", json!({ "kind": "histogram", "y": ["v"] }), 10).await;
    assert_eq!(same["bins"], json!([[5, 6, 2]]));
    store(&client, "x:words", "text/csv", "v,w\na,b\nc,d\n").await;
    let none = chart(&client, "x:words", json!({ "kind": "histogram", "y": ["v"] }), 10).await;
    assert_eq!((&none["bins"], &none["rows"]), (&json!([]), &json!(2)));
    let missing =
        json!({ "uri": "x:words", "as": "chart", "chart": { "kind": "line", "y": ["no\"ne"] } });
    client.call("view_window", missing).await.failure();
    let filtered = json!({
        "uri": "x:words", "as": "chart", "chart": { "kind": "bars", "x": "v" },
        "filter": [{ "column": "v", "op": "equals", "value": "c" }],
    });
    assert_eq!(window(&client, filtered).await["bars"], json!([["c", 1, 1]]));
}

#[tokio::test]
async fn columns_of_any_name_are_drawn() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let mut csv = "value,x,y0,v,a,b,c,rowid,_rowid_\n".to_owned();
    for n in 0..60_u32 {
        let group = ["p", "q", "r"][n as usize % 3];
        let units = if group == "q" { 100 } else { n % 7 };
        writeln!(csv, "{},{group},{units},{},{},{},{},9,9", 60 - n, n, 60 - n, n % 5, n).unwrap();
    }
    store(&client, "x:csv", "text/csv", &csv).await;

    for by in ["rows", "sum", "mean", "min", "max"] {
        let bars = json!({ "kind": "bars", "x": "x", "y": ["y0"], "by": by });
        let bars = chart(&client, "x:csv", bars, 10).await["bars"].take();
        let first = if by == "rows" { "p" } else { "q" };
        assert_eq!(bars[0][0], first, "{by}: {bars}");
    }
    for name in ["value", "v", "a", "b", "c"] {
        let bars = json!({ "kind": "bars", "x": name, "y": ["y0"], "by": "sum" });
        let bars = chart(&client, "x:csv", bars, 100).await["bars"].take();
        let values: Vec<_> =
            bars.as_array().unwrap().iter().map(|bar| bar[2].as_i64().unwrap()).collect();
        assert!(values.is_sorted_by(|a, b| a >= b), "{name}: {bars}");
        let bins = json!({ "kind": "histogram", "y": [name] });
        chart(&client, "x:csv", bins, 10).await;
    }

    // The rows are numbered, whatever a column is called.
    let line = chart(&client, "x:csv", json!({ "kind": "line", "y": ["y0"] }), 400).await;
    assert_eq!((&line["placed"], &line["single"]), (&json!(60), &json!(true)));
    let buckets = line["buckets"].as_array().unwrap();
    assert_eq!((buckets.len(), &buckets[59][0]), (60, &json!(60)));
    let all = "rowid,_rowid_,oid,n\n7,7,7,1\n7,7,7,2\n";
    store(&client, "x:all", "text/csv", all).await;
    let line = chart(&client, "x:all", json!({ "kind": "line", "y": ["n"] }), 400).await;
    assert_eq!(line["buckets"].as_array().unwrap().len(), 2, "{line}");
}

#[tokio::test]
async fn each_value_is_in_the_bin_that_has_it() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let mut csv = "whole,real\n".to_owned();
    for n in 0..4_900_i64 {
        writeln!(csv, "{n},{}", f64::from(u32::try_from(n).unwrap()) / 49.0 + 0.1).unwrap();
    }
    store(&client, "x:bins", "text/csv", &csv).await;

    for limit in [100, 30, 7, 49] {
        let bins = json!({ "kind": "histogram", "y": ["whole"] });
        let bins = chart(&client, "x:bins", bins, limit).await["bins"].take();
        for bin in bins.as_array().unwrap() {
            let [from, to] = [0, 1].map(|at| bin[at].as_i64().unwrap());
            assert_eq!(bin[2], (from.max(0)..to.min(4_900)).count(), "{limit}: {bin}");
        }

        let bins = json!({ "kind": "histogram", "y": ["real"] });
        let bins = chart(&client, "x:bins", bins, limit).await["bins"].take();
        let bins = bins.as_array().unwrap();
        for (at, bin) in bins.iter().enumerate() {
            let [from, to] = [0, 1].map(|at| bin[at].as_f64().unwrap());
            let is_last = at + 1 == bins.len();
            let values = (0..4_900_u32).map(|n| f64::from(n) / 49.0 + 0.1);
            let in_it =
                values.filter(|value| *value >= from && (*value < to || is_last && *value <= to));
            assert_eq!(bin[2], in_it.count(), "{limit}: {bin}");
        }
    }
}

#[tokio::test]
async fn numbers_at_the_limits_are_drawn_or_said_to_be_missing() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let high = i64::MAX;
    let csv = format!(
        "g,n,real,huge\na,{high},-1e308,99999999999999999999\na,{high},1e308,1\n\
         b,{},0.5,\nb,1,,x\n",
        i64::MIN
    );
    store(&client, "x:far", "text/csv", &csv).await;

    let bars = json!({ "kind": "bars", "x": "g", "y": ["n"], "by": "sum" });
    let bars = chart(&client, "x:far", bars, 10).await["bars"].take();
    let expected = json!([["a", 2, "18446744073709551614"], ["b", 2, "-9223372036854775807"]]);
    assert_eq!(bars, expected);

    let bins = chart(&client, "x:far", json!({ "kind": "histogram", "y": ["n"] }), 4).await;
    let bins = bins["bins"].as_array().unwrap();
    let counts: Vec<_> = bins.iter().map(|bin| bin[2].as_u64().unwrap()).collect();
    assert_eq!((bins.len(), counts), (4, vec![1, 0, 1, 2]));
    assert_eq!(
        (&bins[0][0], &bins[3][1]),
        (&json!(i64::MIN.to_string()), &json!("9223372036854775808"))
    );
    let reals = chart(&client, "x:far", json!({ "kind": "histogram", "y": ["real"] }), 4).await;
    let counts: Vec<_> =
        reals["bins"].as_array().unwrap().iter().map(|bin| bin[2].as_u64().unwrap()).collect();
    assert_eq!(counts, [1, 0, 1, 1], "{reals}");
    for x in ["n", "real"] {
        let line = json!({ "kind": "line", "x": x, "y": ["n"] });
        let line = chart(&client, "x:far", line, 2).await;
        let counts =
            line["buckets"].as_array().unwrap().iter().map(|bucket| bucket[2].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), line["placed"].as_u64().unwrap(), "{line}");
    }

    // Three values, of which SQL has one as a number.
    let huge = chart(&client, "x:far", json!({ "kind": "histogram", "y": ["huge"] }), 4).await;
    let figures = &huge["figures"][0];
    assert_eq!((&figures["values"], &figures["count"]), (&json!(3), &json!(1)), "{huge}");
    let bars = json!({ "kind": "bars", "x": "g", "y": ["huge"], "by": "max" });
    let bars = chart(&client, "x:far", bars, 10).await;
    assert_eq!((&bars["values"], &bars["numbers"]), (&json!(3), &json!(1)), "{bars}");

    // More integers than buckets, all of one real number.
    let mut near = "n\n".to_owned();
    for n in 0..900 {
        writeln!(near, "{}", high - n).unwrap();
    }
    store(&client, "x:near", "text/csv", &near).await;
    let line = chart(&client, "x:near", json!({ "kind": "line", "x": "n", "y": ["n"] }), 100).await;
    assert_eq!(line["buckets"].as_array().unwrap().len(), 100);
    let bins = chart(&client, "x:near", json!({ "kind": "histogram", "y": ["n"] }), 100).await;
    assert!(bins["bins"].as_array().unwrap().iter().all(|bin| bin[2] == 9), "{bins}");
}
