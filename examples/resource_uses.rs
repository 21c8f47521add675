//! Uses of resources: log lines by template, documentation for a prompt, and a
//! list of entities from which a model picks an ID for a tool.

use larder::{
    Context, Json, Prompt, Registry, Resource, ResourceError, Template, Tool, ToolError, Variables,
    user,
};
use rmcp::model::{ContentBlock, PromptMessage, ResourceContents, Role};
use serde_json::{Value, json};

const LOGS: [(&str, &str, &str); 4] = [
    ("web", "2026-01-01", "GET / 200"),
    ("web", "2026-01-01", "GET /cart 500"),
    ("web", "2026-01-02", "GET / 200"),
    ("mail", "2026-01-01", "sent 3"),
];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct LogKey {
    service: String,
    date: String,
}

async fn logs(_: Context, key: LogKey) -> Result<String, ResourceError> {
    let matching =
        LOGS.iter().filter(|(service, date, _)| *service == key.service && *date == key.date);
    let lines: Vec<_> = matching.map(|(_, _, line)| *line).collect();
    if lines.is_empty() { Err(ResourceError::NotFound) } else { Ok(lines.join("\n")) }
}

fn documentation(library: &str, version: &str) -> String {
    format!("# {library} {version}\n\nCall `{library}::run()` to run it.\n")
}

/// Answers a question with a library's documentation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct AskDocs {
    /// The library's name.
    library: String,
    /// The version.
    version: String,
    /// The question.
    question: String,
}

async fn ask_docs(_: Context, args: AskDocs) -> Vec<PromptMessage> {
    let uri = format!("docs://{}/{}", args.library, args.version);
    let text = documentation(&args.library, &args.version);
    let embedded = ResourceContents::text(text, uri).with_mime_type("text/markdown");
    vec![PromptMessage::new(Role::User, ContentBlock::resource(embedded)), user(args.question)]
}

/// All customers by ID. The model reads the names and picks an ID.
fn customers() -> Value {
    json!({
        "c-17": { "name": "Ana", "city": "Lima" },
        "c-42": { "name": "Ben", "city": "Oslo" },
    })
}

/// Picks a customer for a request.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct PickCustomer {
    /// The user's request.
    request: String,
}

async fn pick_customer(_: Context, args: PickCustomer) -> Vec<PromptMessage> {
    let list = ResourceContents::text(customers().to_string(), "customers://all");
    vec![
        PromptMessage::new(
            Role::User,
            ContentBlock::resource(list.with_mime_type("application/json")),
        ),
        user(format!("{}\nCall query_orders with the id of the customer meant.", args.request)),
    ]
}

/// Lists a customer's orders.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct QueryOrders {
    /// The customer's id, from customers://all.
    customer_id: String,
}

async fn query_orders(_: Context, args: QueryOrders) -> Result<Json<Value>, ToolError> {
    match customers().get(&args.customer_id) {
        Some(customer) => Ok(Json(json!({ "customer": customer["name"], "orders": [1, 2] }))),
        None => Err(ToolError::new("There is no such customer. Read customers://all for the ids.")),
    }
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        let docs =
            Template::new("docs://{library}/{version}", "docs", |_, v: Variables| async move {
                documentation(&v["library"], &v["version"])
            });
        Registry::builder("resource-uses")
            .template(Template::typed("logs://{service}/{date}", "logs", logs))
            .template(docs.mime_type("text/markdown"))
            .resource(Resource::new("customers://all", |_| async { customers() }))
            .prompt(Prompt::new(ask_docs))
            .prompt(Prompt::new(pick_customer))
            .tool(Tool::new(query_orders))
            .build()
    })
}
