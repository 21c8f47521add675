//! What searching everything costs: `search_resources` over 100 MB in memory,
//! as one resource and as a thousand, against the engine alone on the same bytes.
//!
//! `cargo bench --bench search`

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]
#![allow(clippy::cast_precision_loss)]

use std::{fmt::Write, time::Instant};

use axum::{
    body::Body,
    http::{Request, header},
};
use grep_regex::RegexMatcherBuilder;
use grep_searcher::{SearcherBuilder, sinks::Bytes};
use larder::{
    app::App,
    auth::Owner,
    config::Config,
    registry::Registry,
    store::{Details, ResourceUri},
    tools::{self, ToolOptions},
};
use tower::ServiceExt;

const LINES: usize = 1_000_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut log = String::new();
    for n in 0..LINES {
        let level = if n % 100_000 == 77 { "a Timeout of the disk" } else { "ok" };
        writeln!(
            log,
            "2026-01-01T00:00:00Z host-{:03} {level} request {n} {}",
            n % 500,
            "x".repeat(50)
        )
        .unwrap();
    }
    println!("{} MB in {LINES} lines", log.len() / 1_000_000);
    let alone = best(|| {
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(true)
            .line_terminator(Some(b'\n'))
            .build("timeout|disk")
            .unwrap();
        let mut lines = 0;
        let sink = Bytes(|_, _| {
            lines += 1;
            Ok(true)
        });
        SearcherBuilder::new().build().search_slice(matcher, log.as_bytes(), sink).unwrap();
        assert_eq!(lines, LINES / 100_000);
    });
    println!("the engine alone: {alone:.3} s, {:.0} MB/s", log.len() as f64 / 1e6 / alone);
    for resources in [1, 1_000] {
        let app = runtime.block_on(async {
            let registry =
                Registry::builder("bench").with(tools::reading(ToolOptions::default())).build();
            let app = App::new(registry.unwrap(), Config::default()).unwrap();
            let each = LINES / resources;
            let lines: Vec<_> = log.split_inclusive('\n').collect();
            for (at, part) in lines.chunks(each).enumerate() {
                let uri = ResourceUri::parse(&format!("log://{at}")).unwrap();
                let content = part.concat().into();
                app.store()
                    .create(&Owner::new("local"), uri, content, Details::default())
                    .await
                    .unwrap();
            }
            app
        });
        let router = app.router();
        let took = best(|| {
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_resources","arguments":{"query":"timeout disk"}}}"#;
            let request = Request::post("/mcp")
                .header(header::HOST, "localhost")
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json")
                .body(Body::from(body))
                .unwrap();
            let said = runtime.block_on(async {
                let response = router.clone().oneshot(request).await.unwrap();
                axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap()
            });
            let said = String::from_utf8_lossy(&said);
            assert!(said.contains("a Timeout of the disk") && said.contains("Complete."), "{said}");
        });
        println!(
            "search_resources, {resources} resources: {took:.3} s, {:.2} x the engine alone",
            took / alone
        );
    }
}

/// The shortest of some runs, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
    let runs = (0..5).map(|_| {
        let begin = Instant::now();
        run();
        begin.elapsed().as_secs_f64()
    });
    runs.fold(f64::INFINITY, f64::min)
}
