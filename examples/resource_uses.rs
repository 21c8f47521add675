//! Uses of resources: log lines by template, documentation for a prompt, and a
//! list of entities from which a model picks an ID for a tool.

use larder::prelude::*;
use model::{ContentBlock, ResourceContents, Role};

const LOGS: [(&str, &str, &str); 4] = [
    ("web", "2026-01-01", "GET / 200"),
    ("web", "2026-01-01", "GET /cart 500"),
    ("web", "2026-01-02", "GET / 200"),
    ("mail", "2026-01-01", "sent 3"),
];

/// The lines of a service on one day.
#[resource("logs://{service}/{date}")]
fn logs(service: String, date: String) -> Result<String, ResourceError> {
    let matching = LOGS.iter().filter(|(s, d, _)| *s == service && *d == date);
    let lines: Vec<_> = matching.map(|(_, _, line)| *line).collect();
    if lines.is_empty() { Err(ResourceError::NotFound) } else { Ok(lines.join("\n")) }
}

/// A library's documentation.
#[resource("docs://{library}/{version}", mime_type = "text/markdown")]
fn docs(library: String, version: String) -> String {
    format!("# {library} {version}\n\nCall `{library}::run()` to run it.\n")
}

/// Answers a question with a library's documentation.
#[prompt]
fn ask_docs(
    /** The library's name. */
    library: String,
    /** The version. */
    version: String,
    /** The question. */
    question: String,
) -> [Message; 2] {
    let uri = format!("docs://{library}/{version}");
    let text = ResourceContents::text(docs::call(library, version), uri);
    [embedded(text.with_mime_type("text/markdown")), user(question)]
}

/// A message that contains a resource.
fn embedded(contents: ResourceContents) -> Message {
    Message::new(Role::User, ContentBlock::resource(contents))
}

/// All customers by ID. The model reads the names and picks an ID.
#[resource("customers://all")]
fn customers() -> Value {
    json!({
        "c-17": { "name": "Ana", "city": "Lima" },
        "c-42": { "name": "Ben", "city": "Oslo" },
    })
}

/// Picks a customer for a request.
#[prompt]
fn pick_customer(
    /** The user's request. */
    request: String,
) -> [Message; 2] {
    let list = ResourceContents::text(customers::call().to_string(), "customers://all");
    [
        embedded(list.with_mime_type("application/json")),
        user(format!("{request}\nCall query_orders with the id of the customer meant.")),
    ]
}

/// Lists a customer's orders.
#[tool]
fn query_orders(
    /** The customer's id, from customers://all. */
    customer_id: String,
) -> Result<Json<Value>> {
    let customers = customers::call();
    let customer = customers.get(&customer_id);
    let customer =
        customer.context("There is no such customer. Read customers://all for the ids.")?;
    Ok(Json(json!({ "customer": customer["name"], "orders": [1, 2] })))
}

fn main() -> ExitCode {
    larder::server("resource-uses")
        .resource(logs)
        .resource(docs)
        .resource(customers)
        .prompt(ask_docs)
        .prompt(pick_customer)
        .tool(query_orders)
        .run()
}
