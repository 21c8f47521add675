//! [`Server`]: a server from its functions, and ways to run it.

mod error;
mod items;
mod running;

use std::{fmt::Display, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use larder_server::{
    registry::{BuildError, Builder, Registry},
    tools::{self, ToolOptions},
};
use larder_store::store::Backend;

pub(crate) use self::running::Running;
pub use self::{
    error::ServerError,
    items::{IntoPrompt, IntoResource, IntoTool, ResourceItem},
};
use crate::config::Config;

/// Starts a server of that name.
///
/// ```no_run
/// use larder::prelude::*;
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: f64, b: f64) -> f64 {
///     a + b
/// }
///
/// fn main() -> ExitCode {
///     larder::server("calculator").tool(add).run()
/// }
/// ```
pub fn server(name: impl Into<String>) -> Server {
    let name = name.into();

    Server {
        about: About { name: name.clone(), version: None },
        start: Box::new(|_| Registry::builder(name)),
        steps: Vec::new(),
        open: Box::new(|| {
            let nothing: Close = std::future::ready(()).boxed();
            std::future::ready(Ok((Arc::new(()), nothing))).boxed()
        }),
        config: Config::default(),
        backend: None,
    }
}

/// A server that is being described. `S` is the state that its functions get from
/// [`Context::state`](larder_server::Context::state).
///
/// Faults are reported when it is run, all at once. For what has no method here, such as
/// handlers of whole methods, [`Server::with`] gives the [`Builder`] below.
#[must_use = "a server does nothing until it is run"]
pub struct Server<S = ()> {
    start: Start<S>,
    /// The steps that are applied to the builder, in order.
    steps: Vec<Step<S>>,
    open: Open<S>,
    pub(crate) config: Config,
    backend: Option<Arc<dyn Backend>>,
    /// Name, version and description on the command line.
    #[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "only a command line says it"))]
    pub(crate) about: About,
}

/// The name and the version of a server.
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
}

type Start<S> = Box<dyn FnOnce(Arc<S>) -> Builder<S> + Send>;
type Step<S> = Box<dyn FnOnce(Builder<S>) -> Builder<S> + Send>;
type Open<S> = Box<dyn FnOnce() -> BoxFuture<'static, Result<(Arc<S>, Close), String>> + Send>;
/// Runs when the server has ended.
type Close = BoxFuture<'static, ()>;

/// A server with its state.
pub(crate) struct Opened {
    pub(crate) registry: Result<Registry, BuildError>,
    /// The backend of [`Server::store`].
    pub(crate) backend: Option<Arc<dyn Backend>>,
    pub(crate) close: Close,
}

impl Server {
    /// Sets the state of the functions that are added after this call.
    pub fn state<T: Send + Sync + 'static>(self, state: T) -> Server<T> {
        self.with_state(Box::new(|| {
            let nothing: Close = std::future::ready(()).boxed();
            std::future::ready(Ok((Arc::new(state), nothing))).boxed()
        }))
    }

    /// Sets the state of the functions that are added after this call: `open` makes it
    /// before the first request, and `close` gets it after the last one. If `open` fails,
    /// the server does not start. `close` runs also when the server fails.
    ///
    /// ```no_run
    /// use std::{convert::Infallible, sync::Arc};
    /// use larder::prelude::*;
    ///
    /// struct Days(Vec<String>);
    ///
    /// impl Days {
    ///     async fn open() -> Result<Self, Infallible> {
    ///         Ok(Self(vec!["Monday".to_owned()]))
    ///     }
    ///
    ///     async fn close(self: Arc<Self>) {
    ///         eprintln!("{} days were used", self.0.len());
    ///     }
    /// }
    ///
    /// /// Counts the days of the week.
    /// #[tool]
    /// fn count(ctx: &Context<Days>) -> usize {
    ///     ctx.state().0.len()
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     larder::server("days").lifespan(Days::open, Days::close).tool(count).run()
    /// }
    /// ```
    pub fn lifespan<T, E, Opening, Closing>(
        self,
        open: impl FnOnce() -> Opening + Send + 'static,
        close: impl FnOnce(Arc<T>) -> Closing + Send + 'static,
    ) -> Server<T>
    where
        T: Send + Sync + 'static,
        E: Display,
        Opening: Future<Output = Result<T, E>> + Send + 'static,
        Closing: Future<Output = ()> + Send + 'static,
    {
        self.with_state(Box::new(|| {
            let opening = async {
                let state = Arc::new(open().await.map_err(|error| error.to_string())?);
                let shared = Arc::clone(&state);
                let close: Close = async move { close(shared).await }.boxed();
                Ok((state, close))
            };
            opening.boxed()
        }))
    }

    fn with_state<T: Send + Sync + 'static>(self, open: Open<T>) -> Server<T> {
        let Self { start, steps, config, backend, about, .. } = self;
        let start = |state| applied(start(Arc::new(())), steps).shared_state(state);
        Server { start: Box::new(start), steps: Vec::new(), open, config, backend, about }
    }
}

