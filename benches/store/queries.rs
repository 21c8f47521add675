//! Queries over 100 MB compared with Debian's `sqlite3`, `jq` and `rg` on a file;
//! windows of records; the cost of the record index at writing.

use std::{
    fmt::Write,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use larder::{
    query::QueryLimits,
    store::{Content, DEFAULT_CACHE_BYTES, set_cache_bytes},
    tools,
};
use serde_json::{Value, json};

use crate::{MB, Server, median, seconds};

const ROUNDS: usize = 3;
const WINDOWS: usize = 101;

/// How a content is written, and what it is.
struct Format {
    name: &'static str,
    mime_type: &'static str,
    text: String,
}

impl Format {
    fn all() -> Vec<Self> {
        let csv = text("id,host,status,took,note\n", "", |n| {
            let note = if n % 50 == 0 { "\"two\nlines\"" } else { "handled" };
            format!("{n},host-{},{},{},{note}", n % 500, status(n), took(n))
        });
        let record = |n: usize| {
            json!({ "id": n, "host": format!("host-{}", n % 500), "status": status(n), "took": took(n) })
                .to_string()
        };
        let ndjson = text("", "", record);
        let list = text("[\n", "null]\n", |n| record(n) + ",");
        vec![
            Self { name: "CSV", mime_type: "text/csv", text: csv },
            Self { name: "NDJSON", mime_type: "application/x-ndjson", text: ndjson },
            Self { name: "JSON", mime_type: "application/json", text: list },
        ]
    }

    fn content(&self) -> Content {
        Content::from(&*self.text).with_mime_type(self.mime_type)
    }
}

/// 100 MB of lines between a first and a last one.
fn text(first: &str, last: &str, line: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(101 * MB);
    text.push_str(first);
    for n in 0.. {
        if text.len() >= 100 * MB {
            break;
        }
        writeln!(text, "{}", line(n)).unwrap();
    }
    text + last
}

fn status(n: usize) -> usize {
    [200, 200, 200, 404, 500][n * 7919 % 5]
}

fn took(n: usize) -> usize {
    n * 104_729 % 977
}

pub(crate) async fn measure() {
    let formats = Format::all();
    put_with_index(&formats).await;
    windows(&formats).await;
    Box::pin(queries(&formats[..2])).await;
    ends().await;
}

/// The seconds of each program in turn, as medians.
async fn rounds<const N: usize>(
    rounds: usize,
    mut times: impl AsyncFnMut(usize) -> [f64; N],
) -> [f64; N] {
    let mut all: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..=rounds {
        let took = times(round).await;
        if round > 0 {
            all.iter_mut().zip(took).for_each(|(all, took)| all.push(took));
        }
    }
    all.map(median)
}

async fn put_with_index(formats: &[Format]) {
    println!("Put of 100 MB with a record index, as a multiple of the same without one");
    println!("                  memory     files     Redis");
    for format in formats {
        let mut line = format!("{:<10}", format.name);
        // The same bytes after a line of prose have no records.
        let prose = format!("Some lines, and what they say.\n{}", format.text);
        for server in Server::one_per_backend().await {
            let [with, without] = rounds(ROUNDS, async |_| {
                let took = [
                    seconds(server.put("x:records", format.content())).await,
                    seconds(server.put("x:prose", &*prose)).await,
                ];
                server.delete("x:records").await;
                server.delete("x:prose").await;
                took
            })
            .await;
            write!(line, "{:>14.2}", with / without).unwrap();
        }
        println!("{line}");
    }
}

async fn windows(formats: &[Format]) {
    println!("Fifty records of 100 MB by read_resource, as a multiple of the first fifty");
    println!("             anywhere, median   the last ones");
    let server = Server::start("memory").await;
    // The block cache would have the first ones.
    set_cache_bytes(0);
    for format in formats {
        server.put("x:1", format.content()).await;
        let read = async |offset: usize| {
            let arguments =
                json!({ "uri": "x:1", "unit": "records", "offset": offset, "limit": 50 });
            server.call("read_resource", arguments).await
        };
        let head = read(0).await;
        let (_, total) = head.split_once(" of ").unwrap();
        let total: usize = total.split(' ').next().unwrap().replace(',', "").parse().unwrap();
        let [first, anywhere, last] = rounds(WINDOWS, async |round| {
            [
                seconds(read(0)).await,
                seconds(read(round * 7_919_333 % (total - 50))).await,
                seconds(read(total - 50)).await,
            ]
        })
        .await;
        println!("{:<10}{:>19.2}{:>16.2}", format.name, anywhere / first, last / first);
    }
    set_cache_bytes(DEFAULT_CACHE_BYTES);
}

/// What a program prints that reads a file; `None` if it is not installed.
fn run(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).arg(file).stdin(Stdio::null());
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// SQLite reads CSV with `.import`, and NDJSON as a text for each line.
async fn sqlite3(format: &Format, file: &Path, expected: &str) -> f64 {
    let path = file.display();
    let import = match format.name {
        "CSV" => format!(".import --csv {path} t\n"),
        // No line has the separators of the mode ascii.
        _ => format!(
            "CREATE TABLE l (j TEXT);\n.mode ascii\n.separator \x1f \"\\n\"\n.import {path} l\nCREATE VIEW t AS SELECT j ->> 'status' AS status, j ->> 'took' AS took FROM l;\n"
        ),
    };
    let script = format!(
        "{import}.mode list\nSELECT count(*) FROM (SELECT status, count(*), avg(took) FROM t WHERE status <> 200 GROUP BY status);\n"
    );
    let script_file = file.with_extension("sql");
    fs::write(&script_file, script).unwrap();
    let read = format!(".read {}", script_file.display());
    let mut command = Command::new("sqlite3");
    command.args([":memory:", &read]).stderr(Stdio::null());
    let mut output = None;
    let took = seconds(async { output = command.output().ok() }).await;
    let Some(output) = output.filter(|output| output.status.success()) else { return f64::NAN };
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected);
    took
}

