//! `larder demo`: stores a large text in a server in this process, searches and
//! pages it, and counts the bytes that a model would have seen.

use std::{
    future::pending,
    io::{IsTerminal, Read},
    path::{Path, PathBuf},
};

use clap::Args;
use larder_records::words::number;
use larder_runtime::environment::variable_os;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::{
    builtin,
    client::{ClientError, McpClient, ServerArgs, print},
    named::NamedUpstreams,
};
use crate::{
    app::App,
    config::{Config, WorkflowLocations},
};

/// The demo collects files until it has this many bytes.
const ENOUGH_BYTES: usize = 12_000_000;
/// The most bytes read of one file: what `resources/read` returns at once.
const MAX_BYTES: u64 = 16_000_000;
/// The longest line shown, in characters.
const SHOWN_LINE: usize = 160;

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// A text file, of which the first 16 MB are used; by default, files of
    /// this machine.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(super) async fn run(args: DemoArgs) -> Result<(), ClientError> {
    let (origin, text) = match args.file {
        Some(path) => (path.display().to_string(), read_text(&path)?),
        None => find_text()?,
    };

    let server = DemoServer::start().await?;
    let client = McpClient::new(ServerArgs::new(server.url.clone())).await?;
    let mut model = Model { client, style: Style::detect(), seen_bytes: 0 };

    let titled = |title: &str, text: &str| say(&format!("{} {text}", model.style.title(title)));
    titled("The text:", &format!("{} of {origin}", megabytes(text.len())))?;
    titled("Larder:", &server.url)?;

    model.step("The host stores the text. All that the model sees of it:")?;
    let uri = "demo://large-text";
    let stored = json!({ "uri": uri, "text": text, "name": "A large text", "ttl": 600 });
    model.call("create_resource", &stored).await?;

    model.step("The model reads the beginning.")?;
    model.call("read_resource", &json!({ "uri": uri, "limit": 5 })).await?;

    model.step("It searches for a word, without reading the rest.")?;
    let query = format!(r"\b{}\b", long_word(&text));
    let found =
        model.call("search_resource", &json!({ "uri": uri, "query": query, "limit": 5 })).await?;

    if let Some(around) = call_around_first_match(&found) {
        model
            .step("It makes the call that the answer names, to see the lines around the first.")?;
        model.call("read_resource", &around).await?;
    }

    model.step("It reads the last lines.")?;
    let offset = text.lines().count().saturating_sub(3);
    model.call("read_resource", &json!({ "uri": uri, "offset": offset })).await?;

    model.step("Nothing is lost: resources/read returns the complete text.")?;
    let read = model.client.request("resources/read", &json!({ "uri": uri })).await?;
    if read["contents"][0]["text"].as_str() != Some(&text) {
        return Err(ClientError::Failed("What was read is not what was stored.".into()));
    }

    let seen = number(model.seen_bytes as u64);
    let stored = number(text.len() as u64);
    say(&format!("{stored} bytes, identical."))?;

    model.step("Bytes that the model saw, of bytes stored:")?;
    #[allow(clippy::cast_precision_loss, reason = "both are far below 2^52")]
    let percent = 100.0 * model.seen_bytes as f64 / text.len() as f64;
    say(&format!("{seen} of {stored}: {percent:.3} %"))
}

/// A server with the binary's tools, in memory, with default settings. It ends
/// when dropped.
struct DemoServer {
    url: String,
    _serving: AbortOnDropHandle<std::io::Result<bool>>,
}

impl DemoServer {
    async fn start() -> Result<Self, ClientError> {
        let failed = |error: &dyn std::fmt::Display| ClientError::Failed(error.to_string());
        let config = Config::default();
        let path = config.server.path.clone();
        let locations = WorkflowLocations::default();

        let server = builtin::registry(
            &config,
            &locations,
            &NamedUpstreams::default(),
            builtin::Transport::Http,
        )
        .map_err(|error| failed(&error))?;
        let app = App::new(server.registry, config).map_err(|error| failed(&error))?;

        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let serving = tokio::spawn(app.serve(listener, pending()));

        let url = format!("http://{address}{path}");
        Ok(Self { url, _serving: AbortOnDropHandle::new(serving) })
    }
}

/// A model in its host: it sees what tools return.
struct Model {
    client: McpClient,
    style: Style,
    seen_bytes: usize,
}

