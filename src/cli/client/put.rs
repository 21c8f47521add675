//! `larder put`: sends a file while reading it, whatever its size.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    pin::Pin,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use clap::Args;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::OnceCell,
};

use super::{
    ClientError, McpClient, ServerArgs,
    content::is_text,
    parse_ttl,
    parts::Parts,
    print_json, print_text, progress_bar,
    resources::{Resources, Source},
};

/// The bytes read at a time. A multiple of three, so that each piece encodes to
/// base64 without padding.
const PIECE_BYTES: usize = 192 * 1024;

#[derive(Debug, Args)]
pub(in crate::cli) struct PutArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The files; - is standard input, which is read without any, too.
    files: Vec<PathBuf>,
    /// The URI to store it under; the server makes one by default.
    #[arg(long)]
    uri: Option<String>,
    /// The time to live, such as 90s, 1h or 7d; one day by default.
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, allow_hyphen_values = true)]
    ttl: Option<f64>,
    /// A short name; the file's name by default.
    #[arg(long)]
    name: Option<String>,
    /// The media type; guessed from the file's name by default.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    mime_type: Option<String>,
    /// Store the content as bytes even if it is text. Content that is not UTF-8
    /// is always stored as bytes.
    #[arg(long)]
    binary: bool,
    /// Print the URI, file and size of each as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// A media type, such as `text/csv; charset=utf-8`.
fn parse_type(text: &str) -> Result<String, String> {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is_token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b))
    };
    match essence.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => Ok(text.to_owned()),
        _ => Err("write a media type such as text/csv".into()),
    }
}

type FileReader = Pin<Box<dyn AsyncRead + Send>>;

/// The content to store, from a file or standard input.
struct Input {
    reader: FileReader,
    /// The name in errors.
    label: String,
    is_stdin: bool,
    /// The size, unless it is standard input.
    size: Option<u64>,
}

impl Input {
    async fn open(file: &Path) -> Result<Self, ClientError> {
        if file.as_os_str() == "-" {
            let reader: FileReader = Box::pin(tokio::io::stdin());
            let label = "standard input".to_owned();
            return Ok(Self { reader, label, is_stdin: true, size: None });
        }

        let label = file.display().to_string();
        let local = |error: std::io::Error| ClientError::local(&label, &error);
        let reader = tokio::fs::File::open(file).await.map_err(local)?;
        let metadata = reader.metadata().await.map_err(local)?;
        if metadata.is_dir() {
            return Err(local(std::io::ErrorKind::IsADirectory.into()));
        }
        // A pipe or device has no size that is known.
        let is_stdin = !metadata.is_file();
        let size = metadata.is_file().then_some(metadata.len());
        Ok(Self { reader: Box::pin(reader), label, is_stdin, size })
    }
}

pub(super) async fn run(mut args: PutArgs) -> Result<(), ClientError> {
    if args.files.is_empty() {
        if std::io::stdin().is_terminal() {
            let problem = "Give a file, or pipe something in: COMMAND | larder put";
            return Err(ClientError::Usage(problem.into()));
        }
        args.files.push("-".into());
    }

    let files = std::mem::take(&mut args.files);
    let named = [("--uri", args.uri.is_some()), ("--name", args.name.is_some())];
    if files.len() > 1
        && let Some((flag, _)) = named.into_iter().find(|(_, is_set)| *is_set)
    {
        let count = files.len();
        return Err(ClientError::Usage(format!(
            "{flag} is for one file, and there are {count}: leave it out, or store one after the other."
        )));
    }

    let client = McpClient::new(args.server.clone()).await?;
    let destination = Destination { client: &client, resources: OnceCell::new() };
    let mut parts = Parts::new(files.len());
    for file in &files {
        // The others are stored all the same.
        if let Err(error) = put(&destination, &args, file).await {
            parts.failed(error)?;
        }
    }
    parts.end()
}

