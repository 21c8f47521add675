//! Serves until told to stop.

use std::{future::pending, io, net::SocketAddr, process::ExitCode, sync::Arc};

use tokio::net::{TcpListener, TcpSocket};
use tokio_util::task::AbortOnDropHandle;

use super::{ServeArgs, USAGE, fail, files, refuse, reload::Reload};
use crate::{
    app::App,
    config::Config,
    http::{self, ServeLimits},
    registry::{BuildError, Registry},
    shutdown,
    telemetry::{self, Inventory, Metrics},
};

pub(super) async fn serve(
    args: ServeArgs,
    mut config: Config,
    migrate: bool,
    build: impl FnOnce(&Config) -> Result<Registry, BuildError>,
) -> ExitCode {
    telemetry::init(&config.telemetry());
    let registry = match build(&config) {
        Ok(registry) => registry,
        Err(error) => return fail(USAGE, &error),
    };
    config.redis.migrate |= migrate;
    let (listen, path) = (config.server.listen, config.server.path.clone());
    let (metrics, connections) = (config.metrics.listen, config.limits.connections);
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    let app = match App::open(registry, config).await {
        Ok(app) => app,
        Err(error) => return refuse(&error),
    };
    let stop = match shutdown::signalled() {
        Ok(stop) => stop,
        Err(error) => return fail(1, &error),
    };
    if args.stdio {
        return match app.serve_stdio(stop).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(1, &error),
        };
    }
    let (listener, address) = match bind("server.listen", listen) {
        Ok(bound) => bound,
        Err(code) => return code,
    };
    let metrics = match metrics {
        Some(listen) => Some(match bind("metrics.listen", listen) {
            Ok(bound) => bound,
            Err(code) => return code,
        }),
        None => None,
    };
    let reload = match Reload::new(args, Arc::clone(app.live())).await {
        Ok(reload) => tokio::spawn(reload.run()),
        Err(error) => return fail(1, &error),
    };
    let _reload = AbortOnDropHandle::new(reload);
    files::enough_for(connections);
    eprintln!("larder listening on {scheme}://{address}{path}");
    let stock = app.stock();
    let _collected = match metrics.map(|(listener, address)| collect(listener, address, stock)) {
        Some(Err(problem)) => return fail(1, &problem),
        collected => collected,
    };
    let served = app.serve(listener, stop).await;
    // It waits for the last traces on a thread that may wait.
    let _ = tokio::task::spawn_blocking(telemetry::finish).await;
    match served {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

/// How many may knock at the same moment, as far as the system allows: all
/// clients come back at once when a server starts anew.
const BACKLOG: u32 = 4096;

fn bind(setting: &str, listen: SocketAddr) -> Result<(TcpListener, SocketAddr), ExitCode> {
    let bound = || {
        let socket = if listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // As any listener: what the last server left open keeps nobody out.
        socket.set_reuseaddr(cfg!(unix))?;
        socket.bind(listen)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok::<_, io::Error>((listener, address))
    };
    bound().map_err(|error| fail(USAGE, &format!("{setting}: {listen} cannot be used: {error}")))
}

/// Collects metrics, and shows them there, until dropped.
fn collect(
    listener: TcpListener,
    address: SocketAddr,
    stock: Inventory,
) -> Result<[AbortOnDropHandle<()>; 2], String> {
    let metrics = Metrics::install()?;
    let shown = Arc::new((metrics.clone(), stock));
    let router = http::metrics_router(move || {
        let shown = Arc::clone(&shown);
        async move {
            shown.1.measure().await;
            shown.0.render()
        }
    });
    eprintln!("larder metrics on http://{address}/metrics");
    let serving = tokio::spawn(async move {
        let limits = ServeLimits::default();
        if let Err(error) = http::serve(listener, None, router, &limits, pending()).await {
            tracing::error!(%error, "metrics are not shown any more");
        }
    });
    let tidying = tokio::spawn(async move { metrics.maintain().await });
    Ok([serving, tidying].map(AbortOnDropHandle::new))
}
