//! Each route has the checks of its surface, and writes errors in its format.

#![allow(clippy::unwrap_used)]

use std::{net::SocketAddr, time::Duration};

use axum::body::{Body, to_bytes};
use http::{HeaderMap, StatusCode, header};
use larder_oauth::{AuthOptions, Authenticator, Hierarchy, audit::UnknownCallers};
use larder_protocol::ProtocolVersion;
use larder_runtime::{
    clock::{Clock, ManualClock},
    key_ring::KeyRing,
    random::Random,
};
use larder_store::{
    session::{MemorySessions, SessionLimits, Sessions},
    store::{MemoryLimits, Store, StoreLimits},
    task::{MemoryTasks, TaskLimits},
    vault::MemorySlots,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tower::ServiceExt;

use super::*;
use crate::{
    admission::{AdmissionLimits, Limits},
    dispatch::{DispatchLimits, Dispatcher},
    era::{Legacy, Modern, StateSealer},
    http::{
        Dependencies, FormSlots, HttpOptions, RequestDurations, ServeLimits, SessionOptions,
        StopStages,
        route::{Handlers, Methods},
        serve,
        surface::Format,
    },
    registry::Registry,
};

fn endpoint(auth: AuthOptions) -> Arc<Endpoint> {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let random = Random::counting;
    let store = Store::memory(Arc::clone(&clock), MemoryLimits::default(), StoreLimits::default());
    let tasks = MemoryTasks::new(Arc::clone(&clock), random(), TaskLimits::default());
    let sessions = MemorySessions::new(Arc::clone(&clock), random(), SessionLimits::default());
    let sessions: Arc<dyn Sessions> = Arc::new(sessions);

    let dispatcher = Arc::new(Dispatcher::new(
        Registry::builder("test").build().unwrap(),
        store.clone(),
        Arc::new(tasks),
        random(),
        DispatchLimits::default(),
        Limits::new(AdmissionLimits::default(), Arc::clone(&clock)),
    ));

    let slots = Arc::new(MemorySlots::new(Arc::clone(&clock), 100_000));
    let options = SessionOptions { lifetime: Duration::from_secs(60), per_principal: 1 };
    let console =
        Console::new("/console", None, false, options, slots, Arc::clone(&clock), random());

    let max = ProtocolVersion::LATEST;
    let sealer = StateSealer::new(KeyRing::new(b"key".to_vec()), Arc::clone(&clock));
    let authenticator = Arc::new(Authenticator::new(auth, Arc::clone(&clock)).unwrap());

    Arc::new(Endpoint {
        options: Arc::new(arc_swap::ArcSwap::from_pointee(HttpOptions::default())),
        dispatcher: Arc::clone(&dispatcher),
        legacy: Arc::new(Legacy::new(Arc::clone(&dispatcher), Arc::clone(&sessions), max, false)),
        modern: Modern::new(Arc::clone(&dispatcher), sealer, max),
        authenticator: Arc::clone(&authenticator),
        protected: None,
        login: None,
        console: Some(Arc::new(console)),
        stages: StopStages::default(),
        dependencies: Dependencies::new(store, sessions, authenticator, dispatcher),
        forms: FormSlots::default(),
        unknown_callers: UnknownCallers::new(clock),
        random: random(),
        durations: RequestDurations::default(),
    })
}

/// An endpoint that knows no token.
fn closed() -> Arc<Endpoint> {
    endpoint(AuthOptions::Static { tokens: Vec::new(), hierarchy: Hierarchy::default() })
}

/// The routes of a server that offers everything.
fn all(endpoint: &Endpoint) -> Vec<Route> {
    let offered = Offered {
        path: "/mcp",
        content: true,
        upstream_logins: true,
        console: endpoint.console.as_deref(),
        login_metadata: Some(vec!["/.well-known/oauth-authorization-server".to_owned()]),
        documents: vec!["/.well-known/oauth-protected-resource"],
    };
    table(&offered).into_iter().chain(probes()).collect()
}

fn router(endpoint: &Arc<Endpoint>) -> Router {
    with_routes(endpoint, all(endpoint))
}

/// A path that the route serves.
fn example(route: &Route) -> String {
    let segment = |segment: &str| match segment.strip_prefix('{') {
        Some(parameter) if parameter.starts_with('*') => "x/y".to_owned(),
        Some(_) => "x".to_owned(),
        None => segment.to_owned(),
    };
    route.path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// A method that the route has.
fn method(route: &Route) -> &str {
    route.methods.split(", ").next().unwrap()
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    /// Whether the request was refused because of this setting. A response to HEAD has no text.
    fn is_refused_by(&self, setting: &str, method: &str) -> bool {
        let names_setting = method == "HEAD" || self.body.contains(setting);
        self.status == StatusCode::FORBIDDEN && names_setting
    }
}

async fn send(router: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = http::Request::builder().method(method).uri(path);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();

    let (parts, body) = response.into_parts();
    // A stream of events has no end.
    let body = tokio::time::timeout(Duration::from_secs(1), to_bytes(body, 1 << 20)).await;
    let body = body.map(Result::unwrap).unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    Answer { status: parts.status, headers: parts.headers, body }
}

/// The media type in which a surface writes errors to a program.
fn media_type(surface: Surface) -> &'static str {
    match surface.format() {
        Format::JsonRpc | Format::Message | Format::OAuth => "application/json",
        Format::Problem | Format::Link => "application/problem+json",
        Format::Page => "text/html; charset=utf-8",
    }
}

#[tokio::test]
async fn a_foreign_host_reaches_nothing_but_the_probes() {
    let endpoint = closed();
    let router = router(&endpoint);
    let unknown = ("GET".to_owned(), "/none".to_owned(), Surface::Unknown);
    let routes = all(&endpoint);
    let known =
        routes.iter().map(|route| (method(route).to_owned(), example(route), route.surface));

    for (method, path, surface) in known.chain([unknown]) {
        let answer = send(&router, &method, &path, &[("host", "evil.example")]).await;
        let is_refused = answer.is_refused_by("server.allowed_hosts", &method);
        assert_eq!(is_refused, surface != Surface::Probe, "{path}: {}", answer.body);
        if is_refused {
            assert_eq!(answer.headers[header::CONTENT_TYPE], media_type(surface), "{path}");
        }
    }
}

#[tokio::test]
async fn a_foreign_origin_is_refused_where_origins_are_checked() {
    let endpoint = closed();
    let router = router(&endpoint);
    let headers = [("host", "localhost"), ("origin", "http://evil.example")];

    for route in all(&endpoint) {
        let path = example(&route);
        let answer = send(&router, method(&route), &path, &headers).await;
        let is_refused = answer.is_refused_by("server.allowed_origins", method(&route));

        let is_checked = match route.surface {
            Surface::Mcp
            | Surface::Resources
            | Surface::Account
            | Surface::Link
            | Surface::UploadLink
            | Surface::Unknown => true,
            Surface::Console
            | Surface::ConsolePage
            | Surface::LoginPage
            | Surface::LoginClient
            | Surface::Document
            | Surface::Probe => false,
        };
        assert_eq!(is_refused, is_checked, "{path}: {}", answer.body);

        if is_checked {
            assert_eq!(answer.headers[header::CONTENT_TYPE], media_type(route.surface), "{path}");
            let readable = answer.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
            assert_eq!(readable, None, "{path}");
        }
    }

    let answer = send(&router, "GET", "/none", &headers).await;
    assert!(answer.body.contains("server.allowed_origins"), "{}", answer.body);
}

#[tokio::test]
async fn only_pages_that_may_call_read_the_responses() {
    let endpoint = closed();
    let router = router(&endpoint);
    let headers = [("host", "localhost"), ("origin", "http://localhost:6274")];

    for route in all(&endpoint) {
        let expected = match route.surface {
            Surface::Mcp | Surface::Resources | Surface::UploadLink => {
                Some("http://localhost:6274")
            }
            Surface::LoginClient | Surface::Document => Some("*"),
            _ => None,
        };

        let path = example(&route);
        let answer = send(&router, method(&route), &path, &headers).await;
        let allowed = answer.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        assert_eq!(allowed.map(|origin| origin.to_str().unwrap()), expected, "{path}");
    }
}

#[tokio::test]
async fn routes_of_callers_need_a_token_and_no_others_do() {
    let endpoint = closed();
    let router = router(&endpoint);

    for route in all(&endpoint) {
        let needs_token =
            matches!(route.surface, Surface::Mcp | Surface::Resources | Surface::Account);
        assert_eq!(route.handlers.need_token(), needs_token, "{}", route.path);

        let path = example(&route);
        for authorization in [None, Some(("authorization", "Bearer wrong"))] {
            let headers: Vec<_> =
                [("host", "localhost")].into_iter().chain(authorization).collect();
            let answer = send(&router, method(&route), &path, &headers).await;

            let challenge = answer.headers.get(header::WWW_AUTHENTICATE);
            assert_eq!(challenge.is_some(), needs_token, "{path}: {}", answer.body);
            if needs_token {
                assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
                assert_eq!(answer.headers[header::CONTENT_TYPE], media_type(route.surface));
            }
        }
    }
}

#[tokio::test]
async fn a_refused_link_is_a_page_for_a_person() {
    let router = router(&closed());
    let browser = ("accept", "text/html,application/xhtml+xml");
    for headers in [
        [browser, ("host", "evil.example"), ("x-none", "")],
        [browser, ("host", "localhost"), ("origin", "http://evil.example")],
        [browser, ("host", "localhost"), ("x-none", "")],
    ] {
        let answer = send(&router, "GET", "/content/d/x/y", &headers).await;
        assert!(answer.status.is_client_error());
        assert_eq!(answer.headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        let (policy, style) = policy.rsplit_once("; style-src ").unwrap();
        assert_eq!(policy, "sandbox; default-src 'none'");
        assert!(style.starts_with("'sha256-") && !style.contains(' '), "{style}");
    }
}

#[tokio::test]
async fn a_browser_learns_what_this_is_and_clients_get_messages() {
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    for endpoint in [closed(), endpoint(AuthOptions::None)] {
        let router = router(&endpoint);
        for path in ["/", "/mcp", "/mcp/"] {
            let page = send(&router, "GET", path, &[("host", "localhost"), browser]).await;
            assert_eq!(page.status, StatusCode::OK, "{path}");
            assert_eq!(page.headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
            assert!(page.body.contains("http://localhost/mcp</code>"), "{}", page.body);
            assert!(page.body.contains("claude mcp add --transport http"), "{}", page.body);
            assert!(page.headers.get(header::WWW_AUTHENTICATE).is_none());

            let accept = ("accept", "application/json, text/event-stream");
            let answer = send(&router, "GET", path, &[("host", "localhost"), accept]).await;
            assert!(answer.status.is_client_error(), "{path}");
            assert_eq!(answer.headers[header::CONTENT_TYPE], "application/json", "{path}");
        }

        let none = send(&router, "GET", "/none", &[("host", "localhost"), browser]).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND);
        assert!(none.body.contains("Nothing is here"), "{}", none.body);
        let foreign = send(&router, "GET", "/", &[("host", "evil.example"), browser]).await;
        assert!(foreign.status.is_client_error() && !foreign.body.contains("claude mcp"));
        let post = send(&router, "POST", "/", &[("host", "localhost"), browser]).await;
        assert_eq!(post.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn programs_that_accept_html_get_messages() {
    let java = ("accept", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2");
    let both = ("accept", "application/json, text/event-stream, text/html");
    let router = router(&closed());
    for path in ["/", "/mcp", "/none"] {
        for (method, headers) in [
            ("POST", vec![java]),
            ("DELETE", vec![java]),
            ("GET", vec![java, ("authorization", "Bearer x")]),
            ("GET", vec![java, ("mcp-protocol-version", "2025-06-18")]),
            ("GET", vec![java, ("mcp-session-id", "x")]),
            ("GET", vec![both]),
            ("GET", vec![java, ("accept", "Text/Event-Stream;q=0.5")]),
        ] {
            let all: Vec<_> = [("host", "localhost")].into_iter().chain(headers).collect();
            let answer = send(&router, method, path, &all).await;
            assert!(answer.status.is_client_error(), "{method} {path}: {all:?}");
            let media_type = answer.headers.get(header::CONTENT_TYPE);
            assert!(
                media_type.is_none_or(|it| it == "application/json"),
                "{method} {path} {all:?}"
            );
        }
    }
}

#[tokio::test]
async fn other_methods_are_refused_with_those_that_are_allowed() {
    let endpoint = endpoint(AuthOptions::None);
    let router = router(&endpoint);

    for route in all(&endpoint) {
        let path = example(&route);
        let answer = send(&router, "TRACE", &path, &[("host", "localhost")]).await;

        if matches!(&route.handlers, Handlers::Open(Methods::Any(_))) {
            // The subject of a link shows only to its holder.
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        } else {
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
            assert_eq!(answer.headers[header::ALLOW], *route.methods, "{path}");
            assert_eq!(answer.headers[header::CONTENT_TYPE], media_type(route.surface), "{path}");
        }
    }
}

#[tokio::test]
async fn an_oversized_head_is_refused_at_every_path() {
    let endpoint = closed();
    let paths: Vec<_> = all(&endpoint).iter().map(example).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ServeLimits::default();
    let served = serve(listener, None, router(&endpoint), &limits, std::future::pending());

    let refused = async {
        for path in paths {
            let status = status_of_oversized(address, &path).await;
            assert_eq!(status, "431", "{path}");
        }
    };

    tokio::select! {
        ended = served => panic!("the server ended: {ended:?}"),
        () = refused => {}
    }
}

/// The status of a request with more headers than a request has.
async fn status_of_oversized(address: SocketAddr, path: &str) -> String {
    let many = "x-many: 1\r\n".repeat(200);
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");

    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response.split(' ').nth(1).unwrap_or_default().to_owned()
}