impl<S: Send + Sync + 'static> Server<S> {
    /// The server's version.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        let version = version.into();
        self.about.version = Some(version.clone());
        self.with(|builder| builder.version(version))
    }

    /// The name to display.
    pub fn title(self, title: impl Into<String>) -> Self {
        let title = title.into();
        self.with(|builder| builder.title(title))
    }

    /// How a model should use this server.
    pub fn instructions(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.with(|builder| builder.instructions(text))
    }

    /// Adds a tool: a function under `#[tool]`, or a [`Tool`](larder_server::Tool).
    pub fn tool(self, tool: impl IntoTool<S>) -> Self {
        let tool = tool.into_tool();
        self.with(|builder| builder.tool(tool))
    }

    /// Adds a prompt: a function under `#[prompt]`, or a [`Prompt`](larder_server::Prompt).
    pub fn prompt(self, prompt: impl IntoPrompt<S>) -> Self {
        let prompt = prompt.into_prompt();
        self.with(|builder| builder.prompt(prompt))
    }

    /// Adds a resource or a template: a function under `#[resource]`, a
    /// [`Resource`](larder_server::Resource) or a [`Template`](larder_server::Template).
    pub fn resource(self, resource: impl IntoResource<S>) -> Self {
        let resource = resource.into_resource();
        self.with(|builder| resource.add_to(builder))
    }

    /// Adds the tools that read, search and list stored resources.
    pub fn reading(self) -> Self {
        self.with(tools::reading(ToolOptions::default()))
    }

    /// Adds the tools by which a model stores, changes and deletes resources.
    pub fn writing(self) -> Self {
        self.with(tools::writing())
    }

    /// Applies a function to the builder: `.with(tools::writing())`, or
    /// `.with(|builder| builder.fixed_lists())`.
    pub fn with(mut self, step: impl FnOnce(Builder<S>) -> Builder<S> + Send + 'static) -> Self {
        self.steps.push(Box::new(step));
        self
    }

    /// The settings. `run` takes them as defaults, which a configuration file, the environment and
    /// flags override one by one; all other ways to run take them as they are.
    ///
    /// ```no_run
    /// use larder::{config::Config, prelude::*};
    ///
    /// fn main() -> ExitCode {
    ///     let mut config = Config::default();
    ///     config.log.level = "debug".to_owned();
    ///     config.server.json_response = true;
    ///     config.store.url = "file:///var/lib/notes".to_owned();
    ///     larder::server("notes").reading().writing().config(config).run()
    /// }
    /// ```
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Stores resources in a backend of one's own, in place of that of `store.url`; a server whose
    /// `store.url` names another place than memory then does not start. Sessions, tasks and small
    /// secrets stay in memory, or in the Redis of `sessions.url`.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use larder::{prelude::*, store::{ObjectBackend, ObjectLocation, OwnerQuota, object_store}};
    ///
    /// fn main() -> ExitCode {
    ///     let objects = Arc::new(object_store::memory::InMemory::new());
    ///     let location = ObjectLocation::over("objects", objects);
    ///     let backend = ObjectBackend::over(location, OwnerQuota::default());
    ///     larder::server("notes").reading().writing().store(backend).run()
    /// }
    /// ```
    pub fn store(mut self, backend: impl Backend) -> Self {
        self.backend = Some(Arc::new(backend));
        self
    }

    /// Makes the state, and builds the registry with it.
    pub(crate) async fn open(self) -> Result<Opened, String> {
        let (state, close) = (self.open)().await?;
        let registry = applied((self.start)(state), self.steps).build();
        Ok(Opened { registry, backend: self.backend, close })
    }
}

fn applied<S>(builder: Builder<S>, steps: Vec<Step<S>>) -> Builder<S> {
    steps.into_iter().fold(builder, |builder, step| step(builder))
}
