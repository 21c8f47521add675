//! A server of its own for each test, in this process, on a port of its own.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use larder::{
    app::App, clock::ManualClock, config::Config, http::HttpOptions, random::Random,
    registry::Registry,
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use super::{Stage, patiently, tools};

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    pub(crate) clock: ManualClock,
    pub(crate) stage: Arc<Stage>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<io::Result<bool>>,
}

/// How a test's server differs from the others'.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) http: Box<dyn FnOnce(&mut HttpOptions)>,
    pub(crate) page_size: usize,
    /// What it offers; the fixture's tools where nobody says otherwise.
    pub(crate) registry: Option<Registry>,
}

impl Server {
    /// A server that answers by one message unless the call has something to
    /// say before its end.
    pub(crate) async fn start() -> Self {
        Self::configured(|_| {}).await
    }

    /// A server that answers by a stream whatever is not ready at once.
    pub(crate) async fn streaming() -> Self {
        Self::configured(|setup| setup.http = Box::new(|http| http.promote_after = Duration::ZERO))
            .await
    }

    /// A server of that definition.
    pub(crate) async fn of(registry: Registry) -> Self {
        Self::configured(|setup| setup.registry = Some(registry)).await
    }

    pub(crate) async fn configured(change: impl FnOnce(&mut Setup)) -> Self {
        let mut setup = Setup {
            config: Config::default(),
            http: Box::new(|_| {}),
            page_size: 100,
            registry: None,
        };
        change(&mut setup);
        let (clock, stage) = (ManualClock::new(), Stage::new());
        let registry = setup.registry.unwrap_or_else(|| tools::registry(&stage, setup.page_size));
        let mut app = if setup.config.redis().is_some() {
            // Redis has a time of its own.
            App::open(registry, setup.config).await.unwrap()
        } else {
            let time = Arc::new(clock.clone());
            App::with(registry, setup.config, time, Random::system()).unwrap()
        };
        // No test is to depend on how busy the machine is.
        app.http().promote_after = Duration::from_secs(3600);
        (setup.http)(app.http());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(app.serve(listener, async {
            // Dropping the server stops it as well.
            let _ = stopped.await;
        }));
        Self { url: format!("http://{address}/mcp"), address, clock, stage, stop, serving }
    }

    /// Asks it to stop, and lets it.
    pub(crate) fn stop(self) -> Stopping {
        let _ = self.stop.send(());
        Stopping { serving: self.serving }
    }
}

pub(crate) struct Stopping {
    serving: JoinHandle<io::Result<bool>>,
}

impl Stopping {
    /// Whether everything ended by itself.
    pub(crate) async fn finished(self) -> bool {
        patiently("the server to stop", self.serving).await.unwrap().unwrap()
    }
}
