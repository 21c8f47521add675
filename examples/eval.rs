//! Measures whether agents find answers in large results, and how many bytes
//! they read for that.
//!
//! Each agent is a script that works as a model does: it reads only tool
//! results, and derives its next call from them. The exit code is 1 if an answer
//! is wrong or took more bytes than the budget.
//!
//! Usage: `cargo run --example eval [NUMBER OF LOG LINES]`.

use std::{error::Error, process::ExitCode};

use larder::{
    Context, Registry, Tool, ToolError,
    app::App,
    config::Config,
    tools::{self, ToolOptions},
};
use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, ContentBlock},
    service::RunningService,
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The line to find is after this fraction of the log: a third.
const NEEDLE_FRACTION: usize = 3;
/// The most bytes that an agent may read.
const BUDGET: usize = 16_000;

/// Stores the log of a whole day as a resource.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct FetchLog;

/// The log that the questions are about.
struct Log {
    text: String,
}

impl Log {
    fn new(lines: usize) -> Self {
        let line = |n: usize| match n {
            n if n == lines / NEEDLE_FRACTION => "ERROR payment refused order=A-1977".to_owned(),
            n if n % 1000 == 7 => format!("WARN slow reply took={} ms", 900 + n % 89),
            n if n + 1 == lines => format!("INFO shutdown after {lines} lines"),
            n => format!("INFO request served id={n:08x}"),
        };
        let text: Vec<_> = (0..lines).map(line).collect();
        Self { text: text.join("\n") }
    }
}

async fn fetch_log(ctx: Context<Log>, _: FetchLog) -> std::result::Result<String, ToolError> {
    let uri = format!("results://log/{}", ctx.request_id());
    let entry = ctx.create_resource(uri, ctx.state().text.clone()).name("The log").await?;
    Ok(format!("The log has {} bytes. Access at {entry}", entry.size))
}

#[tokio::main]
async fn main() -> ExitCode {
    let lines = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200_000);
    match evaluate(lines).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("eval: {error}");
            ExitCode::from(2)
        }
    }
}

async fn evaluate(lines: usize) -> Result<bool> {
    let log = Log::new(lines);
    let size = log.text.len();
    let warnings = log.text.lines().filter(|line| line.starts_with("WARN")).count();
    let middle = log.text.lines().nth(lines / 2).unwrap_or_default().to_owned();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let registry = Registry::builder("eval")
        .state(log)
        .tool(Tool::new(fetch_log))
        .with(tools::reading(ToolOptions::default()))
        .build()?;
    let app = App::new(registry, Config::default())?;
    let serving = tokio::spawn(app.serve(listener, std::future::pending()));

    println!("{lines} lines, {size} bytes\n");
    println!("{:<28} {:>6} {:>6} {:>9} {:>9}", "question", "answer", "calls", "bytes", "of all");
    let mut passed = true;
    for (question, expected) in [
        ("which order was refused?", "A-1977".to_owned()),
        ("how many warnings?", warnings.to_string()),
        ("what is in the middle?", middle),
        ("how did it end?", format!("INFO shutdown after {lines} lines")),
    ] {
        let mut agent = Agent::new(&url).await?;
        let answer = agent.find(question, lines).await?;
        let is_right = answer.as_deref() == Some(&*expected);
        passed &= is_right && agent.bytes_read <= BUDGET;
        let share = percent(agent.bytes_read, size);
        let verdict = if is_right { "right" } else { "WRONG" };
        println!(
            "{question:<28} {verdict:>6} {:>6} {:>9} {share:>9}",
            agent.calls, agent.bytes_read
        );
        agent.client.cancel().await?;
    }
    serving.abort();
    println!("\n{}", if passed { "all within budget" } else { "wrong or over budget" });
    Ok(passed)
}

/// A client that reads only the text of tool results.
struct Agent {
    client: RunningService<RoleClient, ()>,
    calls: usize,
    bytes_read: usize,
}

impl Agent {
    async fn new(url: &str) -> Result<Self> {
        let transport = StreamableHttpClientTransport::from_uri(url.to_owned());
        Ok(Self { client: ().serve(transport).await?, calls: 0, bytes_read: 0 })
    }

    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<String> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.client.call_tool(request).await?;
        self.calls += 1;
        let mut text = String::new();
        for block in &result.content {
            if let ContentBlock::Text(block) = block {
                text.push_str(&block.text);
                text.push('\n');
            }
        }
        self.bytes_read += text.len();
        Ok(text)
    }

    /// The answer, if the agent finds it.
    async fn find(&mut self, question: &str, lines: usize) -> Result<Option<String>> {
        let text = self.call("fetch_log", &json!({})).await?;
        let Some(uri) = text.split_whitespace().find(|word| word.contains("://")) else {
            return Ok(None);
        };
        let answer = match question {
            "which order was refused?" => {
                let query = json!({ "uri": uri, "query": "refused", "limit": 3 });
                let found = self.call("search_resource", &query).await?;
                found.split("order=").nth(1).and_then(first_word)
            }
            "how many warnings?" => {
                let query = json!({ "uri": uri, "query": "^WARN", "limit": 1 });
                let found = self.call("search_resource", &query).await?;
                total(&found)
            }
            "what is in the middle?" => {
                let window = json!({ "uri": uri, "offset": lines / 2, "limit": 1 });
                last_line(&self.call("read_resource", &window).await?)
            }
            _ => {
                // The agent does not know the number of lines.
                let described = self.call("describe_resource", &json!({ "uri": uri })).await?;
                let digits: String = described
                    .lines()
                    .find_map(|line| line.strip_prefix("lines: "))
                    .unwrap_or_default()
                    .chars()
                    .filter(char::is_ascii_digit)
                    .collect();
                let last = digits.parse::<usize>().unwrap_or(1).saturating_sub(1);
                let window = json!({ "uri": uri, "offset": last, "limit": 1 });
                last_line(&self.call("read_resource", &window).await?)
            }
        };
        Ok(answer)
    }
}

fn first_word(text: &str) -> Option<String> {
    text.split_whitespace().next().map(str::to_owned)
}

fn last_line(text: &str) -> Option<String> {
    text.trim_end().lines().next_back().map(str::to_owned)
}

/// The total number of matches, from `Matches 1-1 of 5 in …` or
/// `5 matches in …`.
fn total(text: &str) -> Option<String> {
    let head = text.split(" in ").next()?;
    let number = head.split(" of ").nth(1).or_else(|| head.split(' ').next())?;
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

fn percent(part: usize, whole: usize) -> String {
    let thousandths = part.saturating_mul(100_000) / whole.max(1);
    format!("{}.{:03} %", thousandths / 1000, thousandths % 1000)
}
