//! Loads the configuration from the file and the environment.

use std::{collections::HashMap, path::Path};

use larder_runtime::environment;
use serde::Deserialize as _;
use toml::{Deserializer, de::DeTable};

use super::{
    Config, ConfigError,
    show::mask_url,
    suggestions::{with_near_settings, with_near_variables},
    underlay::Underlay,
    variables::Variables,
};

impl Config {
    /// Reads the file if there is one, then the environment; applies the overrides of the
    /// caller; and checks the result.
    ///
    /// # Errors
    /// Names the setting and its position in the file.
    pub fn load(
        file: Option<&Path>,
        overrides: impl FnOnce(&mut Self),
    ) -> Result<Self, ConfigError> {
        Self::load_over(&Self::default(), file, overrides)
    }

    /// [`Config::load`] over settings that code sets: each of them holds unless the file, the
    /// environment or the caller sets it. A list, such as `upstreams`, is replaced as a whole.
    ///
    /// # Errors
    /// The errors of [`Config::load`]; or a setting of the code cannot be written in a file, so
    /// that it could not be compared.
    pub fn load_over(
        defaults: &Self,
        file: Option<&Path>,
        overrides: impl FnOnce(&mut Self),
    ) -> Result<Self, ConfigError> {
        // Values that are not Unicode cannot be settings.
        let variables = environment::variables().collect();
        let underlay = Underlay::of(defaults)?;
        let mut config = Self::from_sources(&underlay, file, variables)?;
        overrides(&mut config);
        config.check()?;
        Ok(config)
    }

    fn from_sources(
        underlay: &Underlay,
        file: Option<&Path>,
        environment: HashMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let text = file.map_or(Ok(String::new()), read)?;
        let place = |offset: usize| {
            // A setting of code has no place in the file.
            let Some(before) = text.get(..offset) else { return String::new() };
            let line = before.matches('\n').count() + 1;
            file.map_or_else(String::new, |file| format!("{}:{line}: ", file.display()))
        };

        let document = DeTable::parse(&text).map_err(|error| {
            let place = place(error.span().map_or(0, |span| span.start));
            ConfigError::unreadable(format!("{place}it is not TOML: {}", error.message()))
        })?;

        let mut variables = Variables::of(environment, text.len());
        loop {
            let mut settings = document.clone();
            variables.put_into(settings.get_mut());
            underlay.put_under(settings.get_mut());
            let error = match Self::deserialize(Deserializer::from(settings)) {
                Ok(config) => return Ok(config),
                Err(error) => error,
            };

            let position = error.span().map(|span| span.start);
            let problem = match position.and_then(|position| variables.at(position)) {
                Some(variable) => match variable.read_as_text(error) {
                    Ok(()) => continue,
                    Err(error) => {
                        let name = variable.name();
                        let problem = with_near_variables(name, &with_setting(&error));
                        format!("{name}: {problem}")
                    }
                },
                None => {
                    let place = position.map_or_else(String::new, place);
                    format!("{place}{}", with_near_settings(&with_setting(&error)))
                }
            };
            return Err(ConfigError::unreadable(without_values(&problem)));
        }
    }
}

pub(super) fn read(file: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(file)
        .map_err(|error| ConfigError::unreadable(format!("{}: {error}", file.display())))
}

