//! [`Route`]: a path, its surface, and a handler for each of its methods.

use std::sync::Arc;

use axum::body::Body;
use futures_util::future::BoxFuture;
use http::Method;
use larder_protocol::quote::quoted;
use percent_encoding::percent_decode_str;

use super::{
    Endpoint,
    checks::Admission,
    error::{HttpError, Reply},
    head::Head,
    mcp,
    surface::Surface,
};

/// A request whose checks have passed.
pub(super) struct Incoming {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) head: Head,
    pub(super) body: Body,
}

impl Incoming {
    /// A segment of the path, decoded; 0 is the last one.
    pub(super) fn segment_from_end(&self, number: usize) -> String {
        let segment = self.head.path().rsplit('/').nth(number).unwrap_or_default();
        percent_decode_str(segment).decode_utf8_lossy().into_owned()
    }
}

/// A route of the server.
pub(super) struct Route {
    pub(super) path: String,
    pub(super) surface: Surface,
    /// The methods as `Allow` lists them.
    pub(super) methods: String,
    pub(super) handlers: Handlers,
}

/// The handlers of a route. Only those that get an [`Admission`] know the caller, and nothing but
/// the check of the bearer token makes one.
pub(super) enum Handlers {
    /// The MCP endpoint.
    Mcp,
    /// For callers with a bearer token, if the server needs any.
    OfCallers(Methods<OfCaller>),
    /// For everyone.
    Open(Methods<Open>),
}

pub(super) type OfCaller =
    Arc<dyn Fn(Incoming, Admission) -> BoxFuture<'static, Reply> + Send + Sync>;
pub(super) type Open = Arc<dyn Fn(Incoming) -> BoxFuture<'static, Reply> + Send + Sync>;

/// The handlers by method.
pub(super) enum Methods<H> {
    /// One for all methods.
    Any(H),
    Each(Vec<(Method, H)>),
}

impl<H> Methods<H> {
    /// The handler of a request. That of GET answers HEAD, too.
    ///
    /// # Errors
    /// 405 with the methods that are allowed.
    pub(super) fn find(&self, head: &Head, allowed: &str) -> Reply<&H> {
        let handlers = match self {
            Self::Any(handler) => return Ok(handler),
            Self::Each(handlers) => handlers,
        };

        let of = |wanted: &Method| {
            let mut handlers = handlers.iter();
            handlers.find(|(method, _)| method == wanted).map(|(_, handler)| handler)
        };
        let found = of(head.method());
        let found = found.or_else(|| of(&Method::GET).filter(|_| head.method() == Method::HEAD));

        found.ok_or_else(|| HttpError::Method {
            method: quoted(head.method().as_str()),
            allow: allowed.to_owned(),
            advice: format!("Use {allowed}."),
        })
    }
}

impl Handlers {
    /// Whether callers need a bearer token.
    pub(super) fn need_token(&self) -> bool {
        !matches!(self, Self::Open(_))
    }
}

impl Route {
    /// The MCP endpoint.
    pub(super) fn mcp(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            surface: Surface::Mcp,
            methods: mcp::METHODS.to_owned(),
            handlers: Handlers::Mcp,
        }
    }

    /// One handler for all methods, of which `methods` are meant.
    pub(super) fn any<F, R>(surface: Surface, path: &str, methods: &str, handler: F) -> Self
    where
        F: Fn(Incoming) -> R + Send + Sync + 'static,
        R: Future<Output = Reply> + Send + 'static,
    {
        let handler: Open = Arc::new(move |incoming| Box::pin(handler(incoming)));
        Self {
            path: path.to_owned(),
            surface,
            methods: methods.to_owned(),
            handlers: Handlers::Open(Methods::Any(handler)),
        }
    }

    /// A route for everyone, whose handlers are added.
    pub(super) fn open(surface: Surface, path: &str) -> Unfinished<Open> {
        Unfinished { path: path.to_owned(), surface, handlers: Vec::new() }
    }

    /// A route for callers with a bearer token, whose handlers are added.
    pub(super) fn of_callers(surface: Surface, path: &str) -> Unfinished<OfCaller> {
        Unfinished { path: path.to_owned(), surface, handlers: Vec::new() }
    }
}

/// A route whose handlers are added.
pub(super) struct Unfinished<H> {
    path: String,
    surface: Surface,
    handlers: Vec<(Method, H)>,
}

impl<H: Clone> Unfinished<H> {
    fn add(mut self, methods: &[Method], handler: &H) -> Self {
        self.handlers.extend(methods.iter().map(|method| (method.clone(), handler.clone())));
        self
    }

    fn finish(self, handlers: impl FnOnce(Methods<H>) -> Handlers) -> Route {
        let methods: Vec<_> = self.handlers.iter().map(|(method, _)| method.as_str()).collect();
        let methods = methods.join(", ");
        let handlers = handlers(Methods::Each(self.handlers));
        Route { path: self.path, surface: self.surface, methods, handlers }
    }
}

impl Unfinished<Open> {
    pub(super) fn on<F, R>(self, methods: &[Method], handler: F) -> Self
    where
        F: Fn(Incoming) -> R + Send + Sync + 'static,
        R: Future<Output = Reply> + Send + 'static,
    {
        let handler: Open = Arc::new(move |incoming| Box::pin(handler(incoming)));
        self.add(methods, &handler)
    }

    pub(super) fn get<F, R>(self, handler: F) -> Self
    where
        F: Fn(Incoming) -> R + Send + Sync + 'static,
        R: Future<Output = Reply> + Send + 'static,
    {
        self.on(&[Method::GET, Method::HEAD], handler)
    }

    pub(super) fn post<F, R>(self, handler: F) -> Self
    where
        F: Fn(Incoming) -> R + Send + Sync + 'static,
        R: Future<Output = Reply> + Send + 'static,
    {
        self.on(&[Method::POST], handler)
    }
}

impl Unfinished<OfCaller> {
    pub(super) fn on<F, R>(self, methods: &[Method], handler: F) -> Self
    where
        F: Fn(Incoming, Admission) -> R + Send + Sync + 'static,
        R: Future<Output = Reply> + Send + 'static,
    {
        let handler: OfCaller =
            Arc::new(move |incoming, admission| Box::pin(handler(incoming, admission)));
        self.add(methods, &handler)
    }
}

impl From<Unfinished<Open>> for Route {
    fn from(route: Unfinished<Open>) -> Self {
        route.finish(Handlers::Open)
    }
}

impl From<Unfinished<OfCaller>> for Route {
    fn from(route: Unfinished<OfCaller>) -> Self {
        route.finish(Handlers::OfCallers)
    }
}
