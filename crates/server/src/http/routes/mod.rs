//! The table of all routes of the server. The listener for operators has two more, which nobody
//! else reaches (`monitoring`).

mod fast_path;
mod pipeline;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    routing::{self, MethodRouter},
};
use http::Method;

pub use self::fast_path::FastPath;
use super::{
    Console, Endpoint, HttpOptions, RESOURCES_PATH, UPLOADS_PATH,
    authorization::{self, clients, pages as login_pages},
    console::{calls, events, files, login, oidc, operator, owners, traffic},
    content::{download, once, resources, upload as upload_link},
    error::{HttpError, Reply},
    monitoring::health,
    route::{Incoming, Route},
    surface::Surface,
    upstream_login::{account, pages as upstream_pages},
    well_known,
};
use crate::content_link::{DOWNLOAD_PATH, ONCE_PATH, UPLOAD_PATH};

/// The endpoint of a standalone server, with its probes.
pub fn service(endpoint: Arc<Endpoint>) -> FastPath {
    let options = endpoint.options.load_full();
    let routes = table(&Offered::by(&endpoint, &options));
    let router = with_routes(&endpoint, routes.into_iter().chain(probes()));

    FastPath { route: Arc::new(Route::mcp(&options.path)), endpoint, router }
}

/// The endpoint as a router, to be served or nested.
pub fn router(endpoint: &Arc<Endpoint>) -> Router {
    let options = endpoint.options.load_full();
    with_routes(endpoint, table(&Offered::by(endpoint, &options)))
}

fn with_routes(endpoint: &Arc<Endpoint>, routes: impl IntoIterator<Item = Route>) -> Router {
    let router = routes.into_iter().fold(Router::new(), |router, route| {
        let path = route.path.clone();
        router.route(&path, served(endpoint, route))
    });

    let unknown = Route::any(Surface::Unknown, "", "", unknown);
    router.fallback_service(served(endpoint, unknown))
}

/// A route as axum serves it. Its checks come before its methods, so axum passes on all of them.
fn served(endpoint: &Arc<Endpoint>, route: Route) -> MethodRouter {
    let endpoint = Arc::clone(endpoint);
    let route = Arc::new(route);

    routing::any(move |request: Request| async move {
        pipeline::serve(&route, &endpoint, request).await
    })
}

async fn unknown(Incoming { endpoint, .. }: Incoming) -> Reply {
    Err(HttpError::Path(endpoint.options().path.clone()))
}

/// Parts that a server may offer besides its endpoint.
struct Offered<'a> {
    /// The path of the endpoint.
    path: &'a str,
    content: bool,
    upstream_logins: bool,
    console: Option<&'a Console>,
    /// The paths of the metadata of the authorization server, if there is one.
    login_metadata: Option<Vec<String>>,
    /// The paths of the metadata of the protected resource.
    documents: Vec<&'a str>,
}

impl<'a> Offered<'a> {
    fn by(endpoint: &'a Endpoint, options: &'a HttpOptions) -> Self {
        let login = endpoint.login.as_deref();
        Self {
            path: &options.path,
            content: options.content,
            upstream_logins: endpoint.dispatcher.registry().has_logins(),
            console: endpoint.console.as_deref(),
            login_metadata: login
                .map(|login| authorization::metadata_paths(login.base_url(), &options.path)),
            documents: well_known::paths(endpoint).collect(),
        }
    }
}

/// All routes but the probes.
fn table(offered: &Offered<'_>) -> Vec<Route> {
    let base = offered.path.trim_end_matches('/');
    let mut table = vec![Route::mcp(offered.path)];
    if !offered.path.ends_with('/') {
        // Some clients end each URL with a slash.
        table.push(Route::mcp(&format!("{}/", offered.path)));
    }

    if offered.content {
        table.extend(content());
    }
    if offered.upstream_logins {
        table.extend(upstream_logins(&format!("{base}/upstreams/{{name}}")));
    }
    if let Some(offered) = offered.console {
        table.extend(console(offered));
    }
    if let Some(metadata) = &offered.login_metadata {
        table.extend(authorization_server(&format!("{base}/login"), metadata));
    }

    let documents = offered.documents.iter();
    table.extend(documents.map(|path| {
        let document = Route::open(Surface::Document, path);
        document.get(well_known::document).into()
    }));
    table
}

