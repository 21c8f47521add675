//! Hostile bodies: a megabyte of small objects, and deep nesting.

use larder_bench::wire::{Connection, Prepared};

use super::*;

const MEGABYTE: usize = 1 << 20;

pub(super) async fn measure() -> Outcome {
    let mut table = Table::new(
        "Hostile bodies of 1 MB",
        &["Server", "Body", "Peak memory, times the body", "Response"],
    );
    let work = || Work::echo(Speech::Modern);
    for contender in [larder(work()).await?, rmcp(false, work()).await?] {
        for (name, params) in [("small objects", small_objects()), ("depth", depth())] {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{params},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
            );
            let request = Prepared::post(
                &body,
                &[
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", "echo"),
                ],
            );
            let mut connection = Connection::open(contender.peer.address).await?;
            // Warms up: the first requests allocate memory that stays.
            contender.work.run(contender.peer.address, 1, Duration::from_millis(200)).await?;
            contender.peer.forget_peak();
            let before = contender.peer.memory();
            let status = connection.exchange(&request, |_| {}).await.map(|(head, _)| head.status);
            let peak = contender.peer.peak().saturating_sub(before);
            #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 bytes")]
            let times = peak as f64 / body.len() as f64;
            let response =
                status.map_or_else(|error| error.to_string(), |status| status.to_string());
            table.row([contender.name, name, &format!("{times:.1}"), &response]);
        }
    }
    table.print();
    Ok(())
}

fn small_objects() -> String {
    let mut text = String::from(r#"{"text":"x","more":["#);
    while text.len() < MEGABYTE - 8 {
        text += "{},";
    }
    text + "{}]}"
}

fn depth() -> String {
    let half = MEGABYTE / 2;
    format!(r#"{{"text":{}{}}}"#, "[".repeat(half), "]".repeat(half))
}