/// A server whose queries have these times in seconds: to run, and to stay idle.
async fn server(time: u64, warm: u64) -> Server {
    let limits = QueryLimits {
        program: Some(env!("CARGO_BIN_EXE_larder").into()),
        time: Duration::from_secs(time),
        warm: Duration::from_secs(warm),
        ..QueryLimits::default()
    };
    Server::start_with("memory", tools::querying(limits, false)).await
}

/// Queries that end by a limit or because nobody waits for them.
async fn ends() {
    const SECONDS: u64 = 2;
    const ENDLESS: &str =
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

    println!("Queries that do not end, limited to {SECONDS} s: seconds until the error");
    let limited = server(SECONDS, 0).await;
    limited.put("x:1", Content::from("[1]").with_mime_type("application/json")).await;
    let mut never_ending = vec![json!({ "from": "x:1", "sql": ENDLESS })];
    for filter in ["def f: f; f", "range(1e9)", "[range(1e9)]", "def f: 1 + f; f"] {
        never_ending.push(json!({ "from": "x:1", "jq": filter }));
    }
    for query in never_ending {
        let mut result = Value::Null;
        let took =
            seconds(async { result = limited.result("query_resource", query.clone()).await });
        let took = took.await;
        assert_eq!(result["isError"], true, "{result}");
        let name = query.get("jq").unwrap_or(&query["sql"]).as_str().unwrap();
        println!(
            "{:<20}{took:>8.2}   {}",
            &name[..name.len().min(18)],
            result["content"][0]["text"]
        );
    }
    let unlimited = server(3_600, 0).await;
    unlimited.put("x:1", Content::from("[1]").with_mime_type("application/json")).await;
    let query = json!({ "from": "x:1", "sql": ENDLESS });
    let call = tokio::spawn(async move { unlimited.result("query_resource", query).await });
    until(|| workers() == 1).await;
    call.abort();
    let took = seconds(until(|| workers() == 0)).await;
    println!("a cancelled one ends its process after {took:.3} s");
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How many worker processes there are, as Linux knows them.
fn workers() -> usize {
    let own = std::process::id().to_string();
    let is_worker = |process: fs::DirEntry| {
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(") ")?;
        (after_name.split(' ').nth(1) == Some(&own)).then_some(())
    };
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter_map(is_worker).count()
}

async fn queries(formats: &[Format]) {
    const SQL: &str = "SELECT count(*) FROM (SELECT status, count(*), avg(took) FROM t WHERE status <> 200 GROUP BY status)";
    println!(
        "Queries over 100 MB, as a multiple of a program's time over a file (nan: not installed)"
    );
    println!(
        "             group by, cold / sqlite3   warm / cold   jq filter / jq   search / rg   describe / cold"
    );
    let folder = tempfile::tempdir().unwrap();
    for format in formats {
        let file = folder.path().join(format.name);
        fs::write(&file, &format.text).unwrap();
        let (cold, warm) = (server(600, 0).await, server(600, 600).await);
        for server in [&cold, &warm] {
            server.put("x:1", format.content()).await;
        }
        let ask = async |server: &Server, arguments: Value, expected: &str| {
            let said = server.call("query_resource", arguments).await;
            let (_, rows) = said.split_once("\n\n").unwrap();
            assert!(rows.trim_end().ends_with(expected), "{said}");
        };
        let is_json = format.name == "NDJSON";
        let sql = json!({ "from": "x:1", "sql": SQL });
        let jq = json!({ "from": "x:1", "jq": "select(.took == 976 and .id < 5000) | .id" });
        let found = format.text.lines().count();
        let last_id = (0..5_000).rfind(|n| took(*n) == 976).unwrap().to_string();
        let search = json!({ "uri": "x:1", "query": "host-7\\b.*\\b500\\b", "count_only": true });
        let [sqlite3, cold_sql, warm_sql, jq_program, jq, rg, search, describe] =
            rounds(ROUNDS, async |_| {
                [
                    sqlite3(format, &file, "2").await,
                    seconds(ask(&cold, sql.clone(), "2")).await,
                    seconds(ask(&warm, sql.clone(), "2")).await,
                    if is_json {
                        let filter = "select(.took == 976 and .id < 5000) | .id";
                        let mut printed = None;
                        let took =
                            seconds(async { printed = run("jq", &["-c", filter], &file) }).await;
                        printed.map_or(f64::NAN, |_| took)
                    } else {
                        f64::NAN
                    },
                    if is_json {
                        seconds(ask(&cold, jq.clone(), &last_id)).await
                    } else {
                        f64::NAN
                    },
                    {
                        let mut printed = None;
                        let pattern = ["--count-matches", "host-7\\b.*\\b500\\b"];
                        let took = seconds(async { printed = run("rg", &pattern, &file) }).await;
                        printed.map_or(f64::NAN, |_| took)
                    },
                    seconds(cold.call("search_resource", search.clone())).await,
                    seconds(describe_all(&cold)).await,
                ]
            })
            .await;
        println!(
            "{:<10}{:>27.2}{:>14.2}{:>17.2}{:>14.2}{:>18.2}   here: {cold_sql:.2} s cold, {warm_sql:.3} s warm, {found} lines",
            format.name,
            cold_sql / sqlite3,
            warm_sql / cold_sql,
            jq / jq_program,
            search / rg,
            describe / cold_sql,
        );
    }
}

/// Describes the columns of all records.
async fn describe_all(server: &Server) {
    let said = server.call("describe_resource", json!({ "uri": "x:1" })).await;
    assert!(said.contains("of all records"), "{said}");
}