/// The server, and the way in which it receives content, once that is known.
struct Destination<'a> {
    client: &'a McpClient,
    /// `None` if it receives content only as arguments of a tool.
    resources: OnceCell<Option<Resources<'a>>>,
}

/// Stores one file, and prints its URI.
async fn put(
    destination: &Destination<'_>,
    args: &PutArgs,
    file: &Path,
) -> Result<(), ClientError> {
    let input = Input::open(file).await?;
    let size = input.size;
    let file_name = file.file_name().and_then(|name| name.to_str());
    let own_name = file_name.filter(|_| !input.is_stdin).map(str::to_owned);
    let name = args.name.clone().or(own_name);

    let guessing = if input.is_stdin { name.as_deref().map(Path::new) } else { Some(file) };
    let guessed = guessing.and_then(|name| mime_guess::from_path(name).first());
    let mime_type = args.mime_type.clone().or_else(|| guessed.map(|guess| guess.to_string()));

    let storing = FileUpload {
        file,
        uri: args.uri.as_deref(),
        ttl: args.ttl,
        name: name.as_deref(),
        mime_type: mime_type.as_deref(),
        is_binary: args.binary,
    };

    let bar = progress_bar(input.size, false);
    let asking = || Resources::that_receive(destination.client);
    let uri = match destination.resources.get_or_try_init(asking).await? {
        Some(resources) => by_http(resources, storing, input, &bar).await,
        None => by_tool(destination.client, storing, input, &bar).await,
    };

    bar.finish_and_clear();
    let uri = uri?;
    if args.json {
        return print_json(
            &json!({ "uri": uri, "file": file.display().to_string(), "size": size }),
        );
    }
    print_text(&format!("{uri}\n"))
}

/// How one file is stored.
#[derive(Clone, Copy)]
struct FileUpload<'a> {
    file: &'a Path,
    uri: Option<&'a str>,
    ttl: Option<f64>,
    name: Option<&'a str>,
    mime_type: Option<&'a str>,
    is_binary: bool,
}

/// Stores content over plain HTTP. Returns the URI.
async fn by_http(
    resources: &Resources<'_>,
    storing: FileUpload<'_>,
    input: Input,
    bar: &ProgressBar,
) -> Result<String, ClientError> {
    let query = [
        ("uri", storing.uri.map(str::to_owned)),
        ("name", storing.name.map(str::to_owned)),
        ("ttl", storing.ttl.map(|ttl| ttl.to_string())),
        ("kind", storing.is_binary.then(|| "binary".to_owned())),
    ];
    let query: Vec<_> = query.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let mime_type = storing.mime_type;

    let Some(size) = input.size else {
        let counted = bar.clone();
        let pieces = pieces(input.reader, input.label);
        let pieces = pieces.inspect_ok(move |piece| counted.inc(piece.len() as u64));
        return resources.put_stream(&query, mime_type, pieces).await;
    };
    let source = Source { path: storing.file, size };
    resources.put_file(&query, mime_type, source, bar).await
}