/// The probes of a standalone server.
fn probes() -> [Route; 3] {
    let probe = |path| Route::open(Surface::Probe, path);
    [
        probe(health::LIVENESS_PATH).get(health::alive).into(),
        probe(health::READINESS_PATH).get(health::ready).into(),
        probe(health::DEPENDENCIES_PATH).get(health::dependencies).into(),
    ]
}

/// Stored content, without MCP.
fn content() -> Vec<Route> {
    let upload = format!("{UPLOADS_PATH}/{{id}}");
    let download = format!("{DOWNLOAD_PATH}/{{*rest}}");
    let once_path = format!("{ONCE_PATH}/{{token}}");
    let link = format!("{UPLOAD_PATH}/{{token}}");
    let part = format!("{UPLOAD_PATH}/{{token}}/{{*id}}");

    vec![
        Route::of_callers(Surface::Resources, RESOURCES_PATH)
            .on(&[Method::GET, Method::HEAD], resources::read)
            .on(&[Method::PUT, Method::POST], resources::receive)
            .on(&[Method::DELETE], resources::delete)
            .on(&[Method::OPTIONS], resources::options)
            .into(),
        Route::of_callers(Surface::Resources, &upload)
            .on(&[Method::HEAD], resources::upload_status)
            .on(&[Method::PATCH], resources::append)
            .on(&[Method::DELETE], resources::cancel)
            .on(&[Method::OPTIONS], resources::upload_options)
            .into(),
        Route::any(Surface::Link, &download, "GET, HEAD", download::handle),
        Route::any(Surface::Link, &once_path, "GET, HEAD, POST", once::handle),
        Route::any(Surface::UploadLink, &link, upload_link::METHODS, upload_link::handle),
        Route::any(Surface::UploadLink, &part, upload_link::PART_METHODS, upload_link::handle_part),
    ]
}

/// Logins at upstreams: pages for browsers, and the account of a caller for terminals.
fn upstream_logins(base: &str) -> Vec<Route> {
    let page = |name: &str| Route::open(Surface::LoginPage, &format!("{base}/{name}"));
    vec![
        page("login").get(upstream_pages::confirm).post(upstream_pages::begin).into(),
        page("callback").get(upstream_pages::finish).into(),
        page("client.json").get(upstream_pages::client_document).into(),
        Route::of_callers(Surface::Account, &format!("{base}/account"))
            .on(&[Method::GET, Method::HEAD], account::show)
            .on(&[Method::POST], account::link)
            .on(&[Method::DELETE], account::log_out)
            .into(),
    ]
}

/// The console: its page, and the requests of the page.
fn console(console: &Console) -> Vec<Route> {
    let at = |name: &str| format!("{}/{name}", console.path());
    let page = |path: &str| Route::open(Surface::ConsolePage, path);
    let request = |name: &str| Route::open(Surface::Console, &at(name));

    vec![
        page(console.path()).get(files::redirect).into(),
        page(&at("")).get(files::page).into(),
        page(&at("app.js")).get(files::script).into(),
        page(&at("app.css")).get(files::style).into(),
        page(&at("pdf.js")).get(files::pdf).into(),
        page(&console.callback_path()).get(oidc::callback).into(),
        request("session").get(login::session).into(),
        request("login").post(login::log_in).into(),
        request("logout").post(login::log_out).into(),
        request("oidc").post(oidc::begin).into(),
        request("rpc").post(calls::call).into(),
        request("upstreams").get(operator::upstreams).into(),
        request("traffic").get(traffic::traffic).into(),
        request("owners").get(owners::list).into(),
        request("purge").post(owners::purge).into(),
        request("events").get(events::follow).into(),
    ]
}

/// The authorization server: pages for browsers, and JSON for clients.
fn authorization_server(base: &str, metadata: &[String]) -> Vec<Route> {
    let page = |name: &str| Route::open(Surface::LoginPage, &format!("{base}/{name}"));
    let client = |name: &str| Route::open(Surface::LoginClient, &format!("{base}/{name}"));

    let metadata = metadata.iter().map(|path| {
        let metadata = Route::open(Surface::LoginClient, path);
        metadata.get(clients::metadata).into()
    });

    let routes = [
        page("authorize").get(login_pages::authorize).into(),
        page("callback").get(login_pages::callback).into(),
        page("consent").get(login_pages::ask).post(login_pages::decide).into(),
        client("token").post(clients::token).into(),
        client("register").post(clients::register).into(),
        client("revoke").post(clients::revoke).into(),
        client("keys").get(clients::keys).into(),
    ];
    routes.into_iter().chain(metadata).collect()
}
