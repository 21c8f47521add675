//! The upstream that the command line of `larder serve` names.

use std::path::Path;

use clap::Args;
use larder_gateway::{Command, Remote, Settings, Target};
use larder_runtime::environment;

/// A server to stand in front of, without a configuration file.
#[derive(Debug, Default, Clone, Args)]
pub(super) struct NamedUpstreams {
    /// A remote MCP server to stand in front of, as with COMMAND.
    #[arg(long = "upstream", value_name = "URL", value_parser = parse_url)]
    url: Option<String>,
    /// A header of each request to URL, and the environment variable that has its value;
    /// may be repeated.
    #[arg(long = "header", value_name = "NAME=VARIABLE", value_parser = parse_header, requires = "url")]
    headers: Vec<(String, String)>,
    /// An environment variable that COMMAND inherits; may be repeated. It inherits PATH,
    /// HOME, LANG and TMPDIR in any case, and with --stdio all but Larder's own.
    #[arg(long = "env", value_name = "NAME", requires = "command")]
    env: Vec<String>,
    /// Another MCP server to stand in front of: its tools are offered as they
    /// are, and what is too large for an answer is stored.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn parse_url(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        Ok(_) | Err(_) => Err("it must be a URL such as https://crm.example/mcp".into()),
    }
}

/// A header, and the environment variable that has its value.
pub(super) fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, variable)) if !name.is_empty() && !variable.is_empty() => {
            Ok((name.to_owned(), variable.to_owned()))
        }
        _ => Err("it must be NAME=VARIABLE".into()),
    }
}

impl NamedUpstreams {
    /// Checks that the program can be started.
    ///
    /// # Errors
    /// Says why not.
    pub(super) fn check(&self) -> Result<(), String> {
        self.command.first().map_or(Ok(()), |program| is_startable(program))
    }

    /// The variables with the values of headers.
    pub(super) fn header_variables(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|(_, variable)| variable.as_str())
    }

    /// Their settings, with the values of the variables.
    ///
    /// # Errors
    /// Names the variable of a header that is not set.
    pub(super) fn settings(&self) -> Result<Vec<Settings>, String> {
        let mut all = Vec::new();

        if let Some(url) = &self.url {
            let headers = self
                .headers
                .iter()
                .map(|(name, variable)| Ok((name.clone(), header_value(name, variable)?)));
            let headers = headers.collect::<Result<_, String>>()?;
            let remote = Remote { url: url.clone(), headers, ..Remote::default() };
            all.push(named(Settings::name_of_url(url), remote));
        }

        if !self.command.is_empty() {
            let set = |name: &String| Some((name.clone(), environment::variable(name)?));
            let env = self.env.iter().filter_map(set).collect();
            let command = Command { line: self.command.clone(), env, ..Command::default() };
            all.push(named(Settings::name_of(&self.command), command));
        }

        Ok(all)
    }
}

/// The value of a header. A command line can be seen by others, so it is in a variable.
///
/// # Errors
/// The variable is not set.
pub(super) fn header_value(name: &str, variable: &str) -> Result<String, String> {
    environment::variable(variable)
        .ok_or_else(|| format!("--header {name}: the variable {variable} is not set"))
}

/// Checks that there is such a program.
///
/// # Errors
/// There is none, or it cannot be executed.
pub(super) fn is_startable(program: &str) -> Result<(), String> {
    match which::which(program) {
        Ok(_) => Ok(()),
        Err(_) if Path::new(program).components().count() > 1 => {
            Err(format!("{program} cannot be started: it is no program."))
        }
        Err(_) => Err(format!("{program} cannot be started: no directory of PATH has it.")),
    }
}

/// The settings of a server for which lists wait as long as its start may take: some hosts list
/// tools only once, and `npx` may have to install the server first.
fn named(name: String, target: impl Into<Target>) -> Settings {
    let settings = Settings::new(name, target);
    Settings { list_timeout: settings.start_timeout, ..settings }
}
