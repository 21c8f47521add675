//! The checks before a request is handled, in order: request ID and metrics; Host; Origin; CORS;
//! the announced length; bearer token and admission. Only then is the body read and parsed. The
//! surface of a route says which of them run: a check for all paths is one line here. A panic
//! becomes a response.
//!
//! These are functions, not layers: each layer would clone the inner ones for every
//! request.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use axum::{body::Body, extract::Request, response::Response};
use futures_util::future::FutureExt;
use http::{HeaderValue, header};
use larder_runtime::panics::PanicSite;

use crate::http::{
    Endpoint,
    checks::{Measured, bearer, cors, host_check},
    content::add_safe_headers,
    error::{HttpError, Reply},
    head::Head,
    mcp,
    route::{Handlers, Incoming, Route},
    surface::{Cors, Format},
    welcome,
};

/// Serves a request for a route.
pub(super) async fn serve(route: &Route, endpoint: &Arc<Endpoint>, request: Request) -> Response {
    let (head, body) = Head::split(request, &endpoint.options().proxies);
    if !route.surface.checks().is_measured {
        return checked(route, endpoint, head, body).await;
    }

    let measured = Measured::begin(endpoint, &head);
    // The rest is boxed, because it is large, and would be moved into the future of each step
    // around it.
    measured.serve(Box::pin(checked(route, endpoint, head, body))).await
}

async fn checked(route: &Route, endpoint: &Arc<Endpoint>, head: Head, body: Body) -> Response {
    let answering = Answering::new(route, &head);
    let served = pin!(admitted(route, endpoint, head, body));
    // After a panic nothing of the request is used again.
    let reply = AssertUnwindSafe(served).catch_unwind().await.unwrap_or_else(|_| {
        PanicSite::Request.count();
        tracing::error!("a request panicked");
        Err(HttpError::Panicked)
    });
    answering.response(endpoint, reply)
}

/// Runs the checks, and then the handler.
async fn admitted(route: &Route, endpoint: &Arc<Endpoint>, head: Head, body: Body) -> Reply {
    let checks = route.surface.checks();

    if checks.host {
        host_check::host(endpoint, &head)?;
    }
    if checks.origin {
        host_check::origin(endpoint, &head)?;
    }
    if let Some(response) = cors::preflight(checks.cors, &head, &route.methods) {
        return Ok(response);
    }
    if let Some(page) = welcome::of(route.surface, endpoint, &head) {
        return Ok(page);
    }
    if checks.message_length {
        mcp::check_content_length(endpoint, &head)?;
    }

    let incoming = Incoming { endpoint: Arc::clone(endpoint), head, body };
    match &route.handlers {
        // The endpoint's own handler is not boxed once more.
        Handlers::Mcp => {
            let admission = bearer::authenticate(endpoint, &incoming.head).await?;
            mcp::handle(incoming, admission).await
        }
        Handlers::OfCallers(handlers) => {
            let admission = bearer::authenticate(endpoint, &incoming.head).await?;
            let handler = handlers.find(&incoming.head, &route.methods)?;
            handler(incoming, admission).await
        }
        Handlers::Open(handlers) => {
            let handler = handlers.find(&incoming.head, &route.methods)?;
            handler(incoming).await
        }
    }
}

/// How a request is answered: what of its route and head decides that.
struct Answering {
    format: Format,
    cors: Cors,
    /// Whether the caller needs a token, and gets a challenge without a sufficient one.
    needs_token: bool,
    origin: Option<HeaderValue>,
    is_page_wanted: bool,
}

impl Answering {
    fn new(route: &Route, head: &Head) -> Self {
        let format = route.surface.format();
        let cors = route.surface.checks().cors;
        let origin = head.first(&header::ORIGIN).filter(|_| cors == Cors::Allowed).cloned();
        let is_page_wanted = format.is_page_for(head);
        Self { format, cors, needs_token: route.handlers.need_token(), origin, is_page_wanted }
    }

    fn response(self, endpoint: &Endpoint, reply: Reply) -> Response {
        let mut origin = self.origin;

        let mut response = match reply {
            Ok(response) => response,
            Err(error) => {
                // The pages of a refused origin may read nothing.
                if error.is_of_another_site() {
                    origin = None;
                }

                let mut response = self.format.write(&error, self.is_page_wanted);
                if self.needs_token {
                    bearer::challenge(endpoint, &error, &mut response);
                }
                response
            }
        };

        if self.format == Format::Link {
            add_safe_headers(&mut response);
        }
        cors::add_headers(self.cors, origin, &mut response);
        response
    }
}
