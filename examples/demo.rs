//! Shows what Larder is for: a text that no context window holds is put by
//! through the protocol, and read, searched and paged from there.
//!
//! `make demo`, or `make demo ARGS=/path/to/a/text`.

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader, IsTerminal, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, ContentBlock, ReadResourceRequestParams, ResourceContents},
    service::RunningService,
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The text is at least this long where the machine has that much.
const WANTED: usize = 12_000_000;
/// And at most this long, to stay below what a request may have.
const MOST: usize = 16_000_000;

#[tokio::main]
async fn main() -> Result<()> {
    let (origin, text) = match std::env::args_os().nth(1) {
        Some(path) => (path.to_string_lossy().into_owned(), read_text(Path::new(&path))?),
        None => find_text()?,
    };
    let paint = Paint { colours: std::io::stdout().is_terminal() };
    let larder = Larder::start()?;
    let transport = StreamableHttpClientTransport::from_uri(larder.url.clone());
    let client = ().serve(transport).await?;
    let mut model = Model { client, paint, seen: 0 };

    println!("{} {} of {origin}", paint.title("The text:"), mb(text.len()));
    println!("{} {}", paint.title("Larder:"), larder.url);

    model.step("The host puts it by. All that the model sees of it:");
    let uri = "demo://large-text";
    let stored = json!({ "uri": uri, "text": text, "name": "A large text", "ttl": 600 });
    model.call("create_resource", stored).await?;

    model.step("The model looks at the beginning.");
    model.call("read_resource", json!({ "uri": uri, "limit": 5 })).await?;

    model.step("It looks for something, without reading the rest.");
    let word = rare_word(&text);
    let found = model
        .call("search_resource", json!({ "uri": uri, "query": format!(r"\b{word}\b"), "limit": 5 }))
        .await?;

    model.step("It makes the call that the answer names, to see what stands around the first.");
    let next =
        found.split("To see around line").nth(1).and_then(|t| t.split("read_resource ").nth(1));
    let mut around = serde_json::Deserializer::from_str(next.unwrap_or("{}")).into_iter::<Value>();
    let around = around.next().and_then(std::result::Result::ok).unwrap_or_default();
    model.call("read_resource", around).await?;

    model.step("It pages through the end.");
    let lines = text.lines().count();
    model.call("read_resource", json!({ "uri": uri, "offset": lines - 3 })).await?;

    let seen = model.seen;
    println!("\n{}", paint.title("Nothing is lost: the whole text by resources/read."));
    let read = model.client.read_resource(ReadResourceRequestParams::new(uri)).await?;
    let whole = read.contents.iter().any(|contents| {
        matches!(contents, ResourceContents::TextResourceContents { text: read, .. } if *read == text)
    });
    if !whole {
        return Err("what was read is not what was stored".into());
    }
    println!("{} bytes, identical.", group(text.len()));

    println!("\n{}", paint.title("Bytes that the model saw, of bytes stored:"));
    let share = 100.0 * f64::from(u32::try_from(seen)?) / f64::from(u32::try_from(text.len())?);
    println!("{} of {}: {share:.3} %", group(seen), group(text.len()));
    model.client.cancel().await?;
    larder.stop()
}

/// A model at its host: what comes back from a tool is what it sees.
struct Model {
    client: RunningService<RoleClient, ()>,
    paint: Paint,
    seen: usize,
}

impl Model {
    fn step(&self, text: &str) {
        println!("\n{}", self.paint.title(text));
    }

