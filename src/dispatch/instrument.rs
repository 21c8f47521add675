//! What an operator sees of a call: a span in logs and traces, and numbers.

use std::{borrow::Cow, collections::HashMap};

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tokio::time::Instant;
use tracing::{Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::Reply;
use crate::{
    in_flight::InFlight,
    protocol::{Fault, Member, Method, Params, Trace, json_size},
    store::StoredBytes,
};

/// The span of a call. At the level of errors, so that each line of log about
/// the call bears its id whatever is logged.
pub(super) fn span(method: Method, tool: Option<&str>, trace: Option<&Trace>, id: &str) -> Span {
    let (name, tool) = (method.as_str(), tool.map(short));
    let (gap, called) = tool.map_or(("", ""), |tool| (" ", tool));
    let span = tracing::error_span!(
        "call",
        otel.name = format_args!("{name}{gap}{called}"),
        otel.kind = "server",
        mcp.method.name = name,
        gen_ai.tool.name = tool,
        error.type = Empty,
        call = id,
    );
    // The caller's trace goes on (2026-07-28, basic: OpenTelemetry Trace Context).
    if let Some(Trace { parent, state }) = trace {
        let mut carrier = HashMap::from([("traceparent".to_owned(), parent.clone())]);
        carrier.extend(state.clone().map(|state| ("tracestate".to_owned(), state)));
        // It fails where nobody traces.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
    }
    span
}

/// The tool that is called, by the caller's word.
pub(super) fn tool(method: Method, params: &Params) -> Option<String> {
    let name = || params.text(Member::Name).ok().flatten().map(Cow::into_owned);
    (method == Method::CallTool).then(name).flatten()
}

fn short(text: &str) -> &str {
    let end = text.char_indices().nth(80).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Measures a call from now until it is dropped: one that is dropped before
/// its outcome was cancelled.
pub(super) struct Measured {
    method: Method,
    tool: Option<String>,
    /// Bytes that came with the request.
    came: u64,
    stored_bytes: StoredBytes,
    begun: Instant,
    outcome: &'static str,
    _running: InFlight,
}

impl Measured {
    pub(super) fn new(
        method: Method,
        tool: Option<String>,
        params: &Params,
        stored_bytes: StoredBytes,
    ) -> Self {
        Self {
            method,
            tool,
            came: params.as_bytes().len() as u64,
            stored_bytes,
            begun: Instant::now(),
            outcome: "cancelled",
            _running: InFlight::new("larder_calls"),
        }
    }

    pub(super) fn ended(&mut self, outcome: &Result<Reply, Fault>) {
        self.outcome = match outcome {
            Ok(Reply::CallTool(result)) if result.is_error == Some(true) => "tool_error",
            Ok(_) => "",
            Err(_) => "error",
        };
        if outcome.is_err() {
            // A name that nothing here bears would be one more of any number.
            self.tool = None;
        }
        if !self.outcome.is_empty() {
            Span::current().record("error.type", self.outcome);
        }
        let stored = self.stored_bytes.bytes();
        if stored > 0
            && let Ok(reply) = outcome
        {
            let kept_out = stored.saturating_sub(self.came + size(reply));
            metrics::counter!("larder_context_kept_out_bytes_total").increment(kept_out);
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let tool = if self.outcome == "cancelled" { None } else { self.tool.take() };
        metrics::histogram!(
            "mcp_server_operation_duration_seconds",
            "mcp_method_name" => self.method.as_str(),
            "gen_ai_tool_name" => tool.unwrap_or_default(),
            "error_type" => self.outcome,
        )
        .record(self.begun.elapsed());
    }
}

/// Bytes of a tool's result as it goes out.
fn size(reply: &Reply) -> u64 {
    match reply {
        Reply::CallTool(result) => json_size(result) as u64,
        _ => 0,
    }
}
