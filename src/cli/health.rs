//! `larder health`: asks a server on this machine whether it lives, for
//! container engines that have no other way to look.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use clap::Args;

use super::{ServeArgs, USAGE, args::file, fail};

/// Shorter than container engines wait.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Args)]
pub(super) struct HealthArgs {
    /// Where it listens, if not where the configuration says (server.listen).
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    config: Option<std::path::PathBuf>,
    /// Ask whether it can do its work (/readyz), not only whether it lives (/healthz).
    #[arg(long)]
    ready: bool,
}

pub(super) async fn run(args: HealthArgs) -> ExitCode {
    let serve = ServeArgs { config: args.config, listen: args.listen, ..ServeArgs::default() };
    let config = match serve.configure() {
        Ok(config) => config,
        Err(error) => return fail(USAGE, &error),
    };
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    let path = if args.ready { "readyz" } else { "healthz" };
    let url = format!("{scheme}://{}/{path}", reachable(config.server.listen));
    // The certificate is for another name than this address.
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .tls_danger_accept_invalid_certs(true);
    let answer = async { client.build()?.get(&url).send().await };
    match answer.await {
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            fail(1, &format_args!("{url}: {}", cause.unwrap_or_else(|| error.to_string())))
        }
        Ok(answer) => {
            let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
            if status.is_success() {
                println!("{text}");
                return ExitCode::SUCCESS;
            }
            fail(1, &format_args!("{url}: {status} {text}"))
        }
    }
}

/// Whoever listens everywhere is found on this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