    async fn call(&mut self, tool: &'static str, arguments: Value) -> Result<String> {
        let Value::Object(arguments) = arguments else { return Err("no arguments".into()) };
        let shown: Vec<_> = arguments
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) if text.len() > 100 => {
                    format!("{name}: … {} …", mb(text.len()))
                }
                value => format!("{name}: {value}"),
            })
            .collect();
        println!("{}", self.paint.call(&format!("> {tool} {{{}}}", shown.join(", "))));
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.client.call_tool(request).await?;
        let mut answer = String::new();
        for block in &result.content {
            let text = match block {
                ContentBlock::Text(text) => text.text.clone(),
                ContentBlock::ResourceLink(link) => format!("[link: {} {}]", link.name, link.uri),
                _ => continue,
            };
            self.seen += text.len();
            answer.push_str(&text);
            answer.push('\n');
        }
        for line in answer.lines() {
            let start: String = line.chars().take(160).collect();
            let cut = if start.len() < line.len() { " …" } else { "" };
            println!("  {start}{cut}");
        }
        if result.is_error == Some(true) {
            return Err(answer.into());
        }
        Ok(answer)
    }
}

/// The server, in a process of its own.
struct Larder {
    process: Child,
    url: String,
}

impl Larder {
    fn start() -> Result<Self> {
        let here = std::env::current_exe()?;
        let binary = here.parent().and_then(Path::parent).ok_or("no folder")?.join("larder");
        let mut process = Command::new(&binary)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| {
                format!("{}: {e}. Build it with cargo build --release.", binary.display())
            })?;
        let mut line = String::new();
        let stderr = process.stderr.take().ok_or("no stderr")?;
        BufReader::new(stderr).read_line(&mut line)?;
        let url = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        if !url.starts_with("http://") {
            return Err(format!("larder did not start: {line}").into());
        }
        Ok(Self { process, url })
    }

    fn stop(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Larder {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The largest package list of a Debian machine, or else what documentation
/// and sources lie about.
fn find_text() -> Result<(String, String)> {
    let mut lists: Vec<_> = fs::read_dir("/var/lib/apt/lists")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with("_Packages"))
        .collect();
    lists.sort_by_key(|path| fs::metadata(path).map_or(0, |m| m.len()));
    if let Some(list) = lists.pop()
        && let Ok(text) = read_text(&list)
        && text.len() >= 10_000_000
    {
        return Ok((list.display().to_string(), text));
    }
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    // The last one comes first.
    let mut folders: Vec<_> = home.map(|home| home.join("registry/src")).into_iter().collect();
    folders.extend([PathBuf::from("/usr/share/doc"), PathBuf::from("/var/lib/dpkg/info")]);
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        entries.sort_by_key(fs::DirEntry::path);
        for entry in entries {
            let path = entry.path();
            if text.len() >= WANTED {
                return Ok(("files of this machine".into(), text));
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() => {
                    if let Ok(file) = fs::read_to_string(&path) {
                        text.extend(["==> ", &path.to_string_lossy(), " <==\n", &file, "\n"]);
                    }
                }
                _ => {}
            }
        }
    }
    if text.is_empty() {
        Err("no text was found; name one".into())
    } else {
        Ok(("files of this machine".into(), text))
    }
}

fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST as u64).read_to_end(&mut bytes)?;
    // The limit may have cut a character.
    let whole = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        Err(e) => e.valid_up_to(),
    };
    bytes.truncate(whole);
    Ok(String::from_utf8(bytes)?)
}

/// A word that stands in the middle of the text.
fn rare_word(text: &str) -> String {
    let middle = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    // As the search sees words; the first one may have lost its beginning.
    let words = text[middle..].split(|c: char| !c.is_alphanumeric() && c != '_').skip(1);
    let plain = words.filter(|w| w.len() > 8 && w.bytes().all(|b| b.is_ascii_alphanumeric()));
    plain.take(200).max_by_key(|w| w.len()).unwrap_or("the").to_owned()
}

/// Colours, on a terminal only.
#[derive(Clone, Copy)]
struct Paint {
    colours: bool,
}

impl Paint {
    fn title(self, text: &str) -> String {
        if self.colours { format!("\x1b[1;36m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn call(self, text: &str) -> String {
        if self.colours { format!("\x1b[33m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn mb(bytes: usize) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

fn group(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}
