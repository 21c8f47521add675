//! Arbitrary HTTP requests (method, headers and body) to a server with something of each kind:
//! every request gets a response, none is an internal error, and a JSON body is JSON-RPC.
//!
//! An input is written like a request of HTTP/1.1: `POST /mcp`, headers, an empty line, the
//! body. `$SESSION` in a header stands for the id of a session.

#![no_main]

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::{Router, body::Body};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt;
use larder::{
    Context, Prompt, Registry, Template, Tool, app::App, clock::ManualClock, config::Config,
    random::Random, tools,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Repeats a text.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the handlers repeat all their arguments")]
struct Echo {
    text: String,
    #[schemars(extend("x-mcp-header" = "Times"))]
    times: Option<u8>,
    deep: Option<Vec<Vec<Deep>>>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "it is only parsed")]
struct Deep {
    a: Option<f64>,
    b: bool,
}

struct Server {
    runtime: Runtime,
    clock: ManualClock,
    _app: App,
    router: Router,
    session: String,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clock = ManualClock::new();
    let echo =
        |_: Context, args: Echo| async move { args.text.repeat(args.times.unwrap_or(1).into()) };
    let read = |_: Context, variables: larder::Variables| async move {
        Ok::<_, larder::ResourceError>(variables["path"].clone())
    };
    let registry = Registry::builder("fuzz")
        .tool(Tool::new(echo))
        .prompt(Prompt::new(echo).name("say"))
        .template(Template::new("text:///{+path}", "text", read))
        .with(tools::reading(tools::ToolOptions::default()))
        .build()
        .unwrap();
    let (app, router) = runtime.block_on(async {
        let app =
            App::with(registry, Config::default(), Arc::new(clock.clone()), Random::counting());
        let app = app.unwrap();
        let router = app.router();
        (app, router)
    });
    let mut server = Server { runtime, clock, _app: app, router, session: String::new() };
    let initialize = "POST /mcp\nContent-Type: application/json\nAccept: application/json, text/event-stream\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"fuzz\",\"version\":\"1\"}}}";
    let request = server.request(initialize.as_bytes()).unwrap();
    let response = server.runtime.block_on(server.router.clone().oneshot(request)).unwrap();
    server.session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    server
});

impl Server {
    /// The request that an input describes, if it is one.
    fn request(&self, input: &[u8]) -> Option<Request<Body>> {
        let split = input.windows(2).position(|pair| pair == b"\n\n")?;
        let (head, body) = (&input[..split], input[split + 2..].to_vec());
        let mut lines = head.split(|byte| *byte == b'\n');
        let mut words = lines.next()?.split(|byte| *byte == b' ');
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = Method::from_bytes(words.next()?).ok()?;
        *request.uri_mut() = Uri::try_from(words.next()?).ok()?;
        for line in lines {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let value = match line[colon + 1..].trim_ascii() {
                b"$SESSION" => self.session.as_bytes(),
                value => value,
            };
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            request.headers_mut().append(name, HeaderValue::from_bytes(value).ok()?);
        }
        if !request.headers().contains_key(header::HOST) {
            request.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
        }
        Some(request)
    }
}

fuzz_target!(|input: &[u8]| {
    let server = &*SERVER;
    let Some(request) = server.request(input) else { return };
    // Old sessions expire, and no limit on requests is reached.
    server.clock.advance(Duration::from_secs(60));
    server.runtime.block_on(async {
        let response = server.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{response:?}");
        let is_json = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/json"));
        if !is_json {
            // A stream may have no end.
            return;
        }
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let json: Value = serde_json::from_slice(&body).unwrap();
        if status == StatusCode::OK && json.get("jsonrpc").is_some() {
            assert_eq!(json["jsonrpc"], "2.0");
            assert!(json.get("result").is_some() != json.get("error").is_some(), "{json}");
            // -32603: a handler panicked, or the server cannot encode what it found.
            assert_ne!(json["error"]["code"], -32603, "{json}");
        }
    });
});
