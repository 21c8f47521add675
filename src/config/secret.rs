//! Client secrets: in files or environment variables, never in the configuration itself.

use std::path::Path;

use larder_oauth::Secret;
use larder_runtime::environment::variable;

use super::ConfigError;

/// Reads `client_secret_file` or `client_secret_env` of the section at `path`.
///
/// # Errors
/// Names the setting.
pub(super) fn client_secret(
    path: &str,
    file: Option<&Path>,
    env: Option<&str>,
) -> Result<Secret, ConfigError> {
    let (setting, read) = if let Some(file) = file {
        let read = std::fs::read_to_string(file);
        ("client_secret_file", read.map_err(|error| format!("{}: {error}", file.display())))
    } else {
        let name = env.unwrap_or_default();
        ("client_secret_env", variable(name).ok_or_else(|| format!("{name} is not set")))
    };

    let problem = |problem| ConfigError::new(&format!("{path}.{setting}"), problem);
    let secret = read.map_err(problem)?;

    match secret.trim() {
        "" => Err(problem("it is empty".into())),
        secret => Ok(Secret::new(secret)),
    }
}
