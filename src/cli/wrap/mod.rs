//! `larder wrap`: makes the servers of a host's configuration go through Larder, and turns
//! that back.

mod change;
mod document;
mod each;
mod entry;
mod host_files;
mod larder_line;
mod one;
mod undo;

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use self::host_files::HostFiles;
use super::{ServeArgs, host_file::Client};

#[derive(Debug, Args)]
pub(super) struct WrapArgs {
    /// The host.
    #[arg(long)]
    client: Client,
    /// The servers; all by default.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Put Larder into the entry of each server, in place of one entry for all of them.
    #[arg(long)]
    each: bool,
    /// Make them as they were before.
    #[arg(long)]
    undo: bool,
    /// Only print the changed entries.
    #[arg(long)]
    print: bool,
    /// The configuration file, if it is not the host's default one.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
}

pub(super) fn run(args: &WrapArgs) -> Result<ExitCode, String> {
    let path = match &args.file {
        Some(file) => file.clone(),
        None => args.client.file()?,
    };
    let files = HostFiles::read(path, args.client.section())?;

    let change = match (args.undo, args.each) {
        (true, _) => undo::undone(&files, &args.names)?,
        (false, true) => each::wrapped(&files, &args.names, &args.serve)?,
        (false, false) => one::wrapped(&files, &args.names, &args.serve)?,
    };

    if args.print {
        change.print(args.client.section());
    } else {
        files.apply(&change)?;
    }
    Ok(ExitCode::SUCCESS)
}
