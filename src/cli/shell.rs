//! `larder completions` and `larder man`: the command line, for shells and for `man`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{
    client::{exit_code, print},
    fail,
};

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write a page for each command into this directory, instead of the page of larder to
    /// standard output.
    #[arg(value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

/// Prints the completions of a command line for a shell.
pub(super) fn completions(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    exit_code(print(&script))
}

/// Prints or writes the pages of a command line.
pub(super) fn man(args: &ManArgs, command: Command) -> ExitCode {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        return match Man::new(command).render(&mut page) {
            Ok(()) => exit_code(print(&page)),
            Err(error) => fail(1, &error),
        };
    };

    match write_pages(directory, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("{}: {error}", directory.display())),
    }
}

/// Writes the page of a command and those of its subcommands, named as Git names its own.
fn write_pages(directory: &Path, command: Command) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command, directory)
}
