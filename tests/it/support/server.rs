//! A server for one test, in this process and on its own port.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use larder::{
    Builder, Registry,
    app::App,
    clock::{Clock, ManualClock, SystemClock},
    config::Config,
    http::HttpOptions,
    random::Random,
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use super::{ToolControl, patiently, tools};

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    pub(crate) clock: ManualClock,
    pub(crate) control: Arc<ToolControl>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<io::Result<bool>>,
}

/// The configuration of a test's server.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) http: Box<dyn FnOnce(&mut HttpOptions)>,
    pub(crate) page_size: usize,
    /// The clock of the process where the store is not in memory.
    pub(crate) clock: Arc<dyn Clock>,
    /// Builds what the server offers: by default the tools of [`tools::registry`].
    pub(crate) offers: Offers,
}

type Offers = Box<dyn FnOnce(&Arc<ToolControl>, usize) -> Registry>;

impl Setup {
    /// Offers only what `add` adds.
    pub(crate) fn offer(
        &mut self,
        add: impl FnOnce(Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> + 'static,
    ) {
        self.offers = Box::new(|control, page_size| {
            let builder = Registry::builder("fixture").page_size(page_size);
            add(builder.state(Arc::clone(control))).build().unwrap()
        });
    }
}

/// The default settings, but searches take their time: an unoptimised build is slow, and the
/// limit holds for all servers of this process.
pub(crate) fn patient_config() -> Config {
    let mut config = Config::default();
    config.compute.search_seconds = 120;
    config
}

impl Server {
    /// A server that answers a call with one JSON message, unless the handler sends a
    /// message before its result.
    pub(crate) async fn start() -> Self {
        Self::configured(|_| {}).await
    }

    /// A server that answers a call by a stream unless its result is ready at once.
    pub(crate) async fn streaming() -> Self {
        Self::configured(|setup| setup.http = Box::new(|http| http.promote_after = Duration::ZERO))
            .await
    }

    /// A server that offers only what `offers` adds.
    pub(crate) async fn offering(
        offers: impl FnOnce(Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> + 'static,
    ) -> Self {
        Self::configured(|setup| setup.offer(offers)).await
    }

    /// A server that offers only what `offers` adds, and answers as [`Server::streaming`] does.
    pub(crate) async fn streaming_with(
        offers: impl FnOnce(Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> + 'static,
    ) -> Self {
        Self::configured(|setup| {
            setup.offer(offers);
            setup.http = Box::new(|http| http.promote_after = Duration::ZERO);
        })
        .await
    }

    /// A server with this registry.
    pub(crate) async fn of(registry: Registry) -> Self {
        Self::configured(|setup| setup.offers = Box::new(|_, _| registry)).await
    }

    pub(crate) async fn configured(change: impl FnOnce(&mut Setup)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = patient_config();
        config.server.listen = address;
        let mut setup = Setup {
            config,
            http: Box::new(|_| {}),
            page_size: 100,
            clock: Arc::new(SystemClock),
            offers: Box::new(tools::registry),
        };
        change(&mut setup);
        let (clock, control) = (ManualClock::new(), ToolControl::new());
        let registry = (setup.offers)(&control, setup.page_size);
        let mut app = if setup.config.store.url == "memory:" {
            let time = Arc::new(clock.clone());
            App::with(registry, setup.config, time, Random::system()).unwrap()
        } else {
            App::open_with(registry, setup.config, setup.clock, Random::system()).await.unwrap()
        };
        // The form of a response must not depend on how busy the machine is.
        app.http().promote_after = Duration::from_secs(3600);
        (setup.http)(app.http());
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(app.serve(listener, async {
            // Dropping the server closes the channel, which stops it as well.
            let _ = stopped.await;
        }));
        Self { url: format!("http://{address}/mcp"), address, clock, control, stop, serving }
    }

    /// Starts a graceful shutdown.
    pub(crate) fn stop(self) -> Stopping {
        let _ = self.stop.send(());
        Stopping { serving: self.serving }
    }
}

pub(crate) struct Stopping {
    serving: JoinHandle<io::Result<bool>>,
}

impl Stopping {
    /// Waits for the end; whether all calls ended within the grace period.
    pub(crate) async fn finished(self) -> bool {
        patiently("the server to stop", self.serving).await.unwrap().unwrap()
    }
}
