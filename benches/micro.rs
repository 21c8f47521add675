//! The small operations on every request's path, each measured alone: run `cargo
//! bench --bench micro` before and after a change; criterion prints the difference.

#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, fmt::Write, hint::black_box, sync::Arc};

use bytes::Bytes;
use criterion::{Criterion, Throughput};
use futures_util::StreamExt;
use larder::{
    UriTemplate,
    auth::Owner,
    clock::SystemClock,
    dispatch::Reply,
    era::{Encoded, Era, ResponseEncoder, encode_reply},
    protocol::{Meta, ProtocolVersion, RequestId, has_at_most_values, parse},
    store::{Details, MemoryLimits, ResourceUri, Store, StoreLimits},
    workflow::UriPattern,
};
use rmcp::model::{CallToolResult, ContentBlock, Implementation};
use tokio::runtime::Runtime;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello, world"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Log lines with quotes, not only ASCII.
fn log(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    for n in 0_u64.. {
        writeln!(text, "2026-11-20 level=info request=\"GET /items/{n}\" took={}ms über", n % 997)
            .unwrap();
        if text.len() >= bytes {
            break;
        }
    }
    text
}

fn envelope(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("envelope");
    let call = Bytes::from_static(CALL.as_bytes());
    group.bench_function("a call", |b| b.iter(|| parse(black_box(&call))));
    let larder::protocol::Message::Request(request) = parse(&call).unwrap() else { return };
    group.bench_function("its _meta", |b| b.iter(|| Meta::read(black_box(&request.params))));
    let large = CALL.replace("hello, world", &"x".repeat(1 << 20));
    let large = Bytes::from(large);
    group.throughput(Throughput::Bytes(large.len() as u64));
    group.bench_function("a call of 1 MB", |b| b.iter(|| parse(black_box(&large))));
    let small = CALL.replace("\"hello, world\"", &format!("[{}1]", "{},".repeat(350_000)));
    group.throughput(Throughput::Bytes(small.len() as u64));
    group.bench_function("counting 1 MB of small values", |b| {
        b.iter(|| has_at_most_values(black_box(small.as_bytes()), 1_000_000));
    });
}

fn escaping(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("escaping");
    let runtime = Runtime::new().unwrap();
    let encoder = ResponseEncoder::new(
        Era::Modern,
        &Implementation::new("bench", "1"),
        ProtocolVersion::LATEST,
        Arc::default(),
    );
    for (name, text) in [("a log of 1 MB", log(1 << 20)), ("plain 1 MB", "x".repeat(1 << 20))] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        let encoded = async |text: String| {
            let result = CallToolResult::success(vec![ContentBlock::text(text)]);
            let reply = Reply::CallTool(Box::new(result.into()));
            match encode_reply(&RequestId::Number(1), reply, &encoder).await.unwrap() {
                Encoded::Complete(body) => body.len(),
                Encoded::Chunks(pieces) => {
                    pieces.fold(0, async |sum, piece| sum + piece.unwrap().len()).await
                }
            }
        };
        group.bench_function(name, |b| {
            b.iter(|| runtime.block_on(encoded(black_box(&text).clone())));
        });
    }
}

fn templates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("templates");
    let template = UriTemplate::parse("logs://{service}/{date}{?level,limit}").unwrap();
    group.bench_function("a URI is matched", |b| {
        b.iter(|| template.matches(black_box("logs://auth%20api/2026-11-20?level=warn&limit=10")));
    });
    let pattern = UriPattern::parse("logs://{service}/{+path}/{run}").unwrap();
    let values = [("service", "auth api"), ("path", "a/b/c.log"), ("run", "0123456789abcdef")];
    let values: BTreeMap<String, String> =
        values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    group.bench_function("a URI is built", |b| b.iter(|| pattern.fill(black_box(&values))));
}

fn blocks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("blocks");
    let runtime = Runtime::new().unwrap();
    let limits = MemoryLimits::default();
    let store = Store::memory(Arc::new(SystemClock), limits, StoreLimits::default());
    let (owner, uri) = (Owner::new("local"), ResourceUri::parse("log://bench").unwrap());
    let text = log(10 << 20);
    let lines = text.lines().count() as u64;
    let found = runtime.block_on(async {
        let (content, details) = (text.clone().into(), Details::default());
        store.create(&owner, uri.clone(), content, details).await.unwrap();
        store.get(&owner, &uri).await.unwrap()
    });
    // At any offset, a window costs only its blocks.
    for (name, first) in [("at the beginning", 0), ("in the middle", lines / 2)] {
        group.bench_function(format!("200 lines of 10 MB, {name}"), |b| {
            b.iter(|| runtime.block_on(found.lines(black_box(first), 200, 64 << 10)).unwrap());
        });
    }
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(20);
    group.bench_function("all of 10 MB", |b| {
        b.iter(|| {
            runtime.block_on(found.stream().fold(0, async |sum, piece| sum + piece.unwrap().len()))
        });
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for part in [envelope, escaping, templates, blocks] {
        part(&mut criterion);
    }
    criterion.final_summary();
}