impl Model {
    fn step(&self, title: &str) -> Result<(), ClientError> {
        say(&format!("\n{}", self.style.title(title)))
    }

    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, ClientError> {
        let shown: Vec<_> = arguments
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| match value {
                Value::String(text) if text.len() > 100 => {
                    format!("{name}: … {} …", megabytes(text.len()))
                }
                value => format!("{name}: {value}"),
            })
            .collect();
        say(&self.style.call(&format!("> {tool} {{{}}}", shown.join(", "))))?;

        let result = self.client.call(tool, arguments).await?.result()?.clone();
        let mut output = String::new();
        for block in result["content"].as_array().into_iter().flatten() {
            let text = match (block["text"].as_str(), block["uri"].as_str()) {
                (Some(text), _) => text.to_owned(),
                (None, Some(uri)) => {
                    format!("[link: {} {uri}]", block["name"].as_str().unwrap_or_default())
                }
                (None, None) => continue,
            };
            self.seen_bytes += text.len();
            output.push_str(&text);
            output.push('\n');
        }

        for line in output.lines() {
            let start: String = line.chars().take(SHOWN_LINE).collect();
            let cut = if start.len() < line.len() { " …" } else { "" };
            say(&format!("  {start}{cut}"))?;
        }

        Ok(output)
    }
}

/// The arguments of the `read_resource` call that a search result names.
fn call_around_first_match(found: &str) -> Option<Value> {
    let (_, rest) = found.split_once("To see around line")?;
    let (_, arguments) = rest.split_once("read_resource ")?;
    serde_json::Deserializer::from_str(arguments).into_iter().next()?.ok()
}

/// The largest package list of a Debian machine, or else documentation and
/// sources found on this machine.
fn find_text() -> Result<(String, String), ClientError> {
    let largest_list = std::fs::read_dir("/var/lib/apt/lists")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("_Packages"))
        .max_by_key(|path| std::fs::metadata(path).map_or(0, |metadata| metadata.len()));

    if let Some(list) = largest_list
        && let Ok(text) = read_text(&list)
        && text.len() >= 10_000_000
    {
        return Ok((list.display().to_string(), text));
    }

    let cargo_home = variable_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    // The list is a stack, so the last folder is searched first.
    let mut folders: Vec<_> =
        cargo_home.map(|home| home.join("registry/src")).into_iter().collect();
    folders.extend([PathBuf::from("/usr/share/doc"), PathBuf::from("/var/lib/dpkg/info")]);

    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> =
            std::fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::path);

        for entry in entries {
            if text.len() >= ENOUGH_BYTES {
                break;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() => {
                    if let Ok(file) = std::fs::read_to_string(&path) {
                        text.extend(["==> ", &path.to_string_lossy(), " <==\n", &file, "\n"]);
                    }
                }
                _ => {}
            }
        }
    }

    if text.is_empty() {
        return Err(ClientError::Usage("No text was found: give a file.".into()));
    }
    Ok(("files of this machine".into(), text))
}

fn read_text(path: &Path) -> Result<String, ClientError> {
    let local = |error| ClientError::local(&path.display().to_string(), &error);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(local)?;
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(local)?;

    // The limit may have cut a character.
    let valid = match std::str::from_utf8(&bytes) {
        Ok(text) => text.len(),
        Err(error) => error.valid_up_to(),
    };

    bytes.truncate(valid);
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

/// The longest of some words in the middle of the text: a rare one.
fn long_word(text: &str) -> String {
    let middle = text.ceil_char_boundary(text.len() / 2);
    // Words end at the boundaries that the search uses. The first word may be cut.
    let words = text[middle..].split(|c: char| !c.is_alphanumeric() && c != '_').skip(1);
    let plain = words.filter(|w| w.len() > 8 && w.bytes().all(|b| b.is_ascii_alphanumeric()));
    plain.take(200).max_by_key(|w| w.len()).unwrap_or("the").to_owned()
}

/// Colours, on a terminal only.
#[derive(Clone, Copy)]
struct Style {
    colours: bool,
}

impl Style {
    fn detect() -> Self {
        Self { colours: std::io::stdout().is_terminal() }
    }

    fn title(self, text: &str) -> String {
        if self.colours { format!("\x1b[1;36m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn call(self, text: &str) -> String {
        if self.colours { format!("\x1b[33m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn say(line: &str) -> Result<(), ClientError> {
    print(format!("{line}\n").as_bytes())
}

/// `12.3 MB`.
fn megabytes(bytes: usize) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}
