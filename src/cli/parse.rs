//! Reads the command line.

use std::process::exit;

use clap::{Command, Parser};
use larder_runtime::environment;

use crate::server::About;

/// The parsed command line. Prints help, or what is wrong, and ends the process. A flag whose
/// variable is empty is not given.
pub(super) fn parse<C: Parser>() -> C {
    matched(without_empty_variables(C::command()))
}

fn matched<C: Parser>(mut command: Command) -> C {
    let parsed = command.try_get_matches_from_mut(std::env::args_os());

    match parsed.and_then(|mut matches| C::from_arg_matches_mut(&mut matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let error = error.format(&mut command);
            // Printing fails only if the output is closed.
            let _ = error.print();
            exit(error.exit_code())
        }
    }
}

/// Does what [`parse`] does for an author's server: help and version are the server's.
pub(super) fn parse_for<C: Parser>(about: &About) -> C {
    let About { name, version } = about;
    let command = C::command().name(name.clone()).about(format!("{name}, an MCP server"));
    let command = match version {
        Some(version) => command.version(version.clone()),
        None => command,
    };
    matched(without_empty_variables(command))
}

/// The command, and all below it, without the variables that are empty now.
fn without_empty_variables(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let variable = arg.get_env().and_then(|name| name.to_str());
        if variable.is_some_and(environment::is_empty) {
            arg.env(None::<&'static str>)
        } else {
            arg
        }
    });

    command.mut_subcommands(without_empty_variables)
}
