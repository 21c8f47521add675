//! `larder query` and `larder jq`

use std::io::{self, Write};

use clap::Args;
use larder_protocol::quote::visible;
use serde_json::{Map, Value, json};

use super::{ClientError, McpClient, ServerArgs, print_json, print_text};

#[derive(Debug, Args)]
pub(in crate::cli) struct QueryArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    reading: ReadingArgs,
    /// The URI of the resource.
    uri: String,
    /// The statement, such as: SELECT level, count(*) FROM t GROUP BY level
    sql: String,
    /// Another table: its name and the URI of the resource, or an object with the URI and options
    /// such as {"uri": "…", "format": "csv"}. Repeat for more.
    #[arg(long = "table", value_name = "NAME=URI", value_parser = parse_table)]
    tables: Vec<(String, Value)>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct JqArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    reading: ReadingArgs,
    /// The URI of the resource.
    uri: String,
    /// The filter, such as: .items[] | select(.price > 10) | .name
    filter: String,
    /// Read all inputs into one list first.
    #[arg(long, short)]
    slurp: bool,
}

/// How the content is read.
#[derive(Debug, Args)]
struct ReadingArgs {
    /// The format of the content: json, ndjson, csv, tsv or log.
    #[arg(long)]
    format: Option<String>,
    /// The JSON Pointer to the list or object that has the rows.
    #[arg(long, value_name = "POINTER")]
    rows: Option<String>,
    /// For logs: a regular expression whose named groups are the columns.
    #[arg(long, value_name = "REGEX")]
    pattern: Option<String>,
    /// Print each row as a line of JSON: an object of a query's columns, or a value of jq.
    #[arg(long)]
    json: bool,
}

impl ReadingArgs {
    /// The options as members of an object of arguments.
    fn add_to(self, mut object: Value) -> Value {
        let Self { format, rows, pattern, json: _ } = self;
        for (name, value) in [("format", format), ("rows", rows), ("pattern", pattern)] {
            if let Some(value) = value {
                object[name] = value.into();
            }
        }
        object
    }
}

fn parse_table(text: &str) -> Result<(String, Value), String> {
    let parts = text.split_once('=').filter(|(name, uri)| !name.is_empty() && !uri.is_empty());
    let (name, uri) = parts.ok_or("write it as NAME=URI")?;

    let source = if uri.starts_with('{') {
        let problem = r#"write its options as {"uri": "…", "format": "csv"}"#;
        serde_json::from_str(uri).map_err(|_| problem)?
    } else {
        json!(uri)
    };
    Ok((name.to_owned(), source))
}

pub(super) async fn run_sql(args: QueryArgs) -> Result<(), ClientError> {
    let QueryArgs { server, reading, uri, sql, tables } = args;
    let printed = if reading.json { Printed::Objects } else { Printed::Csv };
    if tables.is_empty() {
        let arguments = reading.add_to(json!({ "from": uri, "sql": sql }));
        return print_rows(server, arguments, printed).await;
    }

    // The options are those of the table t.
    let first = [("t".to_owned(), reading.add_to(json!({ "uri": uri })))];
    let from: Map<_, _> = first.into_iter().chain(tables).collect();
    print_rows(server, json!({ "from": from, "sql": sql }), printed).await
}

pub(super) async fn run_jq(args: JqArgs) -> Result<(), ClientError> {
    let arguments = json!({ "from": args.uri, "jq": args.filter, "slurp": args.slurp });
    print_rows(args.server, args.reading.add_to(arguments), Printed::Values).await
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Printed {
    /// CSV, whose first row is the header.
    Csv,
    /// JSON objects, one a line.
    Objects,
    /// JSON values, one a line, as jq prints them.
    Values,
}

/// Prints all rows, in as many calls as they need.
async fn print_rows(
    server: ServerArgs,
    mut arguments: Value,
    printed: Printed,
) -> Result<(), ClientError> {
    // The server cuts the rows to its output limit.
    arguments["limit"] = json!(10_000);
    let client = McpClient::new(server).await?;
    let mut is_first = true;

    loop {
        let output = client.ask("query_resource", &arguments).await?;
        let Some((_, mut rows)) = output.text.split_once("\n\n") else {
            return Err(ClientError::unexpected_reply());
        };

        let structured = output.structured()?;
        if std::mem::take(&mut is_first) {
            print_notes(&structured["notes"]);
        } else if printed == Printed::Csv {
            // A header may have line breaks in quotes.
            rows = rows.get(header_bytes(rows)..).unwrap_or_default();
        }
        match printed {
            Printed::Objects => print_objects(structured)?,
            Printed::Csv | Printed::Values => print_text(rows)?,
        }

        if structured["cut"] == true {
            return Err(ClientError::Failed(
                "A row is longer than one result and was cut: select less.".into(),
            ));
        }

        match &structured["next"] {
            Value::Object(next) => arguments = Value::Object(next.clone()),
            _ => return Ok(()),
        }
    }
}

/// Prints each row as an object of its columns.
fn print_objects(structured: &Value) -> Result<(), ClientError> {
    let columns = structured["columns"].as_array().ok_or_else(ClientError::unexpected_reply)?;
    let rows = structured["rows"].as_array().ok_or_else(ClientError::unexpected_reply)?;

    for row in rows {
        let cells = row.as_array().into_iter().flatten();
        let named = columns.iter().filter_map(|column| column["name"].as_str()).zip(cells);
        let object = named.map(|(name, cell)| (name.to_owned(), cell.clone()));
        print_json(&Value::Object(object.collect()))?;
    }
    Ok(())
}

/// Prints what the answer says about how the content was read, beside the rows.
fn print_notes(notes: &Value) {
    for note in notes.as_array().into_iter().flatten() {
        let name = |name: &str| note[name].as_str().map(|name| format!("{name}: "));
        let text = note["text"].as_str().unwrap_or_default();
        let column = name("column").unwrap_or_default();
        let table = name("table").filter(|table| table != "t: ").unwrap_or_default();
        // Without standard error there is nobody to tell.
        let _ = writeln!(io::stderr(), "note: {}", visible(&format!("{table}{column}{text}")));
    }
}

/// The length of the first row of CSV, with its line break.
fn header_bytes(rows: &str) -> usize {
    let mut quoted = false;
    let end = rows.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'\n' && !quoted
    });
    end.map_or(rows.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_ends_outside_of_quotes() {
        assert_eq!(header_bytes("a,b\n1,2\n"), 4);
        assert_eq!(header_bytes("\"a\nb\"\n1\n"), 6);
        assert_eq!(header_bytes("a"), 1);
    }
}
