//! `larder serve`: serves until a signal stops it.

use std::{
    future::pending,
    io::{self, IsTerminal},
    net::SocketAddr,
    process::ExitCode,
    sync::Arc,
};

use larder_gateway::{Upstreams, supervise_programs};
use larder_query::Queries;
use larder_server::{
    http::{self, Dependencies, ServeLimits},
    registry::BuildError,
};
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::task::AbortOnDropHandle;

use super::{
    ServeArgs, Server, USAGE, fail, fail_to_open, greeting, health::reachable, open_files,
    reload::Reload, upstreams::PATH,
};
use crate::{
    app::App,
    config::{Config, ConfigError},
    shutdown,
    telemetry::{self, Inventory, Metrics},
};

pub(super) async fn serve(
    args: ServeArgs,
    mut config: Config,
    migrate: bool,
    build: impl FnOnce(&Config) -> Result<Server, BuildError>,
) -> ExitCode {
    telemetry::init(&config.telemetry());
    supervise_programs();

    if args.stdio && config.has_exchanges() {
        let problem = "over stdio, callers have no token to exchange: serve over HTTP";
        return fail(USAGE, &ConfigError::new("upstreams.exchange", problem));
    }

    // Stdio has no HTTP endpoint, so content cannot be downloaded.
    config.content.enabled &= !args.stdio;
    let Server { registry, backend, upstreams, queries } = match build(&config) {
        Ok(server) => server,
        Err(error) => return fail(USAGE, &error),
    };

    config.redis.migrate |= migrate;
    let app = match App::open_in(registry, config, backend).await {
        Ok(app) => app,
        Err(error) if error.needs_migration() => {
            return fail(USAGE, &format!("{error}{}", args.migration_flags()));
        }
        Err(error) => return fail_to_open(&error),
    };

    if let Some(upstreams) = &upstreams {
        app.live().manage(Arc::clone(upstreams));
    }
    let _confinement = queries.clone().map(|queries| {
        let check = async move { queries.confinement().await };
        AbortOnDropHandle::new(tokio::spawn(check))
    });

    let stop = match shutdown::stop_signal() {
        Ok(stop) => stop,
        Err(error) => return fail(1, &error),
    };

    let served = if args.stdio {
        app.serve_stdio(stop).await.map_err(|error| fail(1, &error))
    } else {
        let measured = Measured {
            inventory: app.inventory(),
            dependencies: app.dependencies(),
            upstreams,
            queries,
        };
        Box::pin(serve_http(app, args, measured, stop)).await
    };

    send_last_traces().await;
    served.err().unwrap_or(ExitCode::SUCCESS)
}

/// Serves over HTTP, with metrics and reloads beside it.
async fn serve_http(
    app: App,
    args: ServeArgs,
    measured: Measured,
    stop: impl Future<Output = ()>,
) -> Result<(), ExitCode> {
    let config = app.config();
    let (listener, address) = bind("server.listen", config.server.listen)?;
    let metrics = match config.metrics.listen {
        Some(listen) => Some(bind("metrics.listen", listen)?),
        None => None,
    };

    let reload = Reload::new(args, Arc::clone(app.live())).await;
    let reload = reload.map_err(|error| fail(1, &error))?;
    let _reload = AbortOnDropHandle::new(tokio::spawn(reload.run()));

    open_files::raise_limit(config.limits.connections);
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    eprintln!("larder listening on {scheme}://{address}{}", config.server.path);
    if io::stderr().is_terminal() {
        let statuses = measured.upstreams.as_ref().map(|upstreams| upstreams.statuses());
        let url = format!("{scheme}://{}", reachable(address));
        eprint!("{}", greeting::greeting(config, &url, &statuses.unwrap_or_default()));
    }

    let _metrics = match metrics {
        Some((listener, address)) => {
            let serving = serve_metrics(listener, address, measured);
            Some(serving.map_err(|problem| fail(1, &problem))?)
        }
        None => None,
    };

    app.serve(listener, stop).await.map(drop).map_err(|error| fail(1, &error))
}

/// Sends the traces of the calls that ended last.
async fn send_last_traces() {
    // Sending the traces blocks the thread.
    let _ = tokio::task::spawn_blocking(telemetry::finish).await;
}

/// The listen backlog, up to the system's limit: all clients reconnect at once
/// when a server restarts.
const BACKLOG: u32 = 4096;

fn bind(setting: &str, listen: SocketAddr) -> Result<(TcpListener, SocketAddr), ExitCode> {
    let try_bind = || {
        let socket = if listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Connections of the previous process, in TIME_WAIT, do not block the port.
        socket.set_reuseaddr(cfg!(unix))?;
        socket.bind(listen)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok::<_, io::Error>((listener, address))
    };

    try_bind().map_err(|error| fail(USAGE, &format!("{setting}: {}", not_bound(listen, &error))))
}

/// Why an address cannot be listened on, and what to do.
fn not_bound(listen: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "{listen} is in use. Is Larder running already? --listen 127.0.0.1:0 picks a free port."
        ),
        io::ErrorKind::PermissionDenied => format!(
            "{listen} is not allowed for this user. Ports from 1024 on are: --listen 127.0.0.1:8000"
        ),
        io::ErrorKind::AddrNotAvailable => format!(
            "{} is not an address of this machine. All of them: --listen 0.0.0.0:{}",
            listen.ip(),
            listen.port()
        ),
        _ => format!("{listen} cannot be used: {error}"),
    }
}

/// The parts of the server whose gauges are measured with each scrape.
struct Measured {
    inventory: Inventory,
    dependencies: Dependencies,
    upstreams: Option<Arc<Upstreams>>,
    queries: Option<Arc<Queries>>,
}

impl Measured {
    async fn measure(&self) {
        let confinement = async {
            if let Some(queries) = &self.queries {
                queries.measure().await;
            }
        };
        tokio::join!(self.inventory.measure(), self.dependencies.measure(), confinement);
        telemetry::measure_process();

        if let Some(upstreams) = &self.upstreams {
            upstreams.measure();
        }
    }
}

/// Collects metrics and serves them, until dropped.
fn serve_metrics(
    listener: TcpListener,
    address: SocketAddr,
    measured: Measured,
) -> Result<[AbortOnDropHandle<()>; 2], String> {
    let metrics = Metrics::install()?;
    let upstreams = measured.upstreams.clone();
    let shared = Arc::new((metrics.clone(), measured));

    let router = http::metrics_router(move || {
        let shared = Arc::clone(&shared);
        async move {
            let (metrics, measured) = &*shared;
            measured.measure().await;
            metrics.render()
        }
    });

    let statuses = move || {
        let statuses = upstreams.as_ref().map(|upstreams| upstreams.statuses());
        json!({ "upstreams": statuses.unwrap_or_default() })
    };

    let router = router.merge(http::json_router(PATH, statuses));
    eprintln!("larder metrics on http://{address}/metrics");

    let serving = tokio::spawn(async move {
        let limits = ServeLimits::default();
        if let Err(error) = http::serve(listener, None, router, &limits, pending()).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    });
    let upkeep = tokio::spawn(async move { metrics.maintain().await });

    Ok([serving, upkeep].map(AbortOnDropHandle::new))
}