/// Stores content with `create_resource`. Returns the URI.
async fn by_tool(
    client: &McpClient,
    storing: FileUpload<'_>,
    mut input: Input,
    bar: &ProgressBar,
) -> Result<String, ClientError> {
    let local = |error: std::io::Error| ClientError::local(&input.label, &error);
    let first = read_piece(&mut input.reader).await.map_err(local)?;

    // A file is checked to its end. Standard input is not: if it begins as text and is not, the
    // command fails and asks for --binary.
    let is_text = !storing.is_binary
        && is_text(&first)
        && (input.is_stdin || is_utf8(storing.file).await.map_err(local)?);

    let mut arguments = serde_json::Map::new();
    for (key, value) in [
        ("uri", storing.uri.map(Value::from)),
        ("ttl", storing.ttl.map(Value::from)),
        ("name", storing.name.map(Value::from)),
        ("mime_type", storing.mime_type.map(Value::from)),
    ] {
        if let Some(value) = value {
            arguments.insert(key.into(), value);
        }
    }

    // The request has an empty string, and is split where the content belongs.
    let key = if is_text { "text" } else { "blob" };
    arguments.insert(key.into(), json!(""));
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "create_resource", "arguments": arguments } });
    let request = request.to_string();
    let (head, tail) = request.split_at(request.len() - "\"}}}".len());

    let encoder = Encoder {
        reader: input.reader,
        piece: first,
        rest: Vec::new(),
        is_text,
        input_name: input.label,
    };
    let counted = bar.clone();
    let content = encoder.pieces().inspect(move |_| counted.inc(PIECE_BYTES as u64));
    let once = |text: &str| stream::iter([Ok(Bytes::from(text.to_owned()))]);
    let body = once(head).chain(content).chain(once(tail));
    Ok(client.call_streaming(body).await?.first)
}

/// The input as it is.
fn pieces(
    reader: FileReader,
    input_name: String,
) -> impl Stream<Item = Result<Bytes, ClientError>> + Send {
    stream::try_unfold((reader, input_name), |(mut reader, input_name)| async move {
        let piece = read_piece(&mut reader).await;
        let piece = piece.map_err(|error| ClientError::local(&input_name, &error))?;
        Ok((!piece.is_empty()).then(|| (Bytes::from(piece), (reader, input_name))))
    })
}

/// The next piece; shorter only at the end.
async fn read_piece(reader: &mut FileReader) -> std::io::Result<Vec<u8>> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    reader.take(PIECE_BYTES as u64).read_to_end(&mut piece).await?;
    Ok(piece)
}

/// Encodes content as the inside of a JSON string: escaped text, or base64.
struct Encoder {
    reader: FileReader,
    /// Bytes read and not yet sent.
    piece: Vec<u8>,
    /// The first bytes of a character whose end has not been read.
    rest: Vec<u8>,
    is_text: bool,
    input_name: String,
}

impl Encoder {
    fn pieces(self) -> impl Stream<Item = Result<Bytes, ClientError>> + Send {
        stream::try_unfold(self, |mut this| async move {
            if this.piece.is_empty() {
                if this.rest.is_empty() {
                    return Ok(None);
                }
                return Err(this.not_text());
            }

            let encoded = if this.is_text {
                this.escape_text()?
            } else {
                BASE64_STANDARD.encode(&this.piece)
            };

            let local = |error| ClientError::local(&this.input_name, &error);
            this.piece = read_piece(&mut this.reader).await.map_err(local)?;
            Ok(Some((Bytes::from(encoded), this)))
        })
    }

    fn escape_text(&mut self) -> Result<String, ClientError> {
        self.rest.append(&mut self.piece);
        let valid = match std::str::from_utf8(&self.rest) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err(self.not_text()),
        };

        let rest = self.rest.split_off(valid);
        let text = String::from_utf8(std::mem::replace(&mut self.rest, rest));
        let quoted = json!(text.unwrap_or_default()).to_string();
        Ok(quoted[1..quoted.len() - 1].to_owned())
    }

    fn not_text(&self) -> ClientError {
        ClientError::Usage(format!("{}: not UTF-8 text: give --binary", self.input_name))
    }
}

async fn is_utf8(file: &Path) -> std::io::Result<bool> {
    let mut reader: FileReader = Box::pin(tokio::fs::File::open(file).await?);
    let mut rest = Vec::new();

    loop {
        let mut piece = read_piece(&mut reader).await?;
        if piece.is_empty() {
            return Ok(rest.is_empty());
        }

        rest.append(&mut piece);
        match std::str::from_utf8(&rest) {
            Ok(_) => rest.clear(),
            Err(error) if error.error_len().is_none() => drop(rest.drain(..error.valid_up_to())),
            Err(_) => return Ok(false),
        }
    }
}
