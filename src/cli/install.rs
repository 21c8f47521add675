//! `larder install`: writes an entry for this server into a host's
//! configuration file.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde_json::{Map, Value, json};

use super::{
    ServeArgs,
    client::say,
    host_file::{self, Client},
};

#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// The host.
    #[arg(long)]
    client: Client,
    /// The server's name in the host; the program's name by default.
    #[arg(long)]
    name: Option<String>,
    /// The URL of a running server: the host connects to it instead of starting
    /// one.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// An environment variable for the server; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_variable, conflicts_with = "url")]
    env: Vec<(String, String)>,
    /// The configuration file, if it is not the host's default one.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace an entry of the same name.
    #[arg(long)]
    replace: bool,
    /// Only print the entry.
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

impl InstallArgs {
    /// The flags of this program, if the host starts it.
    pub(super) fn serve_args(&self) -> Option<&ServeArgs> {
        self.url.is_none().then_some(&self.serve)
    }
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it must be KEY=VALUE".into()),
    }
}

pub(super) fn run(args: &InstallArgs, subcommand: &[&str]) -> Result<ExitCode, String> {
    let name = name(args)?;
    let entry = entry(args, subcommand)?;
    let section = args.client.section();
    let example = json!({ section: { &name: &entry } });

    if args.print {
        say(&format!("{example:#}"));
        return Ok(ExitCode::SUCCESS);
    }

    let file = match &args.file {
        Some(file) => file.clone(),
        None => args.client.file()?,
    };

    let unchanged = |problem: String| {
        format!(
            "{}: {problem}. The file is unchanged; add this yourself:\n{example:#}",
            file.display()
        )
    };

    let mut config = read(&file).map_err(unchanged)?;
    let servers = config.entry(section).or_insert_with(|| json!({}));
    let servers = servers
        .as_object_mut()
        .ok_or_else(|| unchanged(format!("{section:?} is not an object")))?;

    match servers.get(&name) {
        Some(existing) if *existing == entry => {
            say(&format!("{} already has {name}.", file.display()));
            return Ok(ExitCode::SUCCESS);
        }
        Some(_) if !args.replace => {
            return Err(unchanged(format!(
                "it has another server named {name:?}: give --replace, or another --name"
            )));
        }
        _ => servers.insert(name.clone(), entry),
    };

    let text = format!("{:#}\n", Value::Object(config));
    host_file::replace(&file, &text)
        .map_err(|error| unchanged(format!("it cannot be written: {error}")))?;

    say(&format!("Added {name} to {}. Restart the host if it is running.", file.display()));
    Ok(ExitCode::SUCCESS)
}

fn name(args: &InstallArgs) -> Result<String, String> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }

    let program = env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_stem).map(|n| n.to_string_lossy().into());
    name.ok_or_else(|| "The program's name is not known: give --name.".into())
}

fn entry(args: &InstallArgs, subcommand: &[&str]) -> Result<Value, String> {
    if let Some(url) = &args.url {
        return args.client.remote_entry(url);
    }

    let command_line: Vec<_> = args
        .serve
        .stdio_command_line(subcommand)?
        .into_iter()
        .map(|part| part.into_string().map_err(|part| format!("{} is not Unicode", part.display())))
        .collect::<Result<_, _>>()?;

    let (command, arguments) = command_line.split_first().ok_or("there is no command")?;
    let mut entry = json!({ "command": command, "args": arguments });
    if args.client == Client::Vscode {
        entry["type"] = json!("stdio");
    }
    if !args.env.is_empty() {
        entry["env"] = args.env.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    }

    Ok(entry)
}

fn read(file: &Path) -> Result<Map<String, Value>, String> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        text => text.map_err(|error| format!("it cannot be read: {error}"))?,
    };

    if text.trim().is_empty() {
        return Ok(Map::new());
    }

    // Some hosts allow comments. A rewrite would lose them, so only plain JSON is accepted.
    match serde_json::from_str(&text) {
        Ok(Value::Object(config)) => Ok(config),
        Ok(_) => Err("it is not a JSON object".into()),
        Err(error) => Err(format!("it is not plain JSON: {error}")),
    }
}
