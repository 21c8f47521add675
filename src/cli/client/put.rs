//! `larder put`: a file goes out while it is read, whatever its size.

use std::{path::PathBuf, pin::Pin};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use clap::Args;
use futures_util::{Stream, StreamExt, stream};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{ClientError, Link, ServerArgs, print, progress};

/// How much is read at a time. A multiple of three, so that pieces of base64
/// join.
const PIECE: usize = 192 * 1024;

#[derive(Debug, Args)]
pub(in crate::cli) struct PutArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The file; - is standard input.
    file: PathBuf,
    /// The URI to store it under; the server makes one by default.
    #[arg(long)]
    uri: Option<String>,
    /// Seconds that it lives; one day by default.
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<f64>,
    /// Its short name; the file's by default.
    #[arg(long)]
    name: Option<String>,
    /// Its media type; by the file's name by default.
    #[arg(long = "type", value_name = "TYPE")]
    mime_type: Option<String>,
    /// Store it as bytes, even if it is text; what is no UTF-8 always is.
    #[arg(long)]
    binary: bool,
}

type Reader = Pin<Box<dyn AsyncRead + Send>>;

pub(super) async fn run(args: PutArgs) -> Result<(), ClientError> {
    let is_stdin = args.file.as_os_str() == "-";
    let shown =
        if is_stdin { "standard input".to_owned() } else { args.file.display().to_string() };
    let wrong = |error: std::io::Error| ClientError::local(&shown, &error);
    let (mut reader, size): (Reader, _) = if is_stdin {
        (Box::pin(tokio::io::stdin()), None)
    } else {
        let file = tokio::fs::File::open(&args.file).await.map_err(wrong)?;
        let size = file.metadata().await.map_err(wrong)?.len();
        (Box::pin(file), Some(size))
    };
    let first = fill(&mut reader).await.map_err(wrong)?;
    // What begins as text is taken for text; what turns out not to be later is
    // told to come as bytes. A file is looked through before.
    let is_text = !args.binary
        && !first.contains(&0)
        && is_utf8_so_far(&first)
        && (is_stdin || is_utf8(&args.file).await.map_err(wrong)?);

    let mut arguments = serde_json::Map::new();
    let file_name = args.file.file_name().filter(|_| !is_stdin).and_then(|name| name.to_str());
    let name = args.name.or_else(|| file_name.map(str::to_owned));
    let guessed = || {
        let guess = mime_guess::from_path(&args.file).first()?;
        // A name may promise text where there is none, and the other way round.
        (!is_stdin).then(|| guess.to_string())
    };
    for (key, value) in [
        ("uri", args.uri.map(|uri| json!(uri))),
        ("ttl", args.ttl.map(|ttl| json!(ttl))),
        ("name", name.map(|name| json!(name))),
        ("mime_type", args.mime_type.or_else(guessed).map(|kind| json!(kind))),
    ] {
        if let Some(value) = value {
            arguments.insert(key.into(), value);
        }
    }
    // The request with an empty text, cut where the text belongs.
    let key = if is_text { "text" } else { "blob" };
    arguments.insert(key.into(), json!(""));
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "create_resource", "arguments": arguments } });
    let request = request.to_string();
    let (head, tail) = request.split_at(request.len() - "\"}}}".len());

    let bar = progress(size, false);
    let counting = bar.clone();
    let encode = Encode { reader, piece: first, rest: Vec::new(), is_text, name: shown.clone() };
    let content = encode.pieces().inspect(move |_| counting.inc(PIECE as u64));
    let once = |text: &str| stream::iter([Ok(Bytes::from(text.to_owned()))]);
    let body = once(head).chain(content).chain(once(tail));
    let told = Link::new(args.server)?.call_streaming(body).await;
    bar.finish_and_clear();
    print(format!("{}\n", told?.first).as_bytes())
}

/// A whole piece, or what is left.
async fn fill(reader: &mut Reader) -> std::io::Result<Vec<u8>> {
    let mut piece = Vec::with_capacity(PIECE);
    reader.take(PIECE as u64).read_to_end(&mut piece).await?;
    Ok(piece)
}

/// Content on its way into a string of JSON.
struct Encode {
    reader: Reader,
    /// Read, and not sent.
    piece: Vec<u8>,
    /// The beginning of a character whose end has not been read.
    rest: Vec<u8>,
    is_text: bool,
    name: String,
}

impl Encode {
    fn pieces(self) -> impl Stream<Item = Result<Bytes, ClientError>> + Send {
        stream::try_unfold(self, |mut this| async move {
            if this.piece.is_empty() {
                if this.rest.is_empty() {
                    return Ok(None);
                }
                return Err(this.no_text());
            }
            let encoded =
                if this.is_text { this.text()? } else { BASE64_STANDARD.encode(&this.piece) };
            let wrong = |error| ClientError::local(&this.name, &error);
            this.piece = fill(&mut this.reader).await.map_err(wrong)?;
            Ok(Some((Bytes::from(encoded), this)))
        })
    }

    fn text(&mut self) -> Result<String, ClientError> {
        self.rest.append(&mut self.piece);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err(self.no_text()),
        };
        let rest = self.rest.split_off(whole);
        let text = String::from_utf8(std::mem::replace(&mut self.rest, rest));
        let quoted = json!(text.unwrap_or_default()).to_string();
        Ok(quoted[1..quoted.len() - 1].to_owned())
    }

    fn no_text(&self) -> ClientError {
        ClientError::Usage(format!("{}: it is not UTF-8 text; give --binary", self.name))
    }
}

/// Whether it is the beginning of UTF-8 text.
fn is_utf8_so_far(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

async fn is_utf8(file: &std::path::Path) -> std::io::Result<bool> {
    let mut reader: Reader = Box::pin(tokio::fs::File::open(file).await?);
    let mut rest = Vec::new();
    loop {
        let mut piece = fill(&mut reader).await?;
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
