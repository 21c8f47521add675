//! The command line that starts Larder in an entry of a host.

use std::{fs, path::Path};

use crate::{
    cli::ServeArgs,
    config::{StoreUrl, user_caches},
};

const CONFIG_FLAG: &str = "--config";
const STORE_FLAG: &str = "--store";

/// Larder's command line. An instance that is alone keeps results in memory; several share a store
/// of files, unless a store is given.
///
/// # Errors
/// The configuration is wrong, or has upstreams itself.
pub(super) fn command_line(serve: &ServeArgs, is_alone: bool) -> Result<Vec<String>, String> {
    let config = serve.configure().map_err(|error| error.to_string())?;
    if !config.upstreams.is_empty() {
        return Err("the configuration has [[upstreams]], so the tools of the host's servers would get other names: give another --config".into());
    }

    let line = serve.stdio_command_line(&["serve"])?.into_iter();
    let line = line.map(|part| {
        part.into_string().map_err(|part| format!("{} is not Unicode", part.display()))
    });
    let mut line = line.collect::<Result<Vec<_>, _>>()?;

    let is_in_memory = matches!(config.store.place(), Ok(StoreUrl::Memory));
    if is_in_memory && serve.store.is_none() && !is_alone {
        line.extend([STORE_FLAG.to_owned(), shared_store()?]);
    }
    Ok(line)
}

/// The command line with that configuration file, in place of another.
///
/// # Errors
/// The path of the file is unknown, or no Unicode.
pub(super) fn with_config(mut line: Vec<String>, config: &Path) -> Result<Vec<String>, String> {
    // Hosts start the server in another directory.
    let path =
        std::path::absolute(config).map_err(|error| format!("{}: {error}", config.display()))?;
    let path =
        path.to_str().ok_or_else(|| format!("{} is not Unicode", path.display()))?.to_owned();

    match line.iter().position(|part| part == CONFIG_FLAG) {
        Some(at) if at + 1 < line.len() => line[at + 1] = path,
        _ => line.extend([CONFIG_FLAG.to_owned(), path]),
    }
    Ok(line)
}

/// The text of the configuration file that was given.
///
/// # Errors
/// It cannot be read.
pub(super) fn settings_text(serve: &ServeArgs) -> Result<String, String> {
    match serve.file() {
        None => Ok(String::new()),
        Some(file) => fs::read_to_string(file)
            .map_err(|error| format!("{CONFIG_FLAG} {}: {error}", file.display())),
    }
}

/// The URL of a folder of the user, where results expire as everywhere.
fn shared_store() -> Result<String, String> {
    let folder = user_caches().map(|caches| caches.join("larder").join("resources"));
    let folder = folder.ok_or_else(|| "the user's folder is not known: give --store".to_owned())?;
    reqwest::Url::from_file_path(&folder)
        .map(String::from)
        .map_err(|()| format!("{}: no URL names it: give --store", folder.display()))
}