/// The error with its setting before it, which the library writes behind it.
fn with_setting(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let setting = text.trim_end().rsplit_once("in `").and_then(|(_, key)| key.strip_suffix('`'));
    match setting {
        Some(setting) => format!("{setting}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

/// An error of a type without the text that it quotes, which may be a secret in the wrong
/// place; and with passwords in URLs masked.
fn without_values(problem: &str) -> String {
    const QUOTED: &str = "string \"";

    let mut shown = String::new();
    let mut rest = problem;
    while let Some((before, quoted)) = rest.split_once(QUOTED) {
        let mut escaped = false;
        let end = quoted.find(|c| match c {
            _ if escaped => {
                escaped = false;
                false
            }
            '\\' => {
                escaped = true;
                false
            }
            c => c == '"',
        });

        shown.push_str(before);
        shown.push_str("a string");
        rest = end.map_or("", |end| &quoted[end + 1..]);
    }

    shown.push_str(rest);
    shown.split(' ').map(mask_url).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{collections::HashMap, io::Write};

    use super::*;
    use larder_gateway::Target;

    use crate::config::StoreConfig;

    fn load(file: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let mut toml = tempfile::NamedTempFile::new().unwrap();
        toml.write_all(file.as_bytes()).unwrap();

        let environment: HashMap<_, _> =
            environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();

        let config = Config::from_sources(&Underlay::default(), Some(toml.path()), environment)?;
        config.check().map(|()| config)
    }

    #[test]
    fn the_environment_overrides_the_file_and_the_file_the_defaults() {
        let file = "[server]\nlisten = \"127.0.0.1:1\"\npath = \"/a\"";
        let environment = [
            ("LARDER_SERVER__LISTEN", "127.0.0.1:2"),
            ("LARDER_SERVER__ALLOWED_HOSTS", "a.example,b.example"),
            ("LARDER_TOOLS__WRITE", "false"),
        ];

        let config = load(file, &environment).unwrap();
        assert_eq!(config.server.listen.port(), 2);
        assert_eq!(config.server.path, "/a");
        assert_eq!(config.server.allowed_hosts, ["a.example", "b.example"]);
        assert!(!config.tools.write);
        assert_eq!(config.store, StoreConfig::default());
    }

    #[test]
    fn upstreams_are_read_as_they_are_written() {
        let file = "[[upstreams]]\nname = \"fs\"\ncommand = [\"npx\", \"-y\"]\ncall_timeout = \"2m\"\n\
            env = { Some_TOKEN = \"x\" }";

        let config = load(file, &[]).unwrap();
        let settings = config.upstreams[0].settings().unwrap();
        let Target::Command(command) = settings.target else { panic!("a command") };
        assert_eq!(command.env["Some_TOKEN"], "x");
        assert_eq!((settings.call_timeout.as_secs(), settings.max_message), (120, 64 << 20));

        let shown = config.show().unwrap();
        assert!(shown.contains("Some_TOKEN = \"***\""), "{shown}");
    }

    #[test]
    fn errors_name_the_setting() {
        let fs = "[[upstreams]]\nname = \"fs\"\ncommand = [\"x\"]\n";
        let crm = |more: &str| {
            format!("[[upstreams]]\nname = \"crm\"\nurl = \"http://a.example\"\n{more}")
        };

        for (file, named) in [
            (&*format!("{fs}{fs}"), "upstreams.name"),
            (&fs.replace("fs", "f_s"), "upstreams.name"),
            (&fs.replace("\"x\"", ""), "upstreams.command"),
            (&format!("{fs}url = \"http://a.example\""), "upstreams.url"),
            ("[[upstreams]]\nname = \"a\"\nurl = \"a.example\"", "upstreams.url"),
            (&format!("{fs}idle_time = 1"), "idle_time"),
            (&format!("{fs}ttl = {{ x = \"31d\" }}"), "upstreams.ttl"),
            (&format!("{fs}spill = {{ x = \"sometimes\" }}"), "sometimes"),
            (&format!("{fs}call_timeout = \"soon\""), "call_timeout: invalid value"),
            (&format!("{fs}env = {{ A = \"${{LARDER_TEST_UNSET}}\" }}"), "upstreams.env.A"),
            (&format!("{fs}header_files = {{ a = \"/x\" }}"), "upstreams.header_files"),
            (&crm("header_files = { a = \"/nowhere\" }"), "upstreams.header_files.a"),
            (&crm("headers = { A = \"x\" }\nheader_files = { a = \"/x\" }"), "a is in headers"),
            (&crm("max_values = 0"), "upstreams.max_values"),
            ("[limits]\nupstream_bytes = 0", "limits.upstream_bytes"),
            ("[limits]\nhead_timeout = 9000000000000000000", "limits.head_timeout"),
            ("[limits]\ncall_timeout = 31536001", "limits.call_timeout"),
            ("[server]\nlisten = \"here\"", "server.listen"),
            ("[server]\nlissten = \"127.0.0.1:1\"", "lissten"),
            ("[sever]\n", "sever"),
            ("[server]\npath = \"mcp\"", "server.path"),
            ("[server]\npath = \"/:mcp\"", "server.path"),
            ("[server]\npath = \"/mcp\\n\"", "server.path"),
            ("[server]\npath = \"/resources/uploads\"", "server.path"),
            ("[server]\npath = \"/.well-known/mcp\"", "server.path"),
            ("[server]\nmax_version = \"1\"", "server.max_version"),
            ("[server]\nlisten = \"0.0.0.0:8000\"", "server.listen"),
            ("[store]\ndefault_ttl = 0", "store.default_ttl"),
            ("[store]\ndefault_ttl = -1", "store.default_ttl"),
            ("[sessions]\nurl = \"http://x\"", "sessions.url"),
            ("[redis]\ntimeout = 0", "redis.timeout"),
            ("[redis]\ntimeout = -1", "redis.timeout"),
            ("[redis]\ntimeout = 1e99", "redis.timeout"),
            ("[tools]\noutput_bytes = 1", "tools.output_bytes"),
            ("[tools.clients]\nsmall = 1", "tools.clients.small"),
            ("[tools.spill]\nlist_resources = \"sometimes\"", "sometimes"),
            ("[server", "TOML"),
        ] {
            let error = load(file, &[]).unwrap_err().to_string();
            assert!(error.contains(named), "{file:?}: {error}");
        }
    }

    #[test]
    fn errors_name_the_variable() {
        for (name, value, named) in [
            ("LARDER_SERVER__LISTTEN", "x", "unknown field `listten`"),
            ("LARDER_SEVER__LISTEN", "x", "unknown field `sever`"),
            ("LARDER_SERVER__LISTEN", "7", "server.listen: "),
            ("LARDER_SERVER_LISTEN", "x", "unknown field `server_listen`"),
            ("LARDER_STORE__DEFAULT_TTL", "-1", "store.default_ttl: invalid value"),
            ("LARDER_SERVER", "x", "server: invalid type"),
            ("LARDER_STORE__DEFAULT_TTL__X", "1", "store.default_ttl: invalid type"),
        ] {
            let error = load("[store]\n", &[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(&format!(" {name}: ")) && error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_variable_is_what_its_setting_needs() {
        let environment = [
            ("LARDER_REDIS__URL", ""),
            ("LARDER_REDIS__PREFIX", "007"),
            ("LARDER_STORE__DEFAULT_TTL", "90"),
            ("LARDER_TOOLS__WRITE", "False"),
            ("LARDER_SERVER__PATH", "/true"),
            ("LARDER_SERVER__ALLOWED_HOSTS", "7,true"),
            ("LARDER_SERVICE_PORT", "80"),
        ];

        let config = load("[redis]\nprefix = \"a\"", &environment).unwrap();
        assert_eq!(config.redis.prefix, "007");
        assert_eq!(config.store.default_ttl, 90);
        assert!(!config.tools.write);
        assert_eq!(config.server.allowed_hosts, ["7", "true"]);
    }

    #[test]
    fn errors_show_no_secret() {
        let secret = "redis://:hu\\\"sh@redis:6379";
        for file in [
            format!("store = \"{secret}\""),
            format!("[store]\ndefault_ttl = \"{secret}\""),
            format!("[server]\nlisten = \"{secret}\""),
            format!("[tools.spill]\nx = \"{secret}\""),
        ] {
            let error = load(&file, &[]).unwrap_err().to_string();
            assert!(!error.contains("sh@"), "{file:?}: {error}");
        }

        let environment = [("LARDER_STORE__DEFAULT_TTL", "redis://:hush@redis:6379")];
        let error = load("", &environment).unwrap_err().to_string();
        assert!(!error.contains("hush") && error.contains("store.default_ttl"), "{error}");
    }

    #[test]
    fn it_listens_on_loopback_by_default() {
        assert!(Config::default().server.listen.ip().is_loopback());
    }

    #[test]
    fn other_addresses_than_loopback_must_be_allowed() {
        let file = "[server]\nlisten = \"0.0.0.0:8000\"\ninsecure_no_auth = true";
        assert!(load(file, &[]).is_ok());
        assert!(load("[server]\nlisten = \"[::1]:8000\"", &[]).is_ok());
    }
}
