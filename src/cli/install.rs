//! `larder install`: an entry for this server in a host's configuration file.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::{ServeArgs, hosts};

#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// The host.
    #[arg(long)]
    client: Client,
    /// What the host calls this server; the program's name by default.
    #[arg(long)]
    name: Option<String>,
    /// Where the server runs already: the host connects there instead of
    /// starting a server of its own.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// An environment variable for the server, as KEY=VALUE; may be given
    /// several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, conflicts_with = "url")]
    env: Vec<(String, String)>,
    /// The configuration file, where it is not the usual one.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace an entry of the same name.
    #[arg(long)]
    replace: bool,
    /// Only print what would be written.
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

impl InstallArgs {
    /// With what the host starts this program, if it does.
    pub(super) fn starts(&self) -> Option<&ServeArgs> {
        self.url.is_none().then_some(&self.serve)
    }
}

/// A host whose configuration file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Client {
    /// .mcp.json, for the project in this directory.
    ClaudeCode,
    /// claude_desktop_config.json, for this user.
    ClaudeDesktop,
    /// .vscode/mcp.json, for the workspace in this directory.
    Vscode,
    /// .cursor/mcp.json, for the project in this directory.
    Cursor,
}

impl Client {
    /// The member that holds the servers.
    fn section(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor => "mcpServers",
        }
    }

    fn file(self) -> Result<PathBuf, String> {
        Ok(match self {
            Self::ClaudeCode => ".mcp.json".into(),
            Self::Vscode => ".vscode/mcp.json".into(),
            Self::Cursor => ".cursor/mcp.json".into(),
            Self::ClaudeDesktop => desktop_directory()?.join("Claude/claude_desktop_config.json"),
        })
    }

    fn remote(self, url: &str) -> Result<Value, String> {
        match self {
            Self::ClaudeCode | Self::Vscode => Ok(json!({ "type": "http", "url": url })),
            Self::Cursor => Ok(json!({ "url": url })),
            Self::ClaudeDesktop => Err(
                "Claude Desktop's file takes programs only. Add a server that runs elsewhere under Settings, Connectors; or leave out --url.".into(),
            ),
        }
    }
}

/// Where applications keep what belongs to a user.
fn desktop_directory() -> Result<PathBuf, String> {
    let directory = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let found = if cfg!(windows) {
        directory("APPDATA")
    } else if cfg!(target_os = "macos") {
        directory("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))
    };
    found.ok_or_else(|| "The user's directory is not known: give --file.".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it must be KEY=VALUE".into()),
    }
}

pub(super) fn run(args: &InstallArgs, serve: &[&str]) -> Result<ExitCode, String> {
    let (name, entry) = (name(args)?, entry(args, serve)?);
    let section = args.client.section();
    let alone = json!({ section: { &name: &entry } });
    if args.print {
        println!("{alone:#}");
        return Ok(ExitCode::SUCCESS);
    }
    let file = match &args.file {
        Some(file) => file.clone(),
        None => args.client.file()?,
    };
    let custom = |problem: String| {
        format!(
            "{}: {problem}. It was left as it is; this is what belongs there:\n{alone:#}",
            file.display()
        )
    };
    let mut config = read(&file).map_err(custom)?;
    let servers = config.entry(section).or_insert_with(|| json!({}));
    let servers =
        servers.as_object_mut().ok_or_else(|| custom(format!("its {section:?} is no object")))?;
    match servers.get(&name) {
        Some(there) if *there == entry => {
            println!("{} has {name} already.", file.display());
            return Ok(ExitCode::SUCCESS);
        }
        Some(_) if !args.replace => {
            return Err(custom(format!(
                "it has another server called {name:?}: give --replace, or another --name"
            )));
        }
        _ => servers.insert(name.clone(), entry),
    };
    write(&file, &config).map_err(|error| custom(format!("it cannot be written: {error}")))?;
    println!("Added {name} to {}. Restart the host if it runs.", file.display());
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

fn entry(args: &InstallArgs, serve: &[&str]) -> Result<Value, String> {
    if let Some(url) = &args.url {
        return args.client.remote(url);
    }
    let line: Vec<_> = hosts::command_line(serve, &args.serve)?
        .into_iter()
        .map(|part| part.into_string().map_err(|part| format!("{} is not Unicode", part.display())))
        .collect::<Result<_, _>>()?;
    let (command, arguments) = line.split_first().ok_or("there is no command")?;
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
    // Some hosts allow comments, which writing it anew would lose.
    match serde_json::from_str(&text) {
        Ok(Value::Object(config)) => Ok(config),
        Ok(_) => Err("it is no JSON object".into()),
        Err(error) => Err(format!("it is not plain JSON: {error}")),
    }
}

/// All or nothing, since hosts keep more than servers in these files.
fn write(file: &Path, config: &Map<String, Value>) -> io::Result<()> {
    // A link stays one.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::create_dir_all(directory)?;
    }
    let mut aside = file.clone().into_os_string();
    aside.push(format!(".{}", std::process::id()));
    let written =
        fs::write(&aside, format!("{:#}\n", Value::Object(config.clone()))).and_then(|()| {
            if let Ok(there) = fs::metadata(&file) {
                fs::set_permissions(&aside, there.permissions())?;
            }
            fs::rename(&aside, &file)
        });
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}
