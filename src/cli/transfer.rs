//! `larder export` and `larder import`: move stored resources from one store to another.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use larder_protocol::quote::visible;
use larder_records::words::number;
use larder_store::transfer::{self, Exported, Imported, Progress, TransferError};
use tokio::{
    fs::{self, File, OpenOptions},
    io::{self, AsyncRead, AsyncWrite},
    time::Instant,
};

use super::{
    client::{ClientError, exit_code},
    stored::StoreArgs,
};

/// How often progress is shown.
const INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The file to write; - is standard output.
    file: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The file to read; - is standard input.
    file: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) async fn run_export(args: ExportArgs) -> ExitCode {
    exit_code(export(args).await)
}

pub(super) async fn run_import(args: ImportArgs) -> ExitCode {
    exit_code(import(args).await)
}

async fn export(args: ExportArgs) -> Result<(), ClientError> {
    let store = args.store.open_existing().await?;
    let done = if is_standard(&args.file) {
        export_to(&store, io::stdout(), "standard output").await?.0
    } else {
        // An incomplete export never has the name of the file.
        let mut partial = args.file.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let name = args.file.display().to_string();
        let local = |error: io::Error| ClientError::local(&name, &error);

        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        options.mode(0o600);
        let file = options.open(&partial).await.map_err(local)?;

        let (done, file) = export_to(&store, file, &name).await?;
        file.sync_all().await.map_err(local)?;
        drop(file);
        fs::rename(&partial, &args.file).await.map_err(local)?;
        done
    };

    let Exported { revisions, bytes, gone, damaged, .. } = done;
    eprintln!(
        "larder: exported {} revisions, {} bytes; {} were deleted or expired meanwhile, {} are damaged",
        number(revisions),
        number(bytes),
        number(gone),
        number(damaged)
    );

    if damaged > 0 {
        return Err(ClientError::Failed("The export lacks damaged revisions.".into()));
    }
    Ok(())
}

async fn export_to<W: AsyncWrite + Unpin>(
    store: &larder_store::store::Store,
    out: W,
    name: &str,
) -> Result<(Exported, W), ClientError> {
    let exported = transfer::export(store, out, reporter()).await;
    exported.map_err(|error| failed(name, &error))
}

async fn import(args: ImportArgs) -> Result<(), ClientError> {
    let name = if is_standard(&args.file) {
        "standard input".to_owned()
    } else {
        args.file.display().to_string()
    };
    let input: Box<dyn AsyncRead + Send + Unpin> = if is_standard(&args.file) {
        Box::new(io::stdin())
    } else {
        let file = File::open(&args.file).await;
        Box::new(file.map_err(|error| ClientError::local(&name, &error))?)
    };

    let store = args.store.open().await?;
    let imported = transfer::import(&store, input, reporter()).await;
    let Imported { written, bytes, present, later, expired, refused, .. } =
        imported.map_err(|error| failed(&name, &error))?;
    eprintln!(
        "larder: imported {} revisions, {} bytes; {} were there, {} have a later write there, {} have expired, {} were refused",
        number(written),
        number(bytes),
        number(present),
        number(later),
        number(expired),
        number(refused)
    );

    if refused > 0 {
        return Err(ClientError::Failed(
            "Some revisions were refused: mend the cause and import again.".into(),
        ));
    }

    Ok(())
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn failed(name: &str, error: &TransferError) -> ClientError {
    let problem = match error {
        TransferError::Store(error) => {
            let cause = std::error::Error::source(error);
            cause.map_or_else(|| error.to_string(), |cause| format!("{error} ({cause})"))
        }
        error => format!("{name}: {error}"),
    };

    match error {
        TransferError::NotAnExport | TransferError::Version(_) => ClientError::Usage(problem),
        _ => ClientError::Failed(problem),
    }
}

/// Shows what is left out, and now and then how far it is, on standard error.
fn reporter() -> impl FnMut(Progress<'_>) {
    let mut shown = Instant::now();
    move |progress| match progress {
        Progress::Done { revisions, bytes } if shown.elapsed() >= INTERVAL => {
            shown = Instant::now();
            eprintln!("larder: {} revisions, {} bytes", number(revisions), number(bytes));
        }
        Progress::Done { .. } => {}
        Progress::LeftOut { owner, uri, revision, why } => {
            eprintln!("larder: left out revision {revision} of {uri} of {}: {why}", visible(owner));
        }
    }
}
