//! `larder health`: a health check for container engines whose images have no
//! HTTP client.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use clap::Args;

use super::{ServeArgs, USAGE, args::file, fail};

/// Shorter than the time-outs of container engines.
const TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Args)]
pub(super) struct HealthArgs {
    /// The server's address, if it is not that of the configuration
    /// (server.listen).
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    config: Option<std::path::PathBuf>,
    /// Check that the server is ready (/readyz), not only alive (/healthz).
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
    // The certificate is not issued for this address.
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(TIMEOUT)
        .tls_danger_accept_invalid_certs(true);
    let response = async { client.build()?.get(&url).send().await };
    match response.await {
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            fail(1, &format_args!("{url}: {}", cause.unwrap_or_else(|| error.to_string())))
        }
        Ok(response) => {
            let (status, text) = (response.status(), response.text().await.unwrap_or_default());
            if status.is_success() {
                println!("{text}");
                return ExitCode::SUCCESS;
            }
            fail(1, &format_args!("{url}: {status} {text}"))
        }
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
