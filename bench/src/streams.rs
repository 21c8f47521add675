//! Streams: messages per second.

use std::time::Instant;

use futures_util::future::try_join_all;
use larder_bench::wire::{Connection, Prepared};
use serde_json::json;

use super::*;

const MESSAGES: u32 = 20_000;

pub(super) async fn measure(options: &Options) -> Outcome {
    let mut table = Table::new(
        "Progress messages on streams",
        &["Client", "Streams", "Messages/s here", "Ratio to one stream, modern"],
    );
    let count = |speech, to: u32| Work {
        params: json!({
            "name": "count", "arguments": { "to": to }, "_meta": { "progressToken": "t" },
        }),
        ..Work::echo(speech)
    };
    let mut first = None;
    for (name, speech) in [("modern", Speech::Modern), ("legacy", Speech::Sessions(1))] {
        for streams in [1_usize, 1_000] {
            #[allow(clippy::cast_possible_truncation, reason = "at most MESSAGES")]
            let each = MESSAGES / streams as u32;
            let contender = larder(count(speech, each)).await?;
            let measure = async |contender: &Contender| {
                let work = &contender.work;
                let session = match speech {
                    Speech::Sessions(_) => Some(work.session(contender.peer.address).await?),
                    _ => None,
                };
                let request = progress(work, session.as_deref());
                let mut connections = Vec::new();
                for _ in 0..streams {
                    connections.push(Connection::open(contender.peer.address).await?);
                }
                let begun = Instant::now();
                let counts = try_join_all(connections.iter_mut().map(async |connection| {
                    let mut messages = 0;
                    connection
                        .exchange(&request, |piece| {
                            messages += memchr::memmem::find_iter(piece, b"\"progress\":").count();
                        })
                        .await?;
                    Ok::<_, std::io::Error>(messages)
                }))
                .await?;
                let seen: usize = counts.into_iter().sum();
                // Messages that cross two pieces are not found.
                if seen * 10 < MESSAGES as usize * 9 {
                    return Err(format!("{seen} of {MESSAGES} messages came").into());
                }
                Ok(f64::from(MESSAGES) / begun.elapsed().as_secs_f64())
            };
            let rate = rounds(options, &[contender], measure, |rate| *rate).await?[0];
            let first = *first.get_or_insert(rate);
            let ratio = format!("{:.2}", rate / first);
            table.row([name, &streams.to_string(), &format!("{rate:.0}"), &ratio]);
        }
    }
    table.print();
    Ok(())
}

/// A request for progress. `Work::request` would replace the metadata that asks
/// for it.
fn progress(work: &Work, session: Option<&str>) -> Prepared {
    let mut meta = json!({ "progressToken": "t" });
    let mut headers = vec![];
    match work.speech {
        Speech::Modern => {
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "bench", "version": "1" });
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            headers.push(("mcp-protocol-version", "2026-07-28"));
            headers.push(("mcp-method", "tools/call"));
            headers.push(("mcp-name", "count"));
        }
        _ => headers.push(("mcp-protocol-version", "2025-11-25")),
    }
    headers.extend(session.map(|session| ("mcp-session-id", session)));
    let mut params = work.params.clone();
    params["_meta"] = meta;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    Prepared::post(&body.to_string(), &headers)
}
