//! `larder health`: a health check for container engines whose images have no
//! HTTP client.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use larder_runtime::environment::variable;

use super::{
    args::{file, listen},
    fail,
};
use crate::config::ServerConfig;

/// Shorter than the time-outs of container engines.
const TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Args)]
pub(super) struct HealthArgs {
    /// The server's address, if it is not that of the configuration
    /// (server.listen).
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    listen: Option<SocketAddr>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    config: Option<PathBuf>,
    /// Check that the server is ready (/readyz), not only alive (/healthz).
    #[arg(long)]
    ready: bool,
    /// Check that all that the server depends on is available
    /// (/readyz/dependencies).
    #[arg(long, conflicts_with = "ready")]
    dependencies: bool,
}

pub(super) async fn run(args: HealthArgs) -> ExitCode {
    let path = match (args.ready, args.dependencies) {
        (true, _) => "readyz",
        (_, true) => "readyz/dependencies",
        _ => "healthz",
    };

    let target = HealthTarget::find(args.listen, args.config.as_deref(), variable);
    // The certificate is not issued for this address, so it is not verified.
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(TIMEOUT)
        .tls_danger_accept_invalid_certs(true);
    let client = match client.build() {
        Ok(client) => client,
        Err(error) => return fail(1, &error),
    };

    let mut code = ExitCode::FAILURE;
    for scheme in target.schemes {
        let url = format!("{scheme}://{}/{path}", reachable(target.address));
        match client.get(&url).send().await {
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let cause = cause.unwrap_or_else(|| error.to_string());
                code = fail(1, &format_args!("{url}: {cause}"));
            }
            Ok(response) => {
                let status = response.status();
                let text = response.text().await.unwrap_or_default();
                if status.is_success() {
                    println!("{text}");
                    return ExitCode::SUCCESS;
                }
                code = fail(1, &format_args!("{url}: {status} {text}"));
            }
        }
    }

    code
}

/// The address where the server listens. Only these settings are read, each as far as it can be:
/// a running server is healthy even if its file was changed into something invalid.
#[derive(Debug, PartialEq, Eq)]
struct HealthTarget {
    address: SocketAddr,
    /// The schemes that may be spoken at the address.
    schemes: &'static [&'static str],
}

impl HealthTarget {
    fn find(
        listen: Option<SocketAddr>,
        file: Option<&Path>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let file = file.filter(|file| !file.as_os_str().is_empty());
        let settings = file.map(|file| {
            let text = std::fs::read_to_string(file).ok()?;
            text.parse::<toml::Table>().ok()
        });
        let server = settings.as_ref().and_then(|settings| settings.as_ref()?.get("server"));

        let address = listen
            .or_else(|| variable("LARDER_SERVER__LISTEN")?.parse().ok())
            .or_else(|| server?.get("listen")?.as_str()?.parse().ok())
            .unwrap_or(ServerConfig::default().listen);

        let is_tls = variable("LARDER_SERVER__TLS__CERT").is_some()
            || server.is_some_and(|server| server.get("tls").is_some());
        let schemes: &[_] = match settings {
            _ if is_tls => &["https"],
            Some(None) => &["http", "https"],
            _ => &["http"],
        };

        Self { address, schemes }
    }
}

/// The loopback address in place of an unspecified one.
pub(super) fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use super::*;

    fn found(file: &str, variables: &[(&str, &str)]) -> (String, &'static [&'static str]) {
        let mut toml = tempfile::NamedTempFile::new().unwrap();
        toml.write_all(file.as_bytes()).unwrap();

        let variable = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };

        let target = HealthTarget::find(None, Some(toml.path()), variable);
        (target.address.to_string(), target.schemes)
    }

    #[test]
    fn the_address_is_found_in_a_file_that_is_invalid_otherwise() {
        let http: &[&str] = &["http"];
        assert_eq!(found("", &[]), ("127.0.0.1:8000".into(), http));

        let invalid = "[server]\nlisten = \"127.0.0.1:1\"\ntypo = true\n[unknown]";
        assert_eq!(found(invalid, &[]), ("127.0.0.1:1".into(), http));

        let variables = [("LARDER_SERVER__LISTEN", "127.0.0.1:2")];
        assert_eq!(found(invalid, &variables), ("127.0.0.1:2".into(), http));

        let tls = "[server.tls]\ncert = \"a\"";
        assert_eq!(found(tls, &[]).1, ["https"]);
        assert_eq!(found("", &[("LARDER_SERVER__TLS__CERT", "a")]).1, ["https"]);

        // The TLS settings of an unreadable file are unknown, so both schemes are tried.
        assert_eq!(found("[server", &variables), ("127.0.0.1:2".into(), &["http", "https"][..]));
    }
}
